// A standard baseline: a regularised logistic regression per label on the concatenated views. A missing view is filled
// with its mean (0 after standardisation), and a column marks whether it is present (for views that some training rows
// lack). Unknown labels have no term. One λ for all labels, chosen on validation rows unless it is given.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "methods/all.h"
#include "methods/logistic.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

constexpr double kCandidates[] = {1e5, 1e4, 1e3, 100, 10, 1};  // each starts where the one before ended
constexpr double kUsual = 100;
constexpr int kIterations = 200;
constexpr double kTolerance = 1e-4;

class LinearMethod final : public Method {
 public:
  Traits traits() const override {
    return {.name = "linear",
            .title = "linear",
            .source = "logistic regression",
            .iterative = false,
            .probabilities = true};
  }
  void declare(Options& o) override {
    o.add("lambda", lambda_,
          "weight of ½‖w‖² (1/C in other programs); 0 = chosen on validation rows (100 without any)")
        .range(0, 1e12)
        .symbol("λ")
        .tunable({"1", "10", "100", "1000", "1e4"});
  }
  Cost cost(const FitSize& size) const override {
    double columns = 0;
    for (const std::size_t d : size.columns) columns += static_cast<double>(d);
    const double n = static_cast<double>(size.rows), c = static_cast<double>(size.labels),
                 p = std::min(n, columns);
    return {.core_seconds = (n * p * (columns > n ? columns + n : 0) + 4 * n * p * c * 150) / 3e10,
            .bytes = 8 * (n * p * (columns > n ? 3 : 1) + 16 * p * c + 4 * n * c)};
  }

  void fit(const Items& train, const Items& val, FitContext& context) override {
    const std::size_t m = train.views(), c = train.labels();
    widths_.clear();
    for (const auto& X : train.X) widths_.push_back(X.cols());
    gaps_.assign(m, 0);
    for (std::size_t i = 0; i < train.rows(); ++i)
      for (std::size_t v = 0; v < m; ++v) gaps_[v] |= static_cast<std::uint8_t>(train.W(i, v) == 0);
    const Matrix<float> X = side_by_side(train);
    W_ = Matrix<float>(X.cols(), c);
    b_ = Matrix<float>(1, c);
    const nlohmann::json* first = context.follows();
    used_lambda_ = first != nullptr ? first->at("lambda").get<double>() : lambda_ > 0 ? lambda_ : kUsual;

    const bool wide = X.cols() > X.rows();
    Cholesky factor;
    LogisticRegressions regressions(wide ? row_space(X, factor) : in_double(X), train.Y, train.G);
    const auto fit_with = [&](double lambda) {
      regressions.solve(lambda, kTolerance, kIterations);
      take(regressions, X, factor);
    };
    if (lambda_ > 0 || val.rows() == 0) return fit_with(used_lambda_);  // none in a second fit
    Matrix<float> best_W, best_b;
    double best = -1;
    for (const double lambda : kCandidates) {
      fit_with(lambda);
      if (const double ap = evaluate_on(*this, val).ap; ap > best) {
        best = ap;
        used_lambda_ = lambda;
        best_W = W_;
        best_b = b_;
      }
    }
    if (best < 0) return fit_with(used_lambda_);  // AP is not defined on these rows
    W_ = std::move(best_W);
    b_ = std::move(best_b);
  }

  nlohmann::json selected() const override { return {{"lambda", used_lambda_}}; }

  void predict(const Items& items, MatrixView<float> scores) const override {
    std::size_t first = 0;
    for (std::size_t v = 0; v < widths_.size(); ++v) {
      product(items.X[v], W_.view().slice(first, widths_[v]), Transpose::none, v > 0, scores);
      first += widths_[v];
    }
    parallel_for(scores.rows, 64, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        std::size_t row = first;
        const auto line = scores.row(i);
        for (std::size_t v = 0; v < widths_.size(); ++v) {
          if (!gaps_[v]) continue;
          if (items.W(i, v))
            for (std::size_t j = 0; j < line.size(); ++j) line[j] += W_(row, j);
          ++row;
        }
        for (std::size_t j = 0; j < line.size(); ++j) line[j] = 1 / (1 + std::exp(-(line[j] + b_(0, j))));
      }
    });
  }

  void save(Tensors& file) const override {
    file.put("linear.weights", W_.view());
    file.put("linear.bias", b_.view());
    file.put("linear.gaps", std::span<const std::uint8_t>(gaps_));
    file.metadata["lambda"] = used_lambda_;  // for the reader of the file
  }
  void load(const Tensors& file, const ItemShape& shape) override {
    widths_ = shape.columns;
    used_lambda_ = file.metadata.value("lambda", kUsual);
    gaps_ = file.bytes("linear.gaps");
    if (gaps_.size() != widths_.size())
      fail(Exit::data, "{}: linear.gaps is for {} views; the model has {}", file.path(), gaps_.size(),
           widths_.size());
    std::size_t rows = 0;
    for (const std::size_t d : widths_) rows += d;
    for (std::uint8_t& gap : gaps_) rows += gap = gap != 0;
    W_ = Matrix<float>(rows, shape.labels);
    b_ = Matrix<float>(1, shape.labels);
    file.get("linear.weights", W_);
    file.get("linear.bias", b_);
  }
  std::uint64_t parameters() const override { return W_.rows() * W_.cols() + b_.cols(); }

 private:
  // All views, then a column for each view with gaps: 1 where it is there.
  Matrix<float> side_by_side(const Items& items) const {
    std::size_t columns = 0;
    for (std::size_t v = 0; v < widths_.size(); ++v) columns += widths_[v] + gaps_[v];
    Matrix<float> X(items.rows(), columns);
    for (std::size_t i = 0; i < items.rows(); ++i) {
      auto out = X.row(i).begin();
      for (const auto& part : items.X) out = std::ranges::copy(part.row(i), out).out;
      for (std::size_t v = 0; v < widths_.size(); ++v)
        if (gaps_[v]) *out++ = items.W(i, v) ? 1.f : 0.f;
    }
    return X;
  }
  // With more columns than rows the solution is a sum of rows: XXᵀ = LLᵀ, and L (n, n) stands for X.
  MatrixView<const double> row_space(const Matrix<float>& X, Cholesky& factor) {
    const std::size_t n = X.rows();
    Matrix<double> K(n, n);
    gram_of_rows(X, K);
    double trace = 0;
    for (std::size_t i = 0; i < n; ++i) trace += K(i, i);
    for (std::size_t i = 0; i < n; ++i) K(i, i) += 1e-9 * trace / static_cast<double>(n) + 1e-12;
    factor = Cholesky(K, "the product of all rows with each other");
    factor.solve_lower(K);  // Lᵀ
    Z_ = Matrix<double>(n, n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j) Z_(i, j) = K(j, i);
    return Z_;
  }
  MatrixView<const double> in_double(const Matrix<float>& X) {
    Z_ = Matrix<double>(X.rows(), X.cols());
    std::ranges::copy(X.values(), Z_.values().begin());
    return Z_;
  }
  // The weights of columns, from those of the coordinates that were solved in.
  void take(const LogisticRegressions& regressions, const Matrix<float>& X, const Cholesky& factor) {
    if (factor.empty()) {
      std::ranges::transform(regressions.weights().values(), W_.values().begin(),
                             [](double w) { return static_cast<float>(w); });
    } else {
      Matrix<double> shares = regressions.weights();
      factor.solve_upper(shares);
      product(X, to_float(shares), Transpose::left, false, W_);
    }
    std::ranges::transform(regressions.bias().values(), b_.values().begin(),
                           [](double b) { return static_cast<float>(b); });
  }

  double lambda_ = 0, used_lambda_ = kUsual;
  std::vector<std::size_t> widths_;
  std::vector<std::uint8_t> gaps_;  // per view: some training row lacks it
  Matrix<float> W_, b_;             // (all columns and indicators, c), (1, c)
  Matrix<double> Z_;                // while fitting
};

}  // namespace

std::unique_ptr<Method> make_linear() {
  return std::make_unique<LinearMethod>();
}

}  // namespace lacuna
