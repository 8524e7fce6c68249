// lacuna recover: model and data -> the data with its missing views filled in.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/counted.h"
#include "cli/item_stream.h"
#include "cli/machine_flags.h"
#include "cli/prediction.h"
#include "cli/progress.h"
#include "cli/text_out.h"
#include "cli/verbs.h"
#include "data/jsonl.h"
#include "data/native_writer.h"

namespace lacuna::cli {
namespace {

struct RecoverFlags {
  std::string model, out, deviations, part = "all";
  SourceFlags source;
  bool strict = false, json = false, quiet = false;
  int threads = 0;
  std::vector<std::string> reading;  // the options about reading that were given

  void declare(Options& o) {
    o.add("model", model, "a model file written by lacuna train --keep-decoders")
        .positional()
        .metavar("MODEL")
        .required();
    source.declare(o);
    o.find("data")->help = "data set, or - for JSON lines, CSV or TSV from standard input";
    o.find("protocol")->needs("folds");
    Option& from = *o.find("format");
    from.name = "from";
    from.help = "format of the data, if its name or first character does not say";
    for (const char* format : {"jsonl", "tsv"}) from.allowed.push_back(format);
    o.add(
         "part", part,
         "with folds: which rows to write, in the order of the data; views that the fold hides are recovered")
        .choices({"train", "val", "test", "all"})
        .needs("folds");
    o.add("out", out,
          "data set to write: .npz, .mat, .h5mu, .csv (a folder), otherwise a native folder, written in a "
          "stream; for lines: .jsonl or - (standard output)")
        .metavar("FILLED")
        .required();
    o.add("deviations", deviations,
          "also write the standard deviations of the recovered values, as a data set of the same views (0 in "
          "present views); JSON lines always contain them")
        .metavar("FILE");
    o.add("strict", strict,
          "a bad line ends the stream (exit code 3) instead of giving an error object");
    add_threads(o, threads);
    o.add("json", json, "print one JSON document about the run");
    o.add("quiet", quiet, "print nothing on stderr");
  }
  bool from_stream() const { return is_item_stream(source.path, source.read.format); }
};

struct Tally {
  std::size_t items = 0, recovered = 0, without_view = 0, bad_lines = 0, empty_cells = 0;
  void add(const Filled& block) {
    items += block.data.rows;
    recovered += block.recovered;
    without_view += block.without_view;
  }
};

// Values that are missing inside views that are there; the means of the training rows stand for them.
std::size_t count_empty_cells(const Selection& rows) {
  const Dataset& data = *rows.data;
  std::size_t count = 0;
  for (std::size_t v = 0; data.empty_cells && v < data.views.size(); ++v) {
    std::vector<float> row(data.views[v].columns());
    for (std::size_t i = 0; i < rows.rows.size(); ++i) {
      if (!rows.has(i, v)) continue;
      data.views[v].copy_row(rows.rows[i], row);
      count += static_cast<std::size_t>(std::ranges::count_if(row, [](float x) { return std::isnan(x); }));
    }
  }
  return count;
}

// A flag that would change nothing is a mistake.
void check_flags(RecoverFlags& flags, Options& options) {
  flags.reading = given_to_read(options);
  check_named_format(flags.source.path, flags.source.read.format, "from");
  const bool lines_out = flags.out == "-" || flags.out == "/dev/stdout" || flags.out.ends_with(".jsonl") ||
                         flags.out.ends_with(".ndjson");
  if (flags.json && (flags.out == "-" || flags.out == "/dev/stdout"))
    fail(Exit::usage, "--json and the items would both go to standard output; name a file for the items");
  if (flags.json && flags.quiet) fail(Exit::usage, "--json and --quiet contradict each other");
  if (flags.from_stream()) {
    if (!lines_out)
      fail(Exit::usage, "{}: lines from a stream are written as JSON lines (.jsonl or -)", flags.out);
    if (!flags.deviations.empty())
      fail(Exit::usage, "--deviations has no effect: JSON lines contain the deviations next to the views");
    if (!flags.source.folds.empty())
      fail(Exit::usage, "{}: lines from a stream have no folds; --folds needs a data set", flags.source.path);
    return;
  }
  if (lines_out)
    fail(Exit::usage,
         "{}: only lines from a stream are written as JSON lines; {} is a data set: name .npz, .mat, .h5mu, "
         ".csv or a folder",
         flags.out, flags.source.path);
  if (flags.strict)
    fail(Exit::usage, "--strict has no effect: {} is not read as a stream of lines", flags.source.path);
  is_native_folder(flags.out);  // refuses endings that are only read
  if (!flags.deviations.empty()) is_native_folder(flags.deviations);
}

// A data set that grows by blocks where its format allows it.
class GrowingDataset {
 public:
  explicit GrowingDataset(std::string path) : path_(std::move(path)), writer_(path_) {}
  void add(const Dataset& block) { writer_.append(block, path_); }
  void commit() { writer_.commit(); }

 private:
  std::string path_;
  NativeWriter writer_;
};

Tally recover_file(const RecoverFlags& flags, const Model& model) {
  SourceFlags source_flags = flags.source;
  if (source_flags.read.format == "tsv") source_flags.read.format = "csv";
  const Source source(source_flags);
  if (!flags.quiet) tell(flags.source.path, model.columns().match(source.data()).notes);
  Selection selection = source.part(part_from_name(flags.part));
  std::ranges::sort(selection.rows);  // without ids their order is all that tells them apart
  Tally tally;
  if (selection.rows.empty()) fail(Exit::data, "{}: there are no rows to recover", flags.source.path);
  tally.empty_cells = count_empty_cells(selection);
  const bool apart = !flags.deviations.empty();
  if (is_native_folder(flags.out) && (!apart || is_native_folder(flags.deviations))) {
    GrowingDataset out(flags.out);
    std::optional<GrowingDataset> deviations;
    if (apart) deviations.emplace(flags.deviations);
    model.recover(selection, [&](std::size_t, Filled&& block) {
      tally.add(block);
      out.add(block.data);
      if (deviations) deviations->add(block.deviations);
    });
    if (deviations) deviations->commit();
    out.commit();
    return tally;
  }
  const Filled whole = model.recover(selection);
  tally.add(whole);
  if (apart) write_dataset(whole.deviations, flags.deviations);
  write_dataset(whole.data, flags.out);
  return tally;
}

// {"id", "views": {name: [...]}, "deviations": {name: [...]}}: all views of the item; deviations of the recovered ones.
// `id` is JSON: numbers of any length stay as they were written.
std::string line_of(const Filled& filled, std::size_t i, const std::string& id, const std::vector<bool>& had) {
  nlohmann::json views = nlohmann::json::object(), deviations = nlohmann::json::object();
  std::vector<float> row;
  const auto numbers = [&](const View& view) {
    row.resize(view.columns());
    view.copy_row(i, row);
    return nlohmann::json(row);
  };
  for (std::size_t v = 0; v < filled.data.views.size(); ++v) {
    const View& view = filled.data.views[v];
    if (!filled.data.has(i, v)) continue;
    views[view.name] = numbers(view);
    if (!had[v]) deviations[view.name] = numbers(filled.deviations.views[v]);
  }
  return fmt::format("{{\"deviations\":{},\"id\":{},\"views\":{}}}\n", deviations.dump(), id, views.dump());
}

Tally recover_stream(const RecoverFlags& flags, const Model& model) {
  ItemStream items({flags.source.path, flags.source.read, flags.reading, flags.strict, flags.quiet}, model);
  TextOut out(flags.out);
  Tally tally;
  while (items.next()) {
    if (items.size() == 0) continue;
    const Dataset data = items.dataset();
    const Filled filled = model.recover(select_all(data));
    tally.recovered += filled.recovered;
    tally.empty_cells += count_empty_cells(select_all(data));
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!items.error(i).empty()) {
        PredictionText::append_error(text, items.line(i), items.error(i));
        continue;
      }
      std::vector<bool> had;
      for (const View& view : filled.data.views) {
        const std::size_t at = data.view_index(view.name);
        had.push_back(at < data.views.size() && data.has(i, at));
      }
      std::string id;
      if (items.block().id_is_number(i))
        id = items.block().id(i);
      else
        append_json(id, items.block().id(i));
      text += line_of(filled, i, id, had);
    }
    out.write(text);
  }
  out.commit();
  if (!items.broken().empty())
    fail(Exit::data, "{}: {} (--strict ends here; {} written)", items.name(), items.broken(),
         counted(items.items(), "item") + (items.items() == 1 ? " was" : " were"));
  items.check_any();
  tally.items = items.items();
  tally.without_view = items.without_view();
  tally.bad_lines = items.bad_lines();
  return tally;
}

}  // namespace

int recover(const Arguments& arguments) {
  RecoverFlags flags;
  Options options;
  flags.declare(options);
  parse_or_help(
      options, arguments, "recover",
      "Reconstructs the missing views of items from the present ones, in the columns of the training data, "
      "with standard deviations. Present views are passed on unchanged. The model needs decoders (lacuna "
      "train --keep-decoders); lacuna show MODEL prints their error on hidden views.",
      "  lacuna train photos.npz --keep-decoders --out photos.safetensors\n"
      "  lacuna recover photos.safetensors photos.npz --out filled.npz --deviations sd.npz\n"
      "  lacuna recover photos.safetensors new --out filled\n"
      "  lacuna recover photos.safetensors - --out - < items.jsonl\n"
      "  lacuna train photos.npz --method prior --keep-decoders --out views.safetensors   # no network\n");
  check_flags(flags, options);
  set_threads(flags.threads);
  const Model model = load_model(flags.model);
  if (model.recovery().empty())
    fail(Exit::mismatch,
         "{}: has no decoders, so it cannot recover views; train it again with --keep-decoders",
         flags.model);
  const Stopwatch watch;
  const Tally tally = flags.from_stream() ? recover_stream(flags, model) : recover_file(flags, model);
  const double seconds = watch.seconds();
  if (flags.json)
    fmt::print("{}\n", nlohmann::json{{"schema", "lacuna.recover.1"},
                                      {"out", flags.out},
                                      {"items", tally.items},
                                      {"recovered", tally.recovered},
                                      {"without_view", tally.without_view},
                                      {"bad_lines", tally.bad_lines},
                                      {"empty_cells", tally.empty_cells},
                                      {"recovery", model.recovery().about()},
                                      {"seconds", seconds}}
                           .dump(2));
  if (flags.json || flags.quiet) return 0;
  std::vector<std::string> means;  // views that the others say nothing about
  const nlohmann::json about = model.recovery().about();
  for (const auto& view : about["views"])
    if (view["error"].is_null()) means.push_back(view["name"].get<std::string>());
  if (!means.empty())
    fmt::print(stderr,
               "recovered as column means, because other views are not informative: {}\n",
               join(means, ", "));
  if (tally.empty_cells > 0)
    fmt::print(stderr,
               "empty cells in present views: {}; they contain the means of the training rows, and their "
               "deviations are 0\n",
               count_text(tally.empty_cells));
  if (tally.without_view > 0)
    fmt::print(stderr, "items without any view, which cannot be recovered: {} of {}\n", tally.without_view,
               tally.items);
  if (tally.bad_lines > 0)
    fmt::print(stderr, "lines that could not be read: {} of {}\n", tally.bad_lines,
               tally.items + tally.bad_lines);
  fmt::print(stderr, "{}: {} items, {} views recovered, {}\n",
             flags.out == "-" ? "standard output" : flags.out, count_text(tally.items),
             count_text(tally.recovered), duration_text(seconds));
  return 0;
}

}  // namespace lacuna::cli
