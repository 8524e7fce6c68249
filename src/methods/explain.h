// Which view drove this tag: the Shapley value of every view that an item has. The players of the game are the item's
// views; the value of a set of views is the model's output with only these. The value of the empty set (`base`) is the
// label's frequency in training (Model::prior). Methods are not trained on items without views, so their own output for
// them is arbitrary, and its error would be charged to every view; Base::model selects it nevertheless. A view's
// Shapley value is what it adds, averaged over all orders in which the views could have come; the values add up to
// score - base.
//
// Items with up to `exact_views` views are exact: all 2^k sets are evaluated, which costs a network that encodes views
// separately only one pass of its encoders. For more views, orders are sampled, each together with its reverse; the sum
// is still exact, and `errors` contains the standard errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "methods/model.h"

namespace lacuna {

// The base of explanations: the labels' frequencies in training, or the model's own output without any view.
enum class Base { prior, model };

struct ExplainOptions {
  bool calibrated = false;       // values in calibrated probability instead of log-odds
  std::size_t exact_views = 12;  // at most 20
  std::size_t orders = 256;      // drawn where there are more views; even
  std::uint64_t seed = 1;
  Base base = Base::prior;  // if the model allows it, see base_of()
  bool log_odds = false;    // with `calibrated`: the log-odds of those probabilities
};

// The base that explain() uses: the prior if it was requested, the model has one, and values are log-odds or
// probabilities. Otherwise the model's output; `why` is set if this differs from the request.
Base base_of(const Model& model, const ExplainOptions& options, std::string* why = nullptr);
const char* base_name(Base base);  // "prior", "model"

// For n items, c labels and the m views of the model.
struct Explanation {
  SharedMatrix<std::uint8_t> present;  // (n, m): the views that items have
  Matrix<double> score, base;          // (n, c): with all views, without any
  std::vector<Matrix<double>> values;  // per view (n, c); 0 where an item does not have the view
  std::vector<Matrix<double>> errors;  // the same, standard errors; empty where every item is exact
};

// Explains in blocks of items: sink(position of the block's first item in the selection, the explanation).
void explain(const Model& model, const Selection& selection, const ExplainOptions& options,
             FunctionRef<void(std::size_t, const Explanation&)> sink);
Explanation explain(const Model& model, const Selection& selection, const ExplainOptions& options = {});

// Shapley values (k, c) from the values (2^k, c) of all sets of k players; bit p of a set's number is 1 if player p
// belongs to it.
void shapley_values(MatrixView<const double> sets, MatrixView<double> values);

}  // namespace lacuna
