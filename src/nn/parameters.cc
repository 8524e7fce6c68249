#include "nn/parameters.h"

#include <algorithm>
#include <cassert>

#include "base/random.h"
#include "base/threads.h"

namespace lacuna {

// A slice begins on cache lines of its own, whatever T is. So does each of its rows on a GPU, whose memory is fastest where
// rows begin on multiples of 256 bytes.
constexpr std::size_t whole_lines(std::size_t elements) {
  constexpr std::size_t kLine = 64;  // elements
  return (elements + kLine - 1) / kLine * kLine;
}

template <class T>
auto Parameters<T>::add(std::string name, std::size_t rows, std::size_t cols, ParameterKind kind) -> Id {
  assert(values_.empty());
  slices_.push_back({std::move(name), 0, rows, cols, cols, kind, here_, {}});
  return static_cast<Id>(slices_.size() - 1);
}

template <class T>
void Parameters<T>::allocate(const Ops<T>& ops) {
  std::size_t total = 0;
  for (Slice& s : slices_) {
    if (s.rows > 1) s.stride = ops.on_host() ? row_stride<T>(s.cols) : whole_lines(s.cols);
    s.offset = total;
    if (s.here) total += whole_lines(s.rows * s.stride);
  }
  total_ = total;
  values_ = EngineMatrix<T>(ops, 1, total_);
}

template <class T>
void Parameters<T>::keep(const Ops<T>& ops, OptimiserState state) {
  if (firsts_.empty()) firsts_ = EngineMatrix<T>(ops, 1, total_);
  if (state.second && seconds_.empty()) seconds_ = EngineMatrix<T>(ops, 1, total_);
  if (!state.mean || !means_.empty()) return;
  means_ = EngineMatrix<T>(ops, 1, total_);
  ops.copy(values_, false, means_);
}

template <class T>
MatrixView<T> Parameters<T>::slice(EngineMatrix<T>& arena, Id id) {
  const Slice& s = slices_[id];
  if (arena.empty()) return {};
  return {arena.data() + s.offset, s.rows, s.cols, s.stride};
}

template <class T>
MatrixView<const T> Parameters<T>::slice(const EngineMatrix<T>& arena, Id id) const {
  const Slice& s = slices_[id];
  return {arena.data() + s.offset, s.rows, s.cols, s.stride};
}

template <class T>
ParameterView<T> Parameters<T>::view(Id id) {
  return {slice(values_, id), slice(firsts_, id), slice(seconds_, id), slice(means_, id),
          slices_[id].kind.decay};
}

template <class T>
void Parameters<T>::draw_uniform(const Ops<T>& ops, Id id, std::uint64_t seed, double bound, double centre) {
  if (!slices_[id].here) return;
  const MatrixView<T> out = slice(values_, id);
  Matrix<T> drawn(out.rows, out.cols);
  const auto limit = static_cast<float>(bound);
  parallel_for(out.rows, std::max<std::size_t>(1, 16384 / std::max<std::size_t>(out.cols, 1)),
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t i = begin; i < end; ++i) {
                   Random random(seed, Purpose::initialise, id, static_cast<std::uint32_t>(i));
                   for (T& value : drawn.row(i))
                     value = static_cast<T>(random.uniform(-limit, limit)) + static_cast<T>(centre);
                 }
               });
  upload<T>(ops, drawn, out);
}

template <class T>
void Parameters<T>::fill(const Ops<T>& ops, Id id, double value) {
  if (!slices_[id].here) return;
  const MatrixView<T> out = slice(values_, id);
  Matrix<T> filled(out.rows, out.cols);
  std::ranges::fill(filled.values(), static_cast<T>(value));
  upload<T>(ops, filled, out);
}

template <class T>
void Parameters<T>::settle(const Ops<T>& ops) {
  for (Id id = 0; id < slices_.size(); ++id)
    if (slices_[id].here && slices_[id].rows > 1 && slices_[id].kind.for_prediction)
      slices_[id].settled = ops.settle(predictor(id));
}

template <class T>
void Parameters<T>::visit(typename BasicNetwork<T>::Visitor visitor) {
  for (Id id = 0; id < slices_.size(); ++id)
    if (slices_[id].here) visitor(slices_[id].name, view(id), slices_[id].kind.for_prediction);
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
