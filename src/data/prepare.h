// Input preparation: fitted on observed training instances, saved in the model, applied to every row that is
// scored. Per view one of
//   none      as they are
//   zscore    each feature to mean 0 and (population) standard deviation 1; without variance: 0
//   minmax    each feature to [0, 1] (clamped when applied)
//   pca       centred, projected on the leading directions, one scale; each column to deviation 1 first where units
//             differ (data/observed.h)
//   log-pca   sign(x) log(1 + s|x|) first, then as pca
//   root-pca  sign(x) |x|^(1/4) first, then as pca: needs no scale s (docs/best.md); pca where both signs
//             are common
//   rbf-pca   as log-pca with 256 directions, then the leading coordinates of a Gaussian kernel
//             (data/kernel_map.h)
//   root-rbf-pca  as root-pca, with the leading coordinates of a Gaussian kernel beside those of the directions:
//             one of each in turn, so that neighbours are alike in rank
//   auto      chosen by looking at the view; the reason is kept
// A missing instance is a zero row after preparation, whatever the kind; of others no coordinate exceeds kMostPrepared.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "base/options.h"
#include "base/ranks.h"
#include "base/tensors.h"
#include "data/items.h"
#include "data/kernel_map.h"
#include "ops/row_source.h"

namespace lacuna {

// The kinds above, in that order.
const std::vector<std::string>& prepare_kinds();

struct PrepareOptions {
  std::string kind = "zscore";         // one of the above, for every view
  std::vector<std::string> per_view;   // "name=kind" for single views
  std::int64_t components = 96;        // the largest number of directions (of the pca kinds)
  std::int64_t kernel_components = 0;  // of the rbf kinds; 0 = as many as directions
  double whiten = 0;                   // of the directions: 0 keeps their variances, 1 makes them equal
  bool leaky = false;                  // fit on all rows of the data, as the authors' program does (it leaks)
  std::uint64_t seed = 1;              // start of the iterative solver on large views
  std::uint64_t most_bytes = ~std::uint64_t{0};  // of a view in memory; a larger one is fitted in passes
  void declare(Options& options);
};

// The choice of `auto` for a view: the kind, and the reason in one sentence.
struct PrepareAdvice {
  std::string kind, reason;
};
// Looks at the observed instances of view v among `selection`. `components` as in PrepareOptions.
PrepareAdvice advise_preparation(const Selection& selection, std::size_t v, std::int64_t components = 96);

class Preparation {
 public:
  // The fitted map of one view.
  struct ViewMap {
    std::string name, kind, reason;  // reason: why auto chose this kind
    std::size_t columns = 0;         // d_v of the raw view
    double log_scale = 0;            // s; 0 = no logarithm
    double power = 0;                // of |x|; 0 = as it is
    Matrix<float> shift, scale;      // (1, d_v): x <- (x - shift) * scale, after logarithm or power
    Matrix<float> directions;        // (d_v, K), whitened where asked; empty = no projection
    KernelMap kernel;                // of the projected rows; empty = none
    std::size_t linear = 0;  // leading directions whose coordinates are kept, in addition to the kernel's
    float gain = 1;          // factor after the projection
    bool clamp = false;      // to [0, 1], for minmax
    std::vector<float> variances;  // of the kept directions, before whitening and gain
    double residual = 0;           // error of the iterative solver (data/principal.h)
    // Whether the map is only (x - shift) * scale: no projection, logarithm or power.
    bool keeps_columns() const {
      return directions.empty() && kernel.empty() && log_scale == 0 && power == 0;
    }
    // Values before the projection are clipped to ±this, so that sums are finite.
    float most_projected() const { return std::min(1e30f, kMostPrepared / gain); }
    std::size_t width() const {
      return !kernel.empty() ? linear + kernel.columns() : directions.empty() ? columns : directions.cols();
    }
    // For maps with a kernel, the source of a prepared column: k < directions' columns is a direction, a larger k one
    // of the kernel's coordinates, counted from there.
    std::vector<std::size_t> sources() const;
  };

  // Ranks divide the views among them, and every rank gets all maps, with the bits of one process.
  static Preparation fit(const Selection& train, const PrepareOptions& options,
                         const Ranks& ranks = one_rank());
  // Fits several preparations of the same rows, with the same bits as one after the other.
  static std::vector<Preparation> fit(const Selection& train, const std::vector<PrepareOptions>& forms,
                                      const Ranks& ranks);
  // Prepared rows; view v of the result is view v of the model. `source[v]` is the position in
  // selection.data->views of the model's view v, or -1 where the data lacks that view (all its instances are
  // then missing).
  // Views that are not `wanted` (empty: all are) only get their sizes.
  Items apply(const Selection& selection, const std::vector<int>& source, bool with_labels,
              const std::vector<bool>& wanted = {}) const;
  Items apply(const Selection& selection, bool with_labels,
              const std::vector<bool>& wanted = {}) const;  // same views, same order

  // Items::common of rows that apply() returned.
  void find_backgrounds(Items& items, const std::vector<bool>& wanted = {}) const;

  const std::vector<ViewMap>& views() const { return views_; }
  void save(Tensors& file, const std::string& prefix) const;
  static Preparation load(const Tensors& file, const std::string& prefix);

 private:
  // Only for the given views.
  static std::vector<Preparation> fit_views(const Selection& train, const std::vector<PrepareOptions>& forms,
                                            const std::vector<std::size_t>& views);
  std::vector<ViewMap> views_;
};

}  // namespace lacuna
