// The standard baseline ML-kNN (Zhang and Zhou, 2007): for each label it counts the nearest items that have it, and
// compares the count with those of training items. Distances are Euclidean over the concatenated views; a missing view
// is filled with its mean (0 after standardisation).
//
//   P(label | δ of the k nearest have it) by Bayes' rule from P(label) and P(δ | label), P(δ | not), each smoothed by s
//
// An unknown label of a neighbour does not count as one, and rows without any known label are no neighbours. Rows whose
// own label is unknown teach nothing about it. A label that no row knows is as common as all labels together.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "methods/adapt.h"
#include "methods/all.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

constexpr std::size_t kDistanceRows = 512;  // rows whose distances are in memory at once

class Mlknn final : public Method {
 public:
  Traits traits() const override {
    return {
        .name = "mlknn", .title = "ML-kNN", .source = "PR 2007", .iterative = false, .probabilities = true};
  }
  void declare(Options& o) override {
    o.add("neighbours", neighbours_, "number of nearest items")
        .range(1, 1000)
        .symbol("k")
        .tunable({"5", "10", "20", "40"});
    o.add("smoothing", smoothing_, "added to every count").range(1e-6, 1e6).symbol("s");
  }
  Cost cost(const FitSize& size) const override {
    double columns = 0;
    for (const std::size_t d : size.columns) columns += static_cast<double>(d);
    const double n = static_cast<double>(size.rows);
    return {.core_seconds = 2 * n * n * columns / 8e10, .bytes = 4 * n * columns + 8. * kDistanceRows * n};
  }

  void fit(const Items& all_rows, const Items&, FitContext&) override {
    const Items train = labelled_rows(all_rows);
    X_ = train.X;
    positive_ = Matrix<std::uint8_t>(train.rows(), train.labels());
    for (std::size_t i = 0; i < train.rows(); ++i)
      for (std::size_t j = 0; j < train.labels(); ++j) positive_(i, j) = train.G(i, j) && train.Y(i, j) > 0;
    measure();
    const std::size_t n = train.rows(), c = train.labels(), k = std::min<std::size_t>(counted(), n - 1);
    // Counts of each label: how many of its known rows, positive and not, have δ neighbours with it.
    std::vector<Matrix<double>> counts(2, Matrix<double>(k + 1, c));
    std::vector<double> known(c), positives(c);
    visit_neighbours(train, k, true, [&](std::size_t i, std::span<const std::uint32_t> nearest) {
      for (std::size_t j = 0; j < c; ++j) {
        if (!train.G(i, j)) continue;
        counts[positive_(i, j)](votes(nearest, j), j) += 1;
        known[j] += 1;
        positives[j] += positive_(i, j);
      }
    });
    const double s = smoothing_, all = std::reduce(known.begin(), known.end()),
                 usual = (std::reduce(positives.begin(), positives.end()) + s) / (all + 2 * s);  // of all labels
    posterior_ = Matrix<float>(k + 1, c);
    for (std::size_t j = 0; j < c; ++j) {
      const double with = known[j] > 0 ? (s + positives[j]) / (2 * s + known[j]) : usual;
      for (std::size_t d = 0; d <= k; ++d) {
        const double levels = static_cast<double>(k + 1);
        const double likely = with * (s + counts[1](d, j)) / (s * levels + positives[j]);
        const double unlikely = (1 - with) * (s + counts[0](d, j)) / (s * levels + known[j] - positives[j]);
        posterior_(d, j) = static_cast<float>(likely / (likely + unlikely));
      }
    }
  }

  void predict(const Items& items, MatrixView<float> scores) const override {
    visit_neighbours(items, posterior_.rows() - 1, false,
                     [&](std::size_t i, std::span<const std::uint32_t> nearest) {
                       for (std::size_t j = 0; j < scores.cols; ++j)
                         scores(i, j) = posterior_(votes(nearest, j), j);
                     });
  }

  void save(Tensors& file) const override {
    for (std::size_t v = 0; v < X_.size(); ++v) file.put("mlknn.rows" + std::to_string(v), X_[v].view());
    file.put("mlknn.positive", positive_.values());
    file.put("mlknn.posterior", posterior_.view());
  }
  void load(const Tensors& file, const ItemShape& shape) override {
    X_.clear();
    for (std::size_t v = 0; v < shape.columns.size(); ++v) {
      X_.push_back(file.matrix("mlknn.rows" + std::to_string(v)));
      if (X_[v].cols() != shape.columns[v] || X_[v].rows() != X_[0].rows())
        fail(Exit::data, "{}: the rows of view {} are {} of {} columns; {} of {} were expected", file.path(),
             v, X_[v].rows(), X_[v].cols(), X_[0].rows(), shape.columns[v]);
    }
    posterior_ = file.matrix("mlknn.posterior");
    if (posterior_.rows() < 1 || posterior_.cols() != shape.labels || posterior_.rows() > X_[0].rows())
      fail(Exit::data, "{}: the table of counts is {} x {}; the model has {} labels and {} rows", file.path(),
           posterior_.rows(), posterior_.cols(), shape.labels, X_[0].rows());
    const auto positive = file.bytes("mlknn.positive");
    positive_ = Matrix<std::uint8_t>(X_[0].rows(), shape.labels);
    if (positive.size() != positive_.values().size())
      fail(Exit::data, "{}: mlknn.positive has {} entries; {} were expected", file.path(), positive.size(),
           positive_.values().size());
    std::ranges::copy(positive, positive_.values().begin());
    measure();
  }
  std::uint64_t parameters() const override {
    std::uint64_t count = positive_.values().size();
    for (const auto& X : X_) count += X.values().size();
    return count;
  }

 private:
  std::size_t counted() const { return static_cast<std::size_t>(neighbours_); }
  std::size_t votes(std::span<const std::uint32_t> nearest, std::size_t j) const {
    std::size_t count = 0;
    for (const std::uint32_t row : nearest) count += positive_(row, j);
    return count;
  }
  void measure() {
    squares_.assign(X_[0].rows(), 0.f);
    for (const auto& X : X_)
      for (std::size_t i = 0; i < X.rows(); ++i)
        for (const float x : X.row(i)) squares_[i] += x * x;
  }
  // visit(i, the k nearest training rows of row i, nearest first); equally near ones by their position. `own`: the items
  // are the training rows, and no row is its own neighbour.
  template <class Visit>
  void visit_neighbours(const Items& items, std::size_t k, bool own, Visit&& visit) const {
    const std::size_t n = X_[0].rows();
    Matrix<float> near(std::min(kDistanceRows, items.rows()),
                       n);  // |x|² - 2 x·y orders the rows as their distances do
    Matrix<std::uint32_t> nearest(near.rows(), k);
    for (std::size_t begin = 0; begin < items.rows(); begin += kDistanceRows) {
      const std::size_t rows = std::min(kDistanceRows, items.rows() - begin);
      const MatrixView<float> block = near.view().slice(0, rows);
      for (std::size_t v = 0; v < X_.size(); ++v)
        product(items.X[v].view().slice(begin, rows), X_[v], Transpose::right, v > 0, block);
      parallel_for(rows, 8, [&](std::size_t first, std::size_t last) {
        std::vector<std::uint32_t> order(n);
        for (std::size_t i = first; i < last; ++i) {
          const auto line = block.row(i);
          for (std::size_t t = 0; t < n; ++t) line[t] = squares_[t] - 2 * line[t];
          std::iota(order.begin(), order.end(), 0u);
          const auto nearer = [&](std::uint32_t a, std::uint32_t b) {
            return line[a] != line[b] ? line[a] < line[b] : a < b;
          };
          const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(n, k + 1));
          std::partial_sort(order.begin(), middle, order.end(), nearer);
          auto out = nearest.row(i).begin();
          const auto end = nearest.row(i).end();
          for (auto row = order.begin(); row != middle && out != end; ++row)
            if (!own || *row != begin + i) *out++ = *row;
        }
      });
      for (std::size_t i = 0; i < rows; ++i) visit(begin + i, std::as_const(nearest).row(i));
    }
  }

  std::int64_t neighbours_ = 10;
  double smoothing_ = 1;
  std::vector<SharedMatrix<float>> X_;  // training rows of each view
  Matrix<std::uint8_t> positive_;  // (n, c) known to have the label
  std::vector<float> squares_;     // |x|² of each training row
  Matrix<float> posterior_;        // (k + 1, c) by the number of neighbours that have the label
};

}  // namespace

std::unique_ptr<Method> make_mlknn() {
  return std::make_unique<Mlknn>();
}

}  // namespace lacuna
