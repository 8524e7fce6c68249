// Scores in files: written by lacuna predict (data/scores_writer.h, data/prediction_text.h), or plain arrays.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "data/items.h"

namespace lacuna {

struct Scores {
  Table<float> values;                   // (n, c); a row of NaN: the item has no view
  std::vector<std::string> ids;          // empty where the file has none
  std::vector<std::string> label_names;  // empty where the file has none
};

// .npy: one array. .npz: `scores`, or its only array of two dimensions; `ids` and `label_names` if there.
// .csv, .tsv: a header, ids in a first column `id` if there is one. Which items they are of: data/score_join.h.
Scores read_scores(const std::string& path);

}  // namespace lacuna
