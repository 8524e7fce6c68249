// Turns scores into decisions and calibrated probabilities; learned on validation rows:
//   thresholds   one per label, for a chosen aim; labels with few validation positives share one threshold
//   calibration  p = sigmoid(a x + b) per label, where x is the logit of the score, or the score itself if it
//                is not a probability; a and b are shrunk towards those of all labels together, and equal
//                them if a label has few positives
//
// Neither changes the scores themselves: metrics of the paper are computed on raw scores (docs/model.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "base/options.h"
#include "base/tensors.h"

namespace lacuna {

// The aim of the thresholds that --labels uses.
struct Aim {
  enum class Kind { f1, precision, top } kind = Kind::f1;
  double precision = 0;                       // at least this on validation rows
  std::size_t count = 0;                      // labels per item
  static Aim parse(const std::string& text);  // "f1", "precision=.8", "top=5"; Exit::usage
  std::string text() const;
};

// p = sigmoid(a x + b)
struct Line {
  double a = 1, b = 0;
};
// One line for all labels together, fitted to values (n, c); the identity if its slope would not be positive, or if
// truth (n, c) has no positive or no negative.
Line pooled_line(MatrixView<const float> values, MatrixView<const std::int8_t> truth);

class Calibration {
 public:
  // scores (n, c), truth (n, c): 1, 0, kUnknown. Without known validation labels of
  // both kinds nothing is learned: empty().
  static Calibration fit(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                         bool probabilities, const Aim& aim);
  bool empty() const { return slope_.empty(); }
  static constexpr const char* kWhyEmpty =
      "there were no validation rows, or their known labels were all positive or all negative";
  const std::vector<float>& slopes() const {
    return slope_;
  }  // p = sigmoid(slope x + intercept), one per label
  const std::vector<float>& intercepts() const { return intercept_; }
  const Aim& aim() const { return aim_; }
  const std::vector<float>& thresholds() const {
    return thresholds_;
  }  // of raw scores; empty for the aim top

  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const;
  // The probability of a label for the log-odds of its score (for the score itself where scores are no probabilities).
  double probability(std::size_t label, double x) const;
  void apply(MatrixView<float> scores) const;  // raw scores to probabilities, in place
  // The log-odds of a label's probability for its raw score; and the raw score whose log-odds are larger by `shift`
  // (the score itself if shift is 0).
  double log_odds(std::size_t label, float score) const;
  float moved(std::size_t label, float score, double shift) const;

  void save(Tensors& file) const;
  static Calibration load(const Tensors& file, std::size_t labels);  // empty if the file has none

 private:
  Aim aim_;
  bool probabilities_ = true;
  std::vector<float> slope_, intercept_, thresholds_;
};

}  // namespace lacuna
