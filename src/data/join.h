// Joins several tables, one per view and one with labels, into one data set: by the ids of their rows if they have
// ids, by position if none has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "data/dataset.h"
#include "data/flat_table.h"

namespace lacuna {

struct TableSpec {
  std::string name;                // of the view
  std::vector<std::string> files;  // rows of several files follow each other
  bool transpose = false;
  std::string ids_file, columns_file;  // names in files of their own
  std::string use;                     // column ranges; empty = all
  ReadOptions read;
};

// One name per line, or a text array.
std::vector<std::string> read_names(const std::string& path);

class Join {
 public:
  // `where` begins every message. A folder of tables does not say how they belong together; `wary` refuses
  // likely mistakes: ids in some tables only, ids of different meaning, hardly any ids in common.
  Join(std::string where, bool wary) : where_(std::move(where)), wary_(wary) {}

  void add_view(const TableSpec& spec);
  void add_view(View view, std::vector<std::string> ids);  // as it is
  void add_labels(const TableSpec& spec, const std::string& label_names_file);
  // `order`: the ids in the order of the items; none = in the order of their first occurrence. With row numbers the
  // data set has no ids.
  Dataset finish(std::vector<std::string> order, std::optional<std::uint64_t> row_numbers);

  View& last_view() { return data_.views.back(); }
  bool arrays_only() const { return arrays_only_; }  // every view is an array that is used unchanged
  const std::vector<std::string>& ignored() const { return ignored_; }
  bool id_column_found() const;  // some table has the column that the user named

 private:
  struct NumberColumn {  // whole numbers, all different: they may be unrecognised ids
    std::string name;
    std::vector<std::string> values;
  };
  struct Part {  // a view, or the labels
    std::string name, file;
    std::size_t rows = 0;
    std::vector<std::string> ids;
    bool has_ids = false;
    std::string id_name;
    bool named_by_user = false;  // the column of ids
    bool row_numbers = false;    // the ids only number the rows
    bool turned = false;         // the table was transposed
    std::vector<NumberColumn> numbers;
  };
  FlatTable read_files(const TableSpec& spec, const std::string& name);
  void add_part(const TableSpec& spec, FlatTable& table, std::string name, std::size_t rows);
  // join_checks.cc: checks for likely mistakes.
  static std::vector<NumberColumn> number_columns(const FlatTable& table);
  void check_ids();
  void check_named();
  void check_row_numbers();
  void check_hidden_ids();
  void check_upright();
  void check_meanings() const;
  void check_common(std::size_t k);
  void check_list_name() const;
  void tell_overlap();
  void tell_misspelt();
  std::unordered_set<std::string_view> ids_besides(std::size_t k) const;
  std::vector<std::vector<std::int64_t>> place(const std::vector<std::string>& order);

  std::string where_;
  bool wary_ = false, arrays_only_ = true;
  Dataset data_;
  std::vector<Part> parts_;                         // the views, then the labels
  std::vector<std::vector<std::uint8_t>> present_;  // of each view's own rows; empty = all
  std::vector<std::string> ignored_;
  std::string list_name_;  // the column of classes or tags
};

}  // namespace lacuna
