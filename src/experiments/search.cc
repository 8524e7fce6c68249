#include "experiments/search.h"

#include <set>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace lacuna {

std::string combination_text(const Combination& combination) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : combination) parts.push_back(name + "=" + value);
  return parts.empty() ? "the settings as given" : join(parts, " ");
}

std::vector<Axis> own_axes(const Model& model) {
  std::vector<Axis> axes;
  for (const auto& option : model.options().all())
    if (!option.candidates.empty()) axes.push_back({option.name, option.candidates});
  return axes;
}

void check_axes(const std::vector<Axis>& axes, Model& model) {
  const std::string method = model.method().traits().name;
  const nlohmann::json before = model.options().json();
  for (const auto& axis : axes)
    for (const auto& value : axis.values) model.options().set(axis.name, value, "method " + method);
  model.options().from_json(before, method);
}

std::vector<Combination> search_plan(const std::vector<Axis>& axes, std::int64_t most, std::uint64_t seed,
                                     Model& model) {
  double total = 1;
  for (const auto& axis : axes) total *= static_cast<double>(axis.values.size());
  if (most == 0 && total > 1e6)
    fail(Exit::usage, "{:.3g} combinations are too many to try all; use --trials", total);
  const nlohmann::json given = model.options().json();
  const auto is_given = [&](const Combination& combination) {
    for (const auto& [name, value] : combination) model.options().set(name, value, "a trial");
    const bool same = model.options().json() == given;
    model.options().from_json(given, "a trial");
    return same;
  };
  std::vector<Combination> plan = {{}};
  const bool all = most == 0 || total < static_cast<double>(most);
  const auto limit = all ? static_cast<std::size_t>(total) + 1 : static_cast<std::size_t>(most);
  std::set<std::vector<std::size_t>> seen;
  Random random(seed, Purpose::search);
  for (std::size_t k = 0; plan.size() < limit && static_cast<double>(seen.size()) < total; ++k) {
    std::vector<std::size_t> at;
    std::size_t rest = k;
    for (const auto& axis : axes) {
      at.push_back(all ? rest % axis.values.size() : random.below(axis.values.size()));
      rest /= axis.values.size();
    }
    if (!seen.insert(at).second) continue;
    Combination combination;
    for (std::size_t a = 0; a < axes.size(); ++a)
      combination.push_back({axes[a].name, axes[a].values[at[a]]});
    if (!is_given(combination)) plan.push_back(std::move(combination));
  }
  return plan;
}

}  // namespace lacuna
