// What the preparations of one view share, computed on first use: the observed rows, the range of their values, and for
// each logarithm or power (squash) the transformed and centred rows with their Gram matrix. So preparations that differ
// only in the number of directions do most of the work once. Any number of threads may use it.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <vector>

#include "base/matrix.h"
#include "data/items.h"
#include "data/moments.h"
#include "data/reach.h"
#include "data/squash.h"

namespace lacuna {

// The rows of a dense view in memory, squashed and centred.
class CentredRows {
 public:
  CentredRows(const View& view, const std::vector<std::uint32_t>& rows, const Squash& squash)
      : view_(view), rows_(rows), squash_(squash) {}
  const Squash& squash() const { return squash_; }
  MatrixView<const float> X();  // (n, d); rows are padded if products read them faster that way
  const Matrix<float>& shift();  // (1, d) and scale: (x - shift) * scale after squashing
  const Matrix<float>& scale();
  const Matrix<double>& gram();  // the smaller one of X

 private:
  void make();

  const View& view_;
  const std::vector<std::uint32_t>& rows_;
  const Squash squash_;
  std::once_flag made_, multiplied_;
  Matrix<float> X_, shift_, scale_;
  Matrix<double> gram_;
};

class Observed {
 public:
  Observed(const Selection& train, std::size_t v, bool leaky);  // leaky: of all rows of the data
  const View& view() const { return view_; }
  const std::vector<std::uint32_t>& rows() const { return rows_; }  // positions in the data
  const Reach& reach();
  CentredRows& centred(const Squash& squash);
  void let_go() { centred_.clear(); }  // releases the centred rows when they are no longer used

 private:
  const View& view_;
  std::vector<std::uint32_t> rows_;
  std::once_flag looked_;
  Reach reach_;
  std::mutex mutex_;
  std::list<CentredRows> centred_;
};

// Shift and scale that centre columns; those that are constant become 0. Where a few columns have nearly all of the
// variance, because their unit is another, all columns also get deviation 1: otherwise those few would hide the others.
// Both (1, d).
void centre(const Moments& moments, Matrix<float>& shift, Matrix<float>& scale);

}  // namespace lacuna
