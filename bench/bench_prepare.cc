// Preparation of six views of 13,900 columns (root-pca, 96 directions): fit and application in memory, and the fit in passes as
// a training on files does it. bench_prepare [ROWS]; the set of the paper has 20,770. Prints lines of JSON.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <numeric>

#include "data/prepare.h"
#include "data/simulate.h"

namespace lacuna {
namespace {

template <class F>
double seconds_of(F&& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double explained(const Preparation::ViewMap& map) {
  return std::reduce(map.variances.begin(), map.variances.end(), 0.);
}

void run(std::int64_t rows) {
  SimulateOptions simulated;
  simulated.like = "espgame";
  simulated.rows = rows;
  const Dataset data = simulate(simulated).data;
  const Selection all = select_all(data);
  PrepareOptions options;
  options.kind = "root-pca";
  Preparation whole, passes;
  const double fit = seconds_of([&] { whole = Preparation::fit(all, options); });
  const double apply = seconds_of([&] { whole.apply(all, false); });
  options.most_bytes = 0;
  const double in_passes = seconds_of([&] { passes = Preparation::fit(all, options); });
  double least = 1;  // what directions found in passes explain, of what those found in memory do
  for (std::size_t v = 0; v < whole.views().size(); ++v)
    least = std::min(least, explained(passes.views()[v]) / explained(whole.views()[v]));
  const auto line = [&](const char* what, double value, const char* unit) {
    fmt::print("{{\"name\": \"preparation of {} rows, {}\", \"value\": {:.4f}, \"unit\": \"{}\"}}\n", rows,
               what, value, unit);
  };
  line("fit", fit, "s");
  line("application", apply, "s");
  line("fit in passes", in_passes, "s");
  line("variance found in passes, of that in memory", least, "share");
}

}  // namespace
}  // namespace lacuna

int main(int count, char** arguments) {
  lacuna::run(count > 1 ? std::atoll(arguments[1]) : 4000);
}
