// A memory of the training rows, beside a network. After training, an item looks at the training rows in the space
// that the classifier reads (nn/network.h), and those near it vote for their labels:
//   r = max(0, z) / |max(0, z)|           directions of fused vectors
//   k_j = exp(τ (r·r_j - max_i r·r_i))    how near row j is, beside the nearest; τ is --memory-sharpness
//   v = (Σ_j k_j t_j + π) / (Σ_j k_j + 1)
//   logit ← (logit + w logit(v)) / (1 + w)
// Rows of which a label is known vote. t_j are the labels of row j: known ones as they are, unknown ones by the
// network's own probability. π are the labels' shares in training, which count as one more row, as near as the nearest.
// Models of older versions have 1 instead of the maximum, and .3 π. Dividing by 1 + w changes no order and keeps a score
// a probability; with w = 0 the network speaks alone.
//
// The weight w (`--memory auto`) is chosen on validation rows by the rule of methods/weight_choice.h. Where w is 0
// nothing is kept.
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
  std::string use = "off";    // auto: weight by validation; off; or the weight itself
  double sharpness = 25;      // τ
  std::int64_t rows = 20000;  // kept at most

  void declare(Options& options);
  // The weight that is asked for; none: to be chosen. Exit::usage for what is no weight.
  std::optional<double> weight() const;
  // What the memory takes in a model file at most, for this many training rows, fused columns and labels.
  std::uint64_t bytes(std::size_t training_rows, std::size_t size, std::size_t labels) const;
};

// All weights that are tried, 0 first; logits and votes (n, c), truth with unknown labels marked.
std::vector<WeightTrial> try_memory_weights(MatrixView<const float> logits, MatrixView<const float> votes,
                                            MatrixView<const std::int8_t> truth);

// Methods that keep training rows: {"rows", "sharpness", "weight"}, of an ensemble a list with one entry per member;
// null where none are kept.
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
  // Of a network that is settled. Above options.rows a random part of the rows is kept, drawn by context.seed, and
  // remarked on.
  static RowMemory fit(const Network& network, const Items& train, const Items& val,
                       const MemoryOptions& options, Precision precision, FitContext& context);

  bool empty() const { return rows_.empty(); }
  std::size_t rows() const { return rows_.rows(); }
  double weight() const { return static_cast<double>(weight_); }

  // The log-odds (k, c) that the rows vote for, and logits (k, c) joined with them. Const, re-entrant; the same bits
  // for any number of threads.
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
