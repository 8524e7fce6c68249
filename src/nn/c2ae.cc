#include "nn/c2ae.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace lacuna {

void C2aeOptions::declare(Options& o) {
  o.add("reduction", reduction, "width of the common space, relative to the number of labels")
      .range(.01, 10)
      .tunable({"0.2", "0.4", "0.6", "0.8"});
  o.add("hidden", hidden, "width of the hidden layers").range(1, 1 << 20);
  o.add("orthogonal", orthogonal, "weight of the orthogonality of the embeddings").range(0, 1e6).symbol("λ");
  o.add("alpha", alpha, "weight of the ranking loss")
      .range(0, 1e6)
      .symbol("α")
      .tunable({"0.1", "0.5", "1", "2", "5", "10"});
  o.add("margin", margin, "steepness of the ranking loss").range(1e-3, 1e3);
  o.add("rate-decay", rate_decay, "factor on the learning rate per epoch").range(.01, 1);
}

template <class T>
C2aeNetwork<T>::C2aeNetwork(const C2aeOptions& options, const NetworkShape& shape, std::uint64_t seed,
                            std::unique_ptr<Ops<T>> ops)
    : options_(options),
      shape_(shape),
      width_(std::max<std::size_t>(
          1, static_cast<std::size_t>(std::lround(options.reduction * static_cast<double>(shape.labels))))),
      ops_(std::move(ops)) {
  if (shape_.columns.size() != 1)
    fail(Exit::usage, "C2AE learns from one view, there are {}", shape_.columns.size());
  const auto h = static_cast<std::size_t>(options_.hidden);
  features_ = add_path("features", {shape_.columns[0], h, h, width_}, true);
  decoder_ = add_path("decoder", {width_, h, shape_.labels}, true);
  if (!shape_.prediction_only) labels_ = add_path("labels", {shape_.labels, h, width_}, false);
  if (shape_.most_parameters > 0 && parameters() > shape_.most_parameters)
    fail(Exit::data, "the settings ask for {} parameters, the model file contains {} numbers", parameters(),
         shape_.most_parameters);
  parameters_.allocate(*ops_);
  if (shape_.prediction_only) return;
  for (const Path* path : {&features_, &labels_, &decoder_}) initialise(*path, seed);
}

template <class T>
auto C2aeNetwork<T>::add_path(const std::string& name, const std::vector<std::size_t>& widths,
                              bool for_prediction) -> Path {
  Path path;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l)
    path.emplace_back().add(parameters_, name + "." + std::to_string(l), widths[l], widths[l + 1],
                            for_prediction);
  return path;
}

// Hidden layers: weights U(±.01), biases U(0, .1). Sigmoid layers: U(±4 √(6 / (in + out))), biases 0.
template <class T>
void C2aeNetwork<T>::initialise(const Path& path, std::uint64_t seed) {
  for (const Linear<T>& layer : path) {
    const bool hidden = &layer != &path.back();
    parameters_.draw_uniform(*ops_, layer.W, seed,
                             hidden ? .01 : 4 * std::sqrt(6. / static_cast<double>(layer.in + layer.out)));
    if (hidden) parameters_.draw_uniform(*ops_, layer.b, seed, .05, .05);
  }
}

template <class T>
auto C2aeNetwork<T>::outputs(const Path& path, std::size_t rows) const -> Outputs {
  Outputs all;
  for (const Linear<T>& layer : path) all.emplace_back(*ops_, rows, layer.out);
  return all;
}

template <class T>
MatrixView<T> C2aeNetwork<T>::forward(const Path& path, MatrixView<const T> X, const Form* X_form,
                                      bool learning, Outputs& outputs) const {
  MatrixView<const T> input = X;
  MatrixView<T> Y;
  for (std::size_t l = 0; l < path.size(); ++l) {
    Y = outputs[l].take(X.rows, path[l].out);
    ForwardJob<T> job = learning ? path[l].forward(parameters_, input, false, Y)
                                 : path[l].predict(parameters_, input, false, Y);
    if (l == 0) job.X_form = X_form;
    ops_->linear_forward({&job, 1});
    if (l + 1 < path.size()) ops_->activate_forward(Activation::leaky, Y, Y);
    input = Y;
  }
  return Y;
}

template <class T>
void C2aeNetwork<T>::backward(const Path& path, MatrixView<const T> X, const Form* X_form,
                              const Outputs& outputs, MatrixView<const T> dY, const UpdateRule& rule,
                              MatrixView<T> dX) {
  MatrixView<const T> gradient = dY;
  for (std::size_t l = path.size(); l-- > 0;) {
    const Linear<T>& layer = path[l];
    const MatrixView<const T> input = l > 0 ? outputs[l - 1].take(X.rows, layer.in) : X;
    const MatrixView<T> below = l > 0 ? scratch_.buffers[l % 2].take(X.rows, layer.in) : dX;
    BackwardJob<T> job = layer.backward(parameters_, input, gradient, false, below);
    if (l == 0) job.X_form = X_form;
    ops_->linear_backward({&job, 1}, rule);
    if (l > 0) ops_->activate_backward(Activation::leaky, input, below);
    gradient = below;
  }
}

template <class T>
void C2aeNetwork<T>::reserve(const Items& items, std::size_t rows) {
  if (capacity_ >= rows) return;
  capacity_ = rows;
  const Engine& engine = *ops_;
  X_ = Buffer<T>(engine, rows, shape_.columns[0]);
  if (!items.background(0).empty()) X_form_ = ops_->input_form(rows, shape_.columns[0]);
  for (auto* buffer : {&code_, &dlogits_}) *buffer = Buffer<T>(engine, rows, shape_.labels);
  for (auto* buffer : {&dA_, &dE_}) *buffer = Buffer<T>(engine, rows, width_);
  A_ = outputs(features_, rows);
  E_ = outputs(labels_, rows);
  P_ = outputs(decoder_, rows);
  scratch_ = PingPong<T>(*ops_, rows, static_cast<std::size_t>(options_.hidden));
  if (!tally_.ready()) tally_.reserve(engine, 1);
}

// Known positives +1/p, known negatives -1/q, unknown 0; with complete labels the labels themselves.
template <class T>
RowSource C2aeNetwork<T>::codes(const Items& items) {
  if (coded_ != &items) {
    Matrix<float> codes(items.rows(), items.labels());
    items.for_rows([&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        float positive = 0, known = 0;
        for (std::size_t j = 0; j < items.labels(); ++j)
          if (items.G(i, j) != 0) known += 1, positive += items.Y(i, j);
        for (std::size_t j = 0; j < items.labels(); ++j)
          codes(i, j) = options_.complete     ? items.Y(i, j)
                        : items.G(i, j) == 0  ? 0.f
                        : items.Y(i, j) > .5f ? 1 / positive
                                              : -1 / (known - positive);
      }
    });
    codes_ = EngineMatrix<float>(*ops_, codes.rows(), codes.cols());
    upload<float>(*ops_, codes, codes_);
    coded_ = &items;
  }
  return RowSource(std::as_const(codes_).view());
}

template <class T>
Losses C2aeNetwork<T>::step(const Batch& batch, const UpdateRule& rule) {
  start(batch, rule);
  return finish();
}

template <class T>
void C2aeNetwork<T>::start(const Batch& batch, const UpdateRule& rule) {
  assert(!shape_.prediction_only && batch.items->views() == 1);
  const Items& items = *batch.items;
  const std::size_t b = batch.rows.size();
  reserve(items, b);
  const auto turn = ops_->turn();
  tally_.begin();
  double* const correlation_value = tally_.add("correlation", 1);
  double* const ranking_value = tally_.add("ranking", options_.alpha);

  parcel_.clear();
  const auto rows_piece = parcel_.put(batch.rows);
  parcel_.send(*ops_);
  const auto rows = parcel_.at(rows_piece);
  const MatrixView<T> X = X_.take(b, shape_.columns[0]), code = code_.take(b, shape_.labels);
  const GatherJob<T> gathers[] = {{.source = items.rows_on(*ops_, 0),
                                   .rows = rows,
                                   .background = items.background_on(*ops_, 0),
                                   .out = X,
                                   .form = X_form_.get()},
                                  {.source = codes(items), .rows = rows, .out = code}};
  ops_->gather(gathers);

  const MatrixView<T> A = forward(features_, X, X_form_.get(), true, A_),
                      E = forward(labels_, code, nullptr, true, E_);
  ops_->activate_forward(Activation::centred, A, A);
  ops_->activate_forward(Activation::centred, E, E);
  const MatrixView<T> logits = forward(decoder_, E, nullptr, true, P_);

  const MatrixView<T> dA = dA_.take(b, width_), dE = dE_.take(b, width_),
                      dlogits = dlogits_.take(b, shape_.labels);
  UpdateRule own = rule;
  own.rate *= std::pow(options_.rate_decay, static_cast<double>(batch.epoch));
  ops_->ranking_loss(logits, {items.Y_on(*ops_), items.G_on(*ops_), rows}, options_.margin, options_.alpha,
                     dlogits, ranking_value);
  backward(decoder_, E, nullptr, P_, dlogits, own, dE);
  ops_->zero(dA);
  ops_->agreement_loss(A, E, options_.orthogonal, 1, dA, dE, correlation_value);
  ops_->activate_backward(Activation::centred, A, dA);
  ops_->activate_backward(Activation::centred, E, dE);
  backward(features_, X, X_form_.get(), A_, dA, own, {});
  backward(labels_, code, nullptr, E_, dE, own, {});
  tally_.end();
}

template <class T>
void C2aeNetwork<T>::predict(const Items& items, MatrixView<T> scores) const {
  const auto turn = ops_->turn();
  const std::size_t most = std::min(ops_->blocks().rows, items.rows()), d = shape_.columns[0];
  Outputs A = outputs(features_, most), P = outputs(decoder_, most);
  Buffer<T> X(*ops_, most, d);
  const FormPointer X_form = ops_->input_form(most, d);
  std::vector<std::uint32_t> rows(most);
  Parcel parcel;
  for (std::size_t begin = 0; begin < items.rows(); begin += most) {
    const std::size_t count = std::min(most, items.rows() - begin);
    std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(begin));
    parcel.clear();
    const auto piece = parcel.put(std::span<const std::uint32_t>(rows).first(count));
    parcel.send(*ops_);
    const MatrixView<T> input = X.take(count, d);
    const GatherJob<T> gather{.source = items.rows_on(*ops_, 0),
                              .rows = parcel.at(piece),
                              .background = items.background_on(*ops_, 0),
                              .out = input,
                              .form = X_form.get(),
                              .reader = parameters_.settled(features_[0].W)};
    ops_->gather({&gather, 1});
    const MatrixView<T> embedded = forward(features_, input, X_form.get(), false, A);
    ops_->activate_forward(Activation::centred, embedded, embedded);
    const MatrixView<T> out = forward(decoder_, embedded, nullptr, false, P);
    ops_->activate_forward(Activation::sigmoid, out, out);
    download<T>(*ops_, out, scores.slice(begin, count));
    items.leave(begin, count);
  }
}

template class C2aeNetwork<float>;
template class C2aeNetwork<double>;

}  // namespace lacuna
