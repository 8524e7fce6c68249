// Fits the parts of a Recovery: the number of factors and the penalties on hidden views of rows that the fit did not
// see, the deviations from the errors there.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "data/moments.h"
#include "methods/recovery.h"
#include "methods/ridge.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

constexpr std::uint32_t kStream =
    1u << 16;  // of rows and their folds; repetitions of a protocol number theirs
constexpr std::size_t kFolds = 3, kFoldsOfFew = 8,
                      kFew = 1000;  // rows; of few rows each part leaves out fewer
constexpr std::size_t kRanks[] = {4, 12, 32, 80, 160};
constexpr int kTrialIterations = 12;  // of the factors while their number is chosen
constexpr double kWorse = 1.01;       // more factors are not tried once they are that much worse
constexpr std::size_t kKernelColumns = 160;
constexpr std::int64_t kComponents = 96;
constexpr std::size_t kCalibrationRows = 1500;  // of each view
constexpr double kCoverage =
    .91;  // of intervals of 90 %: the gaps of new items are less like those of training
constexpr std::size_t kBlock = 512;  // rows of raw columns in memory

const std::vector<double>& penalties() {
  static const std::vector<double> all = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, .1, .3, 1, 3, 10, 30, 100};
  return all;
}

// At most Recovery::kMostRows of the rows, in their order.
Selection drawn(Selection rows, std::uint64_t seed) {
  if (rows.rows.size() <= Recovery::kMostRows) return rows;
  Random(seed, Purpose::row_order, kStream).shuffle(rows.rows);
  rows.rows.resize(Recovery::kMostRows);
  std::ranges::sort(rows.rows);
  return rows;
}

}  // namespace

class RecoveryFit {
 public:
  RecoveryFit(const Selection& rows, std::uint64_t seed)
      : rows_(drawn(rows, seed)),
        seed_(seed),
        m_(rows.data->views.size()),
        folds_(rows_.rows.size() < kFew ? kFoldsOfFew : kFolds) {
    PrepareOptions prepare;
    prepare.kind = "root-pca";
    prepare.components = kComponents;
    prepare.seed = seed;
    result_.preparation_ = Preparation::fit(rows_, prepare);
    items_ = result_.preparation_.apply(rows_, false);
    const std::size_t n = items_.rows();
    result_.rows_ = n;
    fold_.resize(n);
    const auto order = Random(seed, Purpose::row_order, kStream + 1).permutation(n);
    for (std::size_t k = 0; k < n; ++k) fold_[order[k]] = static_cast<std::uint8_t>(k % folds_);
    pairs_.resize(m_);
    for (std::size_t v = 0; v < m_; ++v)
      for (std::size_t i = 0; i < n; ++i)
        if (items_.W(i, v) != 0 && views_of(i) > 1) pairs_[v].push_back(static_cast<std::uint32_t>(i));
  }

  Recovery run() {
    check();
    const std::size_t rank = choose_rank();
    for (std::size_t k = 0; k < folds_; ++k) parts_.push_back(part(k, rank));
    Part whole = part(folds_, rank);
    for (std::size_t v = 0; v < m_; ++v) result_.decoders_.push_back(decoder(v, whole));
    result_.factors_ = std::move(whole.model.factors_);
    result_.kernel_ = std::move(whole.model.kernel_);
    result_.factor_scale_ = whole.model.factor_scale_;
    return std::move(result_);
  }

 private:
  // What was learned from the rows outside a fold (from all rows: fold folds_).
  struct Part {
    Recovery model;                    // factors and kernel alone
    std::vector<Matrix<float>> A;      // per view: features of pairs_[v], the view itself left aside
    std::vector<Matrix<float>> doubt;  // per view: (rows of pairs_[v], 1)
  };

  std::size_t views_of(std::size_t i) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(items_.W.row(i), [](std::uint8_t w) { return w != 0; }));
  }

  void check() const {
    const auto learnable = [&](const auto& rows) { return rows.size() >= Recovery::kFewestRows; };
    if (std::ranges::any_of(pairs_, learnable)) {
      double bytes = 0;
      for (const auto& map : result_.preparation_.views())
        bytes += static_cast<double>(map.columns) *
                 static_cast<double>(kKernelColumns + kRanks[3] + result_.direct_features()) * sizeof(float);
      if (bytes > Recovery::kMostBytes)
        fail(Exit::data,
             "{}: decoders of {} views would take {:.1f} GB, and at most {:.1f} are kept; omit "
             "--keep-decoders",
             rows_.data->name, m_, bytes / 1e9, Recovery::kMostBytes / 1e9);
      return;
    }
    std::size_t most = 0;
    for (const auto& rows : pairs_) most = std::max(most, rows.size());
    fail(Exit::data,
         "{}: views cannot be learned from each other: {} views, and at most {} rows have one of them "
         "together "
         "with another, {} are needed; omit --keep-decoders",
         rows_.data->name, m_, most, Recovery::kFewestRows);
  }

  std::vector<std::uint8_t> outside(std::size_t fold) const {
    std::vector<std::uint8_t> use(items_.rows());
    for (std::size_t i = 0; i < use.size(); ++i) use[i] = fold_[i] != fold;
    return use;
  }

  // The prepared rows at the given positions.
  Items gathered(const std::vector<std::uint32_t>& rows) const {
    Items items;
    items.W = Matrix<std::uint8_t>(rows.size(), m_);
    for (std::size_t v = 0; v < m_; ++v) {
      Matrix<float> X(rows.size(), items_.X[v].cols());
      for (std::size_t r = 0; r < rows.size(); ++r) {
        std::ranges::copy(items_.X[v].row(rows[r]), X.row(r).begin());
        items.W(r, v) = items_.W(rows[r], v);
      }
      items.X.push_back(std::move(X));
    }
    return items;
  }

  // Factors decode prepared views on held rows: the relative error, averaged over views.
  double error_of_rank(std::size_t rank) const {
    double sum = 0, count = 0;
    std::vector<std::vector<double>> errors(m_, std::vector<double>(penalties().size()));
    std::vector<double> squares(m_);
    for (std::size_t k = 0; k < folds_; ++k) {
      const Factors factors = Factors::fit(items_, outside(k), rank, seed_, kTrialIterations);
      for (std::size_t v = 0; v < m_; ++v) {
        if (pairs_[v].size() < Recovery::kFewestRows) continue;
        const Items own = gathered(pairs_[v]);
        Matrix<float> F(own.rows(), factors.rank());
        factors.estimate(own, v, F);
        const auto [learn, held] = sums(v, k, F, own.X[v]);
        const std::vector<double> now = learn.errors(held, penalties());
        for (std::size_t l = 0; l < now.size(); ++l) errors[v][l] += now[l];
        squares[v] += held.square();
      }
    }
    for (std::size_t v = 0; v < m_; ++v) {
      if (!(squares[v] > 0)) continue;
      sum += *std::ranges::min_element(errors[v]) / squares[v];
      ++count;
    }
    return count > 0 ? sum / count : 1;
  }

  std::size_t choose_rank() const {
    std::size_t columns = 0, best_rank = kRanks[0];
    for (const auto& X : items_.X) columns += X.cols();
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t rank : kRanks) {
      if (rank > kRanks[0] && (2 * rank > columns || 4 * rank > items_.rows())) break;
      const double error = error_of_rank(rank);
      if (error > kWorse * best) break;
      if (error < best) best = error, best_rank = rank;
    }
    return best_rank;
  }

  // Sums over the rows of pairs_[v] outside and inside the fold; A and Y are of pairs_[v].
  std::pair<RidgeSums, RidgeSums> sums(std::size_t v, std::size_t fold, MatrixView<const float> A,
                                       MatrixView<const float> Y) const {
    std::pair<RidgeSums, RidgeSums> result{{A.cols, Y.cols}, {A.cols, Y.cols}};
    add(v, fold, 0, A, Y, result.first, result.second);
    return result;
  }

  // Rows first, first + 1, ... of pairs_[v] into the sums they belong to.
  void add(std::size_t v, std::size_t fold, std::size_t first, MatrixView<const float> A,
           MatrixView<const float> Y, RidgeSums& learn, RidgeSums& held) const {
    for (const bool inside : {false, true}) {
      std::vector<std::size_t> rows;
      for (std::size_t r = 0; r < A.rows; ++r)
        if ((fold_[pairs_[v][first + r]] == fold) == inside) rows.push_back(r);
      Matrix<float> a(rows.size(), A.cols), y(rows.size(), Y.cols);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        std::ranges::copy(A.row(rows[r]), a.row(r).begin());
        std::ranges::copy(Y.row(rows[r]), y.row(r).begin());
      }
      (inside ? held : learn).add(a, y);
    }
  }

  Part part(std::size_t fold, std::size_t rank) const {
    Part result;
    Recovery& model = result.model;
    const std::vector<std::uint8_t> use = outside(fold);
    model.factors_ = Factors::fit(items_, use, rank, seed_);
    std::vector<std::uint32_t> rows;
    for (std::size_t i = 0; i < use.size(); ++i)
      if (use[i] != 0) rows.push_back(static_cast<std::uint32_t>(i));
    Matrix<float> F(rows.size(), model.factors_.rank());
    model.factors_.estimate(gathered(rows), Factors::kAll, F);
    model.kernel_ = KernelMap::fit(F, kKernelColumns, seed_);
    // Factors and kernel coordinates (variance 1 on average) get the same weight in the penalty.
    double square = 0;
    for (const float f : F.values()) square += static_cast<double>(f) * static_cast<double>(f);
    const double mean = square / static_cast<double>(std::max<std::size_t>(rows.size(), 1));
    model.factor_scale_ =
        static_cast<float>(std::sqrt(static_cast<double>(model.kernel_.columns()) / std::max(mean, 1e-12)));
    for (std::size_t v = 0; v < m_; ++v) {
      Matrix<float> own(pairs_[v].size(), model.factors_.rank()), doubt(pairs_[v].size(), m_);
      model.factors_.estimate(gathered(pairs_[v]), v, own, doubt);
      result.A.push_back(model.features_of(own));
      Matrix<float> one(doubt.rows(), 1);
      for (std::size_t r = 0; r < doubt.rows(); ++r) one(r, 0) = doubt(r, v);
      result.doubt.push_back(std::move(one));
    }
    return result;
  }

  // Raw rows first.. of pairs_[v], less the means.
  Matrix<float> centred(std::size_t v, std::size_t first, std::size_t count,
                        const Matrix<float>& mean) const {
    Matrix<float> Y(count, mean.cols());
    parallel_for(count, 16, [&](std::size_t begin, std::size_t end) {
      for (std::size_t r = begin; r < end; ++r) {
        const auto y = Y.row(r);
        rows_.data->views[v].copy_row(rows_.rows[pairs_[v][first + r]], y);
        for (std::size_t j = 0; j < y.size(); ++j) y[j] -= mean(0, j);
      }
    });
    return Y;
  }

  Recovery::Decoder decoder(std::size_t v, const Part& whole) const {
    Recovery::Decoder result;
    const View& view = rows_.data->views[v];
    const std::size_t d = view.columns(), n = pairs_[v].size();
    for (Matrix<float>* matrix : {&result.mean, &result.low, &result.high, &result.deviation})
      *matrix = Matrix<float>(1, d);
    result.rows = n;
    std::vector<std::uint32_t> present;
    for (std::size_t i = 0; i < items_.rows(); ++i)
      if (items_.W(i, v) != 0) present.push_back(rows_.rows[i]);
    if (present.empty()) return result;
    const Moments m = moments(view, present);
    for (std::size_t j = 0; j < d; ++j) {
      result.mean(0, j) = static_cast<float>(m.mean[j]);
      result.low(0, j) = m.low[j];
      result.high(0, j) = m.high[j];
      result.deviation(0, j) = static_cast<float>(m.deviation[j]);
    }
    if (n < Recovery::kFewestRows) return result;

    std::vector<MatrixView<const float>> features;
    for (const Part& one : parts_) features.push_back(one.A[v]);
    auto by_factors = regression(v, result.mean, features, whole.A[v]);
    if (!by_factors) return result;  // a constant view
    std::vector<Matrix<float>> weights = std::move(by_factors->parts);
    result.weights = std::move(by_factors->whole);
    Matrix<float> direct;  // empty: factors alone
    if (items_.rows() < kFew) {
      direct = Recovery::direct_of(gathered(pairs_[v]), v);
      add_direct(v, direct, weights, result);
    }
    calibrate(v, direct, weights, result);
    if (result.error >= 1) {  // the views say nothing about this one
      for (auto& w : weights) w = Matrix<float>(w.rows(), w.cols());
      calibrate(v, direct, weights, result);
      result.weights = Matrix<float>();
    }
    return result;
  }

  struct Regression {
    std::vector<Matrix<float>> parts;  // from the rows outside each fold
    Matrix<float> whole;
  };

  // From features of pairs_[v], of each part and of all rows, into the view's columns; the penalty by held rows. None where
  // the view is constant.
  std::optional<Regression> regression(std::size_t v, const Matrix<float>& mean,
                                       const std::vector<MatrixView<const float>>& parts,
                                       MatrixView<const float> whole) const {
    const std::size_t d = mean.cols(), n = pairs_[v].size();
    std::vector<RidgeSums> learn, held;
    for (const auto& one : parts) {
      learn.emplace_back(one.cols, d);
      held.emplace_back(one.cols, d);
    }
    RidgeSums all(whole.cols, d);
    for (std::size_t first = 0; first < n; first += kBlock) {
      const std::size_t count = std::min(kBlock, n - first);
      const Matrix<float> Y = centred(v, first, count, mean);
      for (std::size_t k = 0; k < folds_; ++k)
        add(v, k, first, parts[k].slice(first, count), Y, learn[k], held[k]);
      all.add(whole.slice(first, count), Y);
    }
    if (!(all.square() > 0)) return std::nullopt;
    std::vector<double> errors(penalties().size());
    for (std::size_t k = 0; k < folds_; ++k) {
      const std::vector<double> now = learn[k].errors(held[k], penalties());
      for (std::size_t l = 0; l < now.size(); ++l) errors[l] += now[l];
    }
    const double penalty =
        penalties()[static_cast<std::size_t>(std::ranges::min_element(errors) - errors.begin())];
    Regression result;
    for (const RidgeSums& one : learn) result.parts.push_back(one.solve(penalty));
    result.whole = all.solve(penalty);
    return result;
  }

  // The regression from views beside the one from factors, each with its share.
  void add_direct(std::size_t v, const Matrix<float>& direct, std::vector<Matrix<float>>& weights,
                  Recovery::Decoder& decoder) const {
    const auto by_views =
        regression(v, decoder.mean, std::vector<MatrixView<const float>>(folds_, direct), direct);
    for (std::size_t k = 0; k < folds_; ++k) weights[k] = below(weights[k], by_views->parts[k]);
    decoder.weights = below(decoder.weights, by_views->whole);
    const auto [share, share_of_views] = shares(v, direct, weights, decoder.mean);
    const auto scale = [&, share = share, share_of_views = share_of_views](Matrix<float>& one) {
      for (std::size_t f = 0; f < one.rows(); ++f)
        for (float& w : one.row(f))
          w *= static_cast<float>(f + direct.cols() < one.rows() ? share : share_of_views);
    };
    scale(decoder.weights);
    for (auto& one : weights) scale(one);
  }

  static Matrix<float> below(const Matrix<float>& upper, const Matrix<float>& lower) {
    Matrix<float> both(upper.rows() + lower.rows(), upper.cols());
    std::ranges::copy(upper.values(), both.data());
    std::ranges::copy(lower.values(), both.row(upper.rows()).data());
    return both;
  }

  // Calls see(r, y, f, g) for rows of pairs_[v] drawn evenly, count in all: what the row has, less the means, and what the
  // regressions from factors (f) and from views (g; zeros if there is none) say that did not see the row. Rows come in
  // parallel.
  template <class See>
  void hold_out(std::size_t v, std::size_t count, const Matrix<float>& direct,
                const std::vector<Matrix<float>>& weights, const Matrix<float>& mean, See&& see) const {
    const std::size_t n = pairs_[v].size(), d = mean.cols(), q = direct.cols();
    for (std::size_t first = 0; first < count; first += kBlock)
      for (std::size_t k = 0; k < folds_; ++k) {
        std::vector<std::size_t> rows;  // of those that are drawn
        for (std::size_t r = first; r < std::min(count, first + kBlock); ++r)
          if (fold_[pairs_[v][r * n / count]] == k) rows.push_back(r);
        if (rows.empty()) continue;
        const std::size_t p = parts_[k].A[v].cols();
        Matrix<float> a(rows.size(), p), b(rows.size(), q), f(rows.size(), d), g(rows.size(), d);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          std::ranges::copy(parts_[k].A[v].row(rows[i] * n / count), a.row(i).begin());
          if (q > 0) std::ranges::copy(direct.row(rows[i] * n / count), b.row(i).begin());
        }
        product(std::as_const(a).view(), weights[k].view().slice(0, p), Transpose::none, false, f);
        if (q > 0) product(std::as_const(b).view(), weights[k].view().slice(p, q), Transpose::none, false, g);
        parallel_for(rows.size(), 16, [&](std::size_t begin, std::size_t end) {
          std::vector<float> y(d);
          for (std::size_t i = begin; i < end; ++i) {
            rows_.data->views[v].copy_row(rows_.rows[pairs_[v][rows[i] * n / count]], y);
            for (std::size_t j = 0; j < d; ++j) y[j] -= mean(0, j);
            see(rows[i], std::span<const float>(y), f.row(i), g.row(i));
          }
        });
      }
  }

  // How much of each regression is taken: s f + t g, the closest to y on held rows with s, t >= 0.
  std::pair<double, double> shares(std::size_t v, const Matrix<float>& direct,
                                   const std::vector<Matrix<float>>& weights,
                                   const Matrix<float>& mean) const {
    const std::size_t count = std::min(pairs_[v].size(), kCalibrationRows);
    Matrix<double> sums(count, 5);  // ff, fg, gg, fy, gy of each row
    hold_out(v, count, direct, weights, mean, [&](std::size_t r, auto y, auto f, auto g) {
      for (std::size_t j = 0; j < y.size(); ++j) {
        const auto a = static_cast<double>(f[j]), b = static_cast<double>(g[j]),
                   c = static_cast<double>(y[j]);
        sums(r, 0) += a * a, sums(r, 1) += a * b, sums(r, 2) += b * b, sums(r, 3) += a * c,
            sums(r, 4) += b * c;
      }
    });
    double ff = 0, fg = 0, gg = 0, fy = 0, gy = 0;
    for (std::size_t r = 0; r < count; ++r)
      ff += sums(r, 0), fg += sums(r, 1), gg += sums(r, 2), fy += sums(r, 3), gy += sums(r, 4);
    const double alone = ff > 0 ? std::max(fy / ff, 0.) : 0,
                 alone_of_views = gg > 0 ? std::max(gy / gg, 0.) : 0;
    if (const double det = ff * gg - fg * fg; det > 1e-9 * ff * gg) {
      const double s = (fy * gg - gy * fg) / det, t = (gy * ff - fy * fg) / det;
      if (s >= 0 && t >= 0) return {s, t};
    }
    return alone * fy >= alone_of_views * gy ? std::pair(alone, 0.) : std::pair(0., alone_of_views);
  }

  // Deviations from the errors on held rows, each made by the part that did not see the row.
  void calibrate(std::size_t v, const Matrix<float>& direct, const std::vector<Matrix<float>>& weights,
                 Recovery::Decoder& decoder) const {
    const std::size_t n = pairs_[v].size(), d = decoder.mean.cols(), count = std::min(n, kCalibrationRows);
    Matrix<float> wrong(count, d);
    std::vector<double> error(count), doubt(count), whole(count);
    hold_out(v, count, direct, weights, decoder.mean, [&](std::size_t r, auto y, auto f, auto g) {
      const auto out = wrong.row(r);
      for (std::size_t j = 0; j < d; ++j) {
        const float mean = decoder.mean(0, j),
                    value = std::clamp(f[j] + g[j] + mean, decoder.low(0, j), decoder.high(0, j)) - mean;
        const auto off = static_cast<double>(y[j] - value), base = static_cast<double>(y[j]);
        out[j] = std::abs(y[j] - value);
        error[r] += off * off;
        whole[r] += base * base;
      }
      const std::size_t row = r * n / count;
      doubt[r] = static_cast<double>(parts_[fold_[pairs_[v][row]]].doubt[v](row, 0));
    });
    const double errors = std::accumulate(error.begin(), error.end(), 0.),
                 squares = std::accumulate(whole.begin(), whole.end(), 0.);
    decoder.error = squares > 0 ? errors / squares : 1;
    fit_doubt(error, doubt, decoder);
    // Of each column the interval that holds kCoverage of its errors (the rank counts the new value).
    std::vector<float> factor(count);
    for (std::size_t r = 0; r < count; ++r)
      factor[r] = Recovery::factor_of_variance(decoder, static_cast<float>(doubt[r]));
    const auto rank = std::min<std::size_t>(
        count - 1, static_cast<std::size_t>(std::ceil(kCoverage * static_cast<double>(count + 1))) - 1);
    std::vector<double> within(d);
    parallel_for(d, 32, [&](std::size_t begin, std::size_t end) {
      std::vector<float> scaled(count);
      for (std::size_t j = begin; j < end; ++j) {
        for (std::size_t r = 0; r < count; ++r) scaled[r] = wrong(r, j) / factor[r];
        std::vector<float> sorted = scaled;
        std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(rank));
        decoder.deviation(0, j) = sorted[rank] / static_cast<float>(Recovery::kNormal90);
        within[j] =
            static_cast<double>(std::ranges::count_if(scaled, [&](float x) { return x <= sorted[rank]; }));
      }
    });
    decoder.coverage = std::accumulate(within.begin(), within.end(), 0.) / static_cast<double>(count * d);
  }

  // Squared error of a row against its doubt: a line that does not fall, relative to the mean.
  static void fit_doubt(const std::vector<double>& error, const std::vector<double>& doubt,
                        Recovery::Decoder& decoder) {
    const auto n = static_cast<double>(error.size());
    const double e = std::accumulate(error.begin(), error.end(), 0.) / n,
                 t = std::accumulate(doubt.begin(), doubt.end(), 0.) / n;
    double cross = 0, square = 0;
    for (std::size_t r = 0; r < error.size(); ++r) {
      cross += (error[r] - e) * (doubt[r] - t);
      square += (doubt[r] - t) * (doubt[r] - t);
    }
    decoder.doubt_base = 1;
    decoder.doubt_slope = 0;
    if (!(e > 0) || !(square > 0) || !(cross > 0)) return;
    decoder.doubt_slope = cross / square / e;
    decoder.doubt_base = 1 - decoder.doubt_slope * t;
  }

  Selection rows_;
  std::uint64_t seed_;
  std::size_t m_, folds_;
  Recovery result_;
  Items items_;
  std::vector<std::uint8_t> fold_;                 // of each row
  std::vector<std::vector<std::uint32_t>> pairs_;  // per view: rows that have it and another one
  std::vector<Part> parts_;                        // one per fold
};

Recovery Recovery::fit(const Selection& rows, std::uint64_t seed) {
  return RecoveryFit(rows, seed).run();
}

}  // namespace lacuna
