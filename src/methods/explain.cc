#include "methods/explain.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"

namespace lacuna {
namespace {

constexpr std::size_t kBlockValues = std::size_t{1} << 23;  // of sets x labels that are computed at once

// Of a probability; float32 does not tell those beyond the bounds from 0 and 1.
double log_odds(double p) {
  p = std::clamp(p, 1e-7, 1 - 1e-7);
  return std::log(p / (1 - p));
}

// The sets of views that are evaluated for items with k views, and what is made of their values.
class Plan {
 public:
  Plan(std::size_t players, const ExplainOptions& options)
      : players_(players), exact_(players <= options.exact_views) {
    if (exact_) return;
    // The first set is the empty one, the second holds all. Order q then has one set a prefix.
    Random random(options.seed, Purpose::explain, static_cast<std::uint32_t>(players));
    std::vector<std::uint32_t> order(players);
    for (std::size_t q = 0; q < std::max<std::size_t>(2, options.orders / 2); ++q) {
      std::iota(order.begin(), order.end(), 0u);
      random.shuffle(order);
      orders_.push_back(order);
      std::ranges::reverse(order);
      orders_.push_back(order);
    }
  }

  bool exact() const { return exact_; }
  std::size_t sets() const {
    return exact_ ? std::size_t{1} << players_ : 2 + orders_.size() * (players_ - 1);
  }
  // Marks the players of set s.
  void mark(std::size_t s, std::span<std::uint8_t> in) const {
    for (std::size_t p = 0; p < players_; ++p) in[p] = (exact_ ? s >> p & 1 : s) == 1 ? 1 : 0;
    if (exact_ || s < 2) return;
    const auto& order = orders_[(s - 2) / (players_ - 1)];
    for (std::size_t p = 0; p <= (s - 2) % (players_ - 1); ++p) in[order[p]] = 1;
  }
  std::size_t none() const { return 0; }
  std::size_t all() const { return exact_ ? sets() - 1 : 1; }

  // V (sets, c) -> values (k, c), errors (k, c) if sampled.
  void solve(MatrixView<const double> V, MatrixView<double> values, MatrixView<double> errors) const {
    if (exact_) return shapley_values(V, values);
    const std::size_t c = V.cols, pairs = orders_.size() / 2;
    Matrix<double> squares(players_, c), pair(players_, c);
    for (std::size_t q = 0; q < orders_.size(); ++q) {
      for (std::size_t p = 0; p < players_; ++p) {
        const std::size_t first = 2 + q * (players_ - 1);
        const auto before = V.row(p == 0 ? none() : first + p - 1),
                   after = V.row(p + 1 == players_ ? all() : first + p);
        for (std::size_t j = 0; j < c; ++j) pair(orders_[q][p], j) += (after[j] - before[j]) / 2;
      }
      if (q % 2 == 0) continue;  // an order and its reverse are one sample
      for (std::size_t p = 0; p < players_; ++p)
        for (std::size_t j = 0; j < c; ++j) {
          values(p, j) += pair(p, j);
          squares(p, j) += pair(p, j) * pair(p, j);
          pair(p, j) = 0;
        }
    }
    const auto n = static_cast<double>(pairs);
    for (std::size_t p = 0; p < players_; ++p)
      for (std::size_t j = 0; j < c; ++j) {
        const double mean = values(p, j) / n, variance = std::max(0., squares(p, j) / n - mean * mean);
        values(p, j) = mean;
        errors(p, j) = std::sqrt(variance / (n - 1));
      }
  }

 private:
  std::size_t players_;
  bool exact_;
  std::vector<std::vector<std::uint32_t>> orders_;
};

}  // namespace

// A set S counts for player p in it with (|S|-1)! (k-|S|)! / k!, and against a player outside with |S|! (k-|S|-1)! / k!.
void shapley_values(MatrixView<const double> sets, MatrixView<double> values) {
  const std::size_t k = values.rows, c = values.cols;
  assert(sets.rows == std::size_t{1} << k && sets.cols == c);
  std::vector<double> weight(k);       // of a player who comes after s others
  for (std::size_t s = 0; s < k; ++s)  // s! (k-s-1)! / k!
    weight[s] = s == 0 ? 1 / static_cast<double>(k)
                       : weight[s - 1] * static_cast<double>(s) / static_cast<double>(k - s);
  for (std::size_t p = 0; p < k; ++p) std::ranges::fill(values.row(p), 0.);
  for (std::size_t S = 0; S < sets.rows; ++S) {
    const auto size = static_cast<std::size_t>(std::popcount(S));
    const double* value = sets.row(S).data();
    for (std::size_t p = 0; p < k; ++p) {
      const double w = (S >> p & 1) != 0 ? weight[size - 1] : -weight[size];
      double* out = values.row(p).data();
      for (std::size_t j = 0; j < c; ++j) out[j] += w * value[j];
    }
  }
}

Base base_of(const Model& model, const ExplainOptions& options, std::string* why) {
  if (options.base == Base::model) return Base::model;
  const char* reason = model.prior().empty()
                           ? "the model file is of a version that did not store the label frequencies"
                       : !options.calibrated && !model.method().traits().probabilities
                           ? "the scores of the method are not probabilities, so a frequency cannot be their "
                             "base"
                           : nullptr;
  if (reason == nullptr) return Base::prior;
  if (why != nullptr) *why = reason;
  return Base::model;
}

const char* base_name(Base base) {
  return base == Base::prior ? "prior" : "model";
}

void explain(const Model& model, const Selection& selection, const ExplainOptions& options,
             FunctionRef<void(std::size_t, const Explanation&)> sink) {
  if (options.exact_views > 20)
    fail(Exit::usage, "explanations are exact for at most 20 views, not {}", options.exact_views);
  if (options.calibrated && model.calibration().empty())
    fail(Exit::mismatch, "the model has no calibration: {}", Calibration::kWhyEmpty);
  const std::size_t c = model.label_names().size(), m = model.preparation().views().size();
  // The value of the empty set, one per label; empty where the model gives it.
  std::vector<double> prior;
  if (base_of(model, options) == Base::prior)
    for (const float x : model.prior())
      prior.push_back(options.calibrated && !options.log_odds ? 1 / (1 + std::exp(-static_cast<double>(x)))
                                                              : static_cast<double>(x));
  std::vector<Plan> plans;
  for (std::size_t k = 0; k <= m; ++k) plans.emplace_back(k, options);
  const std::size_t most =
      std::max<std::size_t>(1, kBlockValues / std::max<std::size_t>(1, c * plans.back().sets()));
  Selection block{selection.data, selection.fold, {}, selection.hide_labels};
  for (std::size_t begin = 0; begin < selection.rows.size(); begin += most) {
    const std::size_t n = std::min(most, selection.rows.size() - begin);
    const auto first = selection.rows.begin() + static_cast<std::ptrdiff_t>(begin);
    block.rows.assign(first, first + static_cast<std::ptrdiff_t>(n));
    const Items items = model.prepare(block);

    // All sets of all items, one after the other.
    std::vector<std::vector<std::uint32_t>> players(n);
    std::vector<std::size_t> start(n + 1);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::uint32_t v = 0; v < m; ++v)
        if (items.W(i, v) != 0) players[i].push_back(v);
      start[i + 1] = start[i] + plans[players[i].size()].sets();
    }
    ViewSets sets;
    sets.W = Matrix<std::uint8_t>(start[n], m);
    sets.rows.reserve(start[n]);
    std::vector<std::uint8_t> in(m);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t s = start[i]; s < start[i + 1]; ++s) {
        sets.rows.push_back(static_cast<std::uint32_t>(i));
        plans[players[i].size()].mark(s - start[i], in);
        for (std::size_t p = 0; p < players[i].size(); ++p) sets.W(s, players[i][p]) = in[p];
      }
    Matrix<float> values(sets.size(), c);
    model.method().predict_sets(items, sets, values);

    Explanation out;
    out.present = items.W;
    out.score = out.base = Matrix<double>(n, c);
    out.values.assign(m, Matrix<double>(n, c));
    if (std::ranges::any_of(players, [&](const auto& own) { return !plans[own.size()].exact(); }))
      out.errors = out.values;
    parallel_for(n, 8, [&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) {
        const Plan& plan = plans[players[i].size()];
        Matrix<double> V(plan.sets(), c), phi(players[i].size(), c), error(plan.exact() ? 0 : phi.rows(), c);
        for (std::size_t s = 0; s < V.rows(); ++s)
          for (std::size_t j = 0; j < c; ++j) {
            const double x = values(start[i] + s, j);
            V(s, j) = !options.calibrated ? x
                      : options.log_odds  ? log_odds(model.calibration().probability(j, x))
                                          : model.calibration().probability(j, x);
          }
        if (!prior.empty()) std::ranges::copy(prior, V.row(plan.none()).begin());
        plan.solve(V, phi, error);
        std::ranges::copy(V.row(plan.none()), out.base.row(i).begin());
        std::ranges::copy(V.row(plan.all()), out.score.row(i).begin());
        for (std::size_t p = 0; p < players[i].size(); ++p) {
          std::ranges::copy(phi.row(p), out.values[players[i][p]].row(i).begin());
          if (!plan.exact()) std::ranges::copy(error.row(p), out.errors[players[i][p]].row(i).begin());
        }
      }
    });
    sink(begin, out);
  }
}

Explanation explain(const Model& model, const Selection& selection, const ExplainOptions& options) {
  const std::size_t n = selection.rows.size(), c = model.label_names().size(),
                    m = model.preparation().views().size();
  Explanation all;
  all.present = Matrix<std::uint8_t>(n, m);
  all.score = all.base = Matrix<double>(n, c);
  all.values.assign(m, Matrix<double>(n, c));
  explain(model, selection, options, [&](std::size_t begin, const Explanation& part) {
    const auto put = [&](const auto& from, auto& to) {
      std::ranges::copy(from.values(), to.values().begin() + static_cast<std::ptrdiff_t>(begin * to.cols()));
    };
    put(part.present, all.present);
    put(part.score, all.score);
    put(part.base, all.base);
    for (std::size_t v = 0; v < m; ++v) put(part.values[v], all.values[v]);
    if (part.errors.empty()) return;
    if (all.errors.empty()) all.errors.assign(m, Matrix<double>(n, c));
    for (std::size_t v = 0; v < m; ++v) put(part.errors[v], all.errors[v]);
  });
  return all;
}

}  // namespace lacuna
