// The input of a method: prepared rows, with missing instances as zero rows and unknown labels as zeros with G = 0.
// The rows are in memory, in mapped files (data/prepared.h) or in the files of the data, and a device makes a copy;
// readers cannot tell the difference.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/shared_matrix.h"
#include "base/threads.h"
#include "data/dataset.h"
#include "data/folds.h"
#include "ops/engine.h"
#include "ops/row_source.h"

namespace lacuna {

struct Items;

// Items in the memory of a device. Made when first asked for, kept as long as the items live, which must not
// change from then on; a copy of items has none.
class ItemsAway {
 public:
  struct Copy {
    std::vector<EngineMatrix<float>> X, common;
    EngineMatrix<float> Y;
    EngineMatrix<std::uint8_t> G;
  };
  ItemsAway() = default;
  ItemsAway(const ItemsAway&) {}
  ItemsAway& operator=(const ItemsAway&) {
    copies_.clear();
    return *this;
  }
  ItemsAway(ItemsAway&& other) noexcept : copies_(std::move(other.copies_)) {}
  ItemsAway& operator=(ItemsAway&& other) noexcept {
    copies_ = std::move(other.copies_);
    return *this;
  }
  const Copy& on(const Engine& engine, const Items& items) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<int, Copy> copies_;  // by Engine::place()
};

// A matrix that has its sizes alone: what would be in it lies elsewhere, and reading it ends the program.
SharedMatrix<float> elsewhere(std::size_t rows, std::size_t cols);

// Rows of a view as the data have them, which are prepared while they are read.
struct RawRows {
  Table<float> table;  // of all rows of the data; empty: the items' own rows are in X
  std::shared_ptr<const std::vector<std::uint32_t>> where;  // rows of the items in it, rising
  Matrix<float> shift, scale;                               // as in RowSource
  bool clamp = false;
};

struct Items {
  std::vector<SharedMatrix<float>> X;  // per view (n, d_v); a missing instance is a zero row
  std::vector<RawRows> raw = {};       // of each view, or empty; X then has its sizes alone: see rows_of()
  SharedMatrix<std::uint8_t> W;        // (n, m) 1 = present; every row of a training set has at least one
  SharedMatrix<float> Y;         // (n, c) 1 or 0; unknown = 0. Empty where labels are not needed (prediction)
  SharedMatrix<std::uint8_t> G;  // (n, c) 1 = known
  SharedMatrix<float> Q;         // (n, c) in [0, 1]: what teachers say where G = 0; empty without teachers

  // Per view (1, d_v): what most entries of each column are, the image of zero where most of a view is zero
  // (histograms, counts); empty for other views. A hint: networks then compute with what differs from it.
  std::vector<Matrix<float>> common = {};
  std::span<const float> background(std::size_t v) const {
    return v < common.size() ? common[v].values() : std::span<const float>();
  }

  // The same rows in other preparations, for ensembles whose members differ in it; without labels.
  std::vector<Items> others;
  const Items& form(std::size_t k) const { return k == 0 ? *this : others[k - 1]; }

  bool is_raw(std::size_t v) const { return v < raw.size() && !raw[v].table.empty(); }
  // What an engine can read. A missing instance is not to be asked for: raw rows have something else than zeros there.
  RowSource rows_of(std::size_t v) const;
  RowSource rows_on(const Engine& engine, std::size_t v) const {
    return engine.on_host() ? rows_of(v) : RowSource(away.on(engine, *this).X[v].view());
  }
  // Rows of a view from `begin` on, prepared, missing instances as zeros.
  void copy_rows(std::size_t v, std::size_t begin, MatrixView<float> out) const;
  MatrixView<const float> Y_on(const Engine& engine) const {
    return engine.on_host() ? Y.view() : away.on(engine, *this).Y.view();
  }
  MatrixView<const std::uint8_t> G_on(const Engine& engine) const {
    return engine.on_host() ? G.view() : away.on(engine, *this).G.view();
  }
  std::span<const float> background_on(const Engine& engine, std::size_t v) const {
    if (background(v).empty() || engine.on_host()) return background(v);
    const auto& common_away = away.on(engine, *this).common[v];
    return {common_away.data(), common_away.cols()};
  }
  ItemsAway away = {};

  // Where rows lie in mapped files: rows are brought into memory before they are needed, and let go of when they are not
  // needed for now. They are there all the same, so that neither is ever necessary; nothing where they are in memory.
  bool mapped = false;
  void fetch(std::size_t begin, std::size_t count) const;
  void leave(std::size_t begin, std::size_t count) const;
  std::size_t row_bytes() const;  // of one row, in files or in memory
  // body(begin, end) over all rows, in order and in pieces that are left behind.
  void for_rows(FunctionRef<void(std::size_t, std::size_t)> body) const;

  std::size_t rows() const { return W.rows(); }
  std::size_t views() const { return W.cols(); }
  std::size_t labels() const { return Y.cols(); }
};

// The same items with fewer views: entry k is row rows[k] of the items with those of its views only that W (k, m)
// marks. Rows do not fall.
struct ViewSets {
  std::vector<std::uint32_t> rows;
  Matrix<std::uint8_t> W;
  std::size_t size() const { return rows.size(); }
};

Matrix<std::int8_t> truth_of(
    const Items& items);  // Y (n, c) with unknown labels marked, as the metrics want it

// Rows of a data set with the gaps of a fold laid over its own: what training, selection and tests are made
// of. Holds references: data and fold must outlive it.
struct Selection {
  const Dataset* data = nullptr;
  const Fold* fold = nullptr;       // null: the data's own gaps only
  std::vector<std::uint32_t> rows;  // positions in the data
  bool hide_labels = false;  // apply the fold's label mask (training rows); otherwise labels are complete
  // 1 for every row of the data that takes part by its views alone: none of its labels is seen. Null: no such row.
  std::shared_ptr<const std::vector<std::uint8_t>> unlabelled = {};

  bool has(std::size_t i, std::size_t v) const {
    return data->has(rows[i], v) && (fold == nullptr || fold->W(rows[i], v) != 0);
  }
  std::int8_t label(std::size_t i, std::size_t j) const {
    if (unlabelled != nullptr && (*unlabelled)[rows[i]] != 0) return kUnknown;
    return hide_labels && fold != nullptr && fold->G(rows[i], j) == 0 ? kUnknown : data->labels(rows[i], j);
  }
};

// All rows of the data, own gaps only.
Selection select_all(const Dataset& data);
// A part of a fold: training rows with hidden labels, the others with complete ones (the paper's protocol).
Selection select_part(const Dataset& data, const Folds& folds, std::size_t fold, Part part);
}  // namespace lacuna
