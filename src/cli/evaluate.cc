// lacuna evaluate: scores and true labels -> metrics.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/ceiling.h"
#include "cli/counted.h"
#include "cli/machine_flags.h"
#include "cli/progress.h"
#include "cli/source.h"
#include "cli/verbs.h"
#include "data/metrics.h"
#include "data/reliability.h"
#include "data/score_join.h"
#include "data/scores.h"
#include "experiments/details.h"
#include "experiments/report.h"

namespace lacuna::cli {
namespace {

struct EvaluateFlags {
  std::string scores, part = "all", decided, report;
  SourceFlags source;
  bool per_label = false, reliability = false, json = false;
  double threshold = .5;
  int threads = 0;

  void declare(Options& o) {
    o.add("scores", scores, "scores as .csv, .tsv, .npy or .npz (lacuna predict writes them)")
        .positional()
        .metavar("SCORES")
        .required();
    source.declare(o);
    o.add("part", part, "with folds: the rows that were scored, in the order of the fold")
        .choices({"train", "val", "test", "all"})
        .needs("folds");
    o.find("protocol")->needs("folds");
    // Views are not looked at: what stands for their empty cells makes no difference.
    source.read.needs_views = false;
    std::erase_if(o.all(), [](const Option& option) { return option.name == "empty"; });
    o.add("per-label", per_label, "also AP, AUC and F1 of each label");
    o.add("reliability", reliability,
          "also a calibration table of the scores, which must be probabilities");
    o.add("threshold", threshold, "scores above it count as positive (1-HL, F1)").excludes("decided");
    o.add("decided", decided, "decisions (1, 0) in a file like SCORES, instead of a threshold")
        .metavar("FILE");
    o.add("report", report, "also write a page about these scores").metavar("FILE.html");
    o.add("json", json, "print one JSON document");
    add_threads(o, threads);
  }
};

// The joined entries of both sides: scores, and the complete labels (metrics know no hidden ones, only those that nobody
// knows).
Matrix<float> joined_scores(const Scores& scores, const ScoreJoin& join, const std::string& path) {
  Matrix<float> values(join.score_rows.size(), join.score_labels.size());
  const auto called = [](const std::vector<std::string>& names, const char* what, std::size_t k) {
    return names.empty() ? fmt::format("{} {} (from 0)", what, k) : fmt::format("'{}'", names[k]);
  };
  for (std::size_t i = 0; i < values.rows(); ++i)
    for (std::size_t j = 0; j < values.cols(); ++j) {
      const std::size_t row = join.score_rows[i], label = join.score_labels[j];
      values(i, j) = scores.values(row, label);
      if (std::isnan(values(i, j)))
        fail(Exit::data,
             "{}: {} has no score for {}, but for others; give it one, or none at all: items "
             "without any score are left out",
             path, called(scores.ids, "row", row), called(scores.label_names, "label", label));
    }
  return values;
}
Matrix<std::int8_t> joined_truth(const Selection& selection, const ScoreJoin& join) {
  const Matrix<std::int8_t> all = true_labels(selection);
  Matrix<std::int8_t> truth(join.data_rows.size(), join.data_labels.size());
  for (std::size_t i = 0; i < truth.rows(); ++i)
    for (std::size_t j = 0; j < truth.cols(); ++j) truth(i, j) = all(join.data_rows[i], join.data_labels[j]);
  return truth;
}

// Decisions for the very entries that are scored.
Matrix<std::uint8_t> read_decisions(const std::string& path, const Selection& selection,
                                    const ScoreJoin& scored) {
  const Scores file = read_scores(path);
  const ScoreJoin join = join_scores(file, selection, path);
  const auto places = [&](const std::vector<std::uint32_t>& ours, const std::vector<std::uint32_t>& theirs,
                          const std::vector<std::uint32_t>& wanted, const char* what) {
    std::map<std::uint32_t, std::uint32_t> at;
    for (std::size_t k = 0; k < ours.size(); ++k) at[ours[k]] = theirs[k];
    std::vector<std::uint32_t> found;
    for (const std::uint32_t k : wanted) {
      if (at.find(k) == at.end())
        fail(Exit::mismatch, "{} has no decisions for {} {} (from 0) of the data, which has scores", path,
             what, k);
      found.push_back(at[k]);
    }
    return found;
  };
  const auto rows = places(join.data_rows, join.score_rows, scored.data_rows, "row"),
             labels = places(join.data_labels, join.score_labels, scored.data_labels, "label");
  Matrix<std::uint8_t> decided(rows.size(), labels.size());
  for (std::size_t i = 0; i < decided.rows(); ++i)
    for (std::size_t j = 0; j < decided.cols(); ++j) {
      const float x = file.values(rows[i], labels[j]);
      if (x != 0 && x != 1)
        fail(Exit::data, "{}: row {}, label {} (from 0) is {}, a decision is 0 or 1", path, rows[i],
             labels[j], x);
      decided(i, j) = x == 1;
    }
  return decided;
}

double unknown_share(const Matrix<std::int8_t>& truth) {
  double unknown = 0;
  for (const auto y : truth.values()) unknown += y == kUnknown;
  return truth.empty() ? 0 : unknown / static_cast<double>(truth.values().size());
}

std::string number(double value) {
  return std::isnan(value) ? "-" : fmt::format("{:.4f}", value);
}

// What was compared, and how it came out: told as text, as one document, as a page.
struct Outcome {
  const EvaluateFlags& flags;
  const Source& source;
  const ScoreJoin& join;
  const Matrix<float>& scores;
  const Matrix<std::int8_t>& truth;
  const Matrix<std::uint8_t>& decided;  // empty: by the threshold
  std::vector<std::string> names;       // of the labels
  Metrics metrics;
  std::vector<LabelMetrics> labels;     // with --per-label
  std::optional<Reliability> reliable;  // with --reliability
  double unknown = 0;

  void write_page(const std::string& command) const;
  nlohmann::json document() const;
  void print() const;
};

void Outcome::write_page(const std::string& command) const {
  bool probabilities = true;
  Matrix<std::uint8_t> yes(truth.rows(), truth.cols());
  for (std::size_t i = 0; i < yes.rows(); ++i)
    for (std::size_t j = 0; j < yes.cols(); ++j) {
      const auto score = static_cast<double>(scores(i, j));
      yes(i, j) = decided.empty() ? score > flags.threshold : decided(i, j);
      probabilities = probabilities && score >= 0 && score <= 1;
    }
  ModelReport page;
  page.title = fmt::format("Scores for {}", source.data().name);
  page.command = command;
  page.facts = {{"scores", flags.scores},
                {"data", flags.source.path},
                {"rows", source.has_folds()
                             ? fmt::format("{} ({} of fold {})", truth.rows(), flags.part, flags.source.fold)
                             : std::to_string(truth.rows())},
                {"unknown true labels", fmt::format("{:.1f} %", 100 * unknown)}};
  page.metrics = metrics_json(metrics);
  page.ceiling = ceiling_sentence(truth);
  page.metrics_part = source.has_folds() ? flags.part : "scored";
  if (source.has_folds()) page.facts.emplace_back("protocol", flags.source.protocol);
  if (source.protocol() != Protocol::strict)
    page.caution = fmt::format("Mind: {}.", protocol_warning(source.protocol()));
  page.details = prediction_details(scores, truth, yes, names, probabilities);
  write_model_report(page, flags.report);
}

nlohmann::json Outcome::document() const {
  nlohmann::json document = {
      {"schema", "lacuna.evaluate.1"},
      {"data", source.data().name},
      {"rows", truth.rows()},
      {"labels", truth.cols()},
      {"unknown", unknown},
      {"threshold", flags.decided.empty() ? nlohmann::json(flags.threshold) : nlohmann::json()},
      {"joined", join.by_order ? "order" : "id"},
      {"left_out",
       {{"unknown_items", join.unknown_items.size()},
        {"unscored_items", join.unscored_items.size()},
        {"items_without_view", join.empty_items.size()},
        {"unknown_labels", join.unknown_labels},
        {"unscored_labels", join.unscored_labels}}},
      {"metrics", metrics_json(metrics)}};
  if (source.has_folds()) {
    document["fold"] = flags.source.fold;
    document["part"] = flags.part;
    document["protocol"] = flags.source.protocol;
    if (source.protocol() == Protocol::authors) document["leaks"] = protocol_warning(source.protocol());
  }
  if (flags.per_label) {
    auto& list = document["per_label"] = nlohmann::json::array();
    for (std::size_t j = 0; j < labels.size(); ++j)
      list.push_back({{"name", names[j]},
                      {"positives", labels[j].positives},
                      {"known", labels[j].known},
                      {"AP", labels[j].ap},
                      {"AUC", labels[j].auc},
                      {"F1", labels[j].f1}});
  }
  if (reliable) {
    auto& own = document["reliability"] = {
        {"ece", reliable->ece}, {"brier", reliable->brier}, {"bins", nlohmann::json::array()}};
    for (const auto& bin : reliable->bins)
      own["bins"].push_back({{"low", bin.low},
                             {"high", bin.high},
                             {"count", bin.count},
                             {"score", bin.score},
                             {"share", bin.share}});
  }
  return document;
}

void Outcome::print() const {
  fmt::print(stderr, "{}, {}, {:.1f} % of the true labels unknown\n", counted(truth.rows(), "row"),
             counted(truth.cols(), "label"), 100 * unknown);
  std::fputs(ceiling_line(truth).c_str(), stderr);
  if (flags.decided.empty())
    fmt::print(
        stderr,
        "1-HL and F1 count scores above {} as positive; --decided FILE uses a model's own thresholds\n",
        flags.threshold);
  TextTable table({"metric", "value"});
  for (std::size_t k = 0; k < metric_names().size(); ++k)
    table.add({metric_names()[k], number(metrics.values()[k])});
  std::fputs(table.text().c_str(), stdout);
  if (flags.per_label) {
    TextTable each({"label", "positives", "known", "AP", "AUC", "F1"});
    for (std::size_t j = 0; j < labels.size(); ++j)
      each.add({names[j], std::to_string(labels[j].positives), std::to_string(labels[j].known),
                number(labels[j].ap), number(labels[j].auc), number(labels[j].f1)});
    fmt::print("\n{}", each.text());
  }
  if (!reliable) return;
  TextTable bins({"scores", "entries", "mean score", "share positive"});
  for (const auto& bin : reliable->bins)
    bins.add({fmt::format("{:.1f} to {:.1f}", bin.low, bin.high), std::to_string(bin.count),
              bin.count ? number(bin.score) : "-", bin.count ? number(bin.share) : "-"});
  fmt::print("\n{}\nexpected calibration error {:.4f}, Brier score {:.4f}\n", bins.text(), reliable->ece,
             reliable->brier);
}

}  // namespace

int evaluate(const Arguments& arguments) {
  EvaluateFlags flags;
  Options options;
  flags.declare(options);
  parse_or_help(
      options, arguments, "evaluate",
      "Compares scores with the true labels. Unknown labels enter no sum; labels that a fold hides count in "
      "full (lacuna metrics defines each figure). Items are joined by id and labels by name; what only one "
      "side has is left out and reported.",
      "  lacuna evaluate scores.csv photos.npz\n"
      "  lacuna evaluate scores.npy corel5k.mat --folds folds.mat --fold 0 --part test --per-label\n");
  if (options.find("views")->given && flags.source.folds.empty() &&
      !std::filesystem::is_directory(flags.source.path))
    fail(Exit::usage,
         "--views has no effect: scores are compared with labels, and views of {} are not looked at",
         flags.source.path);
  set_threads(flags.threads);
  const Source source(flags.source);
  if (const std::string warning = protocol_warning(source.protocol()); !warning.empty()) tell("", {warning});
  const Dataset& data = source.data();
  if (data.labels.empty())
    fail(Exit::data,
         "{}: has no labels to compare with; say which they are, as to train: --label-columns, "
         "--class-column or "
         "--tags-column of a table, --label-file, --labels for .h5ad and .h5mu",
         flags.source.path);
  const Selection selection = source.part(part_from_name(flags.part));
  const Scores file = read_scores(flags.scores);
  const ScoreJoin join = join_scores(file, selection, flags.scores);
  if (source.has_folds() && !(join.unknown_items.empty() && join.unscored_items.empty()))
    fail(Exit::mismatch,
         "{}: {} of its items are not in the {} part of fold {}, and {} of that part have no scores; are "
         "--fold and --part "
         "those of the scores?",
         flags.scores, join.unknown_items.size(), flags.part, flags.source.fold, join.unscored_items.size());
  const Matrix<float> scores = joined_scores(file, join, flags.scores);
  const Matrix<std::int8_t> truth = joined_truth(selection, join);
  std::vector<std::string> names;
  for (const std::uint32_t j : join.data_labels) names.push_back(data.label_names[j]);
  const Matrix<std::uint8_t> decided =
      flags.decided.empty() ? Matrix<std::uint8_t>() : read_decisions(flags.decided, selection, join);
  for (const auto& line : join.told()) fmt::print(stderr, "{}: {}\n", flags.scores, line);

  Outcome outcome{flags, source, join, scores, truth, decided, names, {}, {}, {}, unknown_share(truth)};
  outcome.metrics = lacuna::evaluate(scores, truth, decided, flags.threshold);
  if (flags.per_label) outcome.labels = evaluate_labels(scores, truth, decided, flags.threshold);
  if (flags.reliability) outcome.reliable = lacuna::reliability(scores, truth);
  if (!flags.report.empty()) outcome.write_page(command_line("evaluate", arguments));
  if (flags.json)
    fmt::print("{}\n", outcome.document().dump(2));
  else
    outcome.print();
  return 0;
}

}  // namespace lacuna::cli
