// Scoring the rows of a data set: they are read, scored and written block by block.
#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "base/clock.h"
#include "cli/known_labels.h"
#include "cli/prediction.h"
#include "cli/text_out.h"
#include "data/scores_writer.h"

namespace lacuna::cli {
namespace {

bool tells_any(std::span<const std::int8_t> known) {
  return std::ranges::any_of(known, [](std::int8_t y) { return y != kUnknown; });
}

class RowPrediction {
 public:
  RowPrediction(const PredictFlags& flags, const Model& model, const Selection& selection,
                const std::optional<KnownLabels>& known, const Ranks& ranks)
      : flags_(flags), model_(model), selection_(selection), ranks_(ranks), known_(known) {
    tally_.items = selection.rows.size();
    for (std::size_t i = 0; i < tally_.items; ++i) tally_.without_view += !has_view(i);
  }

  PredictTally run() {
    const Stopwatch watch;
    if (!ranks_.leads()) {
      model_.predict(
          selection_, [](std::size_t, MatrixView<const float>) {}, ranks_);
      return tally_;
    }
    if (flags_.out.ends_with(".npy") || flags_.out.ends_with(".npz"))
      write_array();
    else
      write_lines();
    tally_.seconds = watch.seconds();
    return tally_;
  }

 private:
  void write_array() {
    Shown shown(flags_, model_, flags_.labels);
    const auto writer =
        write_scores(flags_.out, {tally_.items, model_.label_names(), [&](std::size_t i) { return id(i); }});
    model_.predict(
        selection_,
        [&](std::size_t begin, MatrixView<const float> block) {
          shown.set(block, known_rows(begin, block.rows));
          if (flags_.labels)
            std::copy(shown.decided().values().begin(), shown.decided().values().end(),
                      shown.values().values().begin());
          for (std::size_t i = 0; i < block.rows; ++i)
            if (!has_view(begin + i))
              std::ranges::fill(shown.values().row(i), std::numeric_limits<float>::quiet_NaN());
          writer->write(shown.values());
        },
        ranks_);
    writer->commit();
  }

  void write_lines() {
    const PredictionStyle style = prediction_style(flags_, "");
    const PredictionText text(style, model_.label_names());
    Shown shown(flags_, model_, style.shows_decisions());
    TextOut out(flags_.out);
    out.write(text.header());
    std::string written;
    model_.predict(
        selection_,
        [&](std::size_t begin, MatrixView<const float> block) {
          shown.set(block, known_rows(begin, block.rows));
          std::vector<std::string> ids;
          for (std::size_t i = 0; i < block.rows; ++i) ids.push_back(id(begin + i));
          written.clear();
          text.append(written, block.rows, [&](std::size_t i) {
            PredictionText::Row row;
            row.id = ids[i];
            row.id_is_number = selection_.data->ids.empty();
            if (known_) row.known = shown.known().row(i);
            if (!has_view(begin + i)) return row;
            row.scores = shown.values().row(i);
            if (!shown.decided().empty()) row.decided = shown.decided().row(i);
            return row;
          });
          out.write(written);
        },
        ranks_);
    out.commit();
  }

  std::string id(std::size_t i) const {
    const std::uint32_t at = selection_.rows[i];
    return selection_.data->ids.empty() ? std::to_string(at) : selection_.data->ids[at];
  }
  bool has_view(std::size_t i) const {
    for (std::size_t v = 0; v < selection_.data->views.size(); ++v)
      if (selection_.has(i, v)) return true;
    return false;
  }
  Matrix<std::int8_t> known_rows(std::size_t begin, std::size_t count) {
    Matrix<std::int8_t> rows;
    if (!known_) return rows;
    rows = known_->rows(begin, count);
    for (std::size_t i = 0; i < count; ++i) tally_.known += tells_any(rows.row(i));
    return rows;
  }

  const PredictFlags& flags_;
  const Model& model_;
  const Selection& selection_;
  const Ranks& ranks_;
  const std::optional<KnownLabels>& known_;
  PredictTally tally_;
};

}  // namespace

PredictTally predict_rows(const PredictFlags& flags, const Model& model, const Selection& selection,
                          const std::optional<KnownLabels>& known, const Ranks& ranks) {
  return RowPrediction(flags, model, selection, known, ranks).run();
}

}  // namespace lacuna::cli
