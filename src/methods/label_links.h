// How the known labels of an item change the scores of its other labels, with any method: "this photo is tagged beach;
// what else?"
//   log-odds_j ← log-odds_j + w Σ_{k known} θ_jk (y_k - p_k)
// p_k is the calibrated probability of label k given the views. So a known label counts by how surprising it is, since
// the scores already contain what the views tell. θ_jk is the log odds ratio of the pair in the training labels, shrunk
// towards 0 if the pair was counted on few rows (data/label_graph.h). An item without known labels keeps its scores,
// bit for bit.
//
// The weight w is chosen on validation rows by the rule of methods/weight_choice.h: half of the known labels of each
// row are given, and the average precision of the others is measured. If w is 0, nothing is stored.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/matrix.h"
#include "base/tensors.h"
#include "methods/calibrate.h"
#include "methods/weight_choice.h"

namespace lacuna {

class LabelLinks {
 public:
  static constexpr std::size_t kMostLabels = 2048;  // with more, nothing is learned: there is one θ per pair

  LabelLinks() = default;
  // labels (n, c) of training rows; scores and truth of validation rows; all with unknown labels marked.
  static LabelLinks fit(MatrixView<const std::int8_t> labels, MatrixView<const float> scores,
                        MatrixView<const std::int8_t> truth, const Calibration& calibration,
                        std::uint64_t seed);

  bool learned() const { return rows_ > 0; }  // there were validation rows to choose w; false in older files
  bool empty() const { return coupling_.empty(); }       // known labels change no score
  const WeightTrial& chosen() const { return chosen_; }  // the weight, and its gain on the validation rows
  std::size_t rows() const { return rows_; }             // number of validation rows it was chosen on

  // Labels that are known in `known` (n, c) change the scores (n, c) of the others, in place. Const, re-entrant; the
  // same bits for any number of threads.
  void refine(MatrixView<const std::int8_t> known, const Calibration& calibration,
              MatrixView<float> scores) const;

  void save(Tensors& file) const;  // borrows
  static LabelLinks load(const Tensors& file, std::size_t labels);
  nlohmann::json about() const;  // {"weight", "gain", "error", "rows"}; null if nothing was learned

 private:
  // What the known labels add to the log-odds (n, c) for w = 1.
  Matrix<float> shifts(MatrixView<const std::int8_t> known, const Calibration& calibration,
                       MatrixView<const float> scores) const;

  Matrix<float> coupling_;  // θ (c, c); 0 on the diagonal
  WeightTrial chosen_;
  std::size_t rows_ = 0;
};

}  // namespace lacuna
