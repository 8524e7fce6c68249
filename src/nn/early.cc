#include "nn/early.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "nn/masks.h"

namespace lacuna {
namespace {

constexpr std::uint32_t kFusedDropoutLayer = 1u << 30;
constexpr std::uint32_t kSecondPass = 1u << 31;  // the identity of a row in the second pass
constexpr std::size_t kPredictRows = 512;        // a prediction works on blocks of so many rows

}  // namespace

template <class T>
EarlyNetwork<T>::EarlyNetwork(const MtdOptions& options, const NetworkShape& shape, std::uint64_t seed,
                              std::unique_ptr<Ops<T>> ops)
    : options_(options),
      shape_(shape),
      embedding_(options.embedding > 0 ? static_cast<std::size_t>(options.embedding) : shape.labels),
      columns_(std::accumulate(shape.columns.begin(), shape.columns.end(), std::size_t{0})),
      norm_settings_{.epsilon = options.norm_epsilon, .momentum = options.norm_momentum},
      bce_(bce_settings(options)),
      ops_(std::move(ops)) {
  options_.check();
  if (shape_.columns.empty()) fail(Exit::data, "a network needs at least one view");
  if (shape_.labels == 0) fail(Exit::data, "a network needs at least one label");
  std::vector<std::size_t> widths = {columns_};
  for (const std::size_t width :
       resolve_widths(options_.encoder_widths, columns_, embedding_, options_.width))
    widths.push_back(width);
  widths.push_back(embedding_);
  encoder_.add(parameters_, "encoder", widths, true, 0);
  norm_.add(parameters_, "norm", embedding_, end_norm_from(options_.end_norm));
  classifier_.add(parameters_, "classifier", embedding_, shape_.labels, true);
  if (shape_.most_parameters > 0 && parameters() > shape_.most_parameters)
    fail(Exit::data, "the settings ask for {} parameters, the model file holds {} numbers", parameters(),
         shape_.most_parameters);
  parameters_.allocate();
  if (shape_.prediction_only) return;  // the values come from a file
  encoder_.initialise(parameters_, seed);
  norm_.initialise(parameters_);
  classifier_.initialise(parameters_, seed, options_.classifier_bias);
}

template <class T>
void EarlyNetwork<T>::keep(OptimiserState state) {
  parameters_.keep(state);
  soft_labels_.keep(options_, shape_.training_rows, shape_.labels);
}

template <class T>
void EarlyNetwork<T>::visit_buffers(typename BasicNetwork<T>::BufferVisitor visitor) {
  if (const MatrixView<T> running = norm_.running(); !running.empty()) visitor("norm.running", running);
  soft_labels_.visit(visitor);
}

template <class T>
void EarlyNetwork<T>::reserve(std::size_t rows) {
  Memory& m = memory_;
  if (m.capacity >= rows) return;
  m.capacity = rows;
  const std::size_t views = shape_.columns.size(), stack = passes_twice() ? 2 * rows : rows;
  m.left.resize(rows * views);
  m.subset.resize(rows * views);
  m.fragments.resize(rows * views);
  m.hidden.resize(rows);
  m.factors.resize(stack);
  m.identities.resize(stack);
  m.slots = Matrix<std::int32_t>(rows, 1);
  for (std::size_t i = 0; i < rows; ++i) m.slots(i, 0) = static_cast<std::int32_t>(i);
  m.X = Buffer<T>(stack, columns_);
  m.encoder = encoder_.memory(stack, options_.hidden_dropout > 0);
  for (auto* matrix : {&m.U, &m.S, &m.Z, &m.dZ}) *matrix = Matrix<T>(stack, embedding_);
  m.saved = Matrix<T>(stack, 2);
  m.keep_Z = Matrix<std::uint8_t>(stack, embedding_);
  for (auto* matrix : {&m.logits, &m.dlogits}) *matrix = Matrix<T>(stack, shape_.labels);
  for (auto* buffer : {&m.scratch.first, &m.scratch.second}) *buffer = Buffer<T>(stack, encoder_.widest());
}

template <class T>
void EarlyNetwork<T>::join(const Items& items, std::span<const std::uint32_t> rows,
                           std::span<const std::uint8_t> left, std::span<const Fragment> fragments,
                           std::vector<Fragment>& hidden, std::span<float> factors, MatrixView<T> X) const {
  const std::size_t b = rows.size(), views = shape_.columns.size();
  std::size_t offset = 0;
  for (std::size_t v = 0; v < views; ++v) {
    const std::size_t d = shape_.columns[v];
    for (std::size_t i = 0; i < b; ++i) {
      const Fragment all{0, static_cast<std::uint32_t>(d)}, none;
      hidden[i] = left[i * views + v] == 0 ? all : fragments.empty() ? none : fragments[i * views + v];
    }
    ops_->gather(items.X[v], rows, std::span(hidden).first(b), X.columns(offset, d));
    offset += d;
  }
  for (std::size_t i = 0; i < b; ++i) {
    std::size_t there = 0;
    for (std::size_t v = 0; v < views; ++v) there += left[i * views + v] != 0;
    factors[i] = there == 0 ? 0.f : std::sqrt(static_cast<float>(views) / static_cast<float>(there));
  }
  ops_->scale_rows(factors, X);
}

template <class T>
Losses EarlyNetwork<T>::step(const Batch& batch, const UpdateRule& rule) {
  assert(!shape_.prediction_only && batch.items->views() == shape_.columns.size());
  const std::size_t b = batch.rows.size(), views = shape_.columns.size(), s = passes_twice() ? 2 * b : b;
  reserve(b);
  Memory& m = memory_;
  const bool guess = soft_labels_.prepare(options_, batch, *this);

  const auto left = std::span(m.left).first(b * views), subset = std::span(m.subset).first(b * views);
  const auto fragments = std::span(m.fragments).first(options_.mask_rate > 0 ? b * views : 0);
  const auto factors = std::span(m.factors).first(s);
  const MatrixView<T> X = m.X.take(s, columns_);
  hide_views(batch, options_.view_dropout, left);
  if (!fragments.empty()) draw_fragments(batch, options_, shape_.columns, fragments);
  join(*batch.items, batch.rows, left, fragments, m.hidden, factors.first(b), X.top(b));
  std::ranges::copy(batch.rows, m.identities.begin());
  if (passes_twice()) {
    draw_subset(batch, options_.subset_keep, left, subset);
    join(*batch.items, batch.rows, subset, fragments, m.hidden, factors.last(b), X.slice(b, b));
    for (std::size_t i = 0; i < b; ++i) m.identities[b + i] = batch.rows[i] | kSecondPass;
  }

  // Forward: u -> U -> S -> Z = dropout(ReLU(S)) -> logits.
  Draws draws{batch.seed, batch.step, kFusedDropoutLayer, std::span(m.identities).first(s)};
  const MatrixView<T> U = m.U.view().top(s), S = m.S.view().top(s), Z = m.Z.view().top(s),
                      dZ = m.dZ.view().top(s), logits = m.logits.view().top(s),
                      dlogits = m.dlogits.view().top(s), saved = m.saved.view().top(s);
  encoder_.forward(*ops_, parameters_, X, options_.hidden_dropout, draws, m.encoder, U);
  norm_.forward(*ops_, parameters_, U, 0, norm_settings_, saved, S);
  if (options_.fused_relu) {
    ops_->relu_forward(S, Z);
  } else {
    ops_->copy(S, false, Z);
  }
  if (options_.fused_dropout > 0)
    ops_->dropout_forward(options_.fused_dropout, draws, m.keep_Z.view().top(s), Z);
  classifier_.forward(*ops_, parameters_, Z, false, logits);

  // Losses, with the gradient of all logits.
  const LabelRows labels{batch.items->Y.view(), batch.items->G.view(), batch.rows};
  const double class_value = ops_->bce(logits.top(b), labels, bce_, 1, dlogits.top(b));
  double guess_value = 0, subset_value = 0;
  if (guess)
    guess_value =
        ops_->guess_loss(logits.top(b), labels, soft_labels_.view(), options_.guess_weight, dlogits.top(b));
  if (passes_twice()) {
    ops_->copy(logits.slice(b, b), false, dlogits.slice(b, b));
    subset_value = ops_->view_loss(logits.top(b), labels, m.slots.view().top(b), options_.view_teacher,
                                   options_.view_weight, dlogits.slice(b, b));
  }

  // Backward.
  classifier_.backward(*ops_, parameters_, Z, dlogits, false, rule, dZ);
  if (options_.fused_dropout > 0) ops_->dropout_backward(options_.fused_dropout, m.keep_Z.view().top(s), dZ);
  if (options_.fused_relu) ops_->relu_backward(S, dZ);
  norm_.backward(*ops_, parameters_, U, 0, saved, rule, dZ);
  encoder_.backward(*ops_, parameters_, X, dZ, options_.hidden_dropout, s, m.encoder, rule, m.scratch, {});

  Losses losses;
  losses.add("total",
             class_value + options_.guess_weight * guess_value + options_.view_weight * subset_value);
  losses.add("classification", class_value);
  if (passes_twice()) losses.add("subset", subset_value);
  if (guess) losses.add("guess", guess_value);
  return losses;
}

template <class T>
void EarlyNetwork<T>::predict(const Items& items, MatrixView<T> scores) const {
  const std::size_t most = std::min(kPredictRows, items.rows());
  Matrix<T> input(most, columns_), Z(most, embedding_), saved(most, 2);
  PingPong<T> scratch{{most, encoder_.widest()}, {most, encoder_.widest()}};
  std::vector<Fragment> hidden(most);
  std::vector<float> factors(most);
  std::vector<std::uint32_t> rows(most);
  for (std::size_t begin = 0; begin < items.rows(); begin += kPredictRows) {
    const std::size_t count = std::min(kPredictRows, items.rows() - begin);
    std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(begin));
    const MatrixView<T> X = input.view().top(count), z = Z.view().top(count),
                        out = scores.slice(begin, count);
    join(items, std::span(rows).first(count),
         items.W.values().subspan(begin * items.views(), count * items.views()), {}, hidden,
         std::span(factors).first(count), X);
    encoder_.predict(*ops_, parameters_, X, scratch, z);
    norm_.predict(*ops_, parameters_, norm_settings_, saved.view().top(count), z);
    if (options_.fused_relu) ops_->relu_forward(z, z);
    classifier_.predict(*ops_, parameters_, z, false, out);
    ops_->sigmoid(out, out);
  }
}

template class EarlyNetwork<float>;
template class EarlyNetwork<double>;

}  // namespace lacuna
