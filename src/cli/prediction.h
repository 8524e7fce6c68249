// Shared by prediction from a file and from a stream: the flags, and the conversion of scores to output.
#pragma once

#include <optional>
#include <string>

#include "base/options.h"
#include "cli/known_labels.h"
#include "cli/source.h"
#include "data/prediction_text.h"
#include "methods/model.h"

namespace lacuna::cli {

struct PredictFlags {
  std::string model;
  SourceFlags source;
  std::string out, part = "all", labels_by = "thresholds", precision = "model", format = "auto";
  std::int64_t top = 0;
  bool labels = false, calibrated = false, known_labels = false, strict = false, json = false, quiet = false,
       mpi = false;
  double threshold = -1;
  int threads = 0;
  std::string device = "auto";

  std::vector<std::string> reading;  // the options about reading that were given
  std::string decider;               // --threshold or --labels-by, if one was given

  void declare(Options& options);
  bool from_stream() const;  // DATA is a stream of lines, not a data set
};

// Loads a model file for a verb. The error for another file suggests, if DATA follows, that the arguments are swapped.
Model load_model(const std::string& path, const std::string& precision = "model", bool before_data = true);

// How predictions are written as text; `lines_in` is the format of the input ("jsonl", "csv", "tsv") or empty.
// Exit::usage if a decision rule was given but no decision is written.
PredictionStyle prediction_style(const PredictFlags& flags, const std::string& lines_in);

// Turns the raw scores of a block into the output.
class Shown {
 public:
  Shown(const PredictFlags& flags, const Model& model, bool decisions)
      : flags_(flags), model_(model), decisions_(decisions) {}
  // `known` (k, c), or empty: labels that the items state. They are written unchanged, 1 or 0, and change the scores of
  // the others.
  void set(MatrixView<const float> raw, Matrix<std::int8_t> known = {});
  const Matrix<std::int8_t>& known() const { return known_; }
  Matrix<float>& values() { return values_; }                       // scores, or calibrated probabilities
  const Matrix<std::uint8_t>& decided() const { return decided_; }  // empty if no decisions are requested

 private:
  const PredictFlags& flags_;
  const Model& model_;
  bool decisions_;
  Matrix<float> values_;
  Matrix<std::uint8_t> decided_;
  Matrix<std::int8_t> known_;
};

// The summary of a run, for stderr or --json.
struct PredictTally {
  std::size_t items = 0, without_view = 0, bad_lines = 0, known = 0;  // known: items that state labels
  double seconds = 0;
};
PredictTally predict_stream(const PredictFlags& flags, const Model& model);
PredictTally predict_rows(const PredictFlags& flags, const Model& model, const Selection& selection,
                          const std::optional<KnownLabels>& known, const Ranks& ranks);

}  // namespace lacuna::cli
