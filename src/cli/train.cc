// lacuna train: data -> model.
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <tuple>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/ceiling.h"
#include "cli/counted.h"
#include "cli/date.h"
#include "cli/learning.h"
#include "cli/memory_limit.h"
#include "cli/model_page.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/text_out.h"
#include "cli/training_run.h"
#include "cli/verbs.h"
#include "methods/model.h"
#include "nn/ranked_fit.h"
#include "ops/device.h"

namespace lacuna::cli {
namespace {

struct TrainFlags {
  LearningFlags learning;
  RunOptions run;
  MemoryFlags memory;
  std::string out, report;
  bool json = false, json_events = false, quiet = false, mpi = false;

  bool is_file() const { return !is_stream_path(out); }  // otherwise nothing can lie beside the model

  void declare(Options& o) {
    learning.declare(o);
    o.add("out", out, "the model file to write (.safetensors)").metavar("MODEL");
    o.add("report", report, "also write a page about the model and its validation rows").metavar("FILE.html");
    o.add("json", json, "print one JSON document at the end");
    run.declare(o);
    memory.declare(o);
    const auto group = o.group("running");
    o.add("json-events", json_events, "progress as JSON lines on stderr");
    o.add("quiet", quiet, "no progress");
    o.add(kMpi, mpi, "divide the network among the ranks of MPI, as under mpirun");
  }
};

// A flag that would change nothing is a mistake. Presets may hold what a call makes idle, so the command line counts.
void check_flags(const LearningFlags& learning, Options& options, const Arguments& arguments) {
  const auto given = [&](const std::string& name) {
    return std::ranges::any_of(arguments, [&](const std::string& word) {
      return word == "--" + name || word.starts_with("--" + name + "=");
    });
  };
  const auto value = [&](const char* name) { return options.json().value(name, nlohmann::json()); };
  const bool last = given("select") && value("select") == "last",
             patient = given("patience") && value("patience") != 0;
  const bool none = learning.source.folds.empty() && learning.hold_out == 0;
  for (const auto& [name, counts, what] : {std::tuple{"select", given("select") && !last, "compare epochs"},
                                           {"patience", patient, "compare epochs"},
                                           {"aim", given("aim"), "choose thresholds"}})
    if (none && counts)
      fail(Exit::usage, "--{} has no effect with --hold-out 0: there are no validation rows to {} on", name,
           what);
  if (none && value("all-rows") == true)
    fail(Exit::usage,
         "--all-rows has no effect with --hold-out 0: the model learns from all rows in its one fit");
  if (last && patient)
    fail(Exit::usage, "--patience has no effect with --select last: no epoch is better than another");
}

// Of a single network: the epoch whose parameters were kept, and how many there were. 0 where nothing was selected.
std::pair<std::int64_t, std::int64_t> kept_epoch(const nlohmann::json& history) {
  std::pair<std::int64_t, std::int64_t> found{0, 0};
  for (const auto& line : history) {
    if (line.value("pass", 0) > 0) break;  // the second fit follows the first
    if (line.value("member", 0) > 0 || line.value("view", 0) > 0) return {0, 0};
    found = {line.value("kept", std::int64_t{0}), line.value("epoch", std::int64_t{0})};
  }
  return found;
}

// What the command line alone shows to be impossible.
void check_outputs(const TrainFlags& flags, const Model& model, const Ranks& ranks) {
  if (flags.out.empty()) fail(Exit::usage, "lacuna train needs --out MODEL (see lacuna train --help)");
  if (flags.out == "-" || flags.out == "/dev/stdout")
    fail(Exit::usage, "--out {}: a model cannot be written to standard output; name a file",
         flags.out);
  const bool is_file = flags.is_file();
  if (!is_file && flags.run.resume)
    fail(Exit::usage, "--resume has no effect: {} is not a file, so there is no checkpoint next to it",
         flags.out);
  if (!is_file && flags.run.share)
    fail(Exit::usage, "--share: {} is not a file, so there is no folder of members next to it", flags.out);
  if (flags.run.share && model.members_planned() < 2)
    fail(Exit::usage, "--share has no effect: there is one network to learn; --members N makes an ensemble");
  if (flags.run.share && !ranks.alone())
    fail(Exit::usage, "--share: {} ranks train one member after the other together; use --share or mpirun",
         ranks.size());
  if (model.options().json().value("all-rows", false)) {
    if (flags.run.share)
      fail(Exit::usage, "--share: processes cannot share the second fit of --all-rows; use one of the two");
    if (flags.run.time_limit > 0)
      fail(Exit::usage, "--time-limit would end the first fit of --all-rows early; use one of the two");
    if (flags.memory.bytes() > 0)
      fail(Exit::usage, "--memory-limit: the second fit of --all-rows needs its rows in memory; use one of the two");
  }
  if (flags.memory.bytes() == 0) return;
  if (!ranks.alone())
    fail(Exit::usage, "--memory-limit: {} ranks need their rows in memory; use --memory-limit or mpirun", ranks.size());
  if (!is_file && flags.memory.prepared.empty())
    fail(Exit::usage,
         "--memory-limit: {} is not a file, so there are no prepared rows next to it; name a folder with "
         "--prepared",
         flags.out);
}

// A model may take the place of a model, but of nothing else.
void check_replaces_model(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none) || std::filesystem::file_size(path, none) == 0) return;
  std::array<char, 9> head{};  // of safetensors: the length of a JSON object, and its beginning
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  if (head.back() != '{')
    fail(Exit::usage, "--out {}: exists and is not a model; it is not replaced: name another file", path);
}

// What the disk shows to be impossible. Asked again when the data are read, which may be a list of files.
void check_files(const TrainFlags& flags, const Ranks& ranks) {
  if (!ranks.leads()) return;
  check_writable(flags.out);
  check_replaces_model(flags.out);
  if (!flags.report.empty()) check_writable(flags.report);
  if (!flags.memory.prepared.empty()) check_apart(flags.memory.prepared, flags.learning.source.path);
}

void check_data(const TrainFlags& flags, const Dataset& data) {
  const std::string& path = flags.learning.source.path;
  if (data.labels.empty())
    fail(Exit::data,
         "{}: has no labels to learn from; say which they are: --label-columns, --class-column or "
         "--tags-column of a table, --label-file for a file of their own (labels.csv in a folder of "
         "tables), an array 'label' in an .npz, --labels for .h5ad and .h5mu",
         path);
  if (flags.memory.bytes() > 0) check_in_files(data, path, flags.memory.bytes());
}

Progress::Style progress_style(const TrainFlags& flags, const Ranks& ranks) {
  if (flags.json_events && ranks.leads()) return Progress::Style::events;
  return flags.quiet || !ranks.leads() ? Progress::Style::quiet : Progress::Style::automatic;
}

// One training from checked flags to a file: fit(), save(), tell().
class TrainCommand {
 public:
  TrainCommand(const TrainFlags& flags, Model& model, const Source& source, Ranks& ranks)
      : flags_(flags),
        model_(model),
        source_(source),
        ranks_(ranks),
        rows_(rows_to_learn(flags.learning, source)),
        print_(fingerprint_of_run()),
        progress_(progress_style(flags, ranks)),
        run_(flags.run, flags.out, print_, progress_, ranks),
        store_(flags.memory.prepared.empty() ? flags.out + kPreparedEnding : flags.memory.prepared,
               print_["data"]) {
    run_.seed = flags.learning.seed;
    run_.memory_limit = flags.memory.bytes();
    take_notes();
  }

  void fit() {
    if (model_.method().traits().iterative) run_.catch_signals();
    RankedFit together(ranks_, run_);
    FitContext& context = ranks_.alone() ? static_cast<FitContext&>(run_) : together;
    begun_ = steady_seconds();
    try {
      if (run_.memory_limit > 0)
        fit_in_files(context);
      else
        model_.fit(rows_.learn, rows_.val, context);
    } catch (const std::bad_alloc&) {
      if (run_.memory_limit == 0) throw;
      fail_beyond_limit(run_.memory_limit);
    } catch (const Diverged& diverged) {
      if (ranks_.leads()) save_what_was_kept(diverged);
      throw;
    }
    accounts_ = accounts_of(ranks_);
  }

  // Saves how the model came about, then the model: where there is a model, there is its history, whenever the
  // program is killed. The model's own bytes hold no times.
  nlohmann::json save() {
    progress_.finish();
    nlohmann::json document = history();
    if (!flags_.is_file()) {
      model_.save(flags_.out);
      return document;
    }
    const std::string path = flags_.out + kHistoryEnding;
    std::optional<std::string> earlier;  // of the model that stays if this one cannot be written
    if (std::filesystem::exists(path)) earlier = read_text(path);
    write_text(path, document.dump(1) + "\n");
    try {
      model_.save(flags_.out);
    } catch (const Error&) {
      if (earlier)
        write_text(path, *earlier);
      else
        std::filesystem::remove(path);
      throw;
    }
    return document;
  }

  void tell_ranks() const {
    if (!accounts_.empty() && !flags_.quiet && !flags_.json_events)
      fmt::print(stderr, "{}\n", accounts_text(accounts_));
  }

  void remove_what_served_the_run() {
    run_.remove_checkpoint();
    if (run_.memory_limit > 0 && flags_.memory.prepared.empty()) store_.remove();
  }

  void write_page(const Arguments& arguments, const nlohmann::json& document) const {
    write_model_page(flags_.report, {command_line("train", arguments), flags_.learning.source.path, document},
                     model_, rows_.learn, rows_.val);
  }

  void tell() const {
    const auto [kept, epochs] = kept_epoch(run_.history());
    fmt::print("{}: {} on {} of {}{}, {}, {}{}\n", flags_.out, model_.method().traits().title,
               counted(rows_.labelled(), "row"), source_.data().name,
               rows_.unlabelled > 0 ? fmt::format(" and the views of {} that will be scored",
                                                  counted(rows_.unlabelled, "more row"))
                                    : "",
               counted(model_.method().parameters(), "parameter"), duration_text(steady_seconds() - begun_),
               (kept > 0 ? fmt::format(", epoch {} of {} kept", kept, epochs) : "") + refit_words());
    if (kept > 0 && 3 * kept < epochs)
      fmt::print("the best epoch came early: --patience 20 stops a training 20 epochs after its best\n");
    if (model_.validation()) tell_validation(*model_.validation());
  }

 private:
  nlohmann::json fingerprint_of_run() const {
    nlohmann::json print = fingerprint(flags_.learning, source_, model_);
    if (flags_.memory.bytes() > 0)
      print["order"] = "of the file";  // rows are numbered by it, and so are random numbers
    return print;
  }

  void take_notes() {
    nlohmann::json& notes = model_.notes();
    notes = {{"data", source_.data().name},
             {"data_hash", print_["data"]},
             {"seed", flags_.learning.seed},
             {"protocol", flags_.learning.source.protocol},
             {"rows", rows_.labelled()}};
    if (rows_.unlabelled > 0) notes["unlabelled_rows"] = rows_.unlabelled;
    if (source_.protocol() == Protocol::authors) notes["leaks"] = protocol_warning(source_.protocol());
    if (const auto date = source_date()) notes["date"] = *date;
    for (const char* key : {"folds", "fold", "hold-out"})
      if (print_.contains(key)) notes[key] = print_[key];
    if (const auto& empty = flags_.learning.source.read.empty; empty != ReadOptions().empty)
      notes["empty"] = empty;
  }

  void fit_in_files(FitContext& context) {
    if (!current_device().cuda) limit_memory(run_.memory_limit);
    try {
      model_.fit(rows_.learn, rows_.val, context, store_);
    } catch (...) {  // without a checkpoint nothing will go on from the prepared rows
      if (flags_.memory.prepared.empty() && !std::filesystem::exists(flags_.out + kCheckpointEnding))
        store_.remove();
      throw;
    }
  }

  [[noreturn]] void save_what_was_kept(const Diverged& diverged) {
    progress_.finish();
    if (!diverged.kept) throw diverged;
    model_.notes()["diverged"] = diverged.what();
    save();
    throw Diverged(fmt::format("{}; the best model before that is saved in {}", diverged.what(), flags_.out),
                   true);
  }

  nlohmann::json history() const {
    nlohmann::json document = {
        {"schema", "lacuna.train.1"},
        {"model", flags_.out},
        {"method", model_.method().traits().name},
        {"preset", model_.preset()},
        {"data", source_.data().name},
        {"protocol", flags_.learning.source.protocol},
        {"seed", flags_.learning.seed},
        {"threads", threads()},
        {"rows", {{"train", rows_.labelled()}, {"val", rows_.val.rows.size()}}},
        {"parameters", model_.method().parameters()},
        {"options", model_.options().json()},
        {"metrics", model_.validation() ? metrics_json(*model_.validation()) : nlohmann::json::object()},
        {"metrics_part", "val"},
        {"remarks", run_.remarks()},
        {"history", run_.history()},
        {"seconds", steady_seconds() - begun_},
        {"date", utc_text(std::time(nullptr))}};
    if (rows_.unlabelled > 0) document["rows"]["unlabelled"] = rows_.unlabelled;
    if (!model_.refitted().is_null()) document["rows"]["refit"] = model_.refitted()["rows"];
    if (!accounts_.empty()) document["ranks"] = accounts_json(accounts_);
    return document;
  }

  std::string refit_words() const {
    const auto& refitted = model_.refitted();
    return refitted.is_null() ? ""
                              : fmt::format(", then fitted again on all {}",
                                            counted(refitted["rows"].get<std::size_t>(), "row"));
  }

  void tell_validation(const Metrics& metrics) const {
    const Selection& val = rows_.val;
    fmt::print("{}on {}:", model_.refitted().is_null() ? "" : "before that, ",
               counted(val.rows.size(), "validation row"));
    for (std::size_t i = 0; i < metric_names().size(); ++i)
      if (const double value = metrics.values()[i]; std::isnan(value))
        fmt::print("  {} -", metric_names()[i]);
      else
        fmt::print("  {} {:.4f}", metric_names()[i], value);
    fmt::print("\n");
    Matrix<std::int8_t> truth(val.rows.size(), val.data->label_count());
    for (std::size_t i = 0; i < truth.rows(); ++i)
      for (std::size_t j = 0; j < truth.cols(); ++j) truth(i, j) = val.label(i, j);
    std::fputs(ceiling_line(truth).c_str(), stdout);
  }

  const TrainFlags& flags_;
  Model& model_;
  const Source& source_;
  Ranks& ranks_;
  LearningRows rows_;
  nlohmann::json print_;  // what a checkpoint must agree with
  Progress progress_;
  TrainingRun run_;
  PreparedStore store_;
  double begun_ = 0;
  std::vector<Account> accounts_;  // of each rank, after the fit
};

}  // namespace

int train(const Arguments& arguments) {
  Ranks& ranks = join_speaking(arguments);
  TrainFlags flags;
  Options options;
  flags.declare(options);
  Model model = parse_learning(
      flags.learning, options, arguments,
      {"train",
       "Learns from a data set with any gaps in its views and labels, and writes a model. The settings of the "
       "method are flags as well; --method NAME --help all lists them.",
       "  lacuna train photos.npz --out photos.safetensors\n"
       "  lacuna train corel5k.mat --folds folds.mat --fold 0 --preset authors --out m.safetensors --json\n"
       "  lacuna train photos.npz --out photos.safetensors --resume\n"});
  share_machine(ranks, flags.learning.threads, flags.learning.device);
  check_flags(flags.learning, options, arguments);
  if (flags.json_events) tell_as_events();
  check_outputs(flags, model, ranks);
  check_files(flags, ranks);
  const Source source(flags.learning.source);
  check_files(flags, ranks);
  check_data(flags, source.data());

  TrainCommand training(flags, model, source, ranks);
  try {
    training.fit();
  } catch (const EndedByLeader& ended) {
    return static_cast<int>(ended.code());
  } catch (const Diverged& diverged) {
    if (ranks.leads()) throw;
    return static_cast<int>(diverged.code());
  }
  if (!ranks.leads()) return 0;
  const nlohmann::json document = training.save();
  training.tell_ranks();
  training.remove_what_served_the_run();
  if (!flags.report.empty()) training.write_page(arguments, document);
  if (flags.json)
    fmt::print("{}\n", document.dump(1));
  else
    training.tell();
  return 0;
}

}  // namespace lacuna::cli
