// Folds as files (docs/protocol.md). Ours is an .npz: W0, G0, order0 (from 0), W1, ... with `shares`, `hash` and the
// `ids` of the rows where they have some. The authors' is a .mat: cell arrays folds_data, folds_label and
// folds_sample_index (from 1); ours has folds_shares and folds_ids beside them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "data/folds.h"
#include "data/mat.h"
#include "data/npy.h"

namespace lacuna {
namespace {

// Whatever the file: every fold has the sizes of the first, masks are 0 and 1, the order is a permutation.
void check(const Folds& folds, const std::string& path) {
  if (folds.folds.empty()) fail(Exit::data, "{}: contains no folds", path);
  if (folds.rows == 0 || folds.views == 0 || folds.labels == 0)
    fail(Exit::data,
         "{}: its first fold is for {} rows, {} views and {} labels; masks are full matrices of numbers",
         path, folds.rows, folds.views, folds.labels);
  if (!(folds.train_share >= 0 && folds.val_share >= 0 && folds.train_share + folds.val_share <= 1 + 1e-6))
    fail(Exit::data, "{}: shares {} for training and {} for validation are not parts of one whole", path,
         folds.train_share, folds.val_share);
  if (!folds.ids.empty()) {
    if (folds.ids.size() != folds.rows)
      fail(Exit::data, "{}: has {} ids for {} rows", path, folds.ids.size(), folds.rows);
    std::unordered_set<std::string_view> ids;
    for (const auto& id : folds.ids)
      if (!ids.insert(id).second) fail(Exit::data, "{}: the id '{}' occurs twice", path, id);
  }
  for (std::size_t r = 0; r < folds.folds.size(); ++r) {
    const Fold& fold = folds.folds[r];
    const auto check_mask = [&](const char* what, const Matrix<std::uint8_t>& mask, std::size_t columns) {
      if (mask.rows() != folds.rows || mask.cols() != columns)
        fail(Exit::data, "{}: fold {}: the {} mask is {} x {}, expected {} x {}", path, r, what, mask.rows(),
             mask.cols(), folds.rows, columns);
      for (std::size_t i = 0; i < mask.rows(); ++i)
        for (std::size_t j = 0; j < mask.cols(); ++j)
          if (mask(i, j) > 1)
            fail(Exit::data, "{}: fold {}: the {} mask contains {} at row {}, column {}, expected 0 or 1", path,
                 r, what, mask(i, j), i, j);
    };
    check_mask("view", fold.W, folds.views);
    check_mask("label", fold.G, folds.labels);
    if (fold.order.size() != folds.rows)
      fail(Exit::data, "{}: fold {}: the order has {} rows, the masks have {}", path, r, fold.order.size(),
           folds.rows);
    std::vector<bool> seen(folds.rows);
    for (const auto row : fold.order) {
      if (row >= folds.rows || seen[row])
        fail(Exit::data, "{}: fold {}: row {} (from 0) {}; the order must name each of {} rows once", path, r,
             row, row >= folds.rows ? "does not exist" : "comes twice", folds.rows);
      seen[row] = true;
    }
  }
}

void take_sizes(Folds& folds) {
  if (folds.folds.empty()) return;
  folds.rows = folds.folds[0].W.rows();
  folds.views = folds.folds[0].W.cols();
  folds.labels = folds.folds[0].G.cols();
}

Folds read_npz_folds(const std::string& path) {
  const auto arrays = read_npz(path);
  const auto need = [&](const std::string& name) -> const Array& {
    const Array* array = find_array(arrays, name);
    if (array == nullptr)
      fail(Exit::data, "{}: has no array '{}'; a folds file has W0, G0, order0, ... and shares", path, name);
    return *array;
  };
  Folds folds;
  const Array& shares = need("shares");
  if (shares.type != Element::f64 || shares.count() != 2)
    fail(Exit::data, "{}: 'shares' is {} of {}, expected two of float64", path, shape_text(shares.shape),
         element_name(shares.type));
  std::memcpy(&folds.train_share, shares.bytes.data(), sizeof(double));
  std::memcpy(&folds.val_share, shares.bytes.data() + sizeof(double), sizeof(double));
  for (std::size_t r = 0; r == 0 || find_array(arrays, fmt::format("W{}", r)) != nullptr; ++r) {
    Fold& fold = folds.folds.emplace_back();
    fold.W = to_integers<std::uint8_t>(need(fmt::format("W{}", r)), path);
    fold.G = to_integers<std::uint8_t>(need(fmt::format("G{}", r)), path);
    const auto order = to_integers<std::uint32_t>(need(fmt::format("order{}", r)), path);
    fold.order.assign(order.values().begin(), order.values().end());
  }
  take_sizes(folds);
  if (const Array* ids = find_array(arrays, "ids"); ids != nullptr) {
    if (ids->text.size() != ids->count())
      fail(Exit::data, "{}: 'ids' contains {}, expected strings", path, element_name(ids->type));
    folds.ids = ids->text;
  }
  check(folds, path);
  const Array* hash = find_array(arrays, "hash");
  if (hash != nullptr && (hash->text.size() != 1 || hash->text[0] != folds.hash()))
    fail(Exit::data, "{}: what it contains does not give its own hash; it was changed or damaged", path);
  return folds;
}

void write_npz_folds(const Folds& folds, const std::string& path) {
  const double shares[2] = {folds.train_share, folds.val_share};
  std::vector<Array> arrays(1);
  arrays[0].name = "shares";
  arrays[0].type = Element::f64;
  arrays[0].shape = {2};
  arrays[0].bytes = std::as_bytes(std::span(shares));
  arrays.push_back(text_value("hash", folds.hash()));
  if (!folds.ids.empty()) arrays.push_back(text_array("ids", folds.ids));
  for (std::size_t r = 0; r < folds.folds.size(); ++r) {
    const Fold& fold = folds.folds[r];
    arrays.push_back(borrow(fmt::format("W{}", r), fold.W));
    arrays.push_back(borrow(fmt::format("G{}", r), fold.G));
    Array order = borrow(fmt::format("order{}", r), MatrixView(fold.order.data(), fold.order.size(), 1));
    order.shape = {fold.order.size()};
    arrays.push_back(std::move(order));
  }
  write_npz(path, arrays);
}

constexpr const char *kViews = "folds_data", *kLabels = "folds_label", *kOrder = "folds_sample_index";
constexpr const char *kShares = "folds_shares",
                     *kIds = "folds_ids";  // ours; the authors' program ignores them

Matrix<std::uint8_t> mask_of(const MatValue& value, const std::string& where) {
  Matrix<std::uint8_t> mask(value.values.rows(), value.values.cols());
  for (std::size_t i = 0; i < mask.rows(); ++i)
    for (std::size_t j = 0; j < mask.cols(); ++j) {
      const float x = value.values(i, j);
      if (x != 0 && x != 1)
        fail(Exit::data, "{} contains {} at row {}, column {}, expected 0 or 1", where, x, i, j);
      mask(i, j) = x != 0;
    }
  return mask;
}

std::vector<std::uint32_t> order_of(const MatValue& value, const std::string& where) {
  if (value.values.rows() > 1 && value.values.cols() > 1)
    fail(Exit::data, "{} is {} x {}, expected one column", where, value.values.rows(), value.values.cols());
  std::vector<std::uint32_t> order;
  for (std::size_t i = 0; i < value.values.rows(); ++i)
    for (const float x : value.values.row(i)) {
      if (!(x >= 1 && x <= 4e9f) || x != std::floor(x))
        fail(Exit::data, "{} contains {} at place {}, expected a row number from 1 on", where, x, order.size());
      order.push_back(static_cast<std::uint32_t>(x) - 1);
    }
  return order;
}

Folds read_mat_folds(const std::string& path) {
  const auto values = read_mat(path, {kViews, kLabels, kOrder, kShares, kIds});
  const auto cells = [&](const char* name) -> const std::vector<MatValue>& {
    const MatValue* value = find_value(values, name);
    if (value == nullptr || value->type != "cell")
      fail(Exit::data, "{}: has no cell array '{}'; a fold file has {}, {} and {}", path, name, kViews,
           kLabels, kOrder);
    return value->cells;
  };
  const auto &views = cells(kViews), &labels = cells(kLabels), &orders = cells(kOrder);
  if (views.size() != labels.size() || views.size() != orders.size())
    fail(Exit::data, "{}: {} has {} folds, {} has {}, {} has {}", path, kViews, views.size(), kLabels,
         labels.size(), kOrder, orders.size());
  Folds folds;
  for (std::size_t r = 0; r < views.size(); ++r) {
    const auto where = [&](const char* name) { return fmt::format("{}: {}{{{}}}", path, name, r + 1); };
    Fold& fold = folds.folds.emplace_back();
    fold.W = mask_of(views[r], where(kViews));
    fold.G = mask_of(labels[r], where(kLabels));
    fold.order = order_of(orders[r], where(kOrder));
  }
  if (const MatValue* shares = find_value(values, kShares); shares != nullptr) {
    if (shares->values.rows() != 1 || shares->values.cols() != 2)
      fail(Exit::data, "{}: {} is not 1 x 2", path, kShares);
    // Numbers come as float32; shares are decimal fractions of few digits.
    const auto exact = [&](std::size_t j) {
      return std::round(static_cast<double>(shares->values(0, j)) * 1e6) / 1e6;
    };
    folds.train_share = exact(0);
    folds.val_share = exact(1);
  }
  if (const MatValue* ids = find_value(values, kIds); ids != nullptr)
    for (const MatValue& cell : ids->cells) {
      if (cell.text.size() != 1) fail(Exit::data, "{}: {} is not a cell array of strings", path, kIds);
      folds.ids.push_back(cell.text[0]);
    }
  take_sizes(folds);
  check(folds, path);
  return folds;
}

void write_mat_folds(const Folds& folds, const std::string& path) {
  const auto floats = [](std::size_t rows, std::size_t cols, const auto& values, float add) {
    Matrix<float> matrix(rows, cols);
    std::transform(values.begin(), values.end(), matrix.values().begin(),
                   [&](auto value) { return static_cast<float>(value) + add; });
    return Table<float>(std::move(matrix));
  };
  if (folds.rows > (1u << 24))
    fail(Exit::usage, "{}: {} rows are too many for a fold .mat; write .npz", path, folds.rows);
  std::vector<MatValue> views, labels, orders;
  for (const Fold& fold : folds.folds) {
    views.push_back(mat_matrix("", floats(folds.rows, folds.views, fold.W.values(), 0), "uint8"));
    labels.push_back(mat_matrix("", floats(folds.rows, folds.labels, fold.G.values(), 0), "uint8"));
    orders.push_back(mat_matrix("", floats(folds.rows, 1, fold.order, 1), "int32"));
  }
  Matrix<float> shares(1, 2);
  shares(0, 0) = static_cast<float>(folds.train_share);
  shares(0, 1) = static_cast<float>(folds.val_share);
  std::vector<MatValue> all = {mat_cell(kViews, std::move(views)), mat_cell(kLabels, std::move(labels)),
                               mat_cell(kOrder, std::move(orders)), mat_matrix(kShares, std::move(shares))};
  if (!folds.ids.empty()) all.push_back(mat_texts(kIds, folds.ids));
  write_mat(path, all);
}

[[noreturn]] void refuse_ending(const std::string& path) {
  fail(Exit::usage, "{}: a folds file ends in .npz (ours) or .mat (the authors' layout)", path);
}

}  // namespace

Folds read_folds(const std::string& path) {
  if (path.ends_with(".npz")) return read_npz_folds(path);
  if (path.ends_with(".mat")) return read_mat_folds(path);
  refuse_ending(path);
}

void write_folds(const Folds& folds, const std::string& path) {
  if (path.ends_with(".npz")) return write_npz_folds(folds, path);
  if (path.ends_with(".mat")) return write_mat_folds(folds, path);
  refuse_ending(path);
}

}  // namespace lacuna
