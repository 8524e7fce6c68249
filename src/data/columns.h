// What a model stores about the columns of each view: their names, and their means over the training rows. They bring
// a data set into the layout that the model was trained on.
#pragma once

#include <string>
#include <vector>

#include "base/tensors.h"
#include "data/items.h"

namespace lacuna {

struct ViewColumns {
  std::string view;
  std::size_t count = 0;
  std::vector<std::string> names;  // empty where the training data had none
  std::vector<float> means;        // of the present training instances; empty in models of version 0.1
};

class Columns {
 public:
  static Columns fit(const Selection& train);

  struct Match {
    Dataset data;                    // shares what needed no change
    std::vector<int> source;         // of each view of the model: its position in data.views, -1 = absent
    std::vector<std::string> notes;  // decisions that a user should know
  };
  // Views and columns are matched by name: columns are put into the model's order, and a missing or unknown one is
  // Exit::mismatch. If one side has no names, columns are taken in their order. Empty cells of present instances
  // become the training means.
  //
  // A table that was read alone has a view with a general name ("features"); it is taken for the view that the
  // file is named after, or for the model's only view.
  Match match(const Dataset& data) const;
  // The same data with empty cells filled.
  Dataset filled(const Dataset& data) const;

  const std::vector<ViewColumns>& views() const { return views_; }
  void save(Tensors& file) const;
  static Columns load(const Tensors& file, std::vector<ViewColumns> views);  // the views with their counts

 private:
  std::vector<ViewColumns> views_;
};

}  // namespace lacuna
