// Reconstructs the missing views of an item from its other views, in the columns of the data, with standard deviations.
//
//   1. Views are prepared (root-pca, whatever the method uses) and explained by common factors (methods/factors.h).
//   2. The features of an item are its factors, estimated from the views it has, and their coordinates in a Gaussian
//      kernel (data/kernel_map.h).
//   3. A ridge regression per view decodes the features into the view's own columns. So the preparation need not be
//      inverted, and what it discards is part of the stated error. With fewer than 1,000 rows a second regression reads
//      the prepared views directly, with zeros for missing ones: few rows allow only few factors, which miss much of a
//      view.
//
// The number of factors, the penalties and the shares of both regressions are chosen by cross-validation on hidden
// views (three parts, or eight with fewer than 1,000 rows), and the deviations are measured there. A deviation times
// 1.645 is half of an interval that contained 91 % of these hidden values, so that it contains 90 % of new ones. It is
// chosen per column, and is larger for items whose views determine the factors less.
//
// It needs neither labels nor a network, so every method can have one (Model, --keep-decoders).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "base/tensors.h"
#include "data/items.h"
#include "data/kernel_map.h"
#include "data/prepare.h"
#include "methods/factors.h"

namespace lacuna {

// The result for the rows of a selection, with views in the model's order.
struct RecoveredViews {
  Matrix<std::uint8_t> there;                     // (n, m): the item has the view
  std::vector<std::uint8_t> any;                  // (n): it has a view at all; otherwise nothing is recovered
  std::vector<Matrix<float>> values, deviations;  // per view (n, d_v); zeros where the item has the view
};

class Recovery {
 public:
  static constexpr double kNormal90 = 1.6448536269514722;  // half of a normal's 90 % interval, in deviations
  static constexpr std::size_t kMostRows = 10000;          // drawn at random from larger sets
  static constexpr std::size_t kFewestRows = 30;           // that have a view and another one, to decode it
  static constexpr std::size_t kBlock = 256;               // rows that are recovered together
  static constexpr double kMostBytes = double(1u << 30) * 2;  // of decoders

  // Uses observed views only. Exit::data if no view can be predicted from another. Deterministic in seed.
  static Recovery fit(const Selection& rows, std::uint64_t seed);
  bool empty() const { return decoders_.empty(); }

  // `source` as in Preparation::apply. Const, re-entrant; the result for a row does not depend on other rows.
  RecoveredViews recover(const Selection& rows, const std::vector<int>& source) const;

  // {"factors", "rows", "views": [{"name", "error", "coverage", "rows"}]}. The error is that of hidden views relative
  // to predicting column means; null if the view could not be learned and is filled with its means. Null if empty.
  nlohmann::json about() const;

  void save(Tensors& file) const;
  // Empty if the file has none. `columns`: d_v of the model. A mismatch is Exit::data.
  static Recovery load(const Tensors& file, const std::vector<std::size_t>& columns);

 private:
  friend class RecoveryFit;
  struct Decoder {
    Matrix<float> weights;          // (p, d_v), p with or without direct features; empty: the means alone
    Matrix<float> mean, low, high;  // (1, d_v) of the training rows; what is recovered lies between
    Matrix<float> deviation;        // (1, d_v), at average doubt
    double doubt_base = 1, doubt_slope = 0;  // variance at doubt t, relative to the average: base + slope t
    double error = 1, coverage = 0;  // on hidden views: squared, relative to the means; of the 90 % intervals
    std::size_t rows = 0;            // that it was learned from
  };
  std::size_t factor_features() const { return factors_.rank() + kernel_.columns() + 1; }
  std::size_t direct_features() const;
  // Factors, their kernel coordinates and a constant: (n, factor_features).
  Matrix<float> features_of(MatrixView<const float> F) const;
  // Prepared views side by side, view `without` left aside: (n, direct_features).
  static Matrix<float> direct_of(const Items& items, std::size_t without);
  static float factor_of_variance(const Decoder& decoder, float doubt);  // of the deviation

  Preparation preparation_;
  Factors factors_;
  KernelMap kernel_;
  float factor_scale_ = 1;
  std::size_t rows_ = 0;
  std::vector<Decoder> decoders_;  // one per view
};

}  // namespace lacuna
