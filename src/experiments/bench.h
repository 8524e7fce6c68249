// The experiments and their options.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "data/folds.h"
#include "data/readers.h"

namespace lacuna {

enum class Experiment { table, complete, ablation, sensitivity, similarity, timing, missing };
const char* experiment_name(Experiment experiment);

struct BenchOptions {
  std::vector<std::string> data;  // files or folders
  ReadOptions read;               // how to read all of them
  std::string folds;  // a folds file, for one data set: gaps and splits are its own; empty = by `mask`
  MaskOptions mask;   // gaps, split, repetitions, seed
  std::vector<std::string> methods;  // "mtd", "mtd:paper"; empty = the paper's nine, the floor and our own
  std::vector<std::string> set;      // "epochs=20" for every method that has it, "mtd.epochs=20" for one
  std::string settings;              // a file of settings per method and data set; "paper" = the shipped one
  std::int64_t tune = 0;             // trials on validation rows inside each cell, of `tune_methods`
  std::vector<std::string> tune_methods = {"cdmm", "lvsl", "c2ae", "glocal"};
  std::string protocol = "strict";
  std::string out, name;  // the folder; the experiment's name in it (default: its kind)
  std::string
      shard;  // "I/N", "slurm", "networks", "others": this process runs a part of the cells; empty = all
  bool resume = false, retry_failed = false, keep_scores = false;
  int threads = 0;
  std::size_t at_once = 0;  // cells of networks that run at the same time; 0: trainings_at_once()
  std::string device = "cpu";  // where networks compute; results depend on it
  double level = .05;          // of the significance tests
  std::string metric = "AP";   // of the tests and the figures that show one
  // For single experiments.
  std::vector<double> alphas = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1}, betas = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
  std::vector<double> gammas = {1e-3, 1e-2, 1e-1, 1, 10}, sigmas = {0, .1, .2, .25, .3, .4, .5, .6, .7, .8};
  std::vector<double> epochs = {0, 60, 120, 180};
  std::vector<double> rates = {0, .1, .2, .3, .4, .5, .6, .7, .8, .9};

  bool repeats_given = false;  // on the command line; more than a folds file has are then refused

  static BenchOptions defaults(Experiment experiment);
  void declare(Options& options, Experiment experiment);
  void settle(Options& options);  // after parsing: refuses flags that have no effect with --folds
};

// The methods of the paper's comparison in its order, then those that are not ranked: the floor, two standard
// baselines, our own network.
const std::vector<std::string>& default_methods();

}  // namespace lacuna
