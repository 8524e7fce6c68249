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

// Items in the memory of a device. Made on first use and kept for the lifetime of the items, which must not change
// afterwards; a copy of items has none.
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

// A matrix with sizes but without values, which lie elsewhere; reading it ends the program.
SharedMatrix<float> elsewhere(std::size_t rows, std::size_t cols);

// Rows of a view as in the data; they are prepared while they are read.
struct RawRows {
  Table<float> table;  // all rows of the data; empty: the items' own rows are in X
  std::shared_ptr<const std::vector<std::uint32_t>> where;  // rows of the items in it, rising
  Matrix<float> shift, scale;                               // as in RowSource
  bool clamp = false;
};

struct Items {
  std::vector<SharedMatrix<float>> X;  // per view (n, d_v); a missing instance is a zero row
  std::vector<RawRows> raw = {};       // one per view, or empty; X then has sizes only: see rows_of()
  SharedMatrix<std::uint8_t> W;        // (n, m) 1 = present; every row of a training set has at least one
  SharedMatrix<float> Y;         // (n, c) 1 or 0; unknown = 0. Empty where labels are not needed (prediction)
  SharedMatrix<std::uint8_t> G;  // (n, c) 1 = known
  SharedMatrix<float> Q;  // (n, c) in [0, 1]: the teachers' predictions where G = 0; empty without teachers

  // Per view (1, d_v): the most frequent value of each column, which is the image of zero if most of a view is zero
  // (histograms, counts); empty for other views. A hint: networks then compute with the deviations from it.
  std::vector<Matrix<float>> common = {};
  std::span<const float> background(std::size_t v) const {
    return v < common.size() ? common[v].values() : std::span<const float>();
  }

  // The same rows in other preparations, for ensembles whose members use several; without labels.
  std::vector<Items> others;
  const Items& form(std::size_t k) const { return k == 0 ? *this : others[k - 1]; }

  bool is_raw(std::size_t v) const { return v < raw.size() && !raw[v].table.empty(); }
  // The rows in a form that an engine can read. Never read a missing instance: raw rows are not zero there.
  RowSource rows_of(std::size_t v) const;
  RowSource rows_on(const Engine& engine, std::size_t v) const {
    return engine.on_host() ? rows_of(v) : RowSource(away.on(engine, *this).X[v].view());
  }
  // Prepared rows of a view from `begin` on, with missing instances as zeros.
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

  // If rows lie in mapped files: reads rows into memory before they are needed, and releases them when they are not
  // needed for now. Both are optional, since rows can always be read. They do nothing if the rows are in memory.
  bool mapped = false;
  void fetch(std::size_t begin, std::size_t count) const;
  void leave(std::size_t begin, std::size_t count) const;
  std::size_t row_bytes() const;  // of one row, in files or in memory
  // Calls body(begin, end) over all rows, in order, and releases each piece afterwards.
  void for_rows(FunctionRef<void(std::size_t, std::size_t)> body) const;

  std::size_t rows() const { return W.rows(); }
  std::size_t views() const { return W.cols(); }
  std::size_t labels() const { return Y.cols(); }
};

// The same items with some of their views removed: entry k is row rows[k] of the items with only those of its views
// that W (k, m) marks. `rows` is ascending.
struct ViewSets {
  std::vector<std::uint32_t> rows;
  Matrix<std::uint8_t> W;
  std::size_t size() const { return rows.size(); }
};

Matrix<std::int8_t> truth_of(
    const Items& items);  // Y (n, c) with unknown labels marked, as the metrics want it

// Rows of a data set with the gaps of a fold in addition to its own: the input of training, selection and tests.
// Holds references: data and fold must outlive it.
struct Selection {
  const Dataset* data = nullptr;
  const Fold* fold = nullptr;       // null: the data's own gaps only
  std::vector<std::uint32_t> rows;  // positions in the data
  bool hide_labels = false;  // apply the fold's label mask (training rows); otherwise labels are complete
  // 1 for every row of the data of which only the views are used, not the labels. Null: no such row.
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
