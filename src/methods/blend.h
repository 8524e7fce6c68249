// From the values of several members to one score: sigmoid(Σ_k slope_k x_k + intercept), x_k a member's log-odds, or
// its score where scores are no probabilities. Without slopes it is the plain mean.
//
// Candidates are weighted by how they do on rows that they did not learn from. Each gets one line (a, b) that makes
// its values log-odds of all labels together; what is blended are these. On each of twenty draws of the rows (with
// replacement) eight shares are given, one at a time, each to the candidate that raises the mean AP of a row most; the best
// stage counts. A weight is the mean of a candidate's shares over the draws: who is better beyond noise gets all of
// it, and those that are equal up to noise share it. Whoever has less than 5 % goes. The sum gets a line of its own,
// as a mean of log-odds is too timid. With fewer than kFewestJudged rows the first candidate stays alone. AP says
// nothing of rows whose known labels are all alike, as where there is one label; if there are too few others, the log
// loss takes its place.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "base/matrix.h"
#include "base/tensors.h"

namespace lacuna {

struct Blend {
  std::vector<float> slopes;  // one per member
  float intercept = 0;
};

struct BlendChoice {
  std::vector<double> weights;  // of the candidates, 0 = left out; their sum is 1
  bool by_order = true;         // judged by AP; otherwise by 1 - log loss
  std::vector<double> worth;    // AP, or 1 - log loss, of each alone, on the judged rows
  double blended = 0;           // of all together
  double gain = 0, error = 0;   // of the blend over the first candidate, and its standard error over rows
  std::size_t rows = 0;         // that were judged
  Blend blend;                  // of those with a weight, in their order
};

constexpr std::size_t kFewestJudged = 10;  // rows; with fewer the first candidate stays alone

// values: of each candidate (n, c); truth (n, c): 1, 0, kUnknown.
BlendChoice choose_blend(std::span<const Matrix<float>> values, MatrixView<const std::int8_t> truth);

void save_blend(const Blend& blend, Tensors& file);  // borrows
nlohmann::json blend_json(const Blend& blend);
Blend blend_from_json(const nlohmann::json& from);  // throws as nlohmann::json does
Blend load_blend(const Tensors& file, std::size_t members);
bool has_blend(const Tensors& file);

class Method;
struct Items;
// What is blended: log-odds of probabilities, other scores as they are (n, c).
void values_of(const Method& method, const Items& items, MatrixView<float> values);

// Sums members' values as they come.
class BlendedScore {
 public:
  BlendedScore(const Blend& blend, std::size_t rows, std::size_t cols) : blend_(blend), sum_(rows, cols) {}
  void add(MatrixView<const float> values);
  // The sum, as it is, or as a probability.
  void write(MatrixView<float> values, bool as_probability) const;

 private:
  const Blend& blend_;
  std::size_t count_ = 0;
  Matrix<float> sum_;
};

}  // namespace lacuna
