// lacuna predict: model and data -> scores, or the labels themselves.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "base/error.h"
#include "base/tensors.h"
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
  std::string out, part = "all", labels_by = "thresholds", precision = "model";
  std::int64_t top = 0;
  bool labels = false, calibrated = false;
  double threshold = -1;
  int threads = 0;

  void declare(Options& o) {
    o.add("model", model, "a model file written by lacuna train").positional().metavar("MODEL").required();
    o.add("labels", labels, "the labels that are decided instead of scores: names in a .csv, else 1 and 0");
    source.declare(o);
    o.add("part", part, "with folds: which rows to score, in the fold's order")
        .choices({"train", "val", "test", "all"});
    o.add("out", out, "scores as .csv, .npy or .npz; with --top or --labels a .csv holds names of labels")
        .metavar("SCORES")
        .required();
    o.add("top", top, "names of the K best labels of each item instead of scores").range(0, 1e6).metavar("K");
    o.add(
         "labels-by", labels_by,
         "who decides: the model's thresholds (chosen on validation), or the method by itself, as metrics of "
         "the paper want it")
        .choices({"thresholds", "method"});
    o.add("threshold", threshold, "with --labels: larger scores are decided; -1 = see --labels-by")
        .range(-1, 1);
    o.add("calibrated", calibrated,
          "probabilities calibrated on validation instead of raw scores (metrics of the paper are of raw "
          "scores)");
    o.add(
         "precision", precision,
         "of a network's products: the model's own setting, f32, or bf16 factors with f32 sums (on CPUs with "
         "such instructions about twice as fast for many rows)")
        .choices({"model", "f32", "bf16"});
    o.add("threads", threads, "threads, 0 = all; the result does not depend on it").range(0, 1024);
  }
};

Model load(const PredictFlags& flags) {
  Tensors file = Tensors::read(flags.model);
  if (flags.precision != "model") {
    auto& meta = file.metadata;
    if (!meta.contains("options") || !meta["options"].contains("precision"))
      fail(Exit::mismatch, "{}: its method has no choice of precision; leave --precision away", flags.model);
    meta["options"]["precision"] = flags.precision;
  }
  return Model::load(file);
}

Matrix<std::uint8_t> decide(const PredictFlags& flags, const Model& model, MatrixView<const float> scores) {
  if (flags.threshold < 0 && flags.labels_by == "thresholds") return model.decide(scores);
  Matrix<std::uint8_t> decided(scores.rows, scores.cols);
  if (flags.threshold < 0) {
    model.method().decide(scores, decided);
  } else {
    for (std::size_t i = 0; i < scores.rows; ++i)
      for (std::size_t j = 0; j < scores.cols; ++j)
        decided(i, j) = scores(i, j) > static_cast<float>(flags.threshold);
  }
  return decided;
}

// The positions of the `most` largest scores, best first; of equal ones the smaller position.
void best_labels(std::span<const float> scores, std::size_t most, std::vector<std::uint32_t>& order) {
  order.resize(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto better = [&](std::uint32_t a, std::uint32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(), better);
  order.resize(most);
}

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
      "  lacuna predict photos.safetensors new.npz --labels --calibrated --out tags.csv\n"
      "  lacuna predict m.safetensors corel5k.mat --folds folds.mat --fold 0 --part test --out scores.npy\n");
  check_writable(flags.out);
  set_threads(flags.threads);
  const Model model = load(flags);
  if (flags.calibrated && model.calibration().empty())
    fail(Exit::mismatch,
         "{}: has no calibration: it was trained without validation rows that have known labels",
         flags.model);
  const Source source(flags.source);
  const Selection selection = source.part(part_from_name(flags.part));
  const std::size_t rows = selection.rows.size(), classes = model.label_names().size();
  const ScoresLayout layout{rows, model.label_names(), [&](std::size_t i) {
                              const std::uint32_t at = selection.rows[i];
                              return source.data().ids.empty() ? std::to_string(at) : source.data().ids[at];
                            }};
  const double begun = clock_seconds();
  Matrix<float> shown;  // what is written of a block: scores, probabilities, or 1 and 0
  const auto show = [&](MatrixView<const float> block) {
    shown = Matrix<float>(block.rows, block.cols);
    shown.copy_from(block);
    if (flags.calibrated) model.calibrate(shown);
  };
  const bool names = flags.top > 0 || (flags.labels && flags.out.ends_with(".csv"));
  if (!names) {
    const auto writer = write_scores(flags.out, layout);
    model.predict(selection, [&](std::size_t, MatrixView<const float> block) {
      show(block);
      if (flags.labels) {
        const auto decided = decide(flags, model, block);
        std::copy(decided.values().begin(), decided.values().end(), shown.values().begin());
      }
      writer->write(shown);
    });
    writer->commit();
  } else {
    TagsWriter writer(flags.out, layout);
    const auto most = flags.top > 0 ? std::min(static_cast<std::size_t>(flags.top), classes) : classes;
    std::vector<std::uint32_t> order;
    std::vector<float> values;
    model.predict(selection, [&](std::size_t, MatrixView<const float> block) {
      show(block);
      const auto decided = flags.labels ? decide(flags, model, block) : Matrix<std::uint8_t>();
      for (std::size_t i = 0; i < block.rows; ++i) {
        best_labels(block.row(i), most, order);
        if (flags.labels) std::erase_if(order, [&](std::uint32_t j) { return decided(i, j) == 0; });
        values.clear();
        for (const auto j : order) values.push_back(shown(i, j));
        writer.write(order, values);
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
