// DM2L: "expand globally, shrink locally", one view. Reconstructed: the objective after the paper's abstract
// and the solver of its sibling NAIM3L (methods/expand_shrink.h). Linear on unit rows with a constant, or a
// radial kernel on landmarks with the median distance as its width.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "methods/adapt.h"
#include "methods/all.h"
#include "methods/expand_shrink.h"
#include "methods/kernels.h"

namespace lacuna {
namespace {

// The median of |x_i - x_j|² over pairs of neighbours in the order of the rows and pairs half the table
// apart.
double median_squared_distance(const Matrix<float>& X) {
  std::vector<double> values;
  const std::size_t n = X.rows();
  for (const std::size_t apart : {std::size_t{1}, std::max<std::size_t>(n / 2, 1)})
    for (std::size_t i = 0; i + apart < n; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < X.cols(); ++j)
        sum += std::pow(static_cast<double>(X(i, j)) - static_cast<double>(X(i + apart, j)), 2);
      values.push_back(sum);
    }
  if (values.empty()) return 1;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return std::max(*middle, 1e-12);
}

enum class Dm2lKernel { linear, radial };
std::vector<const char*> names_of(Dm2lKernel) { return {"linear", "radial"}; }

class Dm2l final : public Method {
 public:
  Dm2l() { options_.iterations = 60; }
  Traits traits() const override {
    return {.name = "dm2l",
            .title = "DM2L",
            .source = "PR 2021",
            .multi_view = false,
            .missing_views = false,
            .reconstructed = true,
            .prepare = "auto",
            .components = 50};
  }
  void declare(Options& options) override {
    options_.declare(options);
    options.add("kernel", kernel_, "linear, or radial with the median distance as its width");
    options.add("landmarks", landmarks_, "landmark rows of the radial kernel").range(1, 100000);
  }
  std::vector<Variant> variants() const override {
    return {{"original",
             {{"iterations", "200"}, {"majorise", "false"}, {"random-start", "true"}, {"relative", "0"}}}};
  }
  Cost cost(const FitSize& size) const override { return expand_shrink_cost(size, 1, options_); }

  void fit(const Items& train, const Items&, FitContext& context) override {
    const Matrix<float> rows = unit_rows(train.X[0]);
    std::vector<ExpandShrink::Block> blocks(1);
    for (std::size_t i = 0; i < train.rows(); ++i) blocks[0].rows.push_back(static_cast<std::uint32_t>(i));
    const bool radial = kernel_ == Dm2lKernel::radial;
    Nystroem form;
    if (radial) {
      width_ = static_cast<float>(median_squared_distance(rows));
      form =
          nystroem(rows, static_cast<double>(width_), static_cast<std::size_t>(landmarks_), context.seed, 0);
    }
    const std::size_t d = radial ? form.Phi.cols() : rows.cols();
    blocks[0].X = Matrix<double>(rows.rows(), d + 1);
    for (std::size_t i = 0; i < rows.rows(); ++i) {
      for (std::size_t j = 0; j < d; ++j)
        blocks[0].X(i, j) = radial ? form.Phi(i, j) : static_cast<double>(rows(i, j));
      blocks[0].X(i, d) = 1;
    }
    ExpandShrink solver(std::move(blocks), train, options_);
    solver.solve("dm2l", context);
    Matrix<double> A = solver.A()[0];
    if (radial) form.to_coefficients(A.view().top(d));
    points_ = std::move(form.points);
    weights_ = to_float(A);
  }

  void predict(const Items& items, MatrixView<float> scores) const override {
    const std::size_t d = weights_.rows() - 1;
    Matrix<float> rows = unit_rows(items.X[0]);
    if (!points_.empty()) {
      Matrix<float> K(rows.rows(), points_.rows());
      radial_kernel(rows, points_, static_cast<double>(width_), K);
      rows = std::move(K);
    }
    product(rows, weights_.view().top(d), Transpose::none, false, scores);
    for (std::size_t i = 0; i < scores.rows; ++i)
      for (std::size_t j = 0; j < scores.cols; ++j) scores(i, j) += weights_(d, j);
  }
  void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const override {
    for (std::size_t i = 0; i < scores.rows; ++i)
      for (std::size_t j = 0; j < scores.cols; ++j) decided(i, j) = scores(i, j) > 0;
  }
  void save(Tensors& file) const override {
    file.put("dm2l.A", weights_.view());
    file.put("dm2l.width", std::span<const float>(&width_, 1));
    if (!points_.empty()) file.put("dm2l.points", points_.view());
  }
  void load(const Tensors& file, const ItemShape& shape) override {
    points_ = file.has("dm2l.points") ? file.matrix("dm2l.points") : Matrix<float>();
    weights_ = Matrix<float>((points_.empty() ? shape.columns[0] : points_.rows()) + 1, shape.labels);
    if (!points_.empty() && points_.cols() != shape.columns[0])
      fail(Exit::data, "{}: landmarks of {} columns, the view has {}", file.path(), points_.cols(),
           shape.columns[0]);
    file.get("dm2l.A", weights_.view());
    file.get("dm2l.width", MatrixView<float>(&width_, 1, 1));
  }
  std::uint64_t parameters() const override { return weights_.values().size(); }

 private:
  ExpandShrinkOptions options_;
  Dm2lKernel kernel_ = Dm2lKernel::linear;
  std::int64_t landmarks_ = 500;
  Matrix<float> weights_;  // (d + 1, c), the last row the constants; with the kernel d = landmarks
  Matrix<float> points_;   // (L, d) landmarks; empty = linear
  float width_ = 1;
};

}  // namespace

std::unique_ptr<Method> make_dm2l() {
  return per_view([] { return std::make_unique<Dm2l>(); });
}

}  // namespace lacuna
