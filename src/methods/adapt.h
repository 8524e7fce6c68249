// The paper's two adaptations of methods to gaps and to several views, as wrappers around any method.
//
//   fill_missing   a missing instance becomes the mean of the view's observed training instances, an
//                  unknown label becomes 0 (CDMM, LVSL)
//   per_view       one model per view, fitted on the items that have the view; the view with the best AP on
//                  validation rows is kept. An item without it is scored at the mean of the view
//                  (C2AE, GLOCAL, DM2L)
#pragma once

#include <functional>
#include <memory>

#include "methods/method.h"

namespace lacuna {

std::unique_ptr<Method> fill_missing(std::unique_ptr<Method> inner);
std::unique_ptr<Method> per_view(std::function<std::unique_ptr<Method>()> make);

// The items of which a label is known; all of them if that is none.
Items labelled_rows(const Items& items);

// The mean of the present rows of X (n, d), view v of W; a mean that consists of rounding errors becomes 0.
Matrix<float> present_mean(MatrixView<const float> X, MatrixView<const std::uint8_t> W, std::size_t v);

}  // namespace lacuna
