// lacuna predict: model and data -> scores, or the names of the labels.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/progress.h"
#include "cli/source.h"
#include "cli/verbs.h"
#include "data/scores_writer.h"
#include "methods/model.h"

namespace lacuna::cli {
namespace {

struct PredictFlags {
  std::string model;
  SourceFlags source;
  std::string out, part = "all";
  std::int64_t top = 0;
  bool labels = false, calibrated = false;
  double threshold = -1;
  int threads = 0;

  void declare(Options& o) {
    o.add("model", model, "a model file written by lacuna train").positional().metavar("MODEL").required();
    source.declare(o);
    o.add("part", part, "with folds: which rows to score, in the fold's order")
        .choices({"train", "val", "test", "all"});
    o.add("out", out, "scores as .csv, .npy or .npz; with --top or --labels a .csv of label names")
        .metavar("SCORES")
        .required();
    o.add("top", top, "write the names of the K best labels of each item instead of scores")
        .range(0, 1e6)
        .metavar("K");
    o.add("labels", labels,
          "write the names of the labels decided by the model's thresholds instead of scores");
    o.add("threshold", threshold, "with --labels: decide by this score instead; -1 = the model's own")
        .range(-1, 1);
    o.add("calibrated", calibrated,
          "write probabilities calibrated on validation instead of raw scores (metrics of the paper are of "
          "raw scores)");
    o.add("threads", threads, "threads, 0 = all; the result does not depend on it").range(0, 1024);
  }
};

}  // namespace

int predict(const Arguments& arguments) {
  PredictFlags flags;
  Options options;
  flags.declare(options);
  parse_or_help(
      options, arguments, "predict",
      "Scores items with a trained model. The data may lack views; those it has are matched by name.",
      "  lacuna predict photos.safetensors new.npz --out scores.csv\n"
      "  lacuna predict photos.safetensors new.npz --top 5 --out tags.csv\n"
      "  lacuna predict m.safetensors corel5k.mat --folds folds.mat --fold 0 --part test --out scores.npy\n");
  check_writable(flags.out);
  set_threads(flags.threads);
  const Model model = Model::load(flags.model);
  const Source source(flags.source);
  const Selection selection = source.part(part_from_name(flags.part));
  const std::size_t rows = selection.rows.size(), classes = model.label_names().size();

  if (flags.calibrated && model.calibration().empty())
    fail(Exit::mismatch,
         "{}: has no calibration: it was trained without validation rows that have known labels",
         flags.model);
  const ScoresLayout layout{rows, model.label_names(), [&](std::size_t i) {
                              const std::uint32_t at = selection.rows[i];
                              return source.data().ids.empty() ? std::to_string(at) : source.data().ids[at];
                            }};
  const double begun = clock_seconds();
  if (flags.top == 0 && !flags.labels) {
    const auto writer = write_scores(flags.out, layout);
    Matrix<float> probabilities;
    model.predict(selection, [&](std::size_t, MatrixView<const float> block) {
      if (!flags.calibrated) return writer->write(block);
      probabilities = Matrix<float>(block.rows, block.cols);
      probabilities.copy_from(block);
      model.calibrate(probabilities);
      writer->write(probabilities);
    });
    writer->commit();
  } else {
    TagsWriter writer(flags.out, layout);
    const auto most = flags.top > 0 ? std::min(static_cast<std::size_t>(flags.top), classes) : classes;
    std::vector<std::uint32_t> order(classes), chosen;
    std::vector<float> values;
    model.predict(selection, [&](std::size_t, MatrixView<const float> block) {
      Matrix<std::uint8_t> decided(block.rows, classes);
      if (flags.labels && flags.threshold < 0) {
        decided = model.decide(block);
      } else {
        for (std::size_t i = 0; i < block.rows; ++i)
          for (std::size_t j = 0; j < classes; ++j)
            decided(i, j) = !flags.labels || block(i, j) > static_cast<float>(flags.threshold);
      }
      for (std::size_t i = 0; i < block.rows; ++i) {
        const auto scores = block.row(i);
        std::iota(order.begin(), order.end(), 0u);
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                          [&](std::uint32_t a, std::uint32_t b) {
                            return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                          });
        chosen.clear(), values.clear();
        for (std::size_t k = 0; k < most; ++k) {
          if (!decided(i, order[k])) continue;
          chosen.push_back(order[k]);
          values.push_back(scores[order[k]]);
        }
        writer.write(chosen, values);
      }
    });
    writer.commit();
  }
  const double seconds = clock_seconds() - begun;
  fmt::print(stderr, "{}: {} rows, {} labels, {} ({} rows/s)\n", flags.out, rows, classes,
             duration_text(seconds),
             count_text(static_cast<std::uint64_t>(static_cast<double>(rows) / std::max(seconds, 1e-9))));
  return 0;
}

}  // namespace lacuna::cli
