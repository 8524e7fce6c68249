// The table in one file, before its columns become views and labels. CSV, ARFF, LIBSVM, LEAR vectors, Matrix Market and
// NumPy arrays are read into this; `assemble` turns one into a data set, dataset.toml joins several.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "data/dataset.h"
#include "data/readers.h"

namespace lacuna {

struct FlatTable {
  struct Column {  // of the file; a nominal attribute with more than two values takes one column per value
    std::string name;
    std::size_t first = 0, width = 1;
  };
  std::vector<Column> columns;             // empty = one unnamed column for each of `values`
  std::vector<std::string> value_names;    // one per column of `values`; empty = the file has no names
  std::variant<Table<float>, Csr> values;  // (n, d); NaN = an empty cell
  std::vector<std::string> ids;            // empty, or n
  bool has_ids = false;                    // it has a column of ids, called
  std::string id_name;                     //   so;
  bool id_named = false;                   //   the user named it;
  bool row_numbers = false;                //   it only numbers the rows
  std::vector<std::string> classes;        // of the class column, if one was requested
  std::vector<std::string> tags;           // of a column with a tag list per row
  std::string list_name;                   // the column of classes or tags
  std::vector<std::string> ignored;        // columns that were dropped on request
  std::vector<std::size_t> label_columns;  // columns of the file that it declares to be labels itself
  Table<std::int8_t> labels;               // labels that are not columns (LIBSVM, lists); empty otherwise
  std::vector<std::string> label_names;    // of `labels`
  std::string source_type = "float32";
  std::vector<std::string> notes;

  std::size_t rows() const;
  std::size_t width() const;  // columns of `values`
  std::size_t column_count() const { return columns.empty() ? width() : columns.size(); }
  Column column(std::size_t c) const { return columns.empty() ? Column{"", c, 1} : columns[c]; }
};

FlatTable read_csv(const std::string& path, const ReadOptions& options);
FlatTable read_table(const std::string& path, const std::string& format, const ReadOptions& options);

FlatTable transposed(FlatTable&& table);
Table<float> transposed(const Table<float>& from);
Csr transposed(const Csr& from);

// "0-3+17" as column positions, rising or not; Exit::usage unless all lie below `count`.
std::vector<std::size_t> parse_ranges(std::string_view text, std::size_t count, const std::string& where);
// A column by name or by number (negative: from the end).
std::size_t find_column(const FlatTable& table, const std::string& column, const std::string& where);
// The given columns of the file as a view. `all` columns move without a copy.
View take_view(FlatTable& table, const std::vector<std::size_t>& columns);
Matrix<float> take_dense(const FlatTable& table, const std::vector<std::size_t>& columns);
// Rows whose cells are all empty are missing (0 in the result); rows with some are treated as `empty` says
// (refuse, zero, or mean: left to the model, and data.empty_cells says so).
std::vector<std::uint8_t> settle_empty_cells(View& view, const std::string& empty, const std::string& where,
                                             Dataset& data);
// The labels of the table: its own, declared or chosen columns, or its class column. Gives the columns that
// are left.
std::vector<std::size_t> take_labels(FlatTable& table, const ReadOptions& options, const std::string& where,
                                     Dataset& data);

Dataset assemble(FlatTable&& table, const ReadOptions& options, const std::string& where);

// One cell of a text file. Empty, ?, NaN, NA, null and their kin are NaN. False where it is no number, or an
// integer that float32 cannot hold exactly.
bool parse_cell(std::string_view cell, float& out);
// yes and no, true and false, in any case, as 1 and 0.
bool parse_yes_no(std::string_view cell, float& out);
// A cell with nothing in it: NaN like any other absent number, but to be told from NA where labels are read.
inline const float kBlankCell = std::bit_cast<float>(0x7FC00001u);
// Why float32 does not hold a number that was written as `shown`, and what to do.
std::string why_no_float(double value, std::string_view shown);
// Why a cell is no number: "has thousands separators; write 1234,5" or "is not a number".
std::string why_no_number(std::string_view shown);
[[noreturn]] void refuse_cell(const std::string& where, std::size_t line, const std::string& column,
                              std::string_view cell);

// A header may promise rows and columns that cost memory but no bytes of the file; they must stay in
// proportion to it.
void check_backed(std::uint64_t count, std::uint64_t bytes, const char* what, const std::string& where);

std::vector<std::string> read_lines(
    const std::string& path);  // one name per line; .csv files: the first cell of each row

// Builds compressed rows in rising order.
class CsrBuilder {
 public:
  void add(std::uint32_t column, float value) {
    index_.push_back(column);
    value_.push_back(value);
  }
  // Ends a row: sorts it, drops zeros. Returns a column that came twice, or -1.
  std::int64_t end_row();
  std::size_t rows() const { return start_.size() - 1; }
  Csr finish(std::size_t columns);

 private:
  std::vector<std::uint64_t> start_{0};
  std::vector<std::uint32_t> index_;
  std::vector<float> value_;
};

// Lines of a text, with their numbers from 1; \r is cut.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool next(std::string_view& line);
  std::size_t number() const { return number_; }

 private:
  std::string_view rest_;
  std::size_t number_ = 0;
};

}  // namespace lacuna
