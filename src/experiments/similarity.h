// Cosines between the channels of a two-channel network: S_1..S_m are the shared features of the m views,
// O_1..O_m the views' own. H = C C^T with unit rows C = (s_1, ..., s_m, o_1, ..., o_m): 2m x 2m.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "data/items.h"
#include "methods/model.h"

namespace lacuna {

// Fits the model and computes H on the test rows after the given epochs (0 = before the first). For each epoch it
// gives the matrix of one sample (the first test row with the most views), and the mean over all test rows, each
// entry over the rows that have both views: {"views": [...], "sample": row, "epochs": [{"epoch", "sample": [[...]],
// "mean": [[...]]}]}. Entries of missing views are null. Exit::usage if the method does not have two channels.
nlohmann::json channel_similarity(Model& model, const std::vector<std::int64_t>& epochs,
                                  const Selection& train, const Selection& val, const Selection& test,
                                  std::uint64_t seed);

}  // namespace lacuna
