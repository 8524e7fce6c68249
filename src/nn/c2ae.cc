#include "nn/c2ae.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/error.h"
#include "ops/gemm.h"
#include "ops/gemm_reference.h"
#include "ops/scalar.h"

namespace lacuna {
namespace {

constexpr double kSlope = .1;               // of leaky ReLU below 0
constexpr std::size_t kPredictRows = 1024;  // a prediction works on blocks of so many rows

void multiply_any(MatrixView<const float> A, MatrixView<const float> B, Transpose transpose,
                  MatrixView<float> C) {
  multiply(A, B, transpose, false, C);
}
void multiply_any(MatrixView<const double> A, MatrixView<const double> B, Transpose transpose,
                  MatrixView<double> C) {
  reference::multiply<double>(A, B, transpose, false, C);
}

template <class T>
MatrixView<T> shaped(Matrix<T>& memory, std::size_t rows, std::size_t cols) {
  assert(rows * cols <= memory.cols());
  return {memory.data(), rows, cols};
}

}  // namespace

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
  o.add("squares", squares, "decay of the running mean of squared gradients").range(0, .999999);
}

template <class T>
C2aeNetwork<T>::C2aeNetwork(const C2aeOptions& options, const NetworkShape& shape, std::uint64_t seed)
    : options_(options),
      shape_(shape),
      width_(std::max<std::size_t>(
          1, static_cast<std::size_t>(std::lround(options.reduction * static_cast<double>(shape.labels))))),
      ops_(make_reference_ops<T>()) {
  if (shape_.columns.size() != 1)
    fail(Exit::usage, "C2AE learns from one view, there are {}", shape_.columns.size());
  const auto h = static_cast<std::size_t>(options_.hidden);
  features_ = add_path("features", {shape_.columns[0], h, h, width_}, Activation::centred, true);
  decoder_ = add_path("decoder", {width_, h, shape_.labels}, Activation::sigmoid, true);
  if (!shape_.prediction_only)
    labels_ = add_path("labels", {shape_.labels, h, width_}, Activation::centred, false);
  if (shape_.most_parameters > 0 && parameters() > shape_.most_parameters)
    fail(Exit::data, "the settings ask for {} parameters, the model file holds {} numbers", parameters(),
         shape_.most_parameters);
  parameters_.allocate(*ops_);
  if (shape_.prediction_only) return;
  for (const Path* path : {&features_, &labels_, &decoder_}) initialise(*path, seed);
}

template <class T>
auto C2aeNetwork<T>::add_path(const std::string& name, const std::vector<std::size_t>& widths,
                              Activation last, bool for_prediction) -> Path {
  Path path;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const std::string layer = name + "." + std::to_string(l);
    const std::uint32_t W = parameters_.add(layer + ".weight", widths[l], widths[l + 1],
                                            {.decay = true, .for_prediction = for_prediction});
    const std::uint32_t b = parameters_.add(layer + ".bias", 1, widths[l + 1],
                                            {.decay = false, .for_prediction = for_prediction});
    path.push_back({W, b, widths[l], widths[l + 1], l + 2 < widths.size() ? Activation::leaky : last});
  }
  return path;
}

// Hidden layers: weights U(±.01), biases U(0, .1). Sigmoid layers: U(±4 √(6 / (in + out))), biases 0.
template <class T>
void C2aeNetwork<T>::initialise(const Path& path, std::uint64_t seed) {
  for (const Layer& layer : path) {
    const bool hidden = layer.activation == Activation::leaky;
    parameters_.draw_uniform(*ops_, layer.W, seed,
                             hidden ? .01 : 4 * std::sqrt(6. / static_cast<double>(layer.in + layer.out)));
    if (!hidden) continue;
    parameters_.draw_uniform(*ops_, layer.b, seed, .05, .05);
  }
}

template <class T>
MatrixView<const T> C2aeNetwork<T>::forward(const Path& path, MatrixView<const T> X, Outputs& outputs,
                                            bool averaged) const {
  MatrixView<const T> input = X;
  for (std::size_t l = 0; l < path.size(); ++l) {
    const Layer& layer = path[l];
    const MatrixView<T> Y = outputs[l].view().top(X.rows);
    multiply_any(input, averaged ? parameters_.predictor(layer.W) : parameters_.value(layer.W),
                 Transpose::none, Y);
    const auto b = averaged ? parameters_.predictor(layer.b) : parameters_.value(layer.b);
    for (std::size_t i = 0; i < Y.rows; ++i)
      for (std::size_t j = 0; j < Y.cols; ++j) {
        const T x = Y(i, j) + b(0, j);
        Y(i, j) = layer.activation == Activation::leaky     ? (x > 0 ? x : T(kSlope) * x)
                  : layer.activation == Activation::sigmoid ? sigmoid_of(x)
                                                            : sigmoid_of(x) - T(.5);
      }
    input = Y;
  }
  return input;
}

template <class T>
void C2aeNetwork<T>::backward(const Path& path, MatrixView<const T> X, const Outputs& outputs,
                              MatrixView<T> dY, const UpdateRule& rule, double rate, MatrixView<T> dX) {
  MatrixView<T> gradient = dY;
  for (std::size_t l = path.size(); l-- > 0;) {
    const Layer& layer = path[l];
    const MatrixView<const T> Y = outputs[l].view().top(X.rows),
                              input = l > 0 ? outputs[l - 1].view().top(X.rows) : X;
    for (std::size_t i = 0; i < Y.rows; ++i)
      for (std::size_t j = 0; j < Y.cols; ++j) {
        const T y = layer.activation == Activation::centred ? Y(i, j) + T(.5) : Y(i, j);
        gradient(i, j) *= layer.activation == Activation::leaky ? (y > 0 ? T(1) : T(kSlope)) : y * (1 - y);
      }
    const MatrixView<T> below = l > 0 ? shaped(scratch_[l % 2], X.rows, layer.in) : dX;
    if (!below.empty()) multiply_any(gradient, parameters_.value(layer.W), Transpose::right, below);
    const MatrixView<T> dW = shaped(gradient_, layer.in, layer.out), db = shaped(bias_, 1, layer.out);
    multiply_any(input, gradient, Transpose::left, dW);
    std::ranges::fill(db.row(0), T(0));
    for (std::size_t i = 0; i < gradient.rows; ++i)
      for (std::size_t j = 0; j < gradient.cols; ++j) db(0, j) += gradient(i, j);
    update(layer.W, dW, rule, rate);
    update(layer.b, db, rule, rate);
    gradient = below;
  }
}

// v <- ρ v + (1-ρ) g² (the first step: v = g²), δ <- μ δ - η g/√v, w <- w + δ.
template <class T>
void C2aeNetwork<T>::update(std::uint32_t id, MatrixView<const T> gradient, const UpdateRule& rule,
                            double rate) {
  const ParameterView<T> p = parameters_.view(id);
  const T decay = p.decay ? static_cast<T>(rule.weight_decay) : T(0), rho = static_cast<T>(options_.squares);
  const bool plain = rule.rate == 1 && rule.momentum == 0;
  for (std::size_t i = 0; i < gradient.rows; ++i)
    for (std::size_t j = 0; j < gradient.cols; ++j) {
      T &w = p.value(i, j), &delta = p.first(i, j), &v = p.second(i, j);
      const T g = gradient(i, j) + decay * w;
      if (plain) {
        w -= g;
        continue;
      }
      v = rule.step <= 1 ? g * g : rho * v + (1 - rho) * g * g;
      const T direction = v > 0 ? g / std::sqrt(v) : T(0);
      delta = static_cast<T>(rule.momentum) * delta - static_cast<T>(rate) * direction;
      w += delta;
      if (!p.mean.empty()) {
        T& mean = p.mean(i, j);
        mean = static_cast<T>(rule.average) * mean + static_cast<T>(1 - rule.average) * w;
      }
    }
}

template <class T>
void C2aeNetwork<T>::reserve(std::size_t rows) {
  if (capacity_ >= rows) return;
  capacity_ = rows;
  X_ = Matrix<T>(rows, shape_.columns[0]);
  code_ = Matrix<T>(rows, shape_.labels);
  dP_ = Matrix<T>(rows, shape_.labels);
  for (auto* matrix : {&dA_, &dE_}) *matrix = Matrix<T>(rows, width_);
  gram_ = Matrix<T>(width_, width_);
  const auto outputs = [&](const Path& path) {
    Outputs all;
    for (const Layer& layer : path) all.emplace_back(rows, layer.out);
    return all;
  };
  A_ = outputs(features_);
  E_ = outputs(labels_);
  P_ = outputs(decoder_);
  std::size_t widest = 0, largest = 0;
  for (const Path* path : {&features_, &labels_, &decoder_})
    for (const Layer& layer : *path) {
      widest = std::max({widest, layer.in, layer.out});
      largest = std::max(largest, layer.in * layer.out);
    }
  gradient_ = Matrix<T>(1, largest);
  bias_ = Matrix<T>(1, widest);
  for (auto& matrix : scratch_) matrix = Matrix<T>(1, rows * widest);
}

template <class T>
double C2aeNetwork<T>::add_orthogonal(MatrixView<const T> A, MatrixView<T> dA) {
  multiply_any(A, A, Transpose::left, gram_);
  double value = 0;
  for (std::size_t k = 0; k < width_; ++k) gram_(k, k) -= T(1);
  for (const T g : gram_.values()) value += static_cast<double>(g) * static_cast<double>(g);
  const MatrixView<T> product = shaped(scratch_[0], A.rows, width_);
  multiply_any(A, gram_, Transpose::none, product);
  for (std::size_t i = 0; i < A.rows; ++i)
    for (std::size_t k = 0; k < width_; ++k)
      dA(i, k) += static_cast<T>(4 * options_.orthogonal) * product(i, k);
  return options_.orthogonal * value;
}

template <class T>
Losses C2aeNetwork<T>::step(const Batch& batch, const UpdateRule& rule) {
  const Items& items = *batch.items;
  const std::size_t b = batch.rows.size(), c = shape_.labels;
  reserve(b);
  const MatrixView<T> X = X_.view().top(b), code = code_.view().top(b);
  // Label code: known positives +1/p, known negatives -1/q, unknown 0; with complete labels the labels themselves.
  for (std::size_t i = 0; i < b; ++i) {
    const std::uint32_t row = batch.rows[i];
    std::ranges::transform(items.X[0].row(row), X.row(i).begin(), [](float x) { return static_cast<T>(x); });
    double positive = 0, known = 0;
    for (std::size_t j = 0; j < c; ++j)
      if (items.G(row, j) != 0) known += 1, positive += static_cast<double>(items.Y(row, j));
    for (std::size_t j = 0; j < c; ++j)
      code(i, j) = options_.complete       ? static_cast<T>(items.Y(row, j))
                   : items.G(row, j) == 0  ? T(0)
                   : items.Y(row, j) > .5f ? static_cast<T>(1 / positive)
                                           : static_cast<T>(-1 / (known - positive));
  }
  const MatrixView<const T> A = forward(features_, X, A_, false), E = forward(labels_, code, E_, false),
                            P = forward(decoder_, E, P_, false);

  // Ranking. exp(-μ(P_j - P_l)) is a product, so the sums over pairs are sums over labels.
  const MatrixView<T> dP = dP_.view().top(b), dA = dA_.view().top(b), dE = dE_.view().top(b);
  double ranking = 0;
  for (std::size_t i = 0; i < b; ++i) {
    const std::uint32_t row = batch.rows[i];
    double low = 0, high = 0, positives = 0,
           negatives = 0;  // Σ e^{-μP} over positives, Σ e^{μP} over negatives
    const double mu = options_.margin;
    for (std::size_t j = 0; j < c; ++j) {
      dP(i, j) = 0;
      if (items.G(row, j) == 0) continue;
      const bool positive = items.Y(row, j) > .5f;
      (positive ? positives : negatives) += 1;
      (positive ? low : high) += std::exp((positive ? -mu : mu) * static_cast<double>(P(i, j)));
    }
    if (positives == 0 || negatives == 0) continue;
    const double pairs = positives * negatives;
    ranking += low * high / (pairs * mu);
    for (std::size_t j = 0; j < c; ++j) {
      if (items.G(row, j) == 0) continue;
      const double p = static_cast<double>(P(i, j));
      const double slope = items.Y(row, j) > .5f ? -std::exp(-mu * p) * high : std::exp(mu * p) * low;
      dP(i, j) = static_cast<T>(options_.alpha * slope / pairs);
    }
  }
  // Correlation.
  double distance = 0;
  for (std::size_t i = 0; i < b; ++i)
    for (std::size_t k = 0; k < width_; ++k) {
      const T difference = A(i, k) - E(i, k);
      distance += static_cast<double>(difference) * static_cast<double>(difference);
      dA(i, k) = 2 * difference;
    }
  const double orthogonal_A = add_orthogonal(A, dA);
  const double rate = rule.rate * std::pow(options_.rate_decay, static_cast<double>(batch.epoch));
  backward(decoder_, E, P_, dP, rule, rate, dE);
  for (std::size_t i = 0; i < b; ++i)
    for (std::size_t k = 0; k < width_; ++k) dE(i, k) -= 2 * (A(i, k) - E(i, k));
  const double orthogonal_E = add_orthogonal(E, dE);
  backward(features_, X, A_, dA, rule, rate, {});
  backward(labels_, code, E_, dE, rule, rate, {});

  Losses losses;
  const double correlation = distance + orthogonal_A + orthogonal_E;
  losses.add("total", correlation + options_.alpha * ranking);
  losses.add("correlation", correlation);
  losses.add("ranking", ranking);
  return losses;
}

template <class T>
void C2aeNetwork<T>::predict(const Items& items, MatrixView<T> scores) const {
  const std::size_t most = std::min(kPredictRows, items.rows());
  const auto outputs = [&](const Path& path) {
    Outputs all;
    for (const Layer& layer : path) all.emplace_back(most, layer.out);
    return all;
  };
  Outputs A = outputs(features_), P = outputs(decoder_);
  Matrix<T> X(most, shape_.columns[0]);
  for (std::size_t begin = 0; begin < items.rows(); begin += kPredictRows) {
    const std::size_t count = std::min(kPredictRows, items.rows() - begin);
    for (std::size_t i = 0; i < count; ++i)
      std::ranges::transform(items.X[0].row(begin + i), X.row(i).begin(),
                             [](float x) { return static_cast<T>(x); });
    const MatrixView<const T> out =
        forward(decoder_, forward(features_, std::as_const(X).view().top(count), A, true), P, true);
    for (std::size_t i = 0; i < count; ++i) std::ranges::copy(out.row(i), scores.row(begin + i).begin());
  }
}

template class C2aeNetwork<float>;
template class C2aeNetwork<double>;

}  // namespace lacuna
