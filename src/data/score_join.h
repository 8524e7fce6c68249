// Joins the scores of one file with the true labels of another: items by id, labels by name. What only one side has is
// left out and counted. A file without ids (or names) is joined by position, and must have the same number of rows (or
// labels).
#pragma once

#include <string>
#include <vector>

#include "data/items.h"
#include "data/scores.h"

namespace lacuna {

struct ScoreJoin {
  // Entry k: this row of the scores belongs to this position in the selection; in the selection's order. And labels.
  std::vector<std::uint32_t> score_rows, data_rows, score_labels, data_labels;
  bool by_order = false;  // items: the scores have no ids
  // Left out.
  std::vector<std::string> unknown_items;    // scored, but not among the rows of the data
  std::vector<std::string> unscored_items;   // of the data, without scores
  std::vector<std::string> empty_items;      // with empty scores: they have no view
  std::vector<std::string> unknown_labels;   // scored, but the data does not have them
  std::vector<std::string> unscored_labels;  // of the data, without scores

  bool row_numbers = false;  // both sides have only row numbers as ids, and different ones

  // Notes: one line for each kind of entry that was left out, and one if items were joined by order.
  std::vector<std::string> told() const;
};

// Exit::mismatch if nothing is left; Exit::data if an id occurs twice.
ScoreJoin join_scores(const Scores& scores, const Selection& selection, const std::string& path);

}  // namespace lacuna
