// Who learns from which rows, and is tested on which: one answer for train, tune, predict, evaluate and every
// experiment.
//
//   strict    the preparation is fitted on observed training instances; training, validation and test rows
//             are disjoint
//   transductive
//             as strict, but validation and test rows take part in training by their views, with the gaps of
//             the fold; none of their labels is seen. It is another task, and whatever comes of it says so
//   authors   as the released program of MTD's authors behaves: the preparation sees all rows, and the test
//             rows hold the validation rows, on which the epoch was chosen. It leaks, and whatever comes of
//             it says so
//
// Under all of them, training and validation rows without any view are left out (nothing can be learned from them, and
// nothing said of them), training labels are those the fold leaves known, and the labels of validation and test rows
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
// What a reader of figures must know about the protocol: a sentence, and a few words in brackets; empty for strict.
const char* protocol_warning(Protocol protocol);
const char* protocol_remark(Protocol protocol);
// Puts the protocol into the settings of a model, last: Exit::usage where they say to leak and the protocol
// does not.
void apply_protocol(Protocol protocol, Options& settings);

struct LearningRows {
  Selection learn, val;
  std::size_t without_view = 0;  // rows left out of both
  std::size_t unlabelled = 0;    // of `learn`, the last ones: take part by their views alone (transductive)
  std::size_t labelled() const { return learn.rows.size() - unlabelled; }
};
// The rows of a part of a fold, as predictions and figures use them.
Selection part_of_fold(const Dataset& data, const Folds& folds, std::size_t fold, Part part,
                       Protocol protocol);
// The rows that a method learns from and selects on: those of a fold, or, without folds, of a seeded split
// with `hold_out` of the rows that have a known label for validation (at least 1, none if 0).
LearningRows learning_rows(const Dataset& data, const Folds& folds, std::size_t fold, Protocol protocol);
LearningRows learning_rows(const Selection& all, double hold_out, std::uint64_t seed);

// A method has nothing to say about a row without any view: none learns from it, and no figure counts it.
void drop_rows_without_view(Selection& selection);

// The labels that figures are computed from: complete, whatever the fold hides; unknown where nobody knows
// them.
Matrix<std::int8_t> true_labels(Selection selection);

}  // namespace lacuna
