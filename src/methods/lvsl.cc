#include "methods/lvsl.h"

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "methods/adapt.h"
#include "methods/all.h"
#include "methods/descent.h"
#include "methods/iterate.h"
#include "methods/kernel_method.h"

namespace lacuna {

LvslSolver::LvslSolver(const std::vector<Matrix<float>>& rows, MatrixView<const float> Y,
                       const LvslOptions& options, std::uint64_t seed)
    : options_(options), Y_(Y.rows, Y.cols), YtY_(Y.cols, Y.cols), YC_(Y.rows, Y.cols) {
  const std::size_t m = rows.size(), c = Y.cols;
  for (std::size_t i = 0; i < Y.rows; ++i)
    for (std::size_t j = 0; j < c; ++j) Y_(i, j) = static_cast<double>(Y(i, j));
  gram_of_columns(Y_, YtY_);
  for (std::size_t v = 0; v < m; ++v) {
    forms_.push_back(nystroem(rows[v], 2 * options_.width * options_.width,
                              static_cast<std::size_t>(options_.landmarks), seed,
                              static_cast<std::uint32_t>(v)));
    graphs_.push_back(nearest_graph(rows[v], static_cast<std::size_t>(options_.neighbours)));
    const std::size_t L = forms_[v].Phi.cols();
    gram_.emplace_back(L, L);
    gram_of_columns(forms_[v].Phi, gram_[v]);
    w_.emplace_back(L, c);
    F_.emplace_back(Y.rows, c);
    P_.push_back(Y_);
    if (options_.random_start) {
      Random random(seed, Purpose::initialise, static_cast<std::uint32_t>(v));
      for (double& p : P_[v].values()) p = random.uniform_double();
    }
  }
  C_ = Matrix<double>(c, c);
  for (std::size_t j = 0; j < c; ++j) C_(j, j) = 1;
  Z_ = Matrix<double>(c, c);
  Gamma_ = Matrix<double>(c, c);
  theta_ = Matrix<double>(1, m);
  for (double& theta : theta_.values()) theta = 1 / static_cast<double>(m);
  scalars_ = Matrix<double>(1, 1);
  scalars_(0, 0) = .1;
  spread_labels();
}

void LvslSolver::spread_labels() {
  product(Y_, C_, Transpose::none, false, YC_);
}

void LvslSolver::update_machine(std::size_t v) {
  Matrix<double> system = gram_[v];
  for (double& g : system.values()) g *= theta_(0, v);
  for (std::size_t l = 0; l < system.rows(); ++l) system(l, l) += options_.lambda1;
  product(forms_[v].Phi, P_[v], Transpose::left, false, w_[v]);
  for (double& w : w_[v].values()) w *= theta_(0, v);
  Cholesky(std::move(system), "the kernel of a view").solve(w_[v]);
  product(forms_[v].Phi, w_[v], Transpose::none, false, F_[v]);
}

// ((θ + λ4) I + θ λ3 L) P = θF + λ4 ỸC
void LvslSolver::update_view_labels(std::size_t v) {
  const double theta = theta_(0, v);
  Matrix<double> right = YC_;
  for (double& r : right.values()) r *= options_.lambda4;
  add_scaled(theta, F_[v], right);
  conjugate_gradient(
      [&](const Matrix<double>& X, Matrix<double>& out) {
        graphs_[v].laplacian(X, out);
        for (double& o : out.values()) o *= theta * options_.lambda3;
        add_scaled(theta + options_.lambda4, X, out);
      },
      right, 1e-10, 200, P_[v]);
}

void LvslSolver::update_correlation() {
  double& penalty = scalars_(0, 0);
  Matrix<double> point = C_;
  add_scaled(1 / penalty, Gamma_, point);
  low_rank_norm_ = singular_value_threshold(point, options_.lambda5 / penalty, Z_);
  const std::size_t c = C_.rows();
  Matrix<double> system = YtY_, sum(c, c);
  for (double& s : system.values()) s *= static_cast<double>(views());
  for (std::size_t j = 0; j < c; ++j) system(j, j) += penalty / options_.lambda4;
  for (const Matrix<double>& P : P_)
    options_.transposed ? product(P, Y_, Transpose::left, true, sum)
                        : product(Y_, P, Transpose::left, true, sum);
  add_scaled(penalty / options_.lambda4, Z_, sum);
  add_scaled(-1 / options_.lambda4, Gamma_, sum);
  Cholesky(std::move(system), "the labels' co-occurrence").solve(sum);
  C_ = std::move(sum);
  add_scaled(penalty, C_, Gamma_);
  add_scaled(-penalty, Z_, Gamma_);
  penalty = std::min(1.5 * penalty, 1e6);
  spread_labels();
}

void LvslSolver::update_weights() {
  std::vector<double> q;
  Matrix<double> smooth(Y_.rows(), Y_.cols());
  for (std::size_t v = 0; v < views(); ++v) {
    graphs_[v].laplacian(P_[v], smooth);
    double value = options_.lambda3 * inner_product(P_[v], smooth);
    for (std::size_t i = 0; i < P_[v].values().size(); ++i)
      value += std::pow(F_[v].values()[i] - P_[v].values()[i], 2);
    q.push_back(value);
  }
  const std::vector<double> theta = view_weights(q, options_.lambda2);
  std::copy(theta.begin(), theta.end(), theta_.data());
}

double LvslSolver::objective() const {
  Matrix<double> smooth(Y_.rows(), Y_.cols());
  double value = options_.lambda5 * low_rank_norm_;
  for (std::size_t v = 0; v < views(); ++v) {
    graphs_[v].laplacian(P_[v], smooth);
    value += .5 * theta_(0, v) * options_.lambda3 * inner_product(P_[v], smooth);
    value += .5 * options_.lambda1 * inner_product(w_[v], w_[v]);
    for (std::size_t i = 0; i < P_[v].values().size(); ++i)
      value += .5 * theta_(0, v) * std::pow(F_[v].values()[i] - P_[v].values()[i], 2) +
               .5 * options_.lambda4 * std::pow(P_[v].values()[i] - YC_.values()[i], 2);
  }
  return value;
}

void LvslSolver::solve(FitContext& context) {
  std::vector<Iteration::State> state = {
      {"C", &C_}, {"Z", &Z_}, {"Gamma", &Gamma_}, {"theta", &theta_}, {"scalars", &scalars_}};
  for (std::size_t v = 0; v < views(); ++v) {
    state.push_back({"w" + std::to_string(v), &w_[v]});
    state.push_back({"P" + std::to_string(v), &P_[v]});
    state.push_back({"F" + std::to_string(v), &F_[v]});
  }
  Matrix<double> last(1, 1);
  state.push_back({"last", &last});
  Iteration loop(context, "lvsl", options_.iterations, std::move(state));
  spread_labels();
  while (loop.next()) {
    for (std::size_t v = 0; v < views(); ++v) {
      update_machine(v);
      update_view_labels(v);
    }
    update_correlation();
    update_weights();
    const double value = objective(), change = std::abs(value - last(0, 0));
    last(0, 0) = value;
    loop.report({{"total", value}}, change < options_.tolerance * std::abs(value));
  }
}

namespace {

class Lvsl final : public KernelMethod {
 public:
  Traits traits() const override {
    return {.name = "lvsl",
            .title = "LVSL",
            .source = "TMM 2022",
            .missing_views = false,
            .missing_labels = false,
            .prepare = "auto"};
  }
  void declare(Options& o) override {
    o.add("lambda1", options_.lambda1, "weight of the norm of the weights")
        .range(1e-9, 1e9)
        .symbol("λ1")
        .tunable({"1e-3", "1e-2", ".1", "1"});
    o.add("lambda2", options_.lambda2, "how evenly the views are weighted; large: evenly")
        .range(1e-6, 1e15)
        .symbol("λ2")
        .tunable({"1e4", "1e5", "1e6"});
    o.add("lambda3", options_.lambda3, "weight of the smoothness on the neighbour graph")
        .range(0, 1e9)
        .symbol("λ3")
        .tunable({"0", "1e-3", ".1"});
    o.add("lambda4", options_.lambda4, "weight of the fit to the correlated labels")
        .range(1e-9, 1e9)
        .symbol("λ4")
        .tunable({".1", "1", "10", "100"});
    o.add("lambda5", options_.lambda5, "weight of the low rank of the label correlation")
        .range(0, 1e9)
        .symbol("λ5")
        .tunable({"1e-3", ".1", "10"});
    o.add("width", options_.width, "width of the kernel exp(-|x-x'|²/(2κ²))")
        .range(1e-6, 1e6)
        .symbol("κ")
        .tunable({".2", ".4", ".7", "1"});
    o.add("neighbours", options_.neighbours, "neighbours in the graph, the row itself included").range(1, 10000);
    o.add("iterations", options_.iterations, "maximum number of iterations").range(1, 100000);
    o.add("tolerance", options_.tolerance, "stop at a smaller relative change of the objective").range(0, 1);
    o.add("landmarks", options_.landmarks, "landmark rows; a view with fewer distinct rows has an exact "
                                           "kernel")
        .range(1, 100000);
    o.add("transposed", options_.transposed,
          "use the released program's transposed sum in the label correlation");
    o.add("random-start", options_.random_start, "start from U(0, 1) as the authors, not from the labels");
  }
  std::vector<Variant> variants() const override {
    return {
        {"original",
         {{"iterations", "30"}, {"transposed", "true"}, {"random-start", "true"}, {"landmarks", "100000"}}}};
  }
  Cost cost(const FitSize& size) const override {
    const double n = static_cast<double>(size.rows), c = static_cast<double>(size.labels);
    Cost cost;
    for (std::size_t v = 0; v < size.columns.size(); ++v) {
      const double d = static_cast<double>(size.columns[v]),
                   L = std::min(static_cast<double>(options_.landmarks), n);
      cost.core_seconds +=
          (n * L * L + static_cast<double>(options_.iterations) * (L * L * L / 3 + 4 * n * L * c)) / 25e9 +
          (2 * n * L * d + 2 * n * n * d) / 40e9;
      cost.bytes += 8 * (n * L + L * L + 3 * n * c);
    }
    return cost;
  }

  void fit(const Items& train, const Items&, FitContext& context) override {
    std::vector<Matrix<float>> rows;
    for (const auto& X : train.X) rows.push_back(unit_rows(X));
    LvslSolver solver(rows, train.Y, options_, context.seed);
    solver.solve(context);
    std::vector<Machine> machines;
    std::vector<double> theta;
    for (std::size_t v = 0; v < train.views(); ++v) {
      Matrix<double> w = solver.machines()[v];
      solver.forms()[v].to_coefficients(w);
      machines.push_back({solver.forms()[v].points, to_float(w)});
      theta.push_back(solver.theta(v));
    }
    keep(std::move(machines), std::move(theta), solver.fitted(), train.Y);
  }

 protected:
  double kernel_width() const override { return 2 * options_.width * options_.width; }

 private:
  LvslOptions options_;
};

}  // namespace

std::unique_ptr<Method> make_lvsl() {
  return fill_missing(std::make_unique<Lvsl>());
}

}  // namespace lacuna
