#include "methods/weight_choice.h"

#include <algorithm>
#include <cmath>

namespace lacuna {

std::vector<WeightTrial> try_weights(FunctionRef<std::vector<double>(double)> precisions) {
  const std::vector<double> alone = precisions(0);
  std::vector<WeightTrial> trials;
  for (const double weight : kTriedWeights) {
    const std::vector<double> now = weight == 0 ? alone : precisions(weight);
    double count = 0, sum = 0, gain = 0, square = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (std::isnan(now[i])) continue;  // nothing is known about the row
      const double difference = now[i] - alone[i];
      ++count;
      sum += now[i];
      gain += difference;
      square += difference * difference;
    }
    WeightTrial& trial = trials.emplace_back(WeightTrial{.weight = weight});
    if (count < 2) continue;
    trial.ap = sum / count;
    trial.gain = gain / count;
    trial.error = std::sqrt(std::max(0., square / count - trial.gain * trial.gain) / (count - 1));
  }
  return trials;
}

WeightTrial choose_weight(const std::vector<WeightTrial>& trials, std::size_t rows) {
  WeightTrial chosen = trials.empty() ? WeightTrial() : trials.front();
  if (rows < kFewestRows) return chosen;
  double best = 0;
  for (const WeightTrial& trial : trials)
    if (const double sure = trial.gain - trial.error; sure > best) best = sure, chosen = trial;
  return chosen;
}

std::size_t judged(const std::vector<double>& precisions) {
  return static_cast<std::size_t>(
      std::ranges::count_if(precisions, [](double ap) { return !std::isnan(ap); }));
}

}  // namespace lacuna
