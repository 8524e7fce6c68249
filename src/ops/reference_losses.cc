// The losses of the naive implementation. Sums are in double whatever T is.
#include <cmath>
#include <vector>

#include "ops/reference.h"
#include "ops/scalar.h"

namespace lacuna {
namespace {

bool known(const LabelRows& labels, std::size_t i, std::size_t j) {
  return labels.G(labels.rows[i], j) != 0;
}
template <class T>
T truth(const LabelRows& labels, std::size_t i, std::size_t j) {
  return static_cast<T>(labels.Y(labels.rows[i], j));
}
double known_count(const LabelRows& labels) {
  double count = 0;
  for (std::size_t i = 0; i < labels.rows.size(); ++i)
    for (std::size_t j = 0; j < labels.G.cols; ++j) count += known(labels, i, j);
  return count;
}

template <class T>
double dot(std::span<const T> a, std::span<const T> b) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += static_cast<double>(a[j]) * static_cast<double>(b[j]);
  return sum;
}

// A unit vector and what is needed to go back through the normalisation: q = x / |x|, dx = (dq - (q·dq) q) /
// |x|. A vector without length has q = 0 and passes no gradient.
struct Unit {
  std::vector<double> q;
  double inverse_length = 0;

  template <class T>
  explicit Unit(std::span<const T> x) : q(x.size()) {
    const double length = std::sqrt(dot(x, x));
    inverse_length = length > kTinyLength ? 1 / length : 0;
    for (std::size_t j = 0; j < x.size(); ++j) q[j] = static_cast<double>(x[j]) * inverse_length;
  }
  template <class T>
  void add_gradient(const std::vector<double>& dq, std::span<T> dx) const {
    double along = 0;
    for (std::size_t j = 0; j < q.size(); ++j) along += q[j] * dq[j];
    for (std::size_t j = 0; j < q.size(); ++j)
      dx[j] += static_cast<T>((dq[j] - along * q[j]) * inverse_length);
  }
};

double cosine(const Unit& a, const Unit& b) {
  return dot<double>(a.q, b.q);
}

double weight_of(const LabelRows& labels, std::size_t j) {
  return labels.weights.empty() ? 1 : static_cast<double>(labels.weights[j]);
}

void add_scaled(double factor, const std::vector<double>& x, std::vector<double>& y) {
  for (std::size_t j = 0; j < x.size(); ++j) y[j] += factor * x[j];
}

}  // namespace

template <class T>
void ReferenceLosses<T>::bce(Input logits, const LabelRows& labels, const BceSettings& settings, double weight, Output dlogits, double* result) const {
  const double divisor = settings.divisor == BceDivisor::known
                             ? known_count(labels)
                             : static_cast<double>(logits.rows * logits.cols);
  double sum = 0;
  for (std::size_t i = 0; i < logits.rows; ++i)
    for (std::size_t j = 0; j < logits.cols; ++j) {
      dlogits(i, j) = 0;
      if (!known(labels, i, j)) continue;
      const T y = truth<T>(labels, i, j);
      const auto [value, slope] = settings.form == BceForm::softplus
                                      ? bce_softplus(logits(i, j), y)
                                      : bce_logarithm(logits(i, j), y, static_cast<T>(settings.epsilon));
      const double w = weight_of(labels, j);
      sum += w * static_cast<double>(value);
      dlogits(i, j) = slope * static_cast<T>(w * weight / divisor);
    }
  *result = divisor > 0 ? sum / divisor : 0;
}

template <class T>
void ReferenceLosses<T>::guess_loss(Input logits, const LabelRows& labels, Input guesses, double weight, Output dlogits, double* result) const {
  const double divisor = known_count(labels);
  *result = 0;
  if (divisor == 0) return;
  double sum = 0;
  for (std::size_t i = 0; i < logits.rows; ++i)
    for (std::size_t j = 0; j < logits.cols; ++j) {
      if (known(labels, i, j)) continue;
      const auto [value, slope] = bce_softplus(logits(i, j), static_cast<T>(guesses(labels.rows[i], j)));
      const double w = weight_of(labels, j);
      sum += w * static_cast<double>(value);
      dlogits(i, j) += slope * static_cast<T>(w * weight / divisor);
    }
  *result = sum / divisor;
}

template <class T>
void ReferenceLosses<T>::view_loss(Input logits, const LabelRows& labels, Slots slots, double teacher_share, double weight, Output view_logits, double* result) const {
  double instances = 0;
  for (std::size_t i = 0; i < slots.rows; ++i)
    for (std::size_t v = 0; v < slots.cols; ++v) instances += slots(i, v) != kNoRow;
  const double count = instances * static_cast<double>(logits.cols);
  const double known_share = known_count(labels) / static_cast<double>(logits.rows * logits.cols);
  const double label_weight = known_share > 0 ? (1 - teacher_share) / known_share : 0;
  Matrix<T> gradient(view_logits.rows, view_logits.cols);
  double sum = 0;
  for (std::size_t i = 0; i < slots.rows; ++i)
    for (std::size_t v = 0; v < slots.cols; ++v) {
      if (slots(i, v) == kNoRow) continue;
      const auto r = static_cast<std::size_t>(slots(i, v));
      for (std::size_t j = 0; j < logits.cols; ++j) {
        const auto taught = bce_softplus(view_logits(r, j), sigmoid_of(logits(i, j)));
        double value = teacher_share * static_cast<double>(taught.value);
        double slope = teacher_share * static_cast<double>(taught.slope);
        if (known(labels, i, j)) {
          const auto told = bce_softplus(view_logits(r, j), truth<T>(labels, i, j));
          value += label_weight * static_cast<double>(told.value);
          slope += label_weight * static_cast<double>(told.slope);
        }
        const double w = weight_of(labels, j);
        sum += w * value;
        gradient(r, j) = static_cast<T>(w * slope * weight / count);
      }
    }
  this->copy(gradient, false, view_logits);
  *result = count > 0 ? sum / count : 0;
}

template <class T>
void ReferenceLosses<T>::graph_loss(Input Z, const LabelRows& labels, const GraphSettings& settings, double weight, Output dZ, double* result) const {
  const std::size_t b = Z.rows;
  std::vector<Unit> rows;
  for (std::size_t i = 0; i < b; ++i) {
    rows.emplace_back(Z.row(i));
    if (!settings.normalise) {
      rows[i].q.assign(Z.row(i).begin(), Z.row(i).end());
    }
  }
  const double scale = (settings.pairwise ? 1. : .5) / static_cast<double>(b * b);
  double sum = 0;
  for (std::size_t i = 0; i < b; ++i) {
    std::vector<double> dq(Z.cols);
    for (std::size_t k = 0; k < b; ++k) {
      double both = 0, shared = 0;
      for (std::size_t j = 0; j < labels.G.cols; ++j) {
        both += known(labels, i, j) && known(labels, k, j);
        shared += truth<double>(labels, i, j) * truth<double>(labels, k, j);
      }
      const double t = graph_weight(both, shared, settings.eta);
      for (std::size_t j = 0; j < Z.cols; ++j) {
        const double difference = rows[i].q[j] - rows[k].q[j];
        sum += scale * t * difference * difference;    // eq. (6), or half of it
        dq[j] += weight * scale * 4 * t * difference;  // both orders of the pair
      }
    }
    if (settings.normalise) {
      rows[i].add_gradient(dq, dZ.row(i));
    } else {
      for (std::size_t j = 0; j < Z.cols; ++j) dZ(i, j) += static_cast<T>(dq[j]);
    }
  }
  *result = sum;
}

template <class T>
void ReferenceLosses<T>::contrast_loss(Input S, Input O, Slots slots, const ContrastSettings& settings, double weight, Output dS, Output dO, double* result) const {
  double contributing = 0;
  for (std::size_t i = 0; i < slots.rows; ++i) {
    std::size_t k = 0;
    for (std::size_t v = 0; v < slots.cols; ++v) k += slots(i, v) != kNoRow;
    contributing += k >= 2;
  }
  *result = 0;
  if (contributing == 0) return;
  const double scale = settings.factor / (settings.share == Share::mean ? contributing : 1);
  double sum = 0;
  for (std::size_t i = 0; i < slots.rows; ++i) {
    // Q: the row's shared vectors, then its proprietary ones.
    std::vector<Unit> Q;
    std::vector<std::span<T>> dx;
    for (const bool shared : {true, false})
      for (std::size_t v = 0; v < slots.cols; ++v)
        if (slots(i, v) != kNoRow) {
          const auto r = static_cast<std::size_t>(slots(i, v));
          Q.emplace_back(shared ? S.row(r) : O.row(r));
          dx.push_back(shared ? dS.row(r) : dO.row(r));
        }
    const std::size_t k = Q.size() / 2;
    if (k < 2) continue;
    const double N = static_cast<double>(settings.count == ContrastCount::views ? k : k * k);
    const double negatives = 3 * N * N - N, positives = N * N - N;
    const auto is_positive = [&](std::size_t a, std::size_t c) {
      return a < k && c < k && (settings.positives == ContrastPositives::others ? a != c : a == c);
    };
    const auto is_negative = [&](std::size_t a, std::size_t c) { return (a >= k || c >= k) && a != c; };
    double A = 0, B = 0;  // eq. (1): mean squared negative similarity, mean positive similarity
    for (std::size_t a = 0; a < 2 * k; ++a)
      for (std::size_t c = 0; c < 2 * k; ++c) {
        const double similarity = cosine(Q[a], Q[c]);
        if (is_negative(a, c)) A += similarity * similarity / negatives;
        if (is_positive(a, c)) B += (similarity + 1 + settings.epsilon) / 2 / positives;
      }
    sum += scale * A / B;
    for (std::size_t a = 0; a < 2 * k; ++a) {
      std::vector<double> dq(S.cols);
      for (std::size_t c = 0; c < 2 * k; ++c) {
        double slope = 0;  // of the ordered pair; both orders count, hence the 2 below
        if (is_negative(a, c)) slope += 2 * cosine(Q[a], Q[c]) / (B * negatives);
        if (is_positive(a, c)) slope -= A / (B * B * 2 * positives);
        add_scaled(2 * weight * scale * slope, Q[c].q, dq);
      }
      Q[a].add_gradient(dq, dx[a]);
    }
  }
  *result = sum;
}

template <class T>
void ReferenceLosses<T>::instance_loss(Input S, Slots slots, double tau, double weight, Output dS, double* result) const {
  double sum = 0;
  for (std::size_t u = 0; u < slots.cols; ++u)
    for (std::size_t v = u + 1; v < slots.cols; ++v) {
      // The rows that have both views: first all of u, then all of v.
      std::vector<std::size_t> where;
      for (const std::size_t view : {u, v})
        for (std::size_t i = 0; i < slots.rows; ++i)
          if (slots(i, u) != kNoRow && slots(i, v) != kNoRow)
            where.push_back(static_cast<std::size_t>(slots(i, view)));
      const std::size_t a = where.size() / 2;
      if (a == 0) continue;
      std::vector<Unit> Q;
      for (const std::size_t r : where) Q.emplace_back(S.row(r));
      std::vector<std::vector<double>> dq(2 * a, std::vector<double>(S.cols));
      for (std::size_t p = 0; p < 2 * a; ++p) {
        const std::size_t target = (p + a) % (2 * a);
        std::vector<double> exponential(2 * a);
        double total = 0;
        for (std::size_t q = 0; q < 2 * a; ++q) {
          exponential[q] = q == p ? 1 : std::exp(cosine(Q[p], Q[q]) / tau);  // the self term is e⁰
          total += exponential[q];
        }
        sum -= std::log(exponential[target] / total) / static_cast<double>(2 * a);
        for (std::size_t q = 0; q < 2 * a; ++q) {
          if (q == p) continue;
          const double slope =
              weight / (static_cast<double>(2 * a) * tau) * (exponential[q] / total - (q == target ? 1 : 0));
          add_scaled(slope, Q[q].q, dq[p]);
          add_scaled(slope, Q[p].q, dq[q]);
        }
      }
      for (std::size_t p = 0; p < 2 * a; ++p) Q[p].add_gradient(dq[p], dS.row(where[p]));
    }
  *result = sum;
}

template <class T>
void ReferenceLosses<T>::reconstruction_loss(std::span<const ReconstructionJob<T>> jobs,
                                             std::size_t batch_rows, double weight) const {
  for (const auto& job : jobs) {
    const double divisor = static_cast<double>(batch_rows * job.X.cols);
    double sum = 0;
    for (std::size_t r = 0; r < job.X.rows; ++r)
      for (std::size_t j = 0; j < job.X.cols; ++j) {
        const T difference = job.reconstruction(r, j) - job.X(r, j);
        sum += static_cast<double>(difference) * static_cast<double>(difference);
        job.reconstruction(r, j) = static_cast<T>(2 * weight / divisor) * difference;
      }
    *job.value = divisor > 0 ? sum / divisor : 0;
  }
}

// A sum over pairs, as it stands.
template <class T>
void ReferenceLosses<T>::ranking_loss(Input logits, const LabelRows& labels, double margin, double weight,
                                      Output dlogits, double* result) const {
  double sum = 0;
  for (std::size_t i = 0; i < logits.rows; ++i) {
    const std::size_t row = labels.rows[i];
    std::vector<std::size_t> positives, negatives;
    for (std::size_t j = 0; j < logits.cols; ++j)
      if (labels.G(row, j) != 0) (labels.Y(row, j) > .5f ? positives : negatives).push_back(j);
    std::vector<double> dP(logits.cols);
    const auto pairs = static_cast<double>(positives.size() * negatives.size());
    for (const std::size_t j : positives)
      for (const std::size_t l : negatives) {
        const auto p = static_cast<double>(sigmoid_of(logits(i, j))), q = static_cast<double>(sigmoid_of(logits(i, l)));
        const double each = std::exp(-margin * (p - q)) / pairs;
        sum += each / margin;
        dP[j] -= weight * each;
        dP[l] += weight * each;
      }
    for (std::size_t j = 0; j < logits.cols; ++j)
      dlogits(i, j) = static_cast<T>(dP[j]) * activation_slope(Activation::sigmoid, sigmoid_of(logits(i, j)));
  }
  *result = sum;
}

template <class T>
void ReferenceLosses<T>::agreement_loss(Input A, Input E, double orthogonal, double weight, Output dA, Output dE,
                                        double* result) const {
  double sum = 0;
  for (std::size_t i = 0; i < A.rows; ++i)
    for (std::size_t k = 0; k < A.cols; ++k) {
      const double difference = static_cast<double>(A(i, k)) - static_cast<double>(E(i, k));
      sum += difference * difference;
      dA(i, k) += static_cast<T>(2 * weight * difference);
      dE(i, k) -= static_cast<T>(2 * weight * difference);
    }
  const auto add = [&](Input M, Output dM) {
    for (std::size_t k = 0; k < M.cols; ++k)
      for (std::size_t l = 0; l < M.cols; ++l) {
        double g = k == l ? -1 : 0;  // of MᵀM - I
        for (std::size_t i = 0; i < M.rows; ++i) g += static_cast<double>(M(i, k)) * static_cast<double>(M(i, l));
        sum += orthogonal * g * g;
        for (std::size_t i = 0; i < M.rows; ++i)
          dM(i, k) += static_cast<T>(4 * weight * orthogonal * g * static_cast<double>(M(i, l)));
      }
  };
  if (A.rows > 0) {
    add(A, dA);
    add(E, dE);
  }
  *result = sum;
}

template class ReferenceLosses<float>;
template class ReferenceLosses<double>;

template <class T>
void cosines(MatrixView<const T> A, MatrixView<T> C) {
  std::vector<Unit> rows;
  for (std::size_t i = 0; i < A.rows; ++i) rows.emplace_back(A.row(i));
  for (std::size_t i = 0; i < A.rows; ++i)
    for (std::size_t k = 0; k < A.rows; ++k) C(i, k) = static_cast<T>(cosine(rows[i], rows[k]));
}
template void cosines(MatrixView<const float>, MatrixView<float>);
template void cosines(MatrixView<const double>, MatrixView<double>);

}  // namespace lacuna
