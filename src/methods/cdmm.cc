// CDMM: consistency and diversity. One kernel machine per view whose predictions are pushed apart from those of
// the other views (HSIC), targets smoothed by label correlation, views fused by closed-form weights. No
// iteration.
//
//   Ω_v  kernel of view v's unit rows        T = Ỹ R  targets, R the normalised label correlation
//   β_v = ((I + α K̃_v) Ω_v + I/C)⁻¹ T,  K̃_v = Σ_{s≠v} H Ω_s H,  H = I - 11ᵀ/n
//   θ_v from q_v = |Ω_v β_v - T|²,  score = Σ_v θ_v k_v(x)ᵀ β_v
// Up to `exact-rows` training rows this is solved as written: memory 4 n² bytes for each kernel kept, 8 n²
// for their sum and 24 n² for each view at work, one per thread. Above, kernels are replaced by Φ_vΦ_vᵀ on
// `landmarks` rows (methods/kernels.h): 8 n L bytes per view.
#include <cmath>

#include "base/error.h"
#include "base/threads.h"
#include "methods/adapt.h"
#include "methods/all.h"
#include "methods/kernel_method.h"

namespace lacuna {
namespace {

enum class Prototypes { mean, sum };  // of the paper; of the authors' program
std::vector<const char*> names_of(Prototypes) { return {"mean", "sum"}; }

struct CdmmOptions {
  double diversity = 1e-4;  // α
  double spread = 1e5;      // λ
  double fit = 1;           // C
  double width = .5;        // κ
  double label_share = .8;  // η
  double least = .01;       // ε
  Prototypes prototypes = Prototypes::mean;  // what the similarity of classes in a view compares
  std::int64_t landmarks = 1500, exact_rows = 6000;
};

// Jaccard similarity of the columns of Y (n, c); 0 where a column is empty.
Matrix<double> jaccard(MatrixView<const float> Y) {
  const std::size_t c = Y.cols;
  Matrix<double> both(c, c);
  gram_of_columns(Y, both);
  Matrix<double> A(c, c);
  for (std::size_t j = 0; j < c; ++j)
    for (std::size_t l = 0; l < c; ++l) {
      const double either = both(j, j) + both(l, l) - both(j, l);
      A(j, l) = either > 0 ? both(j, l) / either : 0;
    }
  return A;
}

// Similarity of the classes in one view, from the means μ of their rows: exp(-|μ_j - μ_l|²/2). Of their sums:
// 1 less the standardised Euclidean distance. 0 for a class without a row.
Matrix<double> prototype_similarity(MatrixView<const float> X, MatrixView<const float> Y, Prototypes kind) {
  const std::size_t c = Y.cols, d = X.cols;
  Matrix<float> prototypes(c, d);
  product(Y, X, Transpose::left, false, prototypes);
  std::vector<double> count(c);
  for (std::size_t i = 0; i < Y.rows; ++i)
    for (std::size_t j = 0; j < c; ++j) count[j] += static_cast<double>(Y(i, j));
  if (kind == Prototypes::sum) {
    for (std::size_t k = 0; k < d; ++k) {
      double mean = 0, squares = 0;
      for (std::size_t j = 0; j < c; ++j)
        mean += static_cast<double>(prototypes(j, k)) / static_cast<double>(c);
      for (std::size_t j = 0; j < c; ++j)
        squares += std::pow(static_cast<double>(prototypes(j, k)) - mean, 2);
      const double deviation = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(c, 2) - 1));
      for (std::size_t j = 0; j < c; ++j)
        prototypes(j, k) = deviation > 0 ? prototypes(j, k) / static_cast<float>(deviation) : 0.f;
    }
  } else {
    for (std::size_t j = 0; j < c; ++j)
      for (float& x : prototypes.row(j)) x = count[j] > 0 ? x / static_cast<float>(count[j]) : 0.f;
  }
  Matrix<double> gram(c, c), A(c, c);
  gram_of_rows(prototypes, gram);
  for (std::size_t j = 0; j < c; ++j)
    for (std::size_t l = 0; l < c; ++l) {
      if (count[j] == 0 || count[l] == 0) continue;
      const double squared = std::max(gram(j, j) + gram(l, l) - 2 * gram(j, l), 0.0);
      A(j, l) = kind == Prototypes::sum ? 1 - std::sqrt(squared) : std::exp(-squared / 2);
    }
  return A;
}

// K <- H K H
void centre_both(MatrixView<double> K) {
  const double n = static_cast<double>(K.rows);
  std::vector<double> mean(K.rows);
  double total = 0;
  for (std::size_t i = 0; i < K.rows; ++i) {
    for (const double k : K.row(i)) mean[i] += k / n;
    total += mean[i] / n;
  }
  parallel_for(K.rows, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < K.cols; ++j) K(i, j) += total - mean[i] - mean[j];
  });
}

class Cdmm final : public KernelMethod {
 public:
  Traits traits() const override {
    return {.name = "cdmm",
            .title = "CDMM",
            .source = "KBS 2021",
            .missing_views = false,
            .missing_labels = false,
            .iterative = false};
  }
  void declare(Options& o) override {
    o.add("diversity", options_.diversity, "weight of the diversity of views")
        .range(0, 1e6)
        .symbol("α")
        .tunable({"0", "1e-6", "1e-5", "1e-4", "1e-3"});
    o.add("spread", options_.spread, "how evenly the views are weighted; large: evenly")
        .range(1e-6, 1e15)
        .symbol("λ")
        .tunable({"1e4", "1e5", "1e6"});
    o.add("fit", options_.fit, "weight of the fit relative to the norm of the weights")
        .range(1e-9, 1e9)
        .symbol("C")
        .tunable({".1", "1", "10", "100"});
    o.add("width", options_.width, "width of the kernel exp(-|x-x'|²/κ)")
        .range(1e-6, 1e6)
        .symbol("κ")
        .tunable({".1", ".5", "1", "2"});
    o.add("label-share", options_.label_share,
          "share of the label correlation, relative to that of the prototypes")
        .range(0, 1)
        .symbol("η")
        .tunable({".5", ".8", "1"});
    o.add("least", options_.least, "smaller correlations are set to 0").range(0, 1).symbol("ε");
    o.add("prototypes", options_.prototypes,
          "class similarity in a view: of means (paper) or sums (authors' program)");
    o.add("landmarks", options_.landmarks, "landmark rows of the low-rank kernels").range(1, 100000);
    o.add("exact-rows", options_.exact_rows, "maximum number of training rows with exact kernels")
        .range(0, 1e9);
  }
  std::vector<Variant> variants() const override {
    return {{"original", {{"prototypes", "sum"}, {"exact-rows", "1000000000"}}}};
  }
  Cost cost(const FitSize& size) const override {
    const double n = static_cast<double>(size.rows), c = static_cast<double>(size.labels),
                 m = static_cast<double>(size.columns.size()), L = static_cast<double>(options_.landmarks);
    double columns = 0;
    for (const std::size_t d : size.columns) columns += static_cast<double>(d);
    if (n <= static_cast<double>(options_.exact_rows))
      return {(m * (2 + 2. / 3) * n * n * n + m * 4 * n * n * c) / 25e9 + 2 * n * n * columns / 40e9,
              n * n * (4 * m + 8 + 24 * std::min(m, static_cast<double>(threads()))) + 16 * n * c};
    return {(m * n * L * L + m * m * n * L * L + m * 4 * n * L * c) / 25e9 + 2 * n * L * columns / 40e9,
            8 * m * n * L + 8 * m * (L * L + 2 * n * c)};
  }

  void fit(const Items& train, const Items&, FitContext& context) override {
    const std::size_t m = train.views();
    std::vector<Matrix<float>> units;
    for (std::size_t v = 0; v < m; ++v) units.push_back(unit_rows(train.X[v]));
    const Matrix<double> T = targets(units, train.Y);
    std::vector<Machine> machines(m);
    std::vector<Matrix<double>> fitted(m);  // Ω_v β_v
    if (static_cast<std::int64_t>(train.rows()) <= options_.exact_rows) {
      solve_exactly(std::move(units), T, machines, fitted);
    } else {
      solve_on_landmarks(std::move(units), T, context.seed, machines, fitted);
    }
    std::vector<double> q(m);
    for (std::size_t v = 0; v < m; ++v)
      for (std::size_t i = 0; i < T.values().size(); ++i)
        q[v] += std::pow(fitted[v].values()[i] - T.values()[i], 2);
    keep(std::move(machines), view_weights(q, options_.spread), fitted, train.Y);
  }

 protected:
  double kernel_width() const override { return options_.width; }

 private:
  // T = Ỹ R, R = D^-½ A D^-½, A = η Jaccard + (1-η) mean over views of the prototypes' similarity.
  Matrix<double> targets(const std::vector<Matrix<float>>& units, const SharedMatrix<float>& Y) const {
    const std::size_t c = Y.cols(), m = units.size();
    Matrix<double> A = jaccard(Y);
    for (double& a : A.values()) a *= options_.label_share;
    if (options_.label_share < 1)
      for (const Matrix<float>& X : units) {
        const Matrix<double> part = prototype_similarity(X, Y, options_.prototypes);
        for (std::size_t i = 0; i < A.values().size(); ++i)
          A.values()[i] += (1 - options_.label_share) / static_cast<double>(m) * part.values()[i];
      }
    std::vector<double> scale(c);
    for (std::size_t j = 0; j < c; ++j) {
      double sum = 1e-10;
      for (double& a : A.row(j)) {
        if (!(a >= options_.least)) a = 0;
        sum += a;
      }
      scale[j] = 1 / std::sqrt(sum);
    }
    for (std::size_t j = 0; j < c; ++j)
      for (std::size_t l = 0; l < c; ++l) A(j, l) *= scale[j] * scale[l];
    Matrix<double> T(Y.rows(), c), labels(Y.rows(), c);
    for (std::size_t i = 0; i < Y.values().size(); ++i)
      labels.values()[i] = static_cast<double>(Y.values()[i]);
    product(labels, A, Transpose::none, false, T);
    return T;
  }

  void solve_exactly(std::vector<Matrix<float>> units, const Matrix<double>& T,
                     std::vector<Machine>& machines, std::vector<Matrix<double>>& fitted) const {
    const std::size_t n = T.rows(), m = units.size();
    std::vector<Matrix<float>> kernels;
    Matrix<double> all(n, n);  // Σ_s H Ω_s H
    for (std::size_t v = 0; v < m; ++v) {
      Matrix<double> K(n, n);
      radial_kernel(units[v], options_.width, K);
      kernels.push_back(to_float(K));
      centre_both(K);
      for (std::size_t i = 0; i < K.values().size(); ++i) all.values()[i] += K.values()[i];
    }
    parallel_for(m, 1, [&](std::size_t v, std::size_t) {
      Matrix<double> K(n, n);
      const auto kernel = [&] {
        for (std::size_t i = 0; i < K.values().size(); ++i)
          K.values()[i] = static_cast<double>(kernels[v].values()[i]);
      };
      kernel();
      Matrix<double> system = K;
      if (options_.diversity > 0 && m > 1) {
        Matrix<double> others = all;
        centre_both(K);
        for (std::size_t i = 0; i < K.values().size(); ++i)
          others.values()[i] = options_.diversity * (others.values()[i] - K.values()[i]);
        kernel();
        product(others, K, Transpose::none, true, system);
      }
      for (std::size_t i = 0; i < n; ++i) system(i, i) += 1 / options_.fit;
      Matrix<double> beta = T;
      solve_general(system, beta);
      Matrix<double> F(n, T.cols());
      product(K, beta, Transpose::none, false, F);
      machines[v] = {std::move(units[v]), to_float(beta)};
      fitted[v] = std::move(F);
    });
  }

  // (Φᵀ(I + αK̃)Φ + I/C) w = ΦᵀT with K̃ = Σ_s HΦ_sΦ_sᵀH: the same machine when Ω = ΦΦᵀ. What two views share,
  // Φ_vᵀHΦ_s = Φ_vᵀΦ_s - n μ_vμ_sᵀ with μ the mean rows, enters the systems of both.
  void solve_on_landmarks(std::vector<Matrix<float>> units, const Matrix<double>& T, std::uint64_t seed,
                          std::vector<Machine>& machines, std::vector<Matrix<double>>& fitted) const {
    const std::size_t n = T.rows(), m = units.size();
    std::vector<Nystroem> forms;
    std::vector<Matrix<double>> systems;
    std::vector<std::vector<double>> means(m);
    for (std::size_t v = 0; v < m; ++v) {
      forms.push_back(nystroem(units[v], options_.width, static_cast<std::size_t>(options_.landmarks), seed,
                               static_cast<std::uint32_t>(v)));
      units[v] = Matrix<float>();  // the points are kept
      const Matrix<double>& Phi = forms[v].Phi;
      means[v].resize(Phi.cols());
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t l = 0; l < Phi.cols(); ++l) means[v][l] += Phi(i, l) / static_cast<double>(n);
      systems.emplace_back(Phi.cols(), Phi.cols());
      gram_of_columns(Phi, systems[v]);
      for (std::size_t l = 0; l < Phi.cols(); ++l) systems[v](l, l) += 1 / options_.fit;
    }
    const auto add = [&](Matrix<double>& system, const Matrix<double>& square) {
      for (std::size_t i = 0; i < square.values().size(); ++i)
        system.values()[i] += options_.diversity * square.values()[i];
    };
    for (std::size_t v = 0; v < m && options_.diversity > 0; ++v)
      for (std::size_t s = v + 1; s < m; ++s) {
        Matrix<double> cross(systems[v].rows(), systems[s].rows());
        product(forms[v].Phi, forms[s].Phi, Transpose::left, false, cross);
        for (std::size_t k = 0; k < cross.rows(); ++k)
          for (std::size_t l = 0; l < cross.cols(); ++l)
            cross(k, l) -= static_cast<double>(n) * means[v][k] * means[s][l];
        Matrix<double> of_v(cross.rows(), cross.rows()), of_s(cross.cols(), cross.cols());
        gram_of_rows(cross, of_v);
        gram_of_columns(cross, of_s);
        add(systems[v], of_v);
        add(systems[s], of_s);
      }
    for (std::size_t v = 0; v < m; ++v) {
      const Matrix<double>& Phi = forms[v].Phi;
      Matrix<double> w(Phi.cols(), T.cols()), F(n, T.cols());
      product(Phi, T, Transpose::left, false, w);
      Cholesky(std::move(systems[v]), "the low-rank system").solve(w);
      product(Phi, w, Transpose::none, false, F);
      fitted[v] = std::move(F);
      forms[v].to_coefficients(w);
      machines[v] = {std::move(forms[v].points), to_float(w)};
      forms[v] = Nystroem();
    }
  }

  CdmmOptions options_;
};

}  // namespace

std::unique_ptr<Method> make_cdmm() {
  return fill_missing(std::make_unique<Cdmm>());
}

}  // namespace lacuna
