// Protocols: which rows a method learns from, and which it is tested on. One definition for train, tune, predict,
// evaluate and every experiment.
//
//   strict    the preparation is fitted on observed training instances; training, validation and test rows
//             are disjoint
//   transductive
//             as strict, but the views of validation and test rows take part in training, with the gaps of the
//             fold and without their labels. This is a different task, so every output names the protocol
//   authors   as the released program of MTD's authors: the preparation sees all rows, and the test rows
//             include the validation rows, on which the epoch was chosen. It leaks, and every output says so
//
// Under all of them, training and validation rows without any view are left out (nothing can be learned from them or
// predicted for them), training labels are those that the fold leaves known, and the labels of validation and test rows
// are complete.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "data/items.h"

namespace lacuna {

enum class Protocol { strict, transductive, authors };
const char* protocol_name(Protocol protocol);
Protocol protocol_from_name(const std::string& name);  // Exit::usage with the nearest name
const std::vector<std::string>& protocol_names();
// What outputs state about the protocol: a sentence, and a few words in brackets; empty for strict.
const char* protocol_warning(Protocol protocol);
const char* protocol_remark(Protocol protocol);
// Puts the protocol into the settings of a model, after all others: Exit::usage if they ask for a leak that the
// protocol does not allow.
void apply_protocol(Protocol protocol, Options& settings);

struct LearningRows {
  Selection learn, val;
  std::size_t without_view = 0;  // rows left out of both
  std::size_t unlabelled = 0;    // the last rows of `learn`, of which only the views are used (transductive)
  std::size_t labelled() const { return learn.rows.size() - unlabelled; }
};
// The rows of a part of a fold, for predictions and figures.
Selection part_of_fold(const Dataset& data, const Folds& folds, std::size_t fold, Part part,
                       Protocol protocol);
// The rows that a method learns from and selects on: those of a fold, or, without folds, of a seeded split
// with `hold_out` of the rows that have a known label for validation (at least 1, none if 0).
LearningRows learning_rows(const Dataset& data, const Folds& folds, std::size_t fold, Protocol protocol);
LearningRows learning_rows(const Selection& all, double hold_out, std::uint64_t seed);

// Rows without any view cannot be predicted: no method learns from them, and no figure counts them.
void drop_rows_without_view(Selection& selection);

// The labels that figures are computed from: complete, even if the fold hides them; unknown only if the data do
// not know them.
Matrix<std::int8_t> true_labels(Selection selection);

}  // namespace lacuna
