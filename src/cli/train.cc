// lacuna train: data -> model.
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

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

  void declare(Options& o) {
    learning.declare(o);
    o.add("out", out, "the model file to write (.safetensors)").metavar("MODEL");
    o.add("report", report, "also write a page about the model and its validation rows").metavar("FILE.html");
    o.add("json", json, "one JSON document on stdout at the end");
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
  if (learning.source.folds.empty() && learning.hold_out == 0)
    for (const auto& [name, counts] : {std::pair{"select", given("select") && !last}, {"patience", patient}})
      if (counts)
        fail(Exit::usage,
             "--{} has no effect with --hold-out 0: there are no validation rows to compare epochs on", name);
  if (last && patient)
    fail(Exit::usage, "--patience has no effect with --select last: no epoch is better than another");
}

// Of a single network: the epoch whose parameters were kept, and how many there were. 0 where nothing was selected.
std::pair<std::int64_t, std::int64_t> kept_epoch(const nlohmann::json& history) {
  if (history.empty() || history.back().value("member", 0) > 0) return {0, 0};
  return {history.back().value("kept", std::int64_t{0}), history.back().value("epoch", std::int64_t{0})};
}

// A model may take the place of a model, but of nothing else.
void check_replaces_model(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none) || std::filesystem::file_size(path, none) == 0) return;
  std::array<char, 9> head{};  // of safetensors: the length of a JSON object, and its beginning
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  if (head.back() != '{')
    fail(Exit::usage, "--out {}: is there, and is no model; it is not replaced: name another file", path);
}

}  // namespace

int train(const Arguments& arguments) {
  Ranks& ranks = join_speaking(arguments);
  TrainFlags flags;
  Options options;
  flags.declare(options);
  Model model = parse_learning(
      flags.learning, options, arguments,
      {"train",
       "Learns from a data set, whose views and labels may have any gaps, and writes a model. The settings "
       "of the "
       "method are flags as well; --method NAME --help all lists them.",
       "  lacuna train photos.npz --out photos.safetensors\n"
       "  lacuna train corel5k.mat --folds folds.mat --fold 0 --preset authors --out m.safetensors --json\n"
       "  lacuna train photos.npz --out photos.safetensors --resume\n"});
  share_machine(ranks, flags.learning.threads, flags.learning.device);
  check_flags(flags.learning, options, arguments);
  if (flags.json_events) tell_as_events();
  if (flags.out.empty()) fail(Exit::usage, "lacuna train needs --out MODEL (see lacuna train --help)");
  if (flags.out == "-" || flags.out == "/dev/stdout")
    fail(Exit::usage, "--out {}: a model is a file, and standard output tells about it; name a file",
         flags.out);
  const bool is_file = !is_stream_path(flags.out);  // otherwise nothing can lie beside it
  if (!is_file && flags.run.resume)
    fail(Exit::usage, "--resume has no effect: {} is no file, so that no checkpoint lies beside it",
         flags.out);
  if (!is_file && flags.run.share)
    fail(Exit::usage, "--share: {} is no file, so that no folder of members can lie beside it", flags.out);
  if (flags.run.share && model.members_planned() < 2)
    fail(Exit::usage, "--share has no effect: there is one network to learn; --members N makes an ensemble");
  if (flags.run.share && !ranks.alone())
    fail(Exit::usage, "--share: {} ranks learn one member after the other together; use either",
         ranks.size());
  const std::uint64_t memory_limit = flags.memory.bytes();
  if (memory_limit > 0 && !ranks.alone())
    fail(Exit::usage, "--memory-limit: {} ranks hold their rows in memory; use either", ranks.size());
  if (memory_limit > 0 && !is_file && flags.memory.prepared.empty())
    fail(Exit::usage,
         "--memory-limit: {} is no file, so that no prepared rows can lie beside it; name a folder "
         "with --prepared",
         flags.out);
  const auto check_files = [&] {
    if (!ranks.leads()) return;
    check_writable(flags.out);
    check_replaces_model(flags.out);
    if (!flags.report.empty()) check_writable(flags.report);
    if (!flags.memory.prepared.empty()) check_apart(flags.memory.prepared, flags.learning.source.path);
  };
  check_files();
  const Source source(flags.learning.source);
  check_files();  // the data may be a list of files: now it is known which
  if (source.data().labels.empty())
    fail(Exit::data,
         "{}: has no labels to learn from; say which they are: --label-columns, --class-column or "
         "--tags-column "
         "of a table, --label-file for a file of their own (labels.csv in a folder of tables), an array "
         "'label' in an .npz, --labels for .h5ad and .h5mu",
         flags.learning.source.path);
  if (memory_limit > 0) check_in_files(source.data(), flags.learning.source.path, memory_limit);
  const LearningRows rows = rows_to_learn(flags.learning, source);
  const auto& [learn, val, bare] = rows;

  Progress progress(flags.json_events && ranks.leads() ? Progress::Style::events
                    : flags.quiet || !ranks.leads()    ? Progress::Style::quiet
                                                       : Progress::Style::automatic);
  nlohmann::json print = fingerprint(flags.learning, source, model);
  if (memory_limit > 0) print["order"] = "of the file";  // rows are numbered by it, and so are random numbers
  TrainingRun run(flags.run, flags.out, print, progress, ranks);
  run.seed = flags.learning.seed;
  run.memory_limit = memory_limit;
  PreparedStore store(flags.memory.prepared.empty() ? flags.out + kPreparedEnding : flags.memory.prepared,
                      print["data"]);
  RankedFit together(ranks, run);
  FitContext& context = ranks.alone() ? static_cast<FitContext&>(run) : together;
  model.notes() = {{"data", source.data().name},
                   {"data_hash", print["data"]},
                   {"seed", flags.learning.seed},
                   {"protocol", flags.learning.source.protocol},
                   {"rows", learn.rows.size()}};
  if (const std::string warning = protocol_warning(source.protocol()); !warning.empty())
    model.notes()["leaks"] = warning;
  if (const auto date = source_date()) model.notes()["date"] = *date;
  for (const char* key : {"folds", "fold", "hold-out"})
    if (print.contains(key)) model.notes()[key] = print[key];
  if (const auto& empty = flags.learning.source.read.empty; empty != ReadOptions().empty)
    model.notes()["empty"] = empty;
  if (model.method().traits().iterative) run.catch_signals();
  const double begun = clock_seconds();
  std::vector<Account> accounts;  // of each rank, after the fit
  // Saves how the model came about, then the model: where there is a model, there is its history, whenever the program
  // is killed. The model's own bytes hold no times.
  const auto save = [&] {
    progress.finish();
    nlohmann::json document = {
        {"schema", "lacuna.train.1"},
        {"model", flags.out},
        {"method", model.method().traits().name},
        {"preset", model.preset()},
        {"data", source.data().name},
        {"protocol", flags.learning.source.protocol},
        {"seed", flags.learning.seed},
        {"threads", threads()},
        {"rows", {{"train", rows.learn.rows.size()}, {"val", rows.val.rows.size()}}},
        {"parameters", model.method().parameters()},
        {"options", model.options().json()},
        {"metrics", model.validation() ? metrics_json(*model.validation()) : nlohmann::json::object()},
        {"metrics_part", "val"},
        {"remarks", run.remarks()},
        {"history", run.history()},
        {"seconds", clock_seconds() - begun},
        {"date", utc_text(std::time(nullptr))}};
    if (!accounts.empty()) document["ranks"] = accounts_json(accounts);
    if (is_file) write_text(flags.out + kHistoryEnding, document.dump(1) + "\n");
    model.save(flags.out);
    return document;
  };
  const auto fit_in_files = [&] {
    if (!current_device().cuda) limit_memory(memory_limit);
    try {
      model.fit(learn, val, context, store);
    } catch (...) {  // without a checkpoint nothing will go on from the prepared rows
      if (flags.memory.prepared.empty() && !std::filesystem::exists(flags.out + kCheckpointEnding))
        store.remove();
      throw;
    }
  };
  try {
    if (memory_limit > 0)
      fit_in_files();
    else
      model.fit(learn, val, context);
  } catch (const std::bad_alloc&) {
    if (memory_limit == 0) throw;
    fail(Exit::failed,
         "--memory-limit: the training had taken {} of {} and needed more; allow more, or use a smaller "
         "network",
         bytes_text(static_cast<double>(memory_when_refused())),
         bytes_text(static_cast<double>(memory_limit)));
  } catch (const EndedByLeader& ended) {
    return static_cast<int>(ended.code());
  } catch (const Diverged& diverged) {
    if (!ranks.leads()) return static_cast<int>(diverged.code());
    progress.finish();
    if (!diverged.kept) throw;
    model.notes()["diverged"] = diverged.what();
    save();
    throw Diverged(fmt::format("{}; the best model before that is saved in {}", diverged.what(), flags.out),
                   true);
  }
  accounts = accounts_of(ranks);
  if (!ranks.leads()) return 0;
  const nlohmann::json document = save();
  if (!accounts.empty() && !flags.quiet && !flags.json_events)
    fmt::print(stderr, "{}\n", accounts_text(accounts));
  run.remove_checkpoint();
  if (memory_limit > 0 && flags.memory.prepared.empty()) store.remove();
  if (!flags.report.empty())
    write_model_page(flags.report, {command_line("train", arguments), flags.learning.source.path, document},
                     model, learn, val);
  if (flags.json) {
    fmt::print("{}\n", document.dump(1));
    return 0;
  }
  const auto [kept, epochs] = kept_epoch(run.history());
  fmt::print("{}: {} on {} rows of {}, {} parameters, {}{}\n", flags.out, model.method().traits().title,
             learn.rows.size(), source.data().name, count_text(model.method().parameters()),
             duration_text(clock_seconds() - begun),
             kept > 0 ? fmt::format(", epoch {} of {} kept", kept, epochs) : "");
  if (kept > 0 && 3 * kept < epochs)
    fmt::print("the best epoch came early: --patience 20 ends a training 20 epochs after its best\n");
  if (model.validation()) {
    fmt::print("on {}:", counted(val.rows.size(), "validation row"));
    for (std::size_t i = 0; i < metric_names().size(); ++i)
      if (const double value = model.validation()->values()[i]; std::isnan(value))
        fmt::print("  {} -", metric_names()[i]);
      else
        fmt::print("  {} {:.4f}", metric_names()[i], value);
    fmt::print("\n");
    Matrix<std::int8_t> truth(val.rows.size(), val.data->label_count());
    for (std::size_t i = 0; i < truth.rows(); ++i)
      for (std::size_t j = 0; j < truth.cols(); ++j) truth(i, j) = val.label(i, j);
    std::fputs(ceiling_text(truth).c_str(), stdout);
  }
  return 0;
}

}  // namespace lacuna::cli
