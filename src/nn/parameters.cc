#include "nn/parameters.h"

#include <algorithm>
#include <cassert>

#include "base/random.h"
#include "base/threads.h"

namespace lacuna {

constexpr std::size_t kAlign = 64;  // elements; a slice starts on its own cache lines whatever T is

template <class T>
auto Parameters<T>::add(std::string name, std::size_t rows, std::size_t cols, ParameterKind kind) -> Id {
  assert(values_.empty());
  const std::size_t stride = rows > 1 ? row_stride<T>(cols) : cols;
  slices_.push_back({std::move(name), total_, rows, cols, stride, kind, {}});
  total_ += (rows * stride + kAlign - 1) / kAlign * kAlign;
  return static_cast<Id>(slices_.size() - 1);
}

template <class T>
void Parameters<T>::allocate() {
  values_ = Matrix<T>(1, total_);
}

template <class T>
void Parameters<T>::keep(OptimiserState state) {
  if (firsts_.empty()) firsts_ = Matrix<T>(1, total_);
  if (state.second && seconds_.empty()) seconds_ = Matrix<T>(1, total_);
  if (state.mean && means_.empty()) means_ = values_;
}

template <class T>
MatrixView<T> Parameters<T>::slice(Matrix<T>& arena, Id id) {
  const Slice& s = slices_[id];
  if (arena.empty()) return {};
  return {arena.data() + s.offset, s.rows, s.cols, s.stride};
}

template <class T>
MatrixView<const T> Parameters<T>::slice(const Matrix<T>& arena, Id id) const {
  const Slice& s = slices_[id];
  return {arena.data() + s.offset, s.rows, s.cols, s.stride};
}

template <class T>
ParameterView<T> Parameters<T>::view(Id id) {
  return {slice(values_, id), slice(firsts_, id), slice(seconds_, id), slice(means_, id),
          slices_[id].kind.decay};
}

template <class T>
void Parameters<T>::draw_uniform(Id id, std::uint64_t seed, double bound) {
  const MatrixView<T> out = slice(values_, id);
  const auto limit = static_cast<float>(bound);
  parallel_for(out.rows, std::max<std::size_t>(1, 16384 / std::max<std::size_t>(out.cols, 1)),
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t i = begin; i < end; ++i) {
                   Random random(seed, Purpose::initialise, id, static_cast<std::uint32_t>(i));
                   for (T& value : out.row(i)) value = static_cast<T>(random.uniform(-limit, limit));
                 }
               });
}

template <class T>
void Parameters<T>::fill(Id id, double value) {
  const MatrixView<T> out = slice(values_, id);
  for (std::size_t i = 0; i < out.rows; ++i) std::ranges::fill(out.row(i), static_cast<T>(value));
}

template <class T>
void Parameters<T>::pack(const Ops<T>& ops) {
  for (Id id = 0; id < slices_.size(); ++id)
    if (slices_[id].rows > 1 && slices_[id].kind.for_prediction) slices_[id].packed = ops.pack(predictor(id));
}

template <class T>
void Parameters<T>::visit(typename BasicNetwork<T>::Visitor visitor) {
  for (Id id = 0; id < slices_.size(); ++id)
    visitor(slices_[id].name, view(id), slices_[id].kind.for_prediction);
}

template <class T>
std::uint64_t Parameters<T>::count(bool for_prediction_only) const {
  std::uint64_t sum = 0;
  for (const Slice& s : slices_)
    if (s.kind.for_prediction || !for_prediction_only) sum += s.rows * s.cols;
  return sum;
}

template class Parameters<float>;
template class Parameters<double>;

}  // namespace lacuna
