#include "methods/imvwl.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "methods/all.h"
#include "methods/descent.h"
#include "methods/iterate.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

constexpr int kInnerSteps = 5;

// The products with the raw views are the cost of a round: in float.
Matrix<double> view_product(const Matrix<float>& A, const Matrix<float>& B, Transpose transpose,
                            std::size_t rows, std::size_t cols) {
  Matrix<float> C(rows, cols);
  product(A, B, transpose, false, C);
  Matrix<double> out(rows, cols);
  for (std::size_t i = 0; i < out.values().size(); ++i) out.values()[i] = static_cast<double>(C.values()[i]);
  return out;
}

Matrix<double> gather(const Matrix<double>& V, const std::vector<std::uint32_t>& rows) {
  Matrix<double> out(rows.size(), V.cols());
  for (std::size_t r = 0; r < rows.size(); ++r)
    std::copy(V.row(rows[r]).begin(), V.row(rows[r]).end(), out.row(r).begin());
  return out;
}

// The largest eigenvalue of a Gram matrix.
double largest(const Matrix<double>& symmetric) {
  return symmetric.empty() ? 0 : std::max(symmetric_eigen(symmetric).values[0], 0.0);
}

}  // namespace

ImvwlSolver::ImvwlSolver(const Items& items, const ImvwlOptions& options, std::uint64_t seed)
    : items_(items), options_(options) {
  const std::size_t n = items.rows(), c = items.labels();
  std::size_t smallest = n;
  for (const auto& X : items.X) smallest = std::min(smallest, X.cols());
  if (options_.rank > static_cast<std::int64_t>(smallest))
    fail(Exit::usage,
         "rank is {}: it must be from 1 to {}, the smallest of rows and columns of the views (0: chosen for "
         "the data)",
         options_.rank, smallest);
  const std::size_t r =
      options_.rank > 0 ? static_cast<std::size_t>(options_.rank) : std::min<std::size_t>(100, smallest);
  for (std::size_t v = 0; v < items.views(); ++v) {
    std::vector<std::uint32_t> rows;
    for (std::size_t i = 0; i < n; ++i)
      if (items.W(i, v)) rows.push_back(static_cast<std::uint32_t>(i));
    Matrix<float> X(rows.size(), items.X[v].cols());
    for (std::size_t k = 0; k < rows.size(); ++k)
      for (std::size_t j = 0; j < X.cols(); ++j) {
        const float x = items.X[v](rows[k], j);
        if (x < 0)
          fail(Exit::usage, "imvwl needs non-negative features (prepare minmax), view {} contains {}", v, x);
        X(k, j) = x;
        squares_ += static_cast<double>(x) * static_cast<double>(x);
      }
    X_.push_back(std::move(X));
    rows_.push_back(std::move(rows));
    U_.emplace_back(items.X[v].cols(), r);
    XU_.emplace_back();
    UU_.emplace_back(r, r);
  }
  V_ = Matrix<double>(n, r);
  H_ = Matrix<double>(r, c);
  B_ = Matrix<double>(c, c);
  std::uint32_t stream = 0;
  const auto uniform = [&](Matrix<double>& M) {
    Random random(seed, Purpose::initialise, stream++);
    for (double& x : M.values()) x = random.uniform_double();
  };
  uniform(V_);
  for (auto& U : U_) uniform(U);
  Random random(seed, Purpose::initialise, stream++);
  for (double& h : H_.values()) h = .1 * static_cast<double>(random.normal());
  for (std::size_t j = 0; j < c; ++j) B_(j, j) = 1;
  correlation_norm_ = static_cast<double>(c);
  project_views();
}

void ImvwlSolver::project_views() {
  for (std::size_t v = 0; v < U_.size(); ++v) {
    XU_[v] = view_product(X_[v], to_float(U_[v]), Transpose::none, X_[v].rows(), U_[v].cols());
    gram_of_columns(U_[v], UU_[v]);
  }
}

Matrix<double> ImvwlSolver::label_error(const Matrix<double>& HB) const {
  Matrix<double> E(V_.rows(), HB.cols());
  product(V_, HB, Transpose::none, false, E);
  parallel_for(E.rows(), 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < E.cols(); ++j)
        E(i, j) = items_.G(i, j) ? E(i, j) - static_cast<double>(items_.Y(i, j)) : 0;
  });
  return E;
}

// |X - VUᵀ|² = |X|² - 2<V, XU> + <VᵀV, UᵀU> over the present rows.
double ImvwlSolver::objective() const {
  double value = squares_;
  for (std::size_t v = 0; v < U_.size(); ++v) {
    const Matrix<double> own = gather(V_, rows_[v]);
    Matrix<double> VV(V_.cols(), V_.cols());
    gram_of_columns(own, VV);
    value += -2 * inner_product(own, XU_[v]) + inner_product(VV, UU_[v]);
  }
  Matrix<double> HB(H_.rows(), B_.cols());
  product(H_, B_, Transpose::none, false, HB);
  const Matrix<double> E = label_error(HB);
  return value + options_.alpha * inner_product(E, E) + options_.beta * correlation_norm_ +
         options_.rho * inner_product(H_, H_);
}

void ImvwlSolver::update_bases() {
  for (std::size_t v = 0; v < U_.size(); ++v) {
    const Matrix<double> own = gather(V_, rows_[v]);
    Matrix<double> VV(V_.cols(), V_.cols()), below(U_[v].rows(), U_[v].cols());
    gram_of_columns(own, VV);
    const Matrix<double> above =
        view_product(X_[v], to_float(own), Transpose::left, U_[v].rows(), U_[v].cols());
    product(U_[v], VV, Transpose::none, false, below);
    for (std::size_t i = 0; i < below.values().size(); ++i)
      U_[v].values()[i] *= above.values()[i] / (below.values()[i] + 1e-10);
  }
  project_views();
}

Matrix<double> ImvwlSolver::gradient_V() const {
  Matrix<double> HB(H_.rows(), B_.cols()), D(V_.rows(), V_.cols());
  product(H_, B_, Transpose::none, false, HB);
  product(label_error(HB), HB, Transpose::right, false, D);
  for (double& d : D.values()) d *= 2 * options_.alpha;
  for (std::size_t v = 0; v < U_.size(); ++v) {
    const Matrix<double> own = gather(V_, rows_[v]);
    Matrix<double> part(own.rows(), own.cols());
    product(own, UU_[v], Transpose::none, false, part);
    add_scaled(-1, XU_[v], part);
    for (std::size_t k = 0; k < rows_[v].size(); ++k)
      for (std::size_t j = 0; j < part.cols(); ++j) D(rows_[v][k], j) += 2 * part(k, j);
  }
  return D;
}

void ImvwlSolver::update_representation() {
  Matrix<double> HB(H_.rows(), B_.cols()), gram(H_.rows(), H_.rows());
  product(H_, B_, Transpose::none, false, HB);
  gram_of_rows(HB, gram);
  double bound = 2 * options_.alpha * largest(gram);
  for (const auto& UU : UU_) bound += 2 * largest(UU);
  for (int step = 0; step < kInnerSteps && bound > 0; ++step) {
    add_scaled(-1 / bound, gradient_V(), V_);
    for (double& x : V_.values()) x = std::max(x, 0.0);
  }
}

Matrix<double> ImvwlSolver::gradient_H() const {
  Matrix<double> HB(H_.rows(), B_.cols()), EB(V_.rows(), B_.rows()), D(H_.rows(), H_.cols());
  product(H_, B_, Transpose::none, false, HB);
  product(label_error(HB), B_, Transpose::right, false, EB);
  product(V_, EB, Transpose::left, false, D);
  for (double& d : D.values()) d *= 2 * options_.alpha;
  add_scaled(2 * options_.rho, H_, D);
  return D;
}

// α Vᵀ(G ⊙ (V H B)) Bᵀ + ρH = α Vᵀ(G ⊙ Y) Bᵀ
void ImvwlSolver::update_predictor(int steps) {
  const auto back = [&](const Matrix<double>& E, Matrix<double>& out) {
    Matrix<double> VE(V_.cols(), E.cols());
    product(V_, E, Transpose::left, false, VE);
    product(VE, B_, Transpose::right, false, out);
    for (double& o : out.values()) o *= options_.alpha;
  };
  Matrix<double> known(V_.rows(), B_.cols()), right(H_.rows(), H_.cols());
  for (std::size_t i = 0; i < known.values().size(); ++i)
    known.values()[i] = items_.G.values()[i] ? static_cast<double>(items_.Y.values()[i]) : 0;
  back(known, right);
  conjugate_gradient(
      [&](const Matrix<double>& H, Matrix<double>& out) {
        Matrix<double> HB(H.rows(), B_.cols());
        product(H, B_, Transpose::none, false, HB);
        Matrix<double> scores(V_.rows(), HB.cols());
        product(V_, HB, Transpose::none, false, scores);
        for (std::size_t i = 0; i < scores.values().size(); ++i)
          if (!items_.G.values()[i]) scores.values()[i] = 0;
        back(scores, out);
        add_scaled(options_.rho, H, out);
      },
      right, 1e-8, steps, H_);
}

Matrix<double> ImvwlSolver::gradient_B() const {
  Matrix<double> HB(H_.rows(), B_.cols()), VH(V_.rows(), H_.cols()), D(B_.rows(), B_.cols());
  product(H_, B_, Transpose::none, false, HB);
  product(V_, H_, Transpose::none, false, VH);
  product(VH, label_error(HB), Transpose::left, false, D);
  for (double& d : D.values()) d *= 2 * options_.alpha;
  return D;
}

void ImvwlSolver::update_correlation() {
  Matrix<double> VH(V_.rows(), H_.cols()), gram(H_.cols(), H_.cols());
  product(V_, H_, Transpose::none, false, VH);
  gram_of_columns(VH, gram);
  const double bound = 2 * options_.alpha * largest(gram);
  for (int step = 0; step < kInnerSteps && bound > 0; ++step) {
    add_scaled(-1 / bound, gradient_B(), B_);
    correlation_norm_ = singular_value_threshold(B_, options_.beta / bound, B_);
  }
}

void ImvwlSolver::rescale() {
  for (std::size_t k = 0; k < V_.cols(); ++k) {
    double squares = 0;
    for (const auto& U : U_)
      for (std::size_t j = 0; j < U.rows(); ++j) squares += U(j, k) * U(j, k);
    if (!(squares > 0)) continue;
    const double length = std::sqrt(squares);
    for (auto& U : U_)
      for (std::size_t j = 0; j < U.rows(); ++j) U(j, k) /= length;
    for (std::size_t i = 0; i < V_.rows(); ++i) V_(i, k) *= length;
    for (std::size_t j = 0; j < H_.cols(); ++j) H_(k, j) /= length;
    for (std::size_t v = 0; v < U_.size(); ++v) {
      for (std::size_t i = 0; i < XU_[v].rows(); ++i) XU_[v](i, k) /= length;
      for (std::size_t j = 0; j < UU_[v].cols(); ++j) UU_[v](k, j) /= length;
      for (std::size_t j = 0; j < UU_[v].rows(); ++j) UU_[v](j, k) /= length;
    }
  }
}

void ImvwlSolver::solve(FitContext& context) {
  Matrix<double> scalars(1, 2);  // the last objective, |B|_*
  std::vector<Iteration::State> state = {{"V", &V_}, {"H", &H_}, {"B", &B_}, {"scalars", &scalars}};
  for (std::size_t v = 0; v < U_.size(); ++v) {
    state.push_back({"U" + std::to_string(v), &U_[v]});
    state.push_back({"XU" + std::to_string(v), &XU_[v]});
    state.push_back({"UU" + std::to_string(v), &UU_[v]});
  }
  Iteration loop(context, "imvwl", options_.rounds, std::move(state));
  if (loop.resumed()) {
    correlation_norm_ = scalars(0, 1);
  } else {
    rescale();  // a start with bases of length 1
    scalars(0, 0) = objective();
  }
  while (loop.next()) {
    update_bases();
    update_representation();
    update_predictor();
    update_correlation();
    if (options_.rescale_each) rescale();
    const double value = objective(), change = std::abs(value - scalars(0, 0));
    const bool still = change < options_.tolerance * std::abs(scalars(0, 0));
    scalars(0, 0) = value;
    scalars(0, 1) = correlation_norm_;
    loop.report({{"total", value}}, still);
  }
}

Matrix<double> represent(const Items& items, const std::vector<Matrix<float>>& bases, int steps) {
  const std::size_t n = items.rows(), r = bases.empty() ? 0 : bases[0].cols();
  Matrix<double> V(n, r), right(n, r);
  std::vector<Matrix<double>> grams;
  double bound = 0;
  for (std::size_t v = 0; v < bases.size(); ++v) {
    Matrix<double> UU(r, r);
    gram_of_columns(bases[v], UU);
    Matrix<float> X(n, items.X[v].cols());
    X.copy_from(items.X[v]);
    for (std::size_t i = 0; i < n; ++i)
      if (!items.W(i, v)) std::fill(X.row(i).begin(), X.row(i).end(), 0.f);
    const Matrix<double> XU = view_product(X, bases[v], Transpose::none, n, r);
    add_scaled(1, XU, right);
    bound += largest(UU);
    grams.push_back(std::move(UU));
  }
  if (!(bound > 0)) return V;
  // Accelerated: the momentum of Nesterov, which the projection does not disturb.
  Matrix<double> point = V, next(n, r), part(n, r);
  double momentum = 1;
  for (int step = 0; step < steps; ++step) {
    Matrix<double> D = right;
    for (double& d : D.values()) d = -d;
    for (std::size_t v = 0; v < bases.size(); ++v) {
      product(point, grams[v], Transpose::none, false, part);
      for (std::size_t i = 0; i < n; ++i)
        if (items.W(i, v))
          for (std::size_t k = 0; k < r; ++k) D(i, k) += part(i, k);
    }
    next = point;
    add_scaled(-1 / bound, D, next);
    for (double& x : next.values()) x = std::max(x, 0.0);
    const double following = .5 * (1 + std::sqrt(1 + 4 * momentum * momentum));
    point = next;
    add_scaled((momentum - 1) / following, next, point);
    add_scaled(-(momentum - 1) / following, V, point);
    V = next;
    momentum = following;
  }
  return V;
}

namespace {

enum class Rounding { nearest, up };
std::vector<const char*> names_of(Rounding) { return {"nearest", "up"}; }

class Imvwl final : public Method {
 public:
  Traits traits() const override {
    return {.name = "imvwl",
            .title = "iMVWL",
            .source = "IJCAI 2018",
            .reconstructed = true,
            .prepare = "minmax"};
  }
  void declare(Options& o) override {
    o.add("alpha", options_.alpha, "weight of the labels")
        .range(1e-12, 1e9)
        .symbol("α")
        .tunable({"1e-3", "1e-2", ".1", "1", "10"});
    o.add("beta", options_.beta, "weight of the low rank of the label correlation")
        .range(0, 1e9)
        .symbol("β")
        .tunable({"1e-4", "1e-2", "1"});
    o.add("rho", options_.rho, "weight of the predictor's norm").range(0, 1e9).symbol("ρ");
    o.add("rank", options_.rank, "size of the shared representation; 0: min(100, smallest view)")
        .range(0, 100000)
        .symbol("r")
        .tunable({"50", "100"});
    o.add("rounds", options_.rounds, "maximum number of rounds").range(1, 100000);
    o.add("tolerance", options_.tolerance, "stop at a smaller relative change of the objective").range(0, 1);
    o.add("rescale-each", options_.rescale_each,
          "normalise the bases after every round, not only at the start");
    o.add("decided-labels", decided_,
          "labels assigned to an item: the mean number, rounded to the nearest, or up as the published "
          "figures suggest");
    o.add("refit", refit_, "refit the predictor on training rows that are embedded like new items");
    o.add("predict-steps", steps_, "gradient steps that embed a new item").range(1, 100000);
  }
  std::vector<Variant> variants() const override {
    return {{"original",
             {{"rounds", "200"}, {"rescale-each", "true"}, {"refit", "false"}, {"decided-labels", "up"}}}};
  }
  Cost cost(const FitSize& size) const override {
    double least = static_cast<double>(size.rows);
    for (const std::size_t d : size.columns) least = std::min(least, static_cast<double>(d));
    const double n = static_cast<double>(size.rows), c = static_cast<double>(size.labels),
                 r = options_.rank > 0 ? static_cast<double>(options_.rank) : std::min(100., least);
    double views = 0, bytes = 0;
    for (std::size_t v = 0; v < size.columns.size(); ++v) {
      views += 4 * static_cast<double>(size.present[v]) * static_cast<double>(size.columns[v]) * r;
      bytes += static_cast<double>(size.present[v]) * (4 * static_cast<double>(size.columns[v]) + 12 * r);
    }
    const double inner = 5 * 4 * n * r * c + 10 * 4 * n * r * c + 5 * 4 * n * c * (r + c);
    const double refit = refit_ ? 300 * 4 * n * r * c : 0;
    return {static_cast<double>(options_.rounds) * (views / 40e9 + inner / 20e9) + refit / 20e9,
            bytes + 8 * n * (4 * c + 4 * r)};
  }

  void fit(const Items& train, const Items&, FitContext& context) override {
    ImvwlSolver solver(train, options_, context.seed);
    solver.solve(context);
    bases_.clear();
    for (const auto& U : solver.bases()) bases_.push_back(to_float(U));
    if (refit_) {  // the representation of training rows knows their labels, that of new rows cannot
      solver.V() = represent(train, bases_, static_cast<int>(steps_));
      solver.update_predictor(300);
    }
    Matrix<double> HB(solver.H().rows(), solver.B().cols());
    product(solver.H(), solver.B(), Transpose::none, false, HB);
    predictor_ = to_float(HB);
    double positives = 0;
    for (std::size_t i = 0; i < train.rows(); ++i)
      for (std::size_t j = 0; j < train.labels(); ++j)
        positives += train.G(i, j) ? static_cast<double>(train.Y(i, j)) : 0;
    double known = 0;
    for (const std::uint8_t g : train.G.values()) known += g;
    // Labels of a complete row: the share of positives among the known, times the labels.
    const double cardinality = known > 0 ? positives / known * static_cast<double>(train.labels()) : 1;
    top_ = static_cast<float>(
        std::max(1.0, decided_ == Rounding::up ? std::ceil(cardinality) : std::round(cardinality)));
  }
  void predict(const Items& items, MatrixView<float> scores) const override {
    const Matrix<float> V = to_float(represent(items, bases_, static_cast<int>(steps_)));
    product(V, predictor_, Transpose::none, false, scores);
  }
  // The k best labels of each item, k = the mean number of labels, rounded.
  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const override {
    const std::size_t k = std::min(static_cast<std::size_t>(top_), scores.cols);
    std::vector<std::size_t> order(scores.cols);
    for (std::size_t i = 0; i < scores.rows; ++i) {
      for (std::size_t j = 0; j < scores.cols; ++j) order[j] = j, decided(i, j) = 0;
      std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
                        [&](std::size_t a, std::size_t b) {
                          return scores(i, a) > scores(i, b) || (scores(i, a) == scores(i, b) && a > b);
                        });
      for (std::size_t p = 0; p < k; ++p) decided(i, order[p]) = 1;
    }
  }
  void save(Tensors& file) const override {
    for (std::size_t v = 0; v < bases_.size(); ++v) file.put("imvwl.U" + std::to_string(v), bases_[v].view());
    file.put("imvwl.HB", predictor_.view());
    file.put("imvwl.top", std::span<const float>(&top_, 1));
  }
  void load(const Tensors& file, const ItemShape& shape) override {
    predictor_ = file.matrix("imvwl.HB");
    if (predictor_.cols() != shape.labels)
      fail(Exit::data, "{}: the predictor has {} labels, the model {}", file.path(), predictor_.cols(),
           shape.labels);
    bases_.clear();
    for (const std::size_t columns : shape.columns) {
      Matrix<float> U(columns, predictor_.rows());
      file.get("imvwl.U" + std::to_string(bases_.size()), U.view());
      bases_.push_back(std::move(U));
    }
    file.get("imvwl.top", MatrixView<float>(&top_, 1, 1));
    if (!(top_ >= 1)) fail(Exit::data, "{}: imvwl.top is {}, expected at least 1", file.path(), top_);
  }
  std::uint64_t parameters() const override {
    std::uint64_t count = predictor_.values().size();
    for (const auto& U : bases_) count += U.values().size();
    return count;
  }

 private:
  ImvwlOptions options_;
  std::int64_t steps_ = 50;
  bool refit_ = true;
  Rounding decided_ = Rounding::nearest;
  std::vector<Matrix<float>> bases_;  // per view (d_v, r)
  Matrix<float> predictor_;           // (r, c) = H B
  float top_ = 1;
};

}  // namespace

std::unique_ptr<Method> make_imvwl() {
  return std::make_unique<Imvwl>();
}

}  // namespace lacuna
