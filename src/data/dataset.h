// Items described by several views, with gaps, and labels that are known only in part.
//   X_v (n, d_v)  features of view v, dense or sparse; rows of missing instances are never read
//   W   (n, m)    1 = the item has the view
//   Y   (n, c)    three values: 1, 0, unknown (-1)
// A Dataset is read-only once built, cheap to copy (its tables are shared) and possibly memory-mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

constexpr std::int8_t kUnknown = -1;             // an unknown label
constexpr const char* kSingleView = "features";  // the view of a table that was read alone

// Compressed sparse rows: row i holds columns index[start[i]..start[i+1]) in rising order, each once.
struct Csr {
  Table<std::uint64_t> start;  // (1, n + 1)
  Table<std::uint32_t> index;  // (1, nonzeros)
  Table<float> value;          // (1, nonzeros)
  std::size_t columns = 0;
};

// A vector is a column when it is read; the parts of sparse rows are rows.
template <class T>
Table<T> as_row(Matrix<T> matrix) {
  auto owner = std::make_shared<Matrix<T>>(std::move(matrix));
  return {owner, MatrixView<const T>(owner->data(), 1, owner->rows() * owner->cols())};
}

struct View {
  std::string name;
  std::variant<Table<float>, Csr> features;  // (n, d_v)
  std::vector<std::string> column_names;     // empty, or d_v
  std::string source_type = "float32";  // element type in the file it came from ("uint16", "float64", ...)

  std::size_t columns() const;
  std::size_t rows() const;
  bool sparse() const { return std::holds_alternative<Csr>(features); }
  void copy_row(std::size_t i, std::span<float> out) const;  // densified; out has columns() values
};

struct Dataset {
  std::string name, source, licence;
  std::size_t rows = 0;
  std::vector<View> views;
  Table<std::uint8_t> present;           // W (n, m); empty = every item has every view
  Table<std::int8_t> labels;             // Y (n, c); empty = no labels in the data
  std::vector<std::string> label_names;  // c names; made up ("label0") where the file has none
  std::vector<std::string> ids;          // empty, or n distinct ids
  bool empty_cells = false;  // present instances may hold NaN, for a model to fill with its training means
  std::vector<std::string> notes;  // what the reader decided that a user should know; for stderr, not content

  bool has(std::size_t i, std::size_t v) const { return present.empty() || present(i, v) != 0; }
  std::size_t label_count() const { return label_names.size(); }
  std::size_t view_index(const std::string& view_name) const;  // views.size() if there is none
  // Throws Exit::data (with `where` in front) if there is nothing in it, shapes disagree, a name or an id is
  // used twice or is no UTF-8 text, a label is not 1, 0 or unknown, or a present instance holds a non-finite
  // value. Readers call it last. Scan::shapes leaves the values unread: for native folders, whose values were
  // checked when written.
  enum class Scan { shapes, values };
  void check(const std::string& where, Scan scan = Scan::values) const;
};

// Throws Exit::data unless the compressed rows of a sparse view are sound: starts rising, columns rising and
// in range. Whoever reads such rows from a file calls it before using them.
void check_sparse(const View& view, const std::string& where);
// The rows of `data` at the given positions, in that order (views, gaps, labels, ids); a deep copy.
Dataset select_rows(const Dataset& data, std::span<const std::uint32_t> rows);
// A hash of everything that a model can learn from: sizes, names, features of present instances, gaps,
// labels. It does not depend on the file format, nor on whether a view is dense or sparse.
std::string content_hash(const Dataset& data);

}  // namespace lacuna
