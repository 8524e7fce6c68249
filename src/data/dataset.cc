#include "data/dataset.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/names.h"
#include "data/release.h"

namespace lacuna {
namespace {

constexpr std::size_t kRowGrain = 64;

const Csr& csr(const View& view) {
  return std::get<Csr>(view.features);
}
const Table<float>& dense(const View& view) {
  return std::get<Table<float>>(view.features);
}

// f(column, value) for each stored value of row i.
template <class F>
void for_row(const View& view, std::size_t i, F&& f) {
  if (view.sparse()) {
    const Csr& s = csr(view);
    for (std::uint64_t k = s.start(0, i); k < s.start(0, i + 1); ++k)
      f(std::size_t{s.index(0, k)}, s.value(0, k));
  } else {
    const auto row = dense(view).row(i);
    for (std::size_t j = 0; j < row.size(); ++j) f(j, row[j]);
  }
}

// By exponent bits alone, which the compiler turns into vector code.
bool all_finite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7F800000;
  std::uint32_t bad = 0;
  for (float x : values) bad |= (std::bit_cast<std::uint32_t>(x) & kExponent) == kExponent ? 1u : 0u;
  return bad == 0;
}

// Whether a value lies outside -lowest..1, in a form that the compiler turns into vector code.
template <class T>
bool any_beyond(std::span<const T> values, std::uint8_t lowest) {
  std::uint8_t worst = 0;
  for (T x : values)
    worst = std::max(worst, static_cast<std::uint8_t>(static_cast<std::uint8_t>(x) + lowest));
  return worst > lowest + 1;
}

void check_names(const std::vector<std::string>& names, const char* what, const std::string& where) {
  std::unordered_map<std::string_view, std::size_t> seen;
  seen.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) fail(Exit::data, "{}: the name of {} {} (from 0) is empty", where, what, i);
    if (!valid_utf8(names[i]))
      fail(Exit::data, "{}: the name of {} {} (from 0) is not UTF-8 text", where, what, i);
    const auto [at, fresh] = seen.emplace(names[i], i);
    if (!fresh)
      fail(Exit::data, "{}: {}s {} and {} (from 0) are both called '{}'", where, what, at->second, i,
           names[i]);
  }
}

void check_ids(const std::vector<std::string>& ids, const std::string& where) {
  std::unordered_map<std::string_view, std::size_t> seen;
  seen.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].empty()) fail(Exit::data, "{}: row {} (from 0) has no id", where, i);
    if (!valid_utf8(ids[i])) fail(Exit::data, "{}: the id of row {} (from 0) is not UTF-8 text", where, i);
    const auto [at, fresh] = seen.emplace(ids[i], i);
    if (!fresh)
      fail(Exit::data, "{}: rows {} and {} (from 0) are both called '{}'", where, at->second, i, ids[i]);
  }
}

// Columns are matched by name, so that two of one name are two meanings of it.
void check_column_names(const View& view, const std::string& where) {
  std::unordered_map<std::string_view, std::size_t> seen;
  seen.reserve(view.column_names.size());
  for (std::size_t j = 0; j < view.column_names.size(); ++j) {
    const std::string& name = view.column_names[j];
    if (!valid_utf8(name))
      fail(Exit::data, "{}: view '{}': a column name is not UTF-8 text", where, view.name);
    const auto [at, fresh] = seen.emplace(name, j);
    if (!fresh)
      fail(Exit::data,
           "{}: view '{}': its columns {} and {} (from 0) are both called '{}'; columns are matched by name, "
           "so give them "
           "different names",
           where, view.name, at->second, j, name);
  }
}

// body(begin, end) over all rows of a view, by several threads; a pass over a mapped file keeps a slab of it at most.
void for_row_slabs(const Dataset& data, std::size_t v, FunctionRef<void(std::size_t, std::size_t)> body) {
  constexpr std::size_t kSlabBytes = std::size_t{32} << 20;
  const View& view = data.views[v];
  const std::size_t slab = std::max<std::size_t>(
      kRowGrain, kSlabBytes / (sizeof(float) * std::max<std::size_t>(view.columns(), 1)));
  for (std::size_t first = 0; first < data.rows; first += slab) {
    const std::size_t count = std::min(slab, data.rows - first);
    parallel_for(count, kRowGrain,
                 [&](std::size_t begin, std::size_t end) { body(first + begin, first + end); });
    if (data.rows > slab) release_rows(view, first, count);
  }
}

void check_values(const Dataset& data, std::size_t v, const std::string& where) {
  const View& view = data.views[v];
  const auto check_rows = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (!data.has(i, v) || (!view.sparse() && all_finite(dense(view).row(i)))) continue;
      for_row(view, i, [&](std::size_t j, float x) {
        if (std::isfinite(x) || (data.empty_cells && std::isnan(x))) return;
        const std::string column =
            j < view.column_names.size() ? fmt::format("'{}'", view.column_names[j]) : std::to_string(j);
        const std::string row =
            data.ids.empty() ? fmt::format("row {}", i) : fmt::format("item '{}'", data.ids[i]);
        fail(Exit::data, "{}: view '{}', {}, column {}: {} is not a finite number ({})", where, view.name,
             row, column, x,
             std::isinf(x)
                 ? "write one, or mark the view of this item as missing"
                 : "an item that lacks a view has no finite value in it at all; fill single gaps first; of a "
                   "table of text, --empty mean fills them");
      });
    }
  };
  for_row_slabs(data, v, check_rows);
}

Csr select_csr(const Csr& from, std::span<const std::uint32_t> rows) {
  Matrix<std::uint64_t> start(1, rows.size() + 1);
  for (std::size_t i = 0; i < rows.size(); ++i)
    start(0, i + 1) = start(0, i) + from.start(0, rows[i] + 1) - from.start(0, rows[i]);
  const std::size_t count = start(0, rows.size());
  Matrix<std::uint32_t> index(1, count);
  Matrix<float> value(1, count);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t n = start(0, i + 1) - start(0, i);
    if (n == 0) continue;
    std::memcpy(index.data() + start(0, i), from.index.view().data + from.start(0, rows[i]),
                n * sizeof(std::uint32_t));
    std::memcpy(value.data() + start(0, i), from.value.view().data + from.start(0, rows[i]),
                n * sizeof(float));
  }
  return {std::move(start), std::move(index), std::move(value), from.columns};
}

template <class T>
Table<T> select_table(const Table<T>& from, std::span<const std::uint32_t> rows) {
  if (from.empty()) return {};
  Matrix<T> to(rows.size(), from.cols());
  for (std::size_t i = 0; i < rows.size(); ++i) std::ranges::copy(from.row(rows[i]), to.row(i).begin());
  return to;
}

}  // namespace

std::size_t View::columns() const {
  return sparse() ? csr(*this).columns : dense(*this).cols();
}

std::size_t View::rows() const {
  if (!sparse()) return dense(*this).rows();
  return csr(*this).start.cols() == 0 ? 0 : csr(*this).start.cols() - 1;
}

void View::copy_row(std::size_t i, std::span<float> out) const {
  assert(out.size() == columns());
  if (sparse()) std::ranges::fill(out, 0.f);
  for_row(*this, i, [&](std::size_t j, float x) { out[j] = x; });
}

std::size_t Dataset::view_index(const std::string& view_name) const {
  const auto at = std::ranges::find(views, view_name, &View::name);
  return static_cast<std::size_t>(at - views.begin());
}

void check_sparse(const View& view, const std::string& where) {
  const Csr& s = csr(view);
  const std::size_t rows = view.rows();
  if (s.index.cols() != s.value.cols())
    fail(Exit::data, "{}: sparse view '{}' has {} column numbers but {} values", where, view.name,
         s.index.cols(), s.value.cols());
  if (s.start.cols() == 0 || s.start(0, 0) != 0 || s.start(0, rows) != s.value.cols())
    fail(Exit::data, "{}: the rows of sparse view '{}' do not span its {} values", where, view.name,
         s.value.cols());
  for (std::size_t i = 0; i < rows; ++i)
    if (s.start(0, i) > s.start(0, i + 1))
      fail(Exit::data, "{}: sparse view '{}': row {} ends before it starts", where, view.name, i);
  parallel_for(rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::uint64_t k = s.start(0, i); k < s.start(0, i + 1); ++k) {
        if (s.index(0, k) >= s.columns)
          fail(Exit::data, "{}: sparse view '{}', row {}: column {} of {}", where, view.name, i,
               s.index(0, k), s.columns);
        if (k > s.start(0, i) && s.index(0, k) <= s.index(0, k - 1))
          fail(Exit::data,
               "{}: sparse view '{}', row {}: column {} after column {}; expected rising order, each once (SciPy: "
               "sum_duplicates())",
               where, view.name, i, s.index(0, k), s.index(0, k - 1));
      }
  });
}

void Dataset::check(const std::string& where, Scan scan) const {
  if (rows == 0) fail(Exit::data, "{}: has no rows", where);
  if (rows > UINT32_MAX)
    fail(Exit::data, "{}: has {} rows, at most {} are supported", where, rows, UINT32_MAX);
  if (views.empty() && labels.empty()) fail(Exit::data, "{}: has neither a view nor labels", where);
  std::vector<std::string> names;
  for (const auto& view : views) names.push_back(view.name);
  check_names(names, "view", where);
  check_names(label_names, "label", where);
  check_ids(ids, where);
  for (const auto& view : views) {
    if (view.sparse()) check_sparse(view, where);
    if (view.rows() != rows)
      fail(Exit::data, "{}: view '{}' has {} rows, the data set has {}", where, view.name, view.rows(), rows);
    if (view.columns() == 0) fail(Exit::data, "{}: view '{}' has no columns", where, view.name);
    if (!view.column_names.empty() && view.column_names.size() != view.columns())
      fail(Exit::data, "{}: view '{}' has {} columns but {} column names", where, view.name, view.columns(),
           view.column_names.size());
    check_column_names(view, where);
  }
  if (!ids.empty() && ids.size() != rows) fail(Exit::data, "{}: {} ids for {} rows", where, ids.size(), rows);
  if (!present.empty()) {
    if (present.rows() != rows || present.cols() != views.size())
      fail(Exit::data, "{}: the view mask W is {} x {}, expected {} x {} (rows x views)", where,
           present.rows(), present.cols(), rows, views.size());
    for (std::size_t i = 0; i < rows; ++i) {
      if (!any_beyond(present.row(i), 0)) continue;
      for (std::size_t v = 0; v < views.size(); ++v)
        if (present(i, v) > 1)
          fail(Exit::data, "{}: W at row {}, view {} is {}, expected 0 or 1", where, i, v, present(i, v));
    }
  }
  if (labels.cols() != label_names.size())
    fail(Exit::data, "{}: {} label columns but {} label names", where, labels.cols(), label_names.size());
  if (!labels.empty() && labels.rows() != rows)
    fail(Exit::data, "{}: {} rows of labels, the views have {}", where, labels.rows(), rows);
  for (std::size_t i = 0; i < labels.rows(); ++i) {
    if (!any_beyond(labels.row(i), 1)) continue;
    for (std::size_t j = 0; j < labels.cols(); ++j)
      if (labels(i, j) > 1 || labels(i, j) < kUnknown)
        fail(Exit::data, "{}: label '{}' of row {} is {}, expected 1, 0 or -1 (unknown)", where,
             label_names[j], i, static_cast<int>(labels(i, j)));
  }
  if (scan == Scan::values)
    for (std::size_t v = 0; v < views.size(); ++v) check_values(*this, v, where);
}

Dataset select_rows(const Dataset& data, std::span<const std::uint32_t> rows) {
  for (auto row : rows)
    if (row >= data.rows) fail(Exit::data, "row {} of {} was requested", row, data.rows);
  Dataset out;
  out.name = data.name;
  out.source = data.source;
  out.licence = data.licence;
  out.rows = rows.size();
  out.empty_cells = data.empty_cells;
  out.label_names = data.label_names;
  for (const auto& view : data.views) {
    View copy{view.name, {}, view.column_names, view.source_type};
    if (view.sparse()) {
      copy.features = select_csr(csr(view), rows);
    } else {
      copy.features = select_table(dense(view), rows);
    }
    out.views.push_back(std::move(copy));
  }
  out.present = select_table(data.present, rows);
  out.labels = select_table(data.labels, rows);
  if (!data.ids.empty())
    for (auto row : rows) out.ids.push_back(data.ids[row]);
  return out;
}

std::string content_hash(const Dataset& data) {
  Sha256 hash;
  const auto number = [&](std::uint64_t x) { hash.add(std::as_bytes(std::span(&x, 1))); };
  const auto text = [&](const std::string& s) {
    number(s.size());
    hash.add(s);
  };
  number(data.rows);
  number(data.views.size());
  number(data.label_count());
  for (const auto& name : data.label_names) text(name);
  std::vector<std::uint64_t> digests(data.rows);
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    const View& view = data.views[v];
    text(view.name);
    number(view.columns());
    // Each row has a digest of its own (0 = missing), so that rows can be read in any order by any number of
    // threads.
    for_row_slabs(data, v, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        digests[i] = 0;
        if (!data.has(i, v)) continue;
        std::uint64_t h = 1;
        for_row(view, i, [&](std::size_t j, float x) {
          if (x != 0) h = mix_hash(h, std::uint64_t{j} << 32 | std::bit_cast<std::uint32_t>(x));
        });
        digests[i] = h | 1;
      }
    });
    hash.add(std::as_bytes(std::span(digests)));
  }
  for (std::size_t i = 0; i < data.labels.rows(); ++i) hash.add(std::as_bytes(data.labels.row(i)));
  return hash.hex();
}

}  // namespace lacuna
