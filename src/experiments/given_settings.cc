#include "experiments/given_settings.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace lacuna {

std::vector<std::string> joined_settings(const std::vector<std::string>& parts) {
  std::vector<std::string> set;
  for (const auto& part : parts) {
    if (part.find('=') != std::string::npos)
      set.push_back(part);
    else if (set.empty())
      fail(Exit::usage, "--set takes KEY=VALUE or METHOD.KEY=VALUE, not '{}'", part);
    else
      set.back() += "," + part;
  }
  return set;
}

namespace {

// A setting of --set: KEY=VALUE for every method that has it, METHOD.KEY=VALUE for one.
struct GivenSetting {
  std::string owner, key, value;  // owner is empty where none is named
  static GivenSetting parse(const std::string& text) {
    const auto equals = text.find('='), dot = text.substr(0, equals).find('.');
    return dot == std::string::npos
               ? GivenSetting{"", text.substr(0, equals), text.substr(equals + 1)}
               : GivenSetting{text.substr(0, dot), text.substr(dot + 1, equals - dot - 1),
                              text.substr(equals + 1)};
  }
  bool reaches(const MethodChoice& method) const {
    if (!owner.empty()) return owner == method.name || owner == method.text();
    return Model(method.name).options().find(key) != nullptr;
  }
};

}  // namespace

std::map<std::string, std::string> settings_for(const MethodChoice& method,
                                                const std::vector<std::string>& set) {
  std::map<std::string, std::string> settings;
  for (const auto& text : set)
    if (const auto given = GivenSetting::parse(text); given.reaches(method))
      settings[given.key] = given.value;
  return settings;
}

void check_settings(const std::vector<MethodChoice>& methods, const std::vector<std::string>& set) {
  for (const auto& text : set) {
    const auto given = GivenSetting::parse(text);
    std::vector<std::string> names;
    std::map<std::string, std::vector<std::string>> meanings;  // by help text: who has it
    for (const auto& method : methods) {
      Model model(method.name);
      if (given.owner.empty())
        for (const auto& name : model.options().names()) names.push_back(name);
      else
        names.push_back(method.text() + "." + given.key);
      if (!given.reaches(method)) continue;
      const Option* option = model.options().find(given.key);
      auto& who = meanings[option == nullptr ? "" : option->help];
      if (std::find(who.begin(), who.end(), method.name) == who.end()) who.push_back(method.name);
    }
    if (meanings.empty())
      fail(Exit::usage, "--set {}: none of the chosen methods has it{}", text,
           did_you_mean(text.substr(0, text.find('=')), names));
    if (meanings.size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& [help, who] : meanings) parts.push_back(fmt::format("{} ({})", join(who, ", "), help));
    fail(Exit::usage, "--set {}: '{}' means different things to {}; write METHOD.{}={}", text, given.key,
         join(parts, " and "), given.key, given.value);
  }
}

}  // namespace lacuna
