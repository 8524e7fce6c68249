// All learned numbers of a network in one arena with named slices, so that saving, comparing, averaging and
// gradient checks are one loop each. Optimiser state lies in arenas of the same layout, if it is kept. All arenas
// lie in the memory of an engine. Rows of a slice are padded if that makes them faster to read (row_stride).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "nn/network.h"
#include "ops/ops.h"

namespace lacuna {

struct ParameterKind {
  bool decay = true;           // weight decay applies (matrices, not biases and norms)
  bool for_prediction = true;  // false: only training needs it
};

template <class T>
class Parameters {
 public:
  using Id = std::uint32_t;

  // First every parameter is added, then zeroed memory is allocated for all of them. Parameters added after here(false)
  // belong to another rank: they have a number, by which random numbers are drawn, but no memory, and are not visited.
  void here(bool here) { here_ = here; }
  Id add(std::string name, std::size_t rows, std::size_t cols, ParameterKind kind);
  void allocate(const Ops<T>& ops);
  void keep(const Ops<T>& ops, OptimiserState state);  // existing state is not changed

  ParameterView<T> view(Id id);
  MatrixView<const T> value(Id id) const { return slice(values_, id); }
  // The values that predictions use: the running average if it is kept.
  MatrixView<const T> predictor(Id id) const { return slice(means_.empty() ? values_ : means_, id); }

  // Declares that the values of matrices no longer change: the engine may keep another form of them for predictions.
  void settle(const Ops<T>& ops);
  const Form* settled(Id id) const { return slices_[id].settled.get(); }

  // U(-bound, bound) around a centre; the draws belong to (seed, id, row) and do not depend on threads.
  void draw_uniform(const Ops<T>& ops, Id id, std::uint64_t seed, double bound, double centre = 0);
  void fill(const Ops<T>& ops, Id id, double value);

  void visit(typename BasicNetwork<T>::Visitor visitor);
  std::uint64_t count(bool for_prediction_only) const;  // other ranks' included

 private:
  struct Slice {
    std::string name;
    std::size_t offset, rows, cols, stride;
    ParameterKind kind;
    bool here = true;
    FormPointer settled = {};
  };
  MatrixView<T> slice(EngineMatrix<T>& arena, Id id);
  MatrixView<const T> slice(const EngineMatrix<T>& arena, Id id) const;

  std::vector<Slice> slices_;
  std::size_t total_ = 0;
  bool here_ = true;
  EngineMatrix<T> values_, firsts_, seconds_, means_;  // (1, total) each
};

}  // namespace lacuna
