#include "methods/glocal.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "methods/adapt.h"
#include "methods/all.h"
#include "methods/clusters.h"
#include "methods/descent.h"
#include "methods/iterate.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

void unit_length_rows(Matrix<double>& Z) {
  for (std::size_t i = 0; i < Z.rows(); ++i) {
    double squares = 0;
    for (const double z : Z.row(i)) squares += z * z;
    for (double& z : Z.row(i)) z /= std::sqrt(squares);
  }
}

void check_rank(const char* name, std::int64_t value, std::size_t labels) {
  if (value > static_cast<std::int64_t>(labels))
    fail(Exit::usage, "{} is {}, the data have {} labels: it must be from 1 to {} (0: chosen for the data)",
         name, value, labels, labels);
}

}  // namespace

GlocalSolver::GlocalSolver(Matrix<double> X, MatrixView<const float> Y, MatrixView<const std::uint8_t> G,
                           const GlocalOptions& options, std::uint64_t seed)
    : X_(std::move(X)), Y_(Y.rows, Y.cols), J_(Y.rows, Y.cols), seed_(seed), options_(options) {
  const std::size_t n = X_.rows(), d = X_.cols(), c = Y.cols;
  check_rank("latent", options_.latent, c);
  check_rank("correlation-rank", options_.correlation, c);
  const std::size_t k = options_.latent > 0 ? static_cast<std::size_t>(options_.latent)
                                            : std::min<std::size_t>(50, c),
                    k2 = options_.correlation > 0 ? static_cast<std::size_t>(options_.correlation)
                                                  : std::min<std::size_t>(20, c);
  double known = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < c; ++j) {
      J_(i, j) = G(i, j);
      Y_(i, j) = G(i, j) ? (Y(i, j) > .5f ? 1 : -1) : 0;
      known += G(i, j);
    }
  const auto size = [](std::size_t value) { return static_cast<double>(value); };
  const double group = size(n) / static_cast<double>(options_.clusters);
  lambda_ = options_.lambda * known / (size(k) * size(n));
  local_ = options_.lambda_local * known / (group * group);
  global_ = options_.lambda_global * known / (size(n) * size(n));
  regular_V_ = options_.regular * known / (size(n) * size(k));
  regular_U_ = options_.regular * known / (size(c) * size(k));
  regular_W_ = options_.regular * known / (size(d) * size(k));

  XtX_ = Matrix<double>(d, d);
  gram_of_columns(X_, XtX_);
  const std::vector<std::uint32_t> cluster = k_means(X_, static_cast<std::size_t>(options_.clusters), seed);
  for (std::size_t i = 0; i < n; ++i) {
    if (cluster[i] >= members_.size()) members_.resize(cluster[i] + 1);
    members_[cluster[i]].push_back(static_cast<std::uint32_t>(i));
  }
  for (const auto& members : members_) {
    Matrix<double> rows(members.size(), d), gram(d, d);
    for (std::size_t r = 0; r < members.size(); ++r)
      std::copy(X_.row(members[r]).begin(), X_.row(members[r]).end(), rows.row(r).begin());
    gram_of_columns(rows, gram);
    XtX_local_.push_back(std::move(gram));
    Z_.emplace_back(c, k2);
  }
  U_ = Matrix<double>(c, k);
  V_ = Matrix<double>(n, k);
  W_ = Matrix<double>(d, k);
  std::uint32_t stream = 0;
  const auto uniform = [&](Matrix<double>& M) {
    Random random(seed_, Purpose::initialise, stream++);
    for (double& x : M.values()) x = random.uniform_double();
  };
  uniform(U_);
  uniform(V_);
  for (Matrix<double>& Z : Z_) {
    uniform(Z);
    unit_length_rows(Z);
  }
}

Matrix<double> GlocalSolver::error() const {
  Matrix<double> E(V_.rows(), U_.rows());
  product(V_, U_, Transpose::right, false, E);
  parallel_for(E.rows(), 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < E.cols(); ++j) E(i, j) = J_(i, j) ? E(i, j) - Y_(i, j) : 0;
  });
  return E;
}

Matrix<double> GlocalSolver::features() const {
  Matrix<double> F(X_.rows(), W_.cols());
  product(X_, W_, Transpose::none, false, F);
  return F;
}

Matrix<double> GlocalSolver::B(std::size_t t) const {
  // Wᵀ(λ_G β_t XᵀX + λ_L X_tᵀX_t)W
  Matrix<double> G = XtX_, GW(W_.rows(), W_.cols()), result(W_.cols(), W_.cols());
  const double share = static_cast<double>(members_[t].size()) / static_cast<double>(X_.rows());
  for (double& g : G.values()) g *= global_ * share;
  add_scaled(local_, XtX_local_[t], G);
  product(G, W_, Transpose::none, false, GW);
  product(W_, GW, Transpose::left, false, result);
  return result;
}

double GlocalSolver::fit_term() const {
  const Matrix<double> E = error();
  Matrix<double> D = features();
  add_scaled(-1, V_, D);
  return .5 * inner_product(E, E) + .5 * lambda_ * inner_product(D, D);
}

double GlocalSolver::objective() const {
  double value = fit_term() + .5 * regular_V_ * inner_product(V_, V_) +
                 .5 * regular_U_ * inner_product(U_, U_) + .5 * regular_W_ * inner_product(W_, W_);
  if (!correlations_) return value;
  for (std::size_t t = 0; t < Z_.size(); ++t) {
    Matrix<double> UZ(U_.cols(), Z_[t].cols()), BUZ(U_.cols(), Z_[t].cols());
    product(U_, Z_[t], Transpose::left, false, UZ);
    product(B(t), UZ, Transpose::none, false, BUZ);
    value += .5 * inner_product(UZ, BUZ);
  }
  return value;
}

// out += Σ_t Z_tZ_tᵀ U B_t
void GlocalSolver::add_correlation_U(const Matrix<double>& U, const std::vector<Matrix<double>>& Bs,
                                     Matrix<double>& out) const {
  for (std::size_t t = 0; t < Bs.size(); ++t) {
    Matrix<double> ZU(Z_[t].cols(), U.cols()), ZUB(Z_[t].cols(), U.cols());
    product(Z_[t], U, Transpose::left, false, ZU);
    product(ZU, Bs[t], Transpose::none, false, ZUB);
    product(Z_[t], ZUB, Transpose::none, true, out);
  }
}

Matrix<double> GlocalSolver::gradient_V() const {
  Matrix<double> D(V_.rows(), V_.cols());
  product(error(), U_, Transpose::none, false, D);
  add_scaled(lambda_ + regular_V_, V_, D);
  add_scaled(-lambda_, features(), D);
  return D;
}

Matrix<double> GlocalSolver::gradient_U() const {
  Matrix<double> D(U_.rows(), U_.cols());
  product(error(), V_, Transpose::left, false, D);
  add_scaled(regular_U_, U_, D);
  std::vector<Matrix<double>> Bs;
  for (std::size_t t = 0; t < Z_.size() && correlations_; ++t) Bs.push_back(B(t));
  add_correlation_U(U_, Bs, D);
  return D;
}

Matrix<double> GlocalSolver::gradient_W() const {
  Matrix<double> D(W_.rows(), W_.cols()), gap = features();
  add_scaled(-1, V_, gap);
  product(X_, gap, Transpose::left, false, D);
  for (double& x : D.values()) x *= lambda_;
  add_scaled(regular_W_, W_, D);
  for (std::size_t t = 0; t < Z_.size() && correlations_; ++t) {
    Matrix<double> UZ(U_.cols(), Z_[t].cols()), A(U_.cols(), U_.cols()), WA(W_.rows(), W_.cols());
    product(U_, Z_[t], Transpose::left, false, UZ);
    gram_of_rows(UZ, A);
    product(W_, A, Transpose::none, false, WA);
    const double share = static_cast<double>(members_[t].size()) / static_cast<double>(X_.rows());
    Matrix<double> part(W_.rows(), W_.cols());
    product(XtX_, WA, Transpose::none, false, part);
    add_scaled(global_ * share, part, D);
    product(XtX_local_[t], WA, Transpose::none, false, part);
    add_scaled(local_, part, D);
  }
  return D;
}

Matrix<double> GlocalSolver::gradient_Z(std::size_t t) const {
  Matrix<double> UZ(U_.cols(), Z_[t].cols()), BUZ(U_.cols(), Z_[t].cols()), D(Z_[t].rows(), Z_[t].cols());
  product(U_, Z_[t], Transpose::left, false, UZ);
  product(B(t), UZ, Transpose::none, false, BUZ);
  product(U_, BUZ, Transpose::none, false, D);
  return D;
}

void GlocalSolver::update_Z(std::size_t t) {
  Matrix<double> UB(U_.rows(), U_.cols()), P(U_.rows(), U_.rows());
  product(U_, B(t), Transpose::none, false, UB);
  product(UB, U_, Transpose::right, false, P);
  armijo_descent(
      [&](const Matrix<double>& Z) {
        Matrix<double> PZ(Z.rows(), Z.cols());
        product(P, Z, Transpose::none, false, PZ);
        return .5 * inner_product(Z, PZ);
      },
      [&](const Matrix<double>& Z, Matrix<double>& D) {
        product(P, Z, Transpose::none, false, D);
        for (std::size_t i = 0; i < Z.rows(); ++i) {  // the part along the row would only stretch it
          double along = 0;
          for (std::size_t j = 0; j < Z.cols(); ++j) along += D(i, j) * Z(i, j);
          for (std::size_t j = 0; j < Z.cols(); ++j) D(i, j) -= along * Z(i, j);
        }
      },
      [](Matrix<double>& Z) { unit_length_rows(Z); }, 60, Z_[t]);
}

// (Uᵀ diag(J_i) U + (λ + λ_V) I) v_i = Uᵀ(J_i ⊙ y_i) + λ F_i
void GlocalSolver::update_V() {
  const std::size_t k = U_.cols();
  const Matrix<double> F = features();
  parallel_for(V_.rows(), 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Matrix<double> rows(U_.rows(), k), system(k, k), v(k, 1);
      std::size_t count = 0;
      for (std::size_t a = 0; a < k; ++a) v(a, 0) = lambda_ * F(i, a);
      for (std::size_t j = 0; j < U_.rows(); ++j) {
        if (!J_(i, j)) continue;
        std::copy(U_.row(j).begin(), U_.row(j).end(), rows.row(count++).begin());
        for (std::size_t a = 0; a < k; ++a) v(a, 0) += Y_(i, j) * U_(j, a);
      }
      gram_of_columns(std::as_const(rows).view().top(count), system);
      for (std::size_t a = 0; a < k; ++a) system(a, a) += lambda_ + regular_V_;
      Cholesky(std::move(system), "the system of an item's latent labels").solve(v);
      for (std::size_t a = 0; a < k; ++a) V_(i, a) = v(a, 0);
    }
  });
}

void GlocalSolver::update_U() {
  const std::size_t c = U_.rows(), k = U_.cols();
  std::vector<Matrix<double>> own(c), Bs;  // Σ_i J_ij v_i v_iᵀ
  parallel_for(c, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t j = begin; j < end; ++j) {
      Matrix<double> rows(V_.rows(), k);
      std::size_t count = 0;
      for (std::size_t i = 0; i < V_.rows(); ++i)
        if (J_(i, j)) std::copy(V_.row(i).begin(), V_.row(i).end(), rows.row(count++).begin());
      own[j] = Matrix<double>(k, k);
      gram_of_columns(std::as_const(rows).view().top(count), own[j]);
    }
  });
  for (std::size_t t = 0; t < Z_.size() && correlations_; ++t) Bs.push_back(B(t));
  Matrix<double> right(c, k);
  product(Y_, V_, Transpose::left, false, right);  // Y is 0 where unknown
  conjugate_gradient(
      [&](const Matrix<double>& U, Matrix<double>& out) {
        parallel_for(c, 8, [&](std::size_t begin, std::size_t end) {
          for (std::size_t j = begin; j < end; ++j)
            for (std::size_t a = 0; a < k; ++a) {
              double sum = regular_U_ * U(j, a);
              for (std::size_t b = 0; b < k; ++b) sum += own[j](a, b) * U(j, b);
              out(j, a) = sum;
            }
        });
        add_correlation_U(U, Bs, out);
      },
      right, 1e-8, 200, U_);
}

void GlocalSolver::update_W() {
  std::vector<Matrix<double>> left, middle;  // Σ_t left_t W middle_t
  for (std::size_t t = 0; t < Z_.size() && correlations_; ++t) {
    const double share = static_cast<double>(members_[t].size()) / static_cast<double>(X_.rows());
    Matrix<double> G = XtX_, UZ(U_.cols(), Z_[t].cols()), A(U_.cols(), U_.cols());
    for (double& g : G.values()) g *= global_ * share;
    add_scaled(local_, XtX_local_[t], G);
    product(U_, Z_[t], Transpose::left, false, UZ);
    gram_of_rows(UZ, A);
    left.push_back(std::move(G));
    middle.push_back(std::move(A));
  }
  Matrix<double> right(W_.rows(), W_.cols());
  product(X_, V_, Transpose::left, false, right);
  for (double& r : right.values()) r *= lambda_;
  conjugate_gradient(
      [&](const Matrix<double>& W, Matrix<double>& out) {
        product(XtX_, W, Transpose::none, false, out);
        for (double& o : out.values()) o *= lambda_;
        add_scaled(regular_W_, W, out);
        Matrix<double> part(W.rows(), W.cols());
        for (std::size_t t = 0; t < left.size(); ++t) {
          product(left[t], W, Transpose::none, false, part);
          product(part, middle[t], Transpose::none, true, out);
        }
      },
      right, 1e-8, 200, W_);
}

void GlocalSolver::solve(FitContext& context) {
  Matrix<double> scalars(1, 4);  // the last three objectives, and whether the start is done
  std::vector<Iteration::State> state = {{"U", &U_}, {"V", &V_}, {"W", &W_}, {"scalars", &scalars}};
  for (std::size_t t = 0; t < Z_.size(); ++t) state.push_back({"Z" + std::to_string(t), &Z_[t]});
  Iteration loop(context, "glocal", options_.rounds, std::move(state));
  if (!loop.resumed()) {  // the factors alone, without label correlation
    correlations_ = false;
    for (double before = objective(), round = 0; round < 15; ++round) {
      update_V();
      update_U();
      update_W();
      const double value = objective();
      if (before - value < 1e-3 * before) break;
      before = value;
    }
    correlations_ = true;
  }
  while (loop.next()) {
    for (std::size_t t = 0; t < Z_.size(); ++t) update_Z(t);
    update_V();
    update_U();
    update_W();
    const double value = objective();
    bool still = loop.done() >= 3;
    for (std::size_t i = 0; i < 3; ++i)
      still = still && std::abs(scalars(0, i) - value) < options_.tolerance * std::abs(value);
    for (std::size_t i = 2; i > 0; --i) scalars(0, i) = scalars(0, i - 1);
    scalars(0, 0) = value;
    loop.report({{"total", value}, {"fit", fit_term()}}, still);
  }
}

namespace {

class Glocal final : public Method {
 public:
  Traits traits() const override {
    return {.name = "glocal",
            .title = "GLOCAL",
            .source = "TKDE 2018",
            .multi_view = false,
            .missing_views = false,
            .prepare = "pca",
            .components = 96};
  }
  void declare(Options& o) override {
    o.add("lambda", options_.lambda, "weight of the fit of latent labels to the features")
        .range(1e-9, 1e9)
        .symbol("λ")
        .tunable({".1", "1", "10"});
    o.add("lambda-local", options_.lambda_local, "weight of the local label correlation")
        .range(0, 1e9)
        .symbol("λ_L")
        .tunable({"0", "1e-5", "1e-3", ".1"});
    o.add("lambda-global", options_.lambda_global, "weight of the global label correlation")
        .range(0, 1e9)
        .symbol("λ_G")
        .tunable({"0", "1e-3", ".1"});
    o.add("regular", options_.regular, "weight of the factors' norms")
        .range(1e-9, 1e9)
        .symbol("λ_U")
        .tunable({".03", ".125", ".5", "2"});
    o.add("latent", options_.latent, "number of latent labels, at most that of the labels; 0: min(50, labels)")
        .range(0, 100000)
        .symbol("k");
    o.add("correlation-rank", options_.correlation, "rank of the label correlation; 0: min(20, labels)")
        .range(0, 100000)
        .symbol("k2");
    o.add("clusters", options_.clusters, "clusters of items, each with its own label correlation")
        .range(1, 1000)
        .symbol("g");
    o.add("rounds", options_.rounds, "maximum number of rounds").range(1, 100000);
    o.add("tolerance", options_.tolerance, "stop at a smaller relative change of the objective").range(0, 1);
    o.add("constant", constant_, "add a constant feature: centred features cannot express label frequencies");
  }
  std::vector<Variant> variants() const override { return {{"original", {{"constant", "false"}}}}; }
  Cost cost(const FitSize& size) const override {
    const double n = static_cast<double>(size.rows), d = static_cast<double>(size.columns[0]) + 1,
                 c = static_cast<double>(size.labels),
                 k = options_.latent > 0 ? static_cast<double>(options_.latent) : std::min(50., c),
                 g = static_cast<double>(options_.clusters), rounds = static_cast<double>(options_.rounds),
                 start = 15;  // without correlations
    // V: a system of size k an item; U: Grams of the known items of each label; W: conjugate gradients, of which the
    // data sets that were tried took 50 to 70 steps in the mean.
    const double solves = n * (c * k * k / 2 + k * k * k) + c * n * k * k / 2, step = 2 * d * d * k;
    const double flops = (rounds + start) * solves + 80 * step * (rounds * (1 + g) + start);
    return {flops / 8e9, 8 * (n * (d + 2 * c + 2 * k) + (1 + g) * d * d + c * k * k)};
  }

  void fit(const Items& train, const Items&, FitContext& context) override {
    Matrix<double> X(train.rows(), train.X[0].cols() + 1);
    for (std::size_t i = 0; i < X.rows(); ++i) {
      for (std::size_t j = 0; j + 1 < X.cols(); ++j) X(i, j) = static_cast<double>(train.X[0](i, j));
      X(i, X.cols() - 1) = constant_ ? 1 : 0;
    }
    GlocalSolver solver(std::move(X), train.Y, train.G, options_, context.seed);
    solver.solve(context);
    Matrix<double> product_of(solver.W().rows(), solver.U().rows());
    product(solver.W(), solver.U(), Transpose::right, false, product_of);
    weights_ = to_float(product_of);
  }
  void predict(const Items& items, MatrixView<float> scores) const override {
    const std::size_t d = weights_.rows() - 1;
    product(items.X[0], weights_.view().top(d), Transpose::none, false, scores);
    for (std::size_t i = 0; i < scores.rows; ++i)
      for (std::size_t j = 0; j < scores.cols; ++j) scores(i, j) += weights_(d, j);
  }
  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const override {
    for (std::size_t i = 0; i < scores.rows; ++i)
      for (std::size_t j = 0; j < scores.cols; ++j) decided(i, j) = scores(i, j) > 0;
  }
  void save(Tensors& file) const override { file.put("glocal.WU", weights_.view()); }
  void load(const Tensors& file, const ItemShape& shape) override {
    weights_ = Matrix<float>(shape.columns[0] + 1, shape.labels);
    file.get("glocal.WU", weights_.view());
  }
  std::uint64_t parameters() const override { return weights_.values().size(); }

 private:
  GlocalOptions options_;
  bool constant_ = true;
  Matrix<float> weights_;  // (d + 1, c) = W Uᵀ, the last row the constants
};

}  // namespace

std::unique_ptr<Method> make_glocal() {
  return per_view([] { return std::make_unique<Glocal>(); });
}

}  // namespace lacuna
