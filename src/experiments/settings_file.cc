#include "experiments/settings_file.h"

#include "base/error.h"
#include "base/text.h"
#include "experiments/published.h"

namespace lacuna {

SettingsFile SettingsFile::read(const std::string& name) {
  SettingsFile file;
  if (name.empty()) return file;
  file.entries_ = name == "paper" ? parse_config(paper(), "paper.toml") : read_config(name);
  for (const ConfigEntry& entry : file.entries_) {
    if (entry.tables.empty() || entry.tables.size() > 2)
      fail(Exit::usage, "{}: '{}' stands in {} tables; [method] or [method.data set] is meant", entry.where,
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
