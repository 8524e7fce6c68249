// lacuna predict: model and data -> scores, or the labels themselves.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/tensors.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/counted.h"
#include "cli/item_stream.h"
#include "cli/known_labels.h"
#include "cli/machine_flags.h"
#include "cli/prediction.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/text_out.h"
#include "cli/verbs.h"
#include "ops/device.h"

namespace lacuna::cli {

void PredictFlags::declare(Options& o) {
  o.add("model", model, "a model file written by lacuna train").positional().metavar("MODEL").required();
  o.add("labels", labels,
        "decided labels instead of scores: names in text, 1 and 0 in .npy and .npz");
  source.declare(o);
  o.find("data")->help = "data set, or - for JSON lines, CSV or TSV from standard input";
  o.find("protocol")->needs("folds");
  // Otherwise labels are not read: what their numbers mean makes no difference.
  source.read.needs_labels = false;
  for (const char* name : {"label-code", "blank-means"}) o.find(name)->needs("known-labels");
  // --format is what is written here, as everywhere in pipes; what is read is --from.
  Option& from = *o.find("format");
  from.name = "from";
  from.help = "format of the data, if its name or first character does not say";
  for (const char* format : {"jsonl", "tsv"}) from.allowed.push_back(format);
  o.add("part", part, "with folds: which rows to score, in the order of the fold")
      .choices({"train", "val", "test", "all"})
      .needs("folds");
  o.add("out", out, "scores as .csv, .tsv, .jsonl, .npy or .npz; - is standard output")
      .metavar("SCORES")
      .required();
  o.add(
       "format", format,
       "text format: jsonl, csv or tsv (one column per label), long (id, rank, label, score or probability, "
       "decided); auto: by the name of SCORES, or as the input")
      .choices({"auto", "jsonl", "csv", "tsv", "long"});
  o.add("top", top, "the K best labels of each item instead of all scores").range(0, 1e6).metavar("K");
  o.add("labels-by", labels_by,
        "what decides: the model's thresholds (chosen on validation), or the method's own rule, as in the "
        "paper's metrics")
      .choices({"thresholds", "method"});
  o.add("threshold", threshold, "larger scores are decided positive; -1 = see --labels-by")
      .range(-1, 1)
      .excludes("labels-by");
  o.add("calibrated", calibrated,
        "probabilities calibrated on validation instead of raw scores (the paper's metrics use raw scores)");
  o.add("known-labels", known_labels,
        "use the labels that items already have to predict the others: the labels or tags of the data, or "
        "\"labels\" in JSON lines");
  o.add("strict", strict,
        "a bad line ends the stream (exit code 3) instead of giving an error object");
  o.add("precision", precision,
        "precision of matrix products: the model's setting, f32, or bf16 with f32 accumulation (about twice "
        "as fast for many rows on CPUs with bf16 instructions)")
      .choices({"model", "f32", "bf16"});
  add_threads(o, threads);
  add_device(o, device);
  o.add(kMpi, mpi, "divide the rows among the ranks of MPI, as under mpirun");
  o.add("json", json, "print one JSON document about the run");
  o.add("quiet", quiet, "no summary at the end; notes on how the data were read remain");
}

bool PredictFlags::from_stream() const {
  return is_item_stream(source.path, source.read.format);
}

Model load_model(const std::string& path, const std::string& precision, bool before_data) {
  const auto file = [&] {
    try {
      return Tensors::read(path);
    } catch (const Error& error) {
      const std::string what = error.what();
      if (error.code() != Exit::data || what.find("byte") == std::string::npos) throw;
      const auto reason = what.starts_with(path + ": ") ? what.substr(path.size() + 2) : what;
      fail(Exit::data, "{}: is not a model file, or a damaged one ({}){}", path, reason,
           before_data ? "; MODEL comes first, then DATA" : "");
    }
  };
  Tensors tensors = file();
  if (precision != "model") {
    auto& meta = tensors.metadata;
    if (!meta.contains("options") || !meta["options"].contains("precision"))
      fail(Exit::mismatch, "{}: its method has no choice of precision; omit --precision", path);
    meta["options"]["precision"] = precision;
  }
  return Model::load(tensors);
}

PredictionStyle prediction_style(const PredictFlags& flags, const std::string& lines_in) {
  using Format = PredictionStyle::Format;
  std::string format = flags.format;
  if (format == "auto") {
    const auto ends = [&](const char* ending) { return flags.out.ends_with(ending); };
    format = ends(".tsv") ? "tsv" : ends(".jsonl") || ends(".ndjson") ? "jsonl" : ends(".csv") ? "csv" : "";
    if (format.empty() && is_stream_path(flags.out)) format = lines_in.empty() ? "csv" : lines_in;
    if (format.empty())
      fail(Exit::usage, "{}: scores are written as .csv, .tsv, .jsonl, .npy or .npz (or use --format)",
           flags.out);
  }
  PredictionStyle style;
  style.format = format == "jsonl"               ? Format::jsonl
               : format == "tsv"               ? Format::tsv
               : format == "csv"               ? Format::csv
               : flags.out.ends_with(".tsv") ? Format::long_tsv
                                             : Format::long_csv;
  style.top = static_cast<std::size_t>(flags.top);
  style.only_decided = flags.labels;
  style.tags = flags.top > 0 || flags.labels;
  style.probabilities = flags.calibrated;
  style.known = flags.known_labels;
  if (!flags.decider.empty() && !style.shows_decisions())
    fail(Exit::usage, "--{} has no effect without --labels or --format long: no decisions are written to {}",
         flags.decider, flags.out == "-" ? "standard output" : flags.out);
  return style;
}

void Shown::set(MatrixView<const float> raw, Matrix<std::int8_t> known) {
  values_ = Matrix<float>(raw.rows, raw.cols);
  values_.copy_from(raw);
  known_ = std::move(known);
  if (!known_.empty()) model_.refine(known_, values_);
  if (decisions_) {
    if (flags_.threshold < 0 && flags_.labels_by == "thresholds") {
      decided_ = model_.decide(values_);
    } else {
      decided_ = Matrix<std::uint8_t>(raw.rows, raw.cols);
      if (flags_.threshold < 0) model_.method().decide(values_, decided_);
      for (std::size_t i = 0; flags_.threshold >= 0 && i < raw.rows; ++i)
        for (std::size_t j = 0; j < raw.cols; ++j)
          decided_(i, j) = values_(i, j) > static_cast<float>(flags_.threshold);
    }
  }
  if (flags_.calibrated) model_.calibrate(values_);
  for (std::size_t i = 0; i < known_.rows(); ++i)
    for (std::size_t j = 0; j < known_.cols(); ++j) {
      if (known_(i, j) == kUnknown) continue;
      values_(i, j) = known_(i, j);
      if (decisions_) decided_(i, j) = known_(i, j) == 1;
    }
}

namespace {

// A flag that would change nothing is a mistake.
void check_flags(PredictFlags& flags, Options& options) {
  const auto given = [&](const char* name) { return options.find(name)->given; };
  flags.reading = given_to_read(options);
  for (const char* name : {"threshold", "labels-by"})
    if (given(name)) flags.decider = name;
  if (given("top") && flags.top == 0)
    fail(Exit::usage, "--top 0 has no effect: no labels are named; omit it");
  if (given("threshold") && flags.threshold < 0)
    fail(Exit::usage, "--threshold {} has no effect: thresholds lie between 0 and 1; omit it",
         flags.threshold);
  const bool array = flags.out.ends_with(".npy") || flags.out.ends_with(".npz");
  if (array && flags.format != "auto")
    fail(Exit::usage, "--format {} is a text format, {} is an array; omit --format or name another file",
         flags.format, flags.out);
  if (array && flags.top > 0)
    fail(Exit::usage, "{}: names of labels are text; --top needs .csv, .tsv or .jsonl", flags.out);
  const auto& from = flags.source.read.format;
  check_named_format(flags.source.path, from, "from");
  if (array && flags.labels && flags.calibrated)
    fail(Exit::usage,
         "--calibrated has no effect together with --labels: {} gets 1 and 0, decided by raw scores",
         flags.out);
  if (array && !flags.labels && !flags.decider.empty())
    fail(Exit::usage, "--{} has no effect without --labels: no decisions are written", flags.decider);
  if (const auto& file = flags.source.read.label_file;
      !flags.known_labels && !file.empty() && !file.ends_with(".xml"))
    fail(Exit::usage,
         "--label-file {} has no effect: predictions without --known-labels need no labels (an .xml of Mulan "
         "tells which columns are labels)",
         file);
  if (flags.from_stream()) {
    if (!flags.source.folds.empty() || given("part"))
      fail(Exit::usage, "{}: lines from a stream have no folds; --folds and --part need a data set",
           flags.source.path);
    if (array)
      fail(Exit::usage, "{}: lines from a stream are written as lines (.csv, .tsv, .jsonl or -)", flags.out);
    if (from != "auto" && from != "jsonl" && from != "csv" && from != "tsv")
      fail(Exit::usage, "--from {}: a stream contains jsonl, csv or tsv", from);
  } else if (flags.strict) {
    fail(Exit::usage, "--strict has no effect: {} is not read as a stream of lines", flags.source.path);
  }
  if (flags.json && is_stream_path(flags.out) && (flags.out == "-" || flags.out == "/dev/stdout"))
    fail(Exit::usage, "--json and the scores would both go to standard output; name a file for the scores");
  if (flags.json && flags.quiet) fail(Exit::usage, "--json and --quiet contradict each other");
}

// All ranks must score the same rows.
void check_ranks(const Ranks& ranks, const Selection& selection, const std::string& path) {
  const auto rows = all_gather(ranks, selection.rows.size());
  for (std::size_t r = 1; r < rows.size(); ++r)
    if (rows[r] != rows[0])
      fail(Exit::usage, "{}: rank {} sees {} rows, rank 0 sees {}; all ranks need the same files", path, r,
           rows[r], rows[0]);
}

// How columns were matched, and which views of the model no item has.
std::vector<std::string> match_notes(const Model& model, const Dataset& data) {
  Columns::Match match = model.columns().match(data);
  std::vector<std::string> absent;
  for (std::size_t v = 0; v < match.source.size(); ++v)
    if (match.source[v] < 0) absent.push_back("'" + model.columns().views()[v].view + "'");
  if (!absent.empty() && absent.size() < match.source.size())
    match.notes.push_back(
        fmt::format("does not contain {} of the model: {}", counted(absent.size(), "view"), some(absent, 4)));
  return std::move(match.notes);
}

PredictTally predict_file(const PredictFlags& flags, const Model& model, const Ranks& ranks) {
  SourceFlags source_flags = flags.source;
  if (source_flags.read.format == "tsv") source_flags.read.format = "csv";
  if (flags.known_labels) {
    auto& read = source_flags.read;
    read.needs_labels = true;
    // Of a list of tags only what it names is known: the others are what is asked for.
    if (!read.tags_column.empty() && read.blank_means == "auto") read.blank_means = "unknown";
  }
  const Source source(source_flags);
  const Dataset& data = source.data();
  if (!flags.quiet) tell(flags.source.path, match_notes(model, data));
  const auto& notes = model.notes();
  const std::string filled = notes.is_object() ? notes.value("empty", "") : "",
                    &empty = source_flags.read.empty;
  if (!flags.quiet && !filled.empty() && empty != ReadOptions().empty && empty != filled)
    tell(flags.source.path,
         {fmt::format("single empty cells are filled by --empty {}, in training by --empty {}", empty,
                      filled)});
  if (const auto protocol = notes.is_object() ? notes.value("protocol", "") : "";
      !flags.quiet && source.has_folds() && !protocol.empty() && protocol != source_flags.protocol)
    tell(flags.model,
         {fmt::format("was trained under protocol {0}: use --protocol {0}, here and with evaluate", protocol)});
  if (!flags.quiet && flags.part == "val" && !model.refitted().is_null())
    tell(flags.model, {"learned from these rows as well (--all-rows): what is measured on them is too good"});
  const Selection selection = source.part(part_from_name(flags.part));
  if (flags.known_labels && selection.fold != nullptr && !selection.hide_labels)
    fail(Exit::usage,
         "--known-labels --part {}: with folds the labels of these rows are to be predicted, and would be "
         "written as their own scores; use --part train, or items without folds",
         flags.part);
  check_ranks(ranks, selection, flags.source.path);
  std::optional<KnownLabels> known;
  if (flags.known_labels) {
    known.emplace(selection, model, flags.source.path);
    if (!flags.quiet) tell(flags.source.path, known->notes());
  }
  return predict_rows(flags, model, selection, known, ranks);
}

}  // namespace

int predict(const Arguments& arguments) {
  Ranks& ranks = join_speaking(arguments);
  PredictFlags flags;
  Options options;
  flags.declare(options);
  parse_or_help(
      options, arguments, "predict",
      "Scores items with a trained model: a data set, or JSON lines, CSV or TSV from a pipe. Views may be "
      "missing; present ones are matched by name.",
      "  lacuna predict photos.safetensors new.npz --out scores.csv\n  lacuna predict photos.safetensors "
      "new.npz --top 5 --calibrated --out tags.csv\n  lacuna predict photos.safetensors - --out - --top 5 "
      "< items.jsonl\n  lacuna predict photos.safetensors new.npz --out - --format long | head\n  lacuna "
      "predict photos.safetensors tagged.csv --tags-column tags --known-labels --top 5 --out more.csv\n  "
      "lacuna predict m.safetensors corel5k.mat --folds folds.mat --fold 0 --part test --out scores.npy\n");
  check_flags(flags, options);
  if (flags.from_stream() && !ranks.alone())
    fail(Exit::usage,
         "{}: lines from a stream are not divided among {} ranks; start one process, or name a data set",
         flags.source.path, ranks.size());
  if (ranks.leads() && !is_stream_path(flags.out)) check_writable(flags.out);
  set_threads(flags.threads);
  set_device(parse_device(flags.device));
  share_machine(ranks, flags.threads, flags.device);
  const Model model = load_model(flags.model, flags.precision);
  const auto leaks = model.notes().find("leaks");
  if (leaks != model.notes().end() && ranks.leads() && !flags.quiet)
    tell(flags.model, {"was trained so: " + leaks->get<std::string>()});
  if (flags.calibrated && model.calibration().empty())
    fail(Exit::mismatch, "{}: has no calibration: {}", flags.model, Calibration::kWhyEmpty);
  if (flags.known_labels)
    if (const auto notes = check_label_links(model, flags.model); !flags.quiet) tell(flags.model, notes);
  const PredictTally tally =
      flags.from_stream() ? predict_stream(flags, model) : predict_file(flags, model, ranks);
  if (!ranks.leads()) return 0;
  const auto rate =
      static_cast<std::uint64_t>(static_cast<double>(tally.items) / std::max(tally.seconds, 1e-9));
  if (flags.json) {
    nlohmann::json document = {{"schema", "lacuna.predict.1"},
                               {"out", flags.out},
                               {"items", tally.items},
                               {"labels", model.label_names().size()},
                               {"without_view", tally.without_view},
                               {"bad_lines", tally.bad_lines},
                               {"seconds", tally.seconds}};
    if (leaks != model.notes().end()) document["leaks"] = *leaks;
    if (flags.known_labels)
      document["known_labels"] = {{"items", tally.known}, {"links", model.label_links().about()}};
    fmt::print("{}\n", document.dump(2));
  }
  if (flags.json || flags.quiet) return 0;
  if (tally.without_view > 0)
    fmt::print(stderr, "items without any view, which get no scores: {} of {}\n", tally.without_view,
               tally.items);
  if (flags.known_labels)
    fmt::print(stderr, "items with known labels: {} of {}\n", tally.known, tally.items);
  if (tally.bad_lines > 0)
    fmt::print(stderr, "lines that could not be read: {} of {}\n", tally.bad_lines,
               tally.items + tally.bad_lines);
  fmt::print(stderr, "{}: {}, {}, {} ({} rows/s)\n", flags.out == "-" ? "standard output" : flags.out,
             counted(tally.items, "row"), counted(model.label_names().size(), "label"),
             duration_text(tally.seconds), count_text(rate));
  return 0;
}

}  // namespace lacuna::cli
