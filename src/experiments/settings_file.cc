#include "experiments/settings_file.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "experiments/published.h"

namespace lacuna {

SettingsFile SettingsFile::read(const std::string& name) {
  SettingsFile file;
  if (name.empty()) return file;
  file.shipped_ = name == "paper";
  file.entries_ = file.shipped_ ? parse_config(paper(), "paper.toml") : read_config(name);
  for (const ConfigEntry& entry : file.entries_) {
    if (entry.tables.empty() || entry.tables.size() > 2)
      fail(Exit::usage, "{}: '{}' is nested in {} tables; write [method] or [method.data set]", entry.where,
           entry.name, entry.tables.size());
    try {
      const MethodChoice method = MethodChoice::parse(entry.tables[0]);
      Model model(method.name);
      if (!method.preset.empty()) model.set_preset(method.preset);
      model.options().set(entry.name, entry.text, "method " + method.name);
    } catch (const Error& error) {
      fail(Exit::usage, "{}: {}", entry.where, error.what());
    }
  }
  return file;
}

std::vector<std::string> SettingsFile::idle_tables(const std::vector<std::string>& data) const {
  std::vector<std::string> idle;
  if (shipped_) return idle;
  std::set<std::vector<std::string>> seen;
  for (const ConfigEntry& entry : entries_) {
    if (entry.tables.size() < 2 || !seen.insert(entry.tables).second) continue;
    const std::string& wanted = entry.tables[1];
    if (std::ranges::any_of(data, [&](const std::string& name) { return same_set(wanted, name); })) continue;
    idle.push_back(fmt::format("{}: [{}.{}] is for none of the data sets of this run ({}){}", entry.where,
                               entry.tables[0], wanted, join(data, ", "), did_you_mean(wanted, data)));
  }
  return idle;
}

std::map<std::string, std::string> SettingsFile::find(const MethodChoice& method,
                                                      const std::string& data) const {
  std::map<std::string, std::string> found;
  for (const std::size_t depth : {std::size_t{1}, std::size_t{2}})
    for (const ConfigEntry& entry : entries_) {
      if (entry.tables.size() != depth) continue;
      const MethodChoice owner = MethodChoice::parse(entry.tables[0]);
      if (owner.name != method.name || (!owner.preset.empty() && owner.preset != method.preset_used()))
        continue;
      if (depth == 2 && !same_set(entry.tables[1], data)) continue;
      found[entry.name] = entry.text;
    }
  return found;
}

}  // namespace lacuna
