// Scores as files: what ScoresWriter wrote (data/scores_writer.h), or a plain array of somebody else's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "data/items.h"

namespace lacuna {

struct Scores {
  Table<float> values;                   // (n, c); a cell may be NaN, evaluate refuses it
  std::vector<std::string> ids;          // empty where the file has none
  std::vector<std::string> label_names;  // empty where the file has none
};

// .npy: one array. .npz: `scores`, or its only array of two dimensions; `ids` and `label_names` if there.
// .csv: a header, ids in a first column `id` if there is one.
Scores read_scores(const std::string& path);
// Throws Exit::mismatch, with both numbers or names, unless the scores are of these rows and labels, in this
// order.
void check_scores(const Scores& scores, const Selection& selection, const std::string& path);

}  // namespace lacuna
