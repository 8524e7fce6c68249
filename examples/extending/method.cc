// A method of one's own (docs/extending.md): an item gets the mean labels of its nearest training items.
#include <algorithm>
#include <numeric>

#include "methods/all.h"

namespace lacuna {
namespace {

class Nearest final : public Method {
 public:
  Traits traits() const override {
    return {.name = "nearest",
            .title = "nearest items",
            .source = "example",
            .iterative = false,
            .probabilities = true};
  }
  void declare(Options& options) override {
    options.add("neighbours", neighbours_, "items that vote").range(1, 1000).tunable({"5", "10", "20"});
  }
  void fit(const Items& train, const Items&, FitContext&) override {
    X_ = train.X;
    Y_ = train.Y;
  }
  void predict(const Items& items, MatrixView<float> scores) const override {
    const std::size_t k = std::min<std::size_t>(static_cast<std::size_t>(neighbours_), Y_.rows());
    std::vector<double> far(Y_.rows());
    std::vector<std::uint32_t> order(Y_.rows());
    for (std::size_t i = 0; i < items.rows(); ++i) {
      std::ranges::fill(far, 0.);
      for (std::size_t v = 0; v < items.views(); ++v)  // missing views are rows of zeros
        for (std::size_t t = 0; items.W(i, v) && t < Y_.rows(); ++t)
          for (std::size_t d = 0; d < X_[v].cols(); ++d)
            far[t] +=
                static_cast<double>((items.X[v](i, d) - X_[v](t, d)) * (items.X[v](i, d) - X_[v](t, d)));
      std::iota(order.begin(), order.end(), 0u);
      std::ranges::stable_sort(order, {}, [&](std::uint32_t t) { return far[t]; });
      std::ranges::fill(scores.row(i), 0.f);
      for (std::size_t n = 0; n < k; ++n)
        for (std::size_t j = 0; j < scores.cols; ++j) scores(i, j) += Y_(order[n], j) / static_cast<float>(k);
    }
  }
  void save(Tensors& file) const override {
    for (std::size_t v = 0; v < X_.size(); ++v) file.put("nearest.rows" + std::to_string(v), X_[v].view());
    file.put("nearest.labels", Y_.view());
  }
  void load(const Tensors& file, const ItemShape& shape) override {
    X_.clear();
    for (std::size_t v = 0; v < shape.columns.size(); ++v)
      X_.push_back(file.matrix("nearest.rows" + std::to_string(v)));
    Y_ = file.matrix("nearest.labels");  // a real method checks these sizes against `shape`
  }

 private:
  std::int64_t neighbours_ = 10;
  std::vector<SharedMatrix<float>> X_;
  SharedMatrix<float> Y_;
};

}  // namespace

std::unique_ptr<Method> make_nearest() {
  return std::make_unique<Nearest>();
}

}  // namespace lacuna
