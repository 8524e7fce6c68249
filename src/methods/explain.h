// Which view drove this tag: the Shapley value of every view that an item has. The game: the players are the item's
// views, and the value of a set of views is what the model says with those alone. The value of the empty set (`base`) is
// what is known before any view is seen: the label's share in training (Model::prior). No method is trained to answer
// without views, so its own output there is arbitrary, and what it is off by would be credited to every view; it can be
// had as Base::model. A view's Shapley value is what it adds, averaged over all orders in which the views could have
// come; the values add up to score - base.
//
// Exact for items with up to `exact_views` views: all 2^k sets are evaluated, which a network that encodes views
// separately does with one pass of its encoders. Beyond that, orders are drawn, each together with its reverse; the sum
// is still exact and `error` holds the standard errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "methods/model.h"

namespace lacuna {

// Where explanations begin: at the labels' shares in training, or at the model's own output without any view.
enum class Base { prior, model };

struct ExplainOptions {
  bool calibrated = false;       // values in calibrated probability instead of log-odds
  std::size_t exact_views = 12;  // at most 20
  std::size_t orders = 256;      // drawn where there are more views; even
  std::uint64_t seed = 1;
  Base base = Base::prior;  // if the model allows it, see base_of()
  bool log_odds = false;    // with `calibrated`: the log-odds of those probabilities
};

// The base that explain() takes: the prior if it is asked for, the model holds one, and values are log-odds or
// probabilities. `why` is set where it is not what was asked for.
Base base_of(const Model& model, const ExplainOptions& options, std::string* why = nullptr);
const char* base_name(Base base);  // "prior", "model"

// Of n items and c labels, for the m views of the model.
struct Explanation {
  SharedMatrix<std::uint8_t> present;  // (n, m): the views that items have
  Matrix<double> score, base;          // (n, c): with all views, before any
  std::vector<Matrix<double>> values;  // per view (n, c); 0 where an item does not have the view
  std::vector<Matrix<double>> errors;  // the same, standard errors; empty where every item is exact
};

// In blocks of items: sink(position of the first in the selection, its explanation).
void explain(const Model& model, const Selection& selection, const ExplainOptions& options,
             FunctionRef<void(std::size_t, const Explanation&)> sink);
Explanation explain(const Model& model, const Selection& selection, const ExplainOptions& options = {});

// Shapley values (k, c) from the values (2^k, c) of all sets of k players; bit p of a set's number says whether player
// p is in it.
void shapley_values(MatrixView<const double> sets, MatrixView<double> values);

}  // namespace lacuna
