// Items as lines of CSV or TSV, one per line, for streams. The first line may contain column names. They are matched
// with the model's, either plain ("glucose") or prefixed by the view ("blood:glucose") if a plain name would match two
// views. If one side has no names, columns are taken in order: the id if there is one, then the columns of the first
// view, of the second, and so on. A view none of whose columns is present is missing; so is a view whose cells are all
// empty.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/item_block.h"

namespace lacuna {

struct CsvItemsOptions {
  char separator = 0;           // 0 = the one of , ; and tab that the first line has most of
  std::string header = "auto";  // whether the first line holds names: auto, yes, no
  std::string id_column;        // name, or number from 0; empty = found by its name
};

class CsvItems {
 public:
  // Looks at the first line. Exit::mismatch, with names and counts, if its columns are not the model's.
  CsvItems(std::string_view first_line, const std::vector<ViewShape>& views, const CsvItemsOptions& options);

  bool has_header() const { return has_header_; }  // otherwise the first line is an item
  bool by_name() const { return by_name_; }
  char separator() const { return separator_; }
  std::string told() const;  // what was decided, for stderr

  // R writes no name for the column of ids: where the first item has a cell more than there are names, its first cell
  // is the id. Before the first parse().
  void see_first_item(std::string_view line);
  // Parses a line into row i of the block; Exit::data on error, the row is then cleared. Re-entrant. Where the
  // separator is not the comma, numbers may have decimal commas: the kind found is returned, for the caller, which
  // sees all lines.
  static constexpr unsigned kPoint = 1, kComma = 2;
  unsigned parse(std::string_view line, ItemBlock& block, std::size_t i) const;

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Place {
    std::size_t view = kNone, column = 0;  // view kNone: the id, or row numbers before it
  };
  std::vector<std::string> split(std::string_view line) const;
  bool read_number(std::string_view cell, float& value, unsigned& met) const;
  bool next_cell(std::string_view& rest, std::string_view& cell, std::string& scratch) const;
  void match_names(const std::vector<std::string>& cells, const std::vector<ViewShape>& views);
  void match_order(std::size_t width, const std::vector<ViewShape>& views);

  char separator_;
  bool has_header_ = false, by_name_ = false;
  std::size_t id_ = kNone;
  std::string id_name_, order_;      // order_: of the views, where columns are taken by position
  std::vector<Place> places_;        // one per cell
  std::vector<std::uint8_t> there_;  // one per view: it has columns here
  std::vector<std::string> cell_names_;
};

}  // namespace lacuna
