#include "data/metrics.h"

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/verbs.h"

namespace lacuna::cli {
namespace {

struct Definition {
  const char *name, *words, *formula;
};

// One entry for each of metric_names(), in that order; docs/metrics.md says the same at length.
constexpr Definition kDefinitions[] = {
    {"AP", "how pure the list is down to each right label (average precision by rows)",
     "mean_i (1/|P_i|) sum_{j in P_i} #{l in P_i: rank_l <= rank_j} / rank_j; a row without positives adds "
     "0"},
    {"1-HL", "share of right yes/no decisions (Hamming)",
     "1 - #{known ij: [S_ij > threshold] != Y_ij} / #{known ij}"},
    {"1-RL", "share of positive-negative pairs in the right order (ranking loss)",
     "1 - mean_i #{(j in P_i, l in N_i): S_il >= S_ij} / (|P_i| |N_i|); a tie is an error, a one-sided row "
     "adds 0"},
    {"AUC", "area under the curve of the T best labels of every row, T = 1..c",
     "trapezoids over T of TPR(T) against FPR(T), divided by FPR(c) - FPR(1); all rows pooled"},
    {"1-OE", "share of rows whose top label is right (one error)",
     "1 - mean_i [Y_i,top = 0], top = the first label with the largest score"},
    {"1-Cov", "how far down the list one must go to find all right labels (coverage)",
     "1 - mean_i (max_{j in P_i} rank_j - 1) / |K_i|; without positives the rank is 0"},
    {"macro-AUC", "mean over labels of the ordinary AUC down the rows",
     "mean_j (#{pairs in order} + ties / 2) / (|P_j| |N_j|), labels with both kinds"},
    {"macro-F1", "mean over labels of F1", "mean_j 2 TP_j / (2 TP_j + FP_j + FN_j), labels with a positive"},
    {"micro-F1", "F1 of all known cells together", "2 TP / (2 TP + FP + FN)"},
};

}  // namespace

int metrics(const Arguments& arguments) {
  bool json = false;
  Options options;
  options.add("json", json, "print one JSON document");
  parse_or_help(options, arguments, "metrics", "Prints the metrics and their definitions.",
                "  lacuna metrics\n");
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& d : kDefinitions)
      list.push_back({{"name", d.name}, {"words", d.words}, {"formula", d.formula}});
    fmt::print("{}\n", nlohmann::json{{"schema", "lacuna.metrics.1"}, {"metrics", list}}.dump(2));
    return 0;
  }
  for (const auto& d : kDefinitions) fmt::print("{:<10} {}\n{:<10} {}\n\n", d.name, d.words, "", d.formula);
  fmt::print(
      "All lie in 0..1, more is better. Row i has known labels K_i, positives P_i and negatives N_i among "
      "them; S are\n"
      "the scores. rank_j is the place of label j among K_i, 1 = largest score; of equal scores the larger "
      "index is\n"
      "better. Unknown labels are in no sum; a row without any known label is left out.\n");
  return 0;
}

}  // namespace lacuna::cli
