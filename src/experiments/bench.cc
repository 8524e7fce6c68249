#include "experiments/bench.h"

#include "base/error.h"
#include "data/mechanism.h"
#include "experiments/cell.h"
#include "experiments/published.h"
#include "experiments/shard.h"

namespace lacuna {

const char* experiment_name(Experiment experiment) {
  switch (experiment) {
    case Experiment::table:
      return "table";
    case Experiment::complete:
      return "complete";
    case Experiment::ablation:
      return "ablation";
    case Experiment::sensitivity:
      return "sensitivity";
    case Experiment::similarity:
      return "similarity";
    case Experiment::timing:
      return "timing";
    case Experiment::missing:
      return "missing";
  }
  return "";
}

const std::vector<std::string>& default_methods() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = published_methods();
    list.back() = "mtd:authors";
    list.insert(list.end(), {"prior", "linear", "mlknn", kDefaultMethod});
    return list;
  }();
  return names;
}

BenchOptions BenchOptions::defaults(Experiment experiment) {
  BenchOptions options;
  switch (experiment) {
    case Experiment::table:
    case Experiment::complete:
      break;
    case Experiment::ablation:
      options.mask.repeats = 5;
      [[fallthrough]];
    case Experiment::sensitivity:
    case Experiment::similarity:
      options.methods = {"mtd:authors"};
      if (experiment != Experiment::ablation) options.mask.repeats = 1;
      break;
    case Experiment::timing:
      options.mask.repeats = 3;
      break;
    case Experiment::missing:
      options.mask.repeats = 3;
      break;
  }
  if (experiment == Experiment::complete) options.mask.missing_views = options.mask.missing_labels = 0;
  return options;
}

void BenchOptions::declare(Options& o, Experiment experiment) {
  o.add("data", data, "data sets: files or folders in any format; repeat the flag, or separate by commas")
      .metavar("PATH")
      .required();
  o.add("out", out, "the folder of results; several processes may share it").metavar("DIR").required();
  o.add("resume", resume, "continue an experiment, or join processes that are working on it");
  if (experiment != Experiment::timing)
    o.add(
         "shard", shard,
         "run the I-th of N parts of the cells, which take about the same time, and join existing results; "
         "slurm = the task of an sbatch array; networks = cells of methods that --device applies to, others = "
         "the rest")
        .metavar("I/N|networks|others")
        .excludes("dry-run");
  o.add("methods", methods,
        "methods, with a preset after a colon (mtd:paper); default: the paper's nine, the floor, the "
        "baselines and lacuna")
      .metavar("NAMES")
      .suggest(method_names());
  o.add("set", set,
        "a setting: KEY=VALUE for every method that has it, METHOD.KEY=VALUE for one; may be repeated")
      .metavar("KEY=VALUE");
  o.add("settings", settings,
        "a TOML file of settings per method and data set; `paper` is the one of bench paper")
      .metavar("FILE");
  o.add("tune", tune, "number of settings to try on the validation rows within each cell; 0 = none")
      .range(0, 1e6)
      .metavar("N");
  o.add("tune-methods", tune_methods, "the methods that --tune applies to")
      .metavar("NAMES")
      .suggest(method_names())
      .needs("tune");
  mask.declare(o);
  const auto gaps = o.group("gaps and splits");
  o.add("folds", folds,
        "gaps and splits of one data set from a file, instead of flags; --repeats uses its first folds")
      .metavar("FILE");
  o.add("protocol", protocol,
        "strict; transductive: the views of validation and test rows take part in training; authors: "
        "scaler fitted on all rows, and validation rows in the test part (it leaks)")
      .choices(protocol_names());
  const auto running = o.group("running");
  o.add("threads", threads, "threads of a cell, 0 = all; does not change results")
      .range(0, 1024)
      .common();
  o.add("device", device,
        "device of networks: auto (a GPU if available), cpu, cuda or cuda:N; changes results")
      .metavar("DEVICE");
  o.add("retry-failed", retry_failed, "with --resume: run failed cells again");
  o.add("keep-scores", keep_scores, "keep the scores of every cell as scores.npy");
  o.add("name", name, "the experiment's name in the folder, if there are several of a kind").metavar("NAME");
  const auto statistics = o.group("statistics");
  o.add("metric", metric, "the metric of significance tests and single charts").choices(metric_names());
  o.add("level", level, "level of the significance tests").range(1e-6, .5);
  const auto axes = o.group(fmt::format("values of bench {}", experiment_name(experiment)));
  if (experiment == Experiment::sensitivity) {
    o.add("alphas", alphas, "values of alpha").range(0, 1e6).common();
    o.add("betas", betas, "values of beta").range(0, 1e6).common();
    o.add("gammas", gammas, "values of gamma").range(0, 1e6).common();
    o.add("sigmas", sigmas, "mask rates").range(0, .95).common();
  }
  if (experiment == Experiment::similarity)
    o.add("epochs", epochs, "epochs to measure after; 0 = before the first").range(0, 1e9).common();
  if (experiment == Experiment::missing)
    o.add("rates", rates, "shares of missing views, and of missing labels").range(0, .95).common();
  read.declare(o);
}

void BenchOptions::settle(Options& o) {
  repeats_given = o.find("repeats")->given;
  if (!shard.empty()) {
    Shard::parse(shard);  // said now what is wrong with it, not when the data have been read
    resume = true;        // parts begin in any order
  }
  if (folds.empty()) return refuse_idle(o, mask);
  MaskOptions unused;
  Options rules;
  unused.declare(rules);
  for (const auto& rule : rules.names()) {
    const bool meant =
        rule == "repeats" || rule == "seed";  // the first repetitions of the file; of the methods
    if (!meant && o.find(rule)->given)
      fail(Exit::usage,
           "--{} defines gaps or splits, and so does --folds {}; omit one of them", rule,
           folds);
  }
}

}  // namespace lacuna
