// lacuna train: data -> model.
#include <cstdio>
#include <filesystem>

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/progress.h"
#include "cli/source.h"
#include "cli/training_run.h"
#include "cli/verbs.h"
#include "methods/model.h"

namespace lacuna::cli {
namespace {

struct TrainFlags {
  SourceFlags source;
  RunOptions run;
  std::string out, method = "mtd", preset, config;
  double hold_out = .15;
  std::uint64_t seed = 1;
  int threads = 0;
  std::vector<std::string> set;
  bool print_config = false, json = false, json_events = false, quiet = false;

  void declare(Options& o) {
    source.declare(o);
    o.add("out", out, "the model file to write (.safetensors)").metavar("MODEL");
    o.add("method", method, "which method learns (lacuna methods lists them)").choices(method_names());
    o.add("preset", preset, "a named set of the method's settings; single settings come after it")
        .metavar("NAME");
    o.add("hold-out", hold_out,
          "without folds: share of the rows held out for selection, calibration and thresholds")
        .range(0, .9);
    o.add("seed", seed, "all random numbers follow from it");
    o.add("threads", threads, "threads, 0 = all; the result does not depend on it").range(0, 1024);
    o.add("set", set, "a setting by its name, as in a config file; may be repeated").metavar("KEY=VALUE");
    o.add("config", config, "settings from a TOML file; the command line comes after it").metavar("FILE");
    o.add("print-config", print_config, "print all settings as a config file and stop");
    run.declare(o);
    o.add("json", json, "one JSON document on stdout at the end");
    o.add("json-events", json_events, "progress as JSON lines on stderr");
    o.add("quiet", quiet, "no progress");
  }
};

// The value of "--name value" or "--name=value", the last one given. Needed before all flags are known: the
// method and the preset decide which there are.
std::string peek(const Arguments& arguments, const std::string& name) {
  std::string found;
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i] == "--" + name && i + 1 < arguments.size()) found = arguments[i + 1];
    if (arguments[i].starts_with("--" + name + "=")) found = arguments[i].substr(name.size() + 3);
  }
  return found;
}

const std::vector<std::string> kNotInConfig = {"data",   "out",  "config",      "print-config", "set",
                                               "resume", "json", "json-events", "quiet"};

nlohmann::json fingerprint(const TrainFlags& flags, const Source& source, Model& model) {
  nlohmann::json print = {{"method", model.method().traits().name}, {"preset", model.preset()},
                          {"options", model.options().json()},      {"seed", flags.seed},
                          {"data", content_hash(source.data())},    {"protocol", flags.source.protocol}};
  if (source.has_folds()) {
    print["folds"] = source.folds().hash();
    print["fold"] = flags.source.fold;
  } else {
    print["hold-out"] = flags.hold_out;
  }
  return print;
}

}  // namespace

int train(const Arguments& arguments) {
  TrainFlags flags;
  std::vector<ConfigEntry> config;
  if (const auto path = peek(arguments, "config"); !path.empty()) config = read_config(path);
  const auto early = [&](const std::string& name, const std::string& otherwise) {
    std::string value = peek(arguments, name);
    if (value.empty())
      for (const auto& entry : config)
        if (entry.name == name) value = entry.text;
    return value.empty() ? otherwise : value;
  };
  Model model(early("method", flags.method));
  if (const auto preset = early("preset", ""); !preset.empty()) model.set_preset(preset);

  Options options;
  flags.declare(options);
  for (const auto& option : model.options().all()) options.all().push_back(option);
  apply_config(config, options, kNotInConfig);
  parse_or_help(
      options, arguments, "train",
      "Learns from a data set and writes a model. The method's own settings are flags as well; they follow "
      "the "
      "common ones below.",
      "  lacuna train photos.npz --out photos.safetensors\n"
      "  lacuna train corel5k.mat --folds folds.mat --fold 0 --preset authors --out m.safetensors --json\n"
      "  lacuna train photos.npz --out photos.safetensors --resume\n");
  for (const auto& setting : flags.set) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos) fail(Exit::usage, "--set takes KEY=VALUE, not '{}'", setting);
    model.options().set(setting.substr(0, equals), setting.substr(equals + 1), "method " + flags.method);
  }
  const bool authors = flags.source.protocol == "authors";
  if (authors) model.options().set("leaky-prepare", "true", "the preparation");
  flags.preset = model.preset();
  if (flags.print_config) {
    std::fputs(config_text(options, kNotInConfig).c_str(), stdout);
    return 0;
  }
  if (flags.out.empty()) fail(Exit::usage, "lacuna train needs --out MODEL (see lacuna train --help)");
  check_writable(flags.out);
  set_threads(flags.threads);

  const Source source(flags.source);
  Selection learn, val;
  if (source.has_folds()) {
    learn = source.part(Part::train);
    val = source.part(Part::val);
  } else {
    split_rows(source.data(), flags.hold_out, flags.seed, learn, val);
  }
  if (authors)
    fmt::print(stderr,
               "protocol authors: the preparation sees all rows and the test part holds the validation rows; "
               "compare such "
               "figures only with figures of the same protocol\n");

  Progress progress(flags.json_events ? Progress::Style::events
                    : flags.quiet     ? Progress::Style::quiet
                                      : Progress::Style::automatic);
  const nlohmann::json print = fingerprint(flags, source, model);
  TrainingRun run(flags.run, flags.out, print, progress);
  run.seed = flags.seed;
  model.notes() = {{"data", source.data().name},
                   {"data_hash", print["data"]},
                   {"seed", flags.seed},
                   {"protocol", flags.source.protocol},
                   {"rows", learn.rows.size()}};
  for (const char* key : {"folds", "fold", "hold-out"})
    if (print.contains(key)) model.notes()[key] = print[key];
  if (model.method().traits().iterative) run.catch_signals();
  const double begun = clock_seconds();
  // Saves the model and, beside it, how it came about; the model's own bytes hold no times.
  const auto save = [&] {
    progress.finish();
    model.save(flags.out);
    nlohmann::json document = {
        {"schema", "lacuna.train.1"},
        {"model", flags.out},
        {"method", model.method().traits().name},
        {"preset", model.preset()},
        {"data", source.data().name},
        {"protocol", flags.source.protocol},
        {"seed", flags.seed},
        {"threads", threads()},
        {"rows", {{"train", learn.rows.size()}, {"val", val.rows.size()}}},
        {"parameters", model.method().parameters()},
        {"options", model.options().json()},
        {"metrics", model.validation() ? metrics_json(*model.validation()) : nlohmann::json::object()},
        {"metrics_part", "val"},
        {"history", run.history()},
        {"seconds", clock_seconds() - begun}};
    write_text(flags.out + ".history.json", document.dump(1) + "\n");
    return document;
  };
  try {
    model.fit(learn, val, run);
  } catch (const Diverged& diverged) {
    progress.finish();
    if (!diverged.kept) throw;
    model.notes()["diverged"] = diverged.what();
    save();
    throw Diverged(fmt::format("{}; the best model before that is saved in {}", diverged.what(), flags.out),
                   true);
  }
  const nlohmann::json document = save();
  run.remove_checkpoint();
  if (flags.json) {
    fmt::print("{}\n", document.dump(1));
    return 0;
  }
  fmt::print("{}: {} on {} rows of {}, {} parameters, {}\n", flags.out, model.method().traits().title,
             learn.rows.size(), source.data().name, count_text(model.method().parameters()),
             duration_text(clock_seconds() - begun));
  if (model.validation()) {
    fmt::print("on {} validation rows:", val.rows.size());
    for (std::size_t i = 0; i < metric_names().size(); ++i)
      fmt::print("  {} {:.4f}", metric_names()[i], model.validation()->values()[i]);
    fmt::print("\n");
  }
  return 0;
}

}  // namespace lacuna::cli
