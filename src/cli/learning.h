// Shared by the verbs that learn (train, tune): the method and its settings as flags, the training and validation
// rows, and a fingerprint of everything that determines the result.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/source.h"
#include "cli/verbs.h"
#include "data/protocol.h"
#include "methods/model.h"

namespace lacuna::cli {

struct LearningFlags {
  SourceFlags source;
  std::string method = kDefaultMethod, preset, config;
  double hold_out = .15;
  std::uint64_t seed = 1;
  int threads = 0;
  std::string device = "auto";
  std::vector<std::string> set;  // KEY=VALUE
  bool print_config = false;

  void declare(Options& options);
};

struct HelpText {
  std::string verb, about, examples;
};

// Parses the command line with the settings of the method, which may itself be named there or in a config
// file. `options` holds the verb's own flags, `flags` included; the model's are added to it. Shows help, or
// prints the config and throws HelpShown.
Model parse_learning(LearningFlags& flags, Options& options, const Arguments& arguments,
                     const HelpText& help);

// KEY=VALUE pairs of a list flag; VALUE may hold commas, which the parser of lists has split at. Exit::usage
// names `flag`.
std::vector<std::pair<std::string, std::string>> settings(const std::vector<std::string>& parts,
                                                          const std::string& flag);

LearningRows rows_to_learn(const LearningFlags& flags, const Source& source);

// Everything that determines the result, by name: method, settings, seed, hashes of data and folds.
nlohmann::json fingerprint(const LearningFlags& flags, const Source& source, Model& model);
// "epochs was 100 and is 50; ...", the first few differences of two fingerprints.
std::string differences(const nlohmann::json& was, const nlohmann::json& is);

}  // namespace lacuna::cli
