#include "data/metrics.h"

#include <fmt/core.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/verbs.h"

namespace lacuna::cli {

int metrics(const Arguments& arguments) {
  bool json = false;
  Options options;
  options.add("json", json, "print one JSON document");
  parse_or_help(options, arguments, "metrics", "Prints the metrics and their definitions.",
                "  lacuna metrics\n");
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& d : metric_definitions())
      list.push_back({{"name", d.name}, {"words", d.words}, {"formula", d.formula}});
    fmt::print("{}\n", nlohmann::json{{"schema", "lacuna.metrics.1"}, {"metrics", list}}.dump(2));
    return 0;
  }
  for (const auto& d : metric_definitions()) fmt::print("{:<10} {}\n{:<10} {}\n\n", d.name, d.words, "", d.formula);
  fmt::print(
      "All lie in 0..1, and larger is better. Row i has the known labels K_i, with positives P_i and negatives "
      "N_i;\n"
      "S are the scores. rank_j is the position of label j in K_i, 1 = largest score; of equal scores the "
      "larger index\n"
      "ranks first. Unknown labels enter no sum; a row without any known label is left out.\n");
  return 0;
}

}  // namespace lacuna::cli
