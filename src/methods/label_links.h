// What the known labels of an item say about its others: "this photo is tagged beach; what else?" Beside any method.
//   log-odds_j ← log-odds_j + w Σ_{k known} θ_jk (y_k - p_k)
// p_k is the calibrated probability that the model gives label k from the views: a known label speaks by how far it
// surprises, since what the views have told already is in the scores. θ_jk is the log odds ratio of the pair in the
// training labels, shrunk towards 0 where it was counted on few (data/label_graph.h). An item of which no label is known
// keeps its scores, bit for bit.
//
// The weight w is chosen on validation rows by the rule of methods/weight_choice.h: half of the known labels of each row
// are told, and the average precision is that of the others. Where w is 0 nothing is kept.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/matrix.h"
#include "base/tensors.h"
#include "methods/calibrate.h"
#include "methods/weight_choice.h"

namespace lacuna {

class LabelLinks {
 public:
  static constexpr std::size_t kMostLabels = 2048;  // beyond it nothing is learned: there is one θ a pair

  LabelLinks() = default;
  // labels (n, c) of training rows; scores and truth of validation rows; all with unknown labels marked.
  static LabelLinks fit(MatrixView<const std::int8_t> labels, MatrixView<const float> scores,
                        MatrixView<const std::int8_t> truth, const Calibration& calibration,
                        std::uint64_t seed);

  bool learned() const { return rows_ > 0; }  // whether validation rows could tell; false in older files
  bool empty() const { return coupling_.empty(); }       // known labels change no score
  const WeightTrial& chosen() const { return chosen_; }  // and what it gained on the validation rows
  std::size_t rows() const { return rows_; }             // that it was chosen on

  // scores (n, c) of the labels that `known` (n, c) does not tell are changed by those that it tells. Const, re-entrant;
  // the same bits for any number of threads.
  void refine(MatrixView<const std::int8_t> known, const Calibration& calibration,
              MatrixView<float> scores) const;

  void save(Tensors& file) const;  // borrows
  static LabelLinks load(const Tensors& file, std::size_t labels);
  nlohmann::json about() const;  // {"weight", "gain", "error", "rows"}; null if nothing was learned

 private:
  // What the known labels add to the log-odds (n, c) at weight 1.
  Matrix<float> shifts(MatrixView<const std::int8_t> known, const Calibration& calibration,
                       MatrixView<const float> scores) const;

  Matrix<float> coupling_;  // θ (c, c); 0 on the diagonal
  WeightTrial chosen_;
  std::size_t rows_ = 0;
};

}  // namespace lacuna
