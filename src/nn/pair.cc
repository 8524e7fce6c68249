#include "nn/pair.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>

namespace lacuna {
namespace {

constexpr const char* kJoint = "joint.";  // before the names of the second branch

constexpr std::size_t kPiece = 8192;  // rows whose fused vectors are in memory

// Rows of the items, without labels.
Items piece_of(const Items& items, std::size_t begin, std::size_t count) {
  const auto rows = [&](const auto& from) {
    Matrix<std::remove_cvref_t<decltype(from(0, 0))>> result(count, from.cols());
    for (std::size_t i = 0; i < count; ++i) std::ranges::copy(from.row(begin + i), result.row(i).begin());
    return result;
  };
  Items piece;
  for (const auto& X : items.X) piece.X.push_back(rows(X));
  piece.W = rows(items.W);
  piece.common = items.common;
  return piece;
}

MtdOptions mean_options(MtdOptions options) {
  options.fusion = Fusion::mean;
  return options;
}

MtdOptions early_options(MtdOptions options) {
  options.fusion = Fusion::early;
  options.encoder_widths = options.joint_widths;
  options.channels = 1;
  options.alpha = options.beta = options.gamma = options.instance_weight = 0;
  return options;
}

}  // namespace

template <class T>
PairNetwork<T>::PairNetwork(const MtdOptions& options, const NetworkShape& shape, std::uint64_t seed,
                            std::shared_ptr<Ops<T>> ops)
    : mean_(mean_options(options), shape, seed, ops),
      early_(early_options(options), shape, seed, ops),
      labels_(shape.labels) {
  mean_.listen_to(*this);
  early_.listen_to(*this);
}

template <class T>
void PairNetwork<T>::keep(OptimiserState state) {
  mean_.keep(state);
  early_.keep(state);
}

template <class T>
Losses PairNetwork<T>::step(const Batch& batch, const UpdateRule& rule) {
  start(batch, rule);
  return finish();
}

template <class T>
void PairNetwork<T>::start(const Batch& batch, const UpdateRule& rule) {
  mean_.start(batch, rule);
  early_.start(batch, rule);
}

// Parts that both have add up, as the totals do.
template <class T>
Losses PairNetwork<T>::finish() {
  Losses sum = mean_.finish();
  for (const Losses::Entry& entry : early_.finish()) {
    const auto end = sum.entries.begin() + static_cast<std::ptrdiff_t>(sum.count);
    const auto same = std::find_if(sum.entries.begin(), end, [&](const Losses::Entry& other) {
      return std::string_view(other.name) == entry.name;
    });
    if (same == end) {
      sum.add(entry.name, entry.value);
    } else {
      same->value += entry.value;
    }
  }
  return sum;
}

template <class T>
void PairNetwork<T>::predict(const Items& items, MatrixView<T> scores) const {
  mean_.fused(items, [&](std::size_t begin, MatrixView<const T>, MatrixView<T> logits) {
    for (std::size_t i = 0; i < logits.rows; ++i)
      std::ranges::copy(logits.row(i), scores.row(begin + i).begin());
  });
  early_.fused(items, [&](std::size_t begin, MatrixView<const T>, MatrixView<T> logits) {
    for (std::size_t i = 0; i < logits.rows; ++i)
      for (std::size_t j = 0; j < logits.cols; ++j) {
        T& score = scores(begin + i, j);
        score = 1 / (1 + std::exp(-(score + logits(i, j)) / 2));
      }
  });
}

template <class T>
bool PairNetwork<T>::fused(const Items& items, typename BasicNetwork<T>::FusedSink sink) const {
  for (std::size_t begin = 0; begin < items.rows(); begin += kPiece) {
    const std::size_t count = std::min(kPiece, items.rows() - begin);
    if (count == items.rows()) {
      fused_piece(items, begin, sink);
    } else {
      fused_piece(piece_of(items, begin, count), begin, sink);
      items.leave(begin, count);
    }
  }
  return true;
}

// `first`: the number of the piece's first row.
template <class T>
void PairNetwork<T>::fused_piece(const Items& items, std::size_t first,
                                 typename BasicNetwork<T>::FusedSink sink) const {
  const auto width = static_cast<std::ptrdiff_t>(mean_.fused_size());
  Matrix<T> Z(items.rows(), fused_size()), logits(items.rows(), labels_);
  mean_.fused(items, [&](std::size_t begin, MatrixView<const T> z, MatrixView<T> out) {
    for (std::size_t i = 0; i < z.rows; ++i) {
      std::ranges::copy(z.row(i), Z.row(begin + i).begin());
      std::ranges::copy(out.row(i), logits.row(begin + i).begin());
    }
  });
  early_.fused(items, [&](std::size_t begin, MatrixView<const T> z, MatrixView<T> out) {
    for (std::size_t i = 0; i < z.rows; ++i) {
      std::ranges::copy(z.row(i), Z.row(begin + i).begin() + width);
      for (std::size_t j = 0; j < out.cols; ++j) {
        T& logit = logits(begin + i, j);
        logit = (logit + out(i, j)) / 2;
      }
    }
  });
  sink(first, Z.view(), logits.view());
}

template <class T>
void PairNetwork<T>::settle() {
  mean_.settle();
  early_.settle();
}

template <class T>
void PairNetwork<T>::visit(typename BasicNetwork<T>::Visitor visitor) {
  mean_.visit(visitor);
  early_.visit([&](const std::string& name, ParameterView<T> parameter, bool for_prediction) {
    visitor(kJoint + name, parameter, for_prediction);
  });
}

template <class T>
void PairNetwork<T>::visit_buffers(typename BasicNetwork<T>::BufferVisitor visitor) {
  mean_.visit_buffers(visitor);
  early_.visit_buffers([&](const std::string& name, MatrixView<T> buffer, bool for_prediction) {
    visitor(kJoint + name, buffer, for_prediction);
  });
}

template class PairNetwork<float>;
template class PairNetwork<double>;

}  // namespace lacuna
