// Combines the values of several members into one score: sigmoid(Σ_k slope_k x_k + intercept), where x_k is a member's
// log-odds, or its score if scores are not probabilities. Without slopes it is the plain mean.
//
// The weights of candidates are chosen on rows that they did not learn from (judged rows). A line (a, b) per candidate
// turns its values into log-odds, all labels together; these are blended. On each of twenty bootstrap samples of the
// rows, eight shares are assigned one at a time, each to the candidate that raises the mean AP of a row most; the best
// stage counts. A candidate's weight is the mean of its shares over the samples: one that is better beyond noise gets
// all the weight, and those that are equal up to noise share it. Candidates with less than 5 % are dropped. Another
// line calibrates the sum, because a mean of log-odds is too close to 0. With fewer than kFewestJudged rows only the
// first candidate is used. AP is undefined for rows whose known labels are all positive or all negative, as they are
// with a single label; if too few other rows remain, log loss replaces AP.
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
  std::vector<double> weights;  // one per candidate, 0 = left out; they sum to 1
  bool by_order = true;         // judged by AP; otherwise by 1 - log loss
  std::vector<double> worth;    // AP, or 1 - log loss, of each candidate alone, on the judged rows
  double blended = 0;           // the same of the blend
  double gain = 0, error = 0;   // of the blend over the first candidate, and its standard error over rows
  std::size_t rows = 0;         // number of judged rows
  Blend blend;                  // of the candidates with a weight, in their order
};

constexpr std::size_t kFewestJudged = 10;  // rows; with fewer only the first candidate is used

// values: one matrix (n, c) per candidate; truth (n, c): 1, 0, kUnknown.
BlendChoice choose_blend(std::span<const Matrix<float>> values, MatrixView<const std::int8_t> truth);

void save_blend(const Blend& blend, Tensors& file);  // borrows
nlohmann::json blend_json(const Blend& blend);
Blend blend_from_json(const nlohmann::json& from);  // throws as nlohmann::json does
Blend load_blend(const Tensors& file, std::size_t members);
bool has_blend(const Tensors& file);

class Method;
struct Items;
// The values to blend (n, c): log-odds of probabilities; other scores unchanged.
void values_of(const Method& method, const Items& items, MatrixView<float> values);

// Sums members' values one after the other.
class BlendedScore {
 public:
  BlendedScore(const Blend& blend, std::size_t rows, std::size_t cols) : blend_(blend), sum_(rows, cols) {}
  void add(MatrixView<const float> values);
  // The sum, or the probability of it.
  void write(MatrixView<float> values, bool as_probability) const;

 private:
  const Blend& blend_;
  std::size_t count_ = 0;
  Matrix<float> sum_;
};

}  // namespace lacuna
