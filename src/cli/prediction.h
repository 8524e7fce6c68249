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
  bool from_stream() const;  // DATA is lines that come in, not a data set
};

// A model file for a verb; a file that is none says so, and, where DATA follows, that the arguments may be swapped.
Model load_model(const std::string& path, const std::string& precision = "model", bool before_data = true);

// How predictions are written as text; `lines_in` is the format of the input ("jsonl", "csv", "tsv") or empty. Exit::usage
// if a decision rule was given but no decision is written.
PredictionStyle prediction_style(const PredictFlags& flags, const std::string& lines_in);

// Raw scores of a block to what is shown of them.
class Shown {
 public:
  Shown(const PredictFlags& flags, const Model& model, bool decisions)
      : flags_(flags), model_(model), decisions_(decisions) {}
  // `known` (k, c), or empty: labels that the items tell of themselves. They are shown as they are, 1 or 0, and change the
  // scores of the others.
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

// What happened, for stderr or --json.
struct PredictTally {
  std::size_t items = 0, without_view = 0, bad_lines = 0, known = 0;  // known: items that tell labels
  double seconds = 0;
};
PredictTally predict_stream(const PredictFlags& flags, const Model& model);
PredictTally predict_rows(const PredictFlags& flags, const Model& model, const Selection& selection,
                          const std::optional<KnownLabels>& known, const Ranks& ranks);

}  // namespace lacuna::cli
