// The memory of training rows, in addition to a network. In prediction, training rows that are close to an item in the
// space that the classifier reads (nn/network.h) vote for their labels:
//   r = max(0, z) / |max(0, z)|           directions of fused vectors
//   k_j = exp(τ (r·r_j - max_i r·r_i))    closeness of row j, relative to the nearest row; τ is --memory-sharpness
//   v = (Σ_j k_j t_j + π) / (Σ_j k_j + 1)
//   logit ← (logit + w logit(v)) / (1 + w)
// Only rows with a known label vote. t_j are the labels of row j; an unknown one is the network's own probability. π
// are the labels' frequencies in training, which count as one more row, as close as the nearest. Models of older
// versions have 1 instead of the maximum, and .3 π. Dividing by 1 + w changes no order and keeps a score a
// probability; with w = 0 only the network counts.
//
// The weight w (`--memory auto`) is chosen on validation rows by the rule of methods/weight_choice.h. If w is 0, no
// rows are stored.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/tensors.h"
#include "data/items.h"
#include "methods/weight_choice.h"
#include "nn/fit.h"
#include "nn/network.h"
#include "ops/gemm.h"

namespace lacuna {

struct MemoryOptions {
  std::string use = "off";    // auto: the weight is chosen on validation rows; off; or the weight itself
  double sharpness = 25;      // τ
  std::int64_t rows = 20000;  // kept at most

  void declare(Options& options);
  // The requested weight; none if it is to be chosen. Exit::usage if it is not a weight.
  std::optional<double> weight() const;
  // The maximum number of bytes in a model file, for this many training rows, fused columns and labels.
  std::uint64_t bytes(std::size_t training_rows, std::size_t size, std::size_t labels) const;
};

// The results of all weights that are tried, 0 first. logits and votes (n, c); truth with unknown labels marked.
std::vector<WeightTrial> try_memory_weights(MatrixView<const float> logits, MatrixView<const float> votes,
                                            MatrixView<const std::int8_t> truth);

// A method that stores training rows: {"rows", "sharpness", "weight"}, for an ensemble a list with one entry per
// member; null if none are stored.
class MemoryHolder {
 public:
  virtual ~MemoryHolder() = default;
  virtual nlohmann::json memory() const = 0;
};
class Method;
nlohmann::json memory_of(const Method& method);  // null where it is no such method

class RowMemory {
 public:
  static constexpr float kOldPrior = .3f;     // rows that π counts as in older versions
  static constexpr float kShortest = 1e-12f;  // a vector that is shorter has no direction

  RowMemory() = default;
  // For a trained network. If there are more than options.rows rows, a random part is kept, drawn by context.seed, with
  // a remark.
  static RowMemory fit(const Network& network, const Items& train, const Items& val,
                       const MemoryOptions& options, Precision precision, FitContext& context);

  bool empty() const { return rows_.empty(); }
  std::size_t rows() const { return rows_.rows(); }
  double weight() const { return static_cast<double>(weight_); }

  // The votes as log-odds (k, c), and logits (k, c) combined with them. Const, re-entrant; the same bits for any
  // number of threads.
  void vote(MatrixView<const float> Z, MatrixView<float> votes) const;
  void join(MatrixView<const float> Z, MatrixView<float> logits) const;

  void save(Tensors& file) const;  // borrows
  static RowMemory load(const Tensors& file, std::size_t size, std::size_t labels, Precision precision);
  nlohmann::json about() const;  // {"rows", "sharpness", "weight"}; null if empty

 private:
  void remember(const Network& network, const Items& train, std::vector<std::uint32_t> kept);
  void settle(Precision precision);
  void vote_block(MatrixView<const float> Z, MatrixView<float> votes) const;

  Matrix<float> rows_;    // (n, d_e): r_j
  Matrix<float> labels_;  // (n, c): t_j
  Matrix<float> prior_;   // (1, c): π
  float sharpness_ = 25, weight_ = 0;
  float nearest_ = 1;                          // rows that π counts as; 0: as in older versions
  Matrix<float> columns_;                      // (d_e, n): rows_ turned, with f32
  PackedWeights packed_rows_, packed_labels_;  // with bf16
};

}  // namespace lacuna
