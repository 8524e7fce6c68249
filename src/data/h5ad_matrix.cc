#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/flat_table.h"
#include "data/h5ad.h"
#include "data/names.h"

namespace lacuna {
namespace {

// Whether the columns of each row rise. Throws where one lies outside the matrix.
bool sorted_rows(const Csr& csr, const char* what, const std::string& where) {
  std::atomic<bool> sorted = true;
  parallel_for(csr.start.cols() - 1, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      bool rising = true;
      std::uint32_t largest = 0, before = 0;
      const std::uint64_t first = csr.start(0, i), last = csr.start(0, i + 1);
      for (std::uint64_t k = first; k < last; ++k) {
        const std::uint32_t column = csr.index(0, k);
        rising = rising && (k == first || column > before);
        largest = std::max(largest, column);
        before = column;
      }
      if (first < last && largest >= csr.columns)
        fail(Exit::data, "{}: a value lies in {} {} of {}", where, what, largest, csr.columns);
      if (!rising) sorted = false;
    }
  });
  return sorted;
}

// Rows as SciPy may leave them (in any order, a column more than once, which means the sum) as ours. `what`
// is called a column here.
Csr in_order(Csr from, const char* what, const std::string& where) {
  const std::size_t rows = from.start.cols() - 1;
  if (from.start(0, 0) != 0 || from.start(0, rows) != from.value.cols() ||
      from.index.cols() != from.value.cols())
    fail(Exit::data, "{}: {} indices and {} values, but indptr goes from {} to {}", where, from.index.cols(),
         from.value.cols(), from.start(0, 0), from.start(0, rows));
  for (std::size_t i = 0; i < rows; ++i)
    if (from.start(0, i) > from.start(0, i + 1))
      fail(Exit::data, "{}: indptr falls from {} to {} at {}", where, from.start(0, i), from.start(0, i + 1),
           i + 1);
  if (sorted_rows(from, what, where)) return from;
  CsrBuilder builder;
  std::vector<std::pair<std::uint32_t, float>> row;
  for (std::size_t i = 0; i < rows; ++i) {
    row.clear();
    for (std::uint64_t k = from.start(0, i); k < from.start(0, i + 1); ++k)
      row.emplace_back(from.index(0, k), from.value(0, k));
    std::ranges::stable_sort(row, {}, &std::pair<std::uint32_t, float>::first);
    for (std::size_t k = 0; k < row.size();) {
      float sum = 0;
      const std::uint32_t column = row[k].first;
      for (; k < row.size() && row[k].first == column; ++k) sum += row[k].second;
      builder.add(column, sum);
    }
    builder.end_row();
  }
  return builder.finish(from.columns);
}

FileMatrix sparse_at(Hdf5File& file, const std::string& at, bool by_rows, const std::string& where) {
  auto shape = file.attribute(at, "shape");
  if (!shape) shape = file.attribute(at, "h5sparse_shape");
  if (!shape) fail(Exit::data, "{}: a sparse matrix without a shape", where);
  const auto sizes = to_integers<std::uint64_t>(*shape, where);
  if (sizes.values().size() != 2)
    fail(Exit::data, "{}: the shape has {} numbers, expected 2", where, sizes.values().size());
  const std::uint64_t rows = sizes.values()[0], columns = sizes.values()[1];
  if (rows > UINT32_MAX || columns > UINT32_MAX)
    fail(Exit::data, "{}: {} x {} values are implausible", where, rows, columns);
  check_backed(by_rows ? columns : rows, file.bytes(), by_rows ? "columns" : "rows", where);
  FileMatrix out;
  Array values = file.read(at + "/data");
  out.source_type = element_name(values.type);
  Csr csr;
  csr.columns = by_rows ? columns : rows;
  csr.start = as_row(to_integers<std::uint64_t>(file.read(at + "/indptr"), where));
  csr.index = as_row(to_integers<std::uint32_t>(file.read(at + "/indices"), where));
  const Table<float> numbers = to_floats(values, where);
  values = {};
  csr.value = Table<float>(std::make_shared<Table<float>>(numbers),
                           {numbers.view().data, 1, numbers.rows() * numbers.cols()});
  const std::uint64_t lines = by_rows ? rows : columns;
  if (csr.start.cols() != lines + 1)
    fail(Exit::data, "{}: has {} {} but {} starts (indptr)", where, lines, by_rows ? "rows" : "columns",
         csr.start.cols());
  csr = in_order(std::move(csr), by_rows ? "column" : "row", where);
  out.features = by_rows ? std::move(csr) : transposed(csr);
  return out;
}

FileMatrix frame_at(Hdf5File& file, const std::string& at, const std::string& where) {
  const Frame frame(file, at, "");
  const auto names = frame.names();
  FileMatrix out;
  out.source_type = "float64";
  Matrix<float> values(names.size(), frame.columns().size());
  for (std::size_t j = 0; j < frame.columns().size(); ++j) {
    const FrameColumn column = frame.column(frame.columns()[j]);
    if (column.kind == FrameColumn::Kind::categories || column.rows() != names.size())
      fail(Exit::data, "{}: the column '{}' does not hold one number per row", where, frame.columns()[j]);
    for (std::size_t i = 0; i < names.size(); ++i) values(i, j) = column.values[i];
    out.column_names.push_back(utf8_or_latin1(frame.columns()[j]));
  }
  out.features = Table<float>(std::move(values));
  return out;
}

}  // namespace

FileMatrix matrix_at(Hdf5File& file, const std::string& at) {
  const std::string where = fmt::format("{}: '{}'", file.path(), at);
  const auto info = file.info(at);
  if (info.kind == Hdf5File::Kind::group) {
    if (is_frame(file, at)) return frame_at(file, at, where);
    std::string format = file.text_attribute(at, "encoding-type");
    if (format.empty()) format = file.text_attribute(at, "h5sparse_format");
    if (format == "csr" || format == "csr_matrix") return sparse_at(file, at, true, where);
    if (format == "csc" || format == "csc_matrix") return sparse_at(file, at, false, where);
    fail(Exit::data, "{}: is {}, expected a dense or sparse matrix", where,
         format.empty() ? "a group" : fmt::format("encoded as '{}'", format));
  }
  const Array array = file.read(at);
  if (array.shape.empty() || array.type == Element::text)
    fail(Exit::data, "{}: is {}, expected a matrix of numbers", where,
         array.type == Element::text ? "text" : "a single value");
  return {to_floats(array, where), {}, element_name(array.type)};
}

}  // namespace lacuna
