#include "nn/early.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "nn/masks.h"

namespace lacuna {
namespace {

constexpr std::uint32_t kSecondPass = 1u << 31;  // the identity of a row in the second pass

}  // namespace

template <class T>
EarlyNetwork<T>::EarlyNetwork(const MtdOptions& options, const NetworkShape& shape, std::uint64_t seed,
                              std::shared_ptr<Ops<T>> ops)
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
  norm_.add(*ops_, parameters_, "norm", embedding_, options_.end_norm);
  classifier_.add(parameters_, "classifier", embedding_, shape_.labels, true);
  if (shape_.most_parameters > 0 && parameters() > shape_.most_parameters)
    fail(Exit::data, "the settings ask for {} parameters, the model file contains {} numbers", parameters(),
         shape_.most_parameters);
  parameters_.allocate(*ops_);
  if (shape_.prediction_only) return;  // the values come from a file
  encoder_.initialise(*ops_, parameters_, seed);
  norm_.initialise(*ops_, parameters_);
  classifier_.initialise(*ops_, parameters_, seed, options_.classifier_bias);
}

template <class T>
void EarlyNetwork<T>::keep(OptimiserState state) {
  parameters_.keep(*ops_, state);
  soft_labels_.keep(*ops_, options_, shape_.training_rows, shape_.labels);
}

template <class T>
void EarlyNetwork<T>::visit_buffers(typename BasicNetwork<T>::BufferVisitor visitor) {
  if (const MatrixView<T> running = norm_.running(); !running.empty()) visitor("norm.running", running, true);
  soft_labels_.visit(visitor);
}

template <class T>
void EarlyNetwork<T>::reserve(std::size_t rows) {
  Memory& m = memory_;
  if (m.capacity >= rows) return;
  const Engine& engine = *ops_;
  m.capacity = rows;
  const std::size_t views = shape_.columns.size(), stack = passes_twice() ? 2 * rows : rows;
  m.left.resize(rows * views);
  m.subset.resize(rows * views);
  m.fragments.resize(rows * views);
  m.hidden.resize(rows);
  m.factors.resize(rows);
  m.identities.resize(stack);
  m.slots.resize(rows);
  std::iota(m.slots.begin(), m.slots.end(), 0);
  m.X = Buffer<T>(engine, stack, columns_);
  m.encoder = encoder_.memory(*ops_, stack);
  for (auto* matrix : {&m.U, &m.S, &m.Z, &m.dZ}) *matrix = EngineMatrix<T>(engine, stack, embedding_);
  m.saved = EngineMatrix<T>(engine, stack, 2);
  for (auto* matrix : {&m.logits, &m.dlogits}) *matrix = EngineMatrix<T>(engine, stack, shape_.labels);
  m.scratch = PingPong<T>(*ops_, stack, encoder_.widest());
  if (!tally_.ready()) tally_.reserve(engine, 1);
}

template <class T>
void EarlyNetwork<T>::plan(std::span<const std::uint8_t> left, std::span<const Fragment> fragments, Memory& m,
                           Joined& joined) const {
  const std::size_t views = shape_.columns.size(), b = left.size() / views;
  joined.hidden.clear();
  for (std::size_t v = 0; v < views; ++v) {
    for (std::size_t i = 0; i < b; ++i) {
      const Fragment all{0, static_cast<std::uint32_t>(shape_.columns[v])}, none;
      m.hidden[i] = left[i * views + v] == 0 ? all : fragments.empty() ? none : fragments[i * views + v];
    }
    joined.hidden.push_back(m.parcel.put(std::span<const Fragment>(m.hidden).first(b)));
  }
  for (std::size_t i = 0; i < b; ++i) {
    std::size_t there = 0;
    for (std::size_t v = 0; v < views; ++v) there += left[i * views + v] != 0;
    m.factors[i] = there == 0 ? 0.f : std::sqrt(static_cast<float>(views) / static_cast<float>(there));
  }
  joined.factors = m.parcel.put(std::span<const float>(m.factors).first(b));
}

template <class T>
void EarlyNetwork<T>::join(const Items& items, std::span<const std::uint32_t> rows, const Joined& joined,
                           MatrixView<T> X, Memory& m) const {
  m.gathers.clear();
  std::size_t offset = 0;
  for (std::size_t v = 0; v < shape_.columns.size(); ++v) {
    m.gathers.push_back({.source = items.rows_on(*ops_, v),
                         .rows = rows,
                         .hidden = m.parcel.at(joined.hidden[v]),
                         .factors = m.parcel.at(joined.factors),
                         .out = X.columns(offset, shape_.columns[v])});
    offset += shape_.columns[v];
  }
  ops_->gather(m.gathers);
}

template <class T>
Losses EarlyNetwork<T>::step(const Batch& batch, const UpdateRule& rule) {
  start(batch, rule);
  return finish();
}

template <class T>
void EarlyNetwork<T>::start(const Batch& batch, const UpdateRule& rule) {
  assert(!shape_.prediction_only && batch.items->views() == shape_.columns.size());
  const std::size_t b = batch.rows.size(), views = shape_.columns.size(), s = passes_twice() ? 2 * b : b;
  reserve(b);
  Memory& m = memory_;
  const bool guess = soft_labels_.prepare(*ops_, options_, batch, *whole_);
  const auto turn = ops_->turn();
  tally_.begin();
  double* const class_value = tally_.add("classification", 1);
  double* const guess_value = guess ? tally_.add("guess", options_.guess_weight) : nullptr;
  double* const subset_value = passes_twice() ? tally_.add("subset", options_.view_weight) : nullptr;

  // The plan of the step, in one parcel.
  const auto left = std::span(m.left).first(b * views), subset = std::span(m.subset).first(b * views);
  const auto fragments = std::span(m.fragments).first(options_.mask_rate > 0 ? b * views : 0);
  m.parcel.clear();
  hide_views(batch, options_.view_dropout, left);
  if (!fragments.empty()) draw_fragments(batch, options_, shape_.columns, fragments);
  plan(left, fragments, m, m.joined[0]);
  std::ranges::copy(batch.rows, m.identities.begin());
  if (passes_twice()) {
    draw_subset(batch, options_.subset_keep, left, subset);
    plan(subset, fragments, m, m.joined[1]);
    for (std::size_t i = 0; i < b; ++i) m.identities[b + i] = batch.rows[i] | kSecondPass;
  }
  const auto rows_piece = m.parcel.put(batch.rows);
  const auto identities_piece = m.parcel.put(std::span<const std::uint32_t>(m.identities).first(s));
  const auto slots_piece = m.parcel.put(std::span<const std::int32_t>(m.slots).first(b));
  m.parcel.send(*ops_);
  const auto rows = m.parcel.at(rows_piece);
  const Slots slots(m.parcel.at(slots_piece).data(), b, 1);
  const MatrixView<T> X = m.X.take(s, columns_);
  join(*batch.items, rows, m.joined[0], X.top(b), m);
  if (passes_twice()) join(*batch.items, rows, m.joined[1], X.slice(b, b), m);

  // Forward: u -> U -> S -> Z = dropout(ReLU(S)) -> logits.
  const Draws draws{batch.seed, batch.step, kFusedDropoutLayer, m.parcel.at(identities_piece)};
  const MatrixView<T> U = m.U.view().top(s), S = m.S.view().top(s), Z = m.Z.view().top(s),
                      dZ = m.dZ.view().top(s), logits = m.logits.view().top(s),
                      dlogits = m.dlogits.view().top(s), saved = m.saved.view().top(s);
  const ChainForward<T> there{&encoder_, X, nullptr, &m.encoder, draws.rows, U};
  forward<T>(*ops_, parameters_, {&there, 1}, options_.hidden_dropout, draws);
  const NormForward<T> norm = norm_.forward(parameters_, U, 0, saved, S);
  norm_forward<T>(*ops_, options_.end_norm, {&norm, 1}, norm_settings_);
  if (options_.fused_relu) {
    ops_->activate_forward(Activation::relu, S, Z);
  } else {
    ops_->copy(S, false, Z);
  }
  const DropoutJob<T> drop{draws, Z}, drop_back{draws, dZ};
  if (options_.fused_dropout > 0) ops_->dropout(options_.fused_dropout, {&drop, 1});
  const ForwardJob<T> classify = classifier_.forward(parameters_, Z, false, logits);
  ops_->linear_forward({&classify, 1});

  // Losses, with the gradient of all logits.
  const LabelRows labels{batch.items->Y_on(*ops_), batch.items->G_on(*ops_), rows,
                         label_weights_.on(*ops_, *batch.items, options_.label_weight)};
  ops_->bce(logits.top(b), labels, bce_, 1, dlogits.top(b), class_value);
  if (guess)
    ops_->guess_loss(logits.top(b), labels, soft_labels_.view(), options_.guess_weight, dlogits.top(b),
                     guess_value);
  if (passes_twice()) {
    ops_->copy(logits.slice(b, b), false, dlogits.slice(b, b));
    ops_->view_loss(logits.top(b), labels, slots, options_.view_teacher, options_.view_weight,
                    dlogits.slice(b, b), subset_value);
  }

  // Backward.
  const BackwardJob<T> classify_back = classifier_.backward(parameters_, Z, dlogits, false, dZ);
  ops_->linear_backward({&classify_back, 1}, rule);
  if (options_.fused_dropout > 0) ops_->dropout(options_.fused_dropout, {&drop_back, 1});
  if (options_.fused_relu) ops_->activate_backward(Activation::relu, S, dZ);
  const NormBackward<T> norm_back = norm_.backward(parameters_, U, 0, saved, dZ);
  norm_backward<T>(*ops_, options_.end_norm, {&norm_back, 1}, rule);
  const ChainBackward<T> back{&encoder_, X, nullptr, &m.encoder, s, dZ, &m.scratch, {}};
  backward<T>(*ops_, parameters_, {&back, 1}, options_.hidden_dropout, rule);
  tally_.end();
}

template <class T>
void EarlyNetwork<T>::for_blocks(const Items& items,
                                 FunctionRef<void(std::size_t, MatrixView<T>, MatrixView<T>)> body) const {
  const auto turn = ops_->turn();
  const std::size_t views = items.views(), most = std::min(ops_->blocks().rows, items.rows());
  const Engine& engine = *ops_;
  Memory m;  // of a prediction, which uses a part of it
  m.hidden.resize(most);
  m.factors.resize(most);
  m.X = Buffer<T>(engine, most, columns_);
  m.S = EngineMatrix<T>(engine, most, embedding_);
  m.saved = EngineMatrix<T>(engine, most, 2);
  m.logits = EngineMatrix<T>(engine, most, shape_.labels);
  m.scratch = PingPong<T>(*ops_, most, encoder_.widest());
  m.identities.resize(most);
  for (std::size_t begin = 0; begin < items.rows(); begin += most) {
    const std::size_t count = std::min(most, items.rows() - begin);
    std::iota(m.identities.begin(), m.identities.end(), static_cast<std::uint32_t>(begin));
    m.parcel.clear();
    plan(items.W.values().subspan(begin * views, count * views), {}, m, m.joined[0]);
    const auto rows = m.parcel.put(std::span<const std::uint32_t>(m.identities).first(count));
    m.parcel.send(engine);
    const MatrixView<T> X = m.X.take(count, columns_), z = m.S.view().top(count),
                        out = m.logits.view().top(count);
    join(items, m.parcel.at(rows), m.joined[0], X, m);
    const ChainPrediction<T> chain{&encoder_, X, nullptr, &m.scratch, z};
    lacuna::predict<T>(*ops_, parameters_, {&chain, 1});
    const NormForward<T> norm = norm_.predict(parameters_, m.saved.view().top(count), z);
    norm_predict<T>(*ops_, options_.end_norm, {&norm, 1}, norm_settings_);
    if (options_.fused_relu) ops_->activate_forward(Activation::relu, z, z);
    const ForwardJob<T> classify = classifier_.predict(parameters_, z, false, out);
    ops_->linear_forward({&classify, 1});
    body(begin, z, out);
    items.leave(begin, count);
  }
}

template <class T>
void EarlyNetwork<T>::predict(const Items& items, MatrixView<T> scores) const {
  for_blocks(items, [&](std::size_t begin, MatrixView<T>, MatrixView<T> out) {
    ops_->activate_forward(Activation::sigmoid, out, out);
    download<T>(*ops_, out, scores.slice(begin, out.rows));
  });
}

template <class T>
bool EarlyNetwork<T>::fused(const Items& items, typename BasicNetwork<T>::FusedSink sink) const {
  for_blocks(items, [&](std::size_t begin, MatrixView<T> z, MatrixView<T> out) {
    give_host<T>(*ops_, begin, z, out, sink);
  });
  return true;
}

template class EarlyNetwork<float>;
template class EarlyNetwork<double>;

}  // namespace lacuna
