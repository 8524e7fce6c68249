#include "methods/row_memory.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "data/metrics.h"
#include "methods/label_shares.h"
#include "methods/method.h"
#include "ops/row_kernels.h"

namespace lacuna {
namespace {

constexpr std::size_t kVoters = 256;  // items that vote together: bounds the memory of their kernel
constexpr double kMostWeight = 100;
constexpr std::uint32_t kLandmarkStream = 1u << 16;  // of landmarks; kernels number theirs by view

constexpr const char* kRows = "memory.rows";
constexpr const char* kLabels = "memory.labels";
constexpr const char* kMemoryPrior = "memory.prior";
constexpr const char* kSharpness = "memory.sharpness";
constexpr const char* kWeight = "memory.weight";
constexpr const char* kNearest = "memory.nearest";

// max(0, z) with length 1; zeros where nothing is positive.
void direction_of(std::span<const float> z, std::span<float> r) {
  float square = 0;
  for (std::size_t j = 0; j < z.size(); ++j) {
    r[j] = std::max(z[j], 0.f);
    square += r[j] * r[j];
  }
  const float length = std::sqrt(square), factor = length > RowMemory::kShortest ? 1 / length : 0.f;
  for (float& x : r) x *= factor;
}

Matrix<float> turned(const Matrix<float>& A) {
  Matrix<float> result(A.cols(), A.rows());
  for (std::size_t i = 0; i < A.rows(); ++i)
    for (std::size_t j = 0; j < A.cols(); ++j) result(j, i) = A(i, j);
  return result;
}

float joined(float logit, float vote, float weight) {
  return (logit + weight * vote) / (1 + weight);
}

bool any_marked(std::span<const std::uint8_t> marks) {
  return std::ranges::any_of(marks, [](std::uint8_t mark) { return mark != 0; });
}

// The rows that are kept, in order: those that have a view and a known label, and of too many a random part. A row without
// known labels could only repeat what the network says of it.
std::vector<std::uint32_t> landmarks(const Items& train, const MemoryOptions& options, FitContext& context) {
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < train.rows(); ++i)
    if (any_marked(train.W.row(i)) && any_marked(train.G.row(i))) rows.push_back(static_cast<std::uint32_t>(i));
  const auto most = static_cast<std::size_t>(options.rows);
  if (rows.size() <= most) return rows;
  Random(context.seed, Purpose::landmarks, kLandmarkStream).shuffle(rows);
  context.remark(fmt::format("the memory keeps {} of {} training rows, drawn at random (--memory-rows)", most,
                             rows.size()));
  rows.resize(most);
  std::ranges::sort(rows);
  return rows;
}

}  // namespace

void MemoryOptions::declare(Options& o) {
  o.add("memory", use,
        "let training rows that are close to an item vote for its labels: auto chooses the weight of the "
        "votes on the validation rows; off; or the weight (1 = as much as the network)")
      .suggest({"auto", "off"});
  o.add("memory-sharpness", sharpness, "how fast a vote decays with the angle to a training row")
      .range(.01, 1e4)
      .symbol("τ");
  o.add("memory-rows", rows, "maximum number of training rows in the memory").range(1, 1e9);
}

std::optional<double> MemoryOptions::weight() const {
  if (use == "auto") return std::nullopt;
  if (use == "off") return 0;
  const auto value = parse_double(use);
  if (!value || !(*value >= 0 && *value <= kMostWeight))
    fail(Exit::usage, "--memory {}: write auto, off, or a weight from 0 to {}", use, kMostWeight);
  return *value;
}

std::uint64_t MemoryOptions::bytes(std::size_t training_rows, std::size_t size, std::size_t labels) const {
  return std::min<std::uint64_t>(training_rows, static_cast<std::uint64_t>(rows)) * (size + labels) *
         sizeof(float);
}

std::vector<WeightTrial> try_memory_weights(MatrixView<const float> logits, MatrixView<const float> votes,
                                            MatrixView<const std::int8_t> truth) {
  return try_weights([&](double weight) {
    Matrix<float> scores(logits.rows, logits.cols);
    for (std::size_t i = 0; i < logits.rows; ++i)
      for (std::size_t j = 0; j < logits.cols; ++j)
        scores(i, j) = joined(logits(i, j), votes(i, j), static_cast<float>(weight));
    return row_average_precisions(scores, truth);
  });
}

RowMemory RowMemory::fit(const Network& network, const Items& train, const Items& val,
                         const MemoryOptions& options, Precision precision, FitContext& context) {
  const std::optional<double> asked = options.weight();
  if (network.fused_size() == 0 || (asked ? *asked == 0 : val.rows() < kFewestRows)) return {};
  RowMemory memory;
  memory.sharpness_ = static_cast<float>(options.sharpness);
  memory.remember(network, train, landmarks(train, options, context));
  if (memory.empty()) return {};
  memory.settle(precision);
  if (asked) {
    memory.weight_ = static_cast<float>(*asked);
    return memory;
  }
  Matrix<float> logits(val.rows(), val.labels()), votes(val.rows(), val.labels());
  network.fused(val, [&](std::size_t begin, MatrixView<const float> Z, MatrixView<float> block) {
    for (std::size_t i = 0; i < block.rows; ++i)
      std::ranges::copy(block.row(i), logits.row(begin + i).begin());
    memory.vote(Z, votes.view().slice(begin, block.rows));
  });
  const Matrix<std::int8_t> truth = truth_of(val);
  const std::size_t rows = judged(row_average_precisions(logits, truth));
  memory.weight_ = static_cast<float>(choose_weight(try_memory_weights(logits, votes, truth), rows).weight);
  return memory.weight_ > 0 ? std::move(memory) : RowMemory();
}

void RowMemory::remember(const Network& network, const Items& train, std::vector<std::uint32_t> kept) {
  const std::size_t c = train.labels();
  rows_ = Matrix<float>(kept.size(), network.fused_size());
  labels_ = Matrix<float>(kept.size(), c);
  network.fused(train, [&](std::size_t begin, MatrixView<const float> Z, MatrixView<float> logits) {
    const auto first = std::ranges::lower_bound(kept, static_cast<std::uint32_t>(begin));
    for (auto at = first; at != kept.end() && *at < begin + Z.rows; ++at) {
      const auto k = static_cast<std::size_t>(at - kept.begin());
      direction_of(Z.row(*at - begin), rows_.row(k));
      for (std::size_t j = 0; j < c; ++j)
        labels_(k, j) = train.G(*at, j) != 0 ? train.Y(*at, j) : 1 / (1 + std::exp(-logits(*at - begin, j)));
    }
  });
  prior_ = Matrix<float>(1, c);
  std::ranges::transform(label_shares(train), prior_.values().begin(),
                         [](double share) { return static_cast<float>(share); });
}

void RowMemory::settle(Precision precision) {
  Matrix<float> columns = turned(rows_);
  if (precision != Precision::bf16) {
    columns_ = std::move(columns);
    return;
  }
  packed_rows_ = PackedWeights(columns);
  packed_labels_ = PackedWeights(labels_);
}

void RowMemory::vote(MatrixView<const float> Z, MatrixView<float> votes) const {
  for (std::size_t begin = 0; begin < Z.rows; begin += kVoters) {
    const std::size_t count = std::min(kVoters, Z.rows - begin);
    vote_block(Z.slice(begin, count), votes.slice(begin, count));
  }
}

void RowMemory::vote_block(MatrixView<const float> Z, MatrixView<float> votes) const {
  const std::size_t k = Z.rows;
  Matrix<float> R(k, rows_.cols()), K(k, rows_.rows());
  std::vector<float> sums(k);
  const float prior = nearest_ > 0 ? nearest_ : kOldPrior;
  parallel_for(k, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) direction_of(Z.row(i), R.row(i));
  });
  if (packed_rows_.empty()) {
    linear_forward(R, columns_, {}, false, Precision::f32, K);
  } else {
    linear_forward(R.view(), packed_rows_, {}, false, K.view());
  }
  parallel_for(k, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const float origin = nearest_ > 0 ? std::ranges::max(K.row(i)) : 1;
      if (origin > 0) {
        sums[i] = static_cast<float>(row_kernels().likeness(K.cols(), sharpness_, origin, K.row(i).data()));
      } else {  // an item without a direction is near to nothing
        std::ranges::fill(K.row(i), 0.f);
      }
    }
  });
  if (packed_labels_.empty()) {
    linear_forward(K, labels_, {}, false, Precision::f32, votes);
  } else {
    linear_forward(K.view(), packed_labels_, {}, false, votes);
  }
  parallel_for(k, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < votes.cols; ++j)
        votes(i, j) = log_odds((votes(i, j) + prior * prior_(0, j)) / (sums[i] + prior));
  });
}

void RowMemory::join(MatrixView<const float> Z, MatrixView<float> logits) const {
  Matrix<float> votes(logits.rows, logits.cols);
  vote(Z, votes);
  for (std::size_t i = 0; i < logits.rows; ++i)
    for (std::size_t j = 0; j < logits.cols; ++j) logits(i, j) = joined(logits(i, j), votes(i, j), weight_);
}

void RowMemory::save(Tensors& file) const {
  if (empty()) return;
  file.put(kRows, rows_.view());
  file.put(kLabels, labels_.view());
  file.put(kMemoryPrior, prior_.view());
  file.put(kSharpness, std::span(&sharpness_, 1));
  file.put(kWeight, std::span(&weight_, 1));
  file.put(kNearest, std::span(&nearest_, 1));
}

RowMemory RowMemory::load(const Tensors& file, std::size_t size, std::size_t labels, Precision precision) {
  RowMemory memory;
  if (!file.has(kRows)) return memory;
  memory.rows_ = file.matrix(kRows);
  memory.labels_ = file.matrix(kLabels);
  memory.prior_ = file.matrix(kMemoryPrior);
  const std::vector<float> sharpness = file.floats(kSharpness), weight = file.floats(kWeight);
  if (memory.rows_.cols() != size || memory.labels_.cols() != labels ||
      memory.rows_.rows() != memory.labels_.rows() || memory.prior_.rows() != 1 ||
      memory.prior_.cols() != labels || memory.rows_.empty())
    fail(Exit::data,
         "{}: '{}' ({}, {}), '{}' ({}, {}) and '{}' ({}, {}) do not fit a network of {} fused columns and {} "
         "labels",
         file.path(), kRows, memory.rows_.rows(), memory.rows_.cols(), kLabels, memory.labels_.rows(),
         memory.labels_.cols(), kMemoryPrior, memory.prior_.rows(), memory.prior_.cols(), size, labels);
  if (sharpness.size() != 1 || !(sharpness[0] > 0) || !std::isfinite(sharpness[0]) || weight.size() != 1 ||
      !(weight[0] >= 0) || !std::isfinite(weight[0]))
    fail(Exit::data, "{}: '{}' and '{}' are not one positive number each", file.path(), kSharpness, kWeight);
  memory.sharpness_ = sharpness[0];
  memory.weight_ = weight[0];
  const std::vector<float> nearest = file.has(kNearest) ? file.floats(kNearest) : std::vector<float>{0};
  if (nearest.size() != 1 || !(nearest[0] >= 0) || !std::isfinite(nearest[0]))
    fail(Exit::data, "{}: '{}' is not one number from 0 on", file.path(), kNearest);
  memory.nearest_ = nearest[0];
  memory.settle(precision);
  return memory;
}

nlohmann::json memory_of(const Method& method) {
  const auto* holder = dynamic_cast<const MemoryHolder*>(&method);
  return holder == nullptr ? nlohmann::json() : holder->memory();
}

nlohmann::json RowMemory::about() const {
  if (empty()) return nullptr;
  return {{"rows", rows()}, {"sharpness", sharpness_}, {"weight", weight_}};
}

}  // namespace lacuna
