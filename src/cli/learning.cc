#include "cli/learning.h"

#include <algorithm>
#include <cstdio>

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/machine_flags.h"
#include "base/threads.h"
#include "ops/device.h"

namespace lacuna::cli {
namespace {

// Where and how, not what is learned.
const std::vector<std::string> kNotInConfig = {"data",   "out",  "config",       "print-config", "set",
                                               "resume", "json", "json-events",  "quiet",        "grid",
                                               "report", "mpi",  "memory-limit", "prepared"};

// The value of "--name value" or "--name=value", the last one given. Needed before all flags are known: the
// method and the preset decide which there are.
std::string peek(const Arguments& arguments, const std::string& name) {
  std::string found;
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    if (arguments[i] == "--" + name && i + 1 < arguments.size()) found = arguments[i + 1];
    if (arguments[i].starts_with("--" + name + "=")) found = arguments[i].substr(name.size() + 3);
  }
  return found;
}

// "Presets, the default first: repaired, authors, paper (mtd); default, original (cdmm, lvsl); ..."
std::string presets_text() {
  std::vector<std::pair<std::string, std::vector<std::string>>> methods_of;  // by their presets
  for (const auto& name : method_names()) {
    const std::string presets = join(make_method(name)->presets(), ", ");
    if (presets.empty()) continue;
    const auto at = std::ranges::find(methods_of, presets, &decltype(methods_of)::value_type::first);
    if (at == methods_of.end())
      methods_of.emplace_back(presets, std::vector{name});
    else
      at->second.push_back(name);
  }
  std::vector<std::string> parts;
  for (const auto& [presets, names] : methods_of)
    parts.push_back(fmt::format("{} ({})", presets, join(names, ", ")));
  return "Presets, the default first: " + join(parts, "; ") + ".";
}

// A flag that another method has and this one lacks is not a misspelling.
void check_settings_of(const std::string& method, Options& options, const Arguments& arguments) {
  for (const auto& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("--")) continue;
    const std::string name = argument.substr(2, argument.find('=') - 2);
    if (name == "help" || options.find(name) != nullptr) continue;
    std::vector<std::string> owners, own;
    for (const auto& other : method_names()) {
      Model model(other);
      if (model.options().find(name) != nullptr) owners.push_back(other);
    }
    if (owners.empty()) continue;
    for (const auto& option : options.all())
      if (option.group == "settings of " + method) own.push_back("--" + option.name);
    fail(Exit::usage, "method {} has no setting '--{}' ({} {}); it has {}", method, name, join(owners, ", "),
         owners.size() == 1 ? "has" : "have", own.empty() ? "none" : join(own, ", "));
  }
}

}  // namespace

void LearningFlags::declare(Options& o) {
  source.declare(o);
  const auto group = o.group("learning");
  o.add("method", method,
        "the method (see lacuna methods); a preset that only one method has selects it")
      .choices(method_names())
      .common();
  o.add("preset", preset, "a named set of the method's settings; other settings override it")
      .metavar("NAME")
      .common();
  o.add("hold-out", hold_out,
        "without folds: share of the rows held out for selection, calibration and thresholds")
      .range(0, .9)
      .excludes("folds");
  o.add("seed", seed, "seed of all random numbers").common();
  add_threads(o, threads).common();
  add_device(o, device).common();
  o.add("set", set, "a setting by its name, as in a config file; may be repeated").metavar("KEY=VALUE");
  o.add("config", config, "settings from a TOML file; the command line overrides it").metavar("FILE");
  o.add("print-config", print_config, "print all settings as a config file and stop");
}

std::vector<std::pair<std::string, std::string>> settings(const std::vector<std::string>& parts,
                                                          const std::string& flag) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const auto& part : parts) {
    const auto equals = part.find('=');
    if (equals != std::string::npos) {
      pairs.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    } else if (!pairs.empty()) {
      pairs.back().second += "," + part;
    } else {
      fail(Exit::usage, "--{} takes KEY=VALUE, not '{}'", flag, part);
    }
  }
  return pairs;
}

Model parse_learning(LearningFlags& flags, Options& options, const Arguments& arguments,
                     const HelpText& help) {
  std::vector<ConfigEntry> config;
  if (const auto path = peek(arguments, "config"); !path.empty()) config = read_config(path);
  const auto early = [&](const std::string& name, const std::string& otherwise) {
    std::string value = peek(arguments, name);
    if (value.empty())
      for (const auto& entry : config)
        if (entry.name == name) value = entry.text;
    return value.empty() ? otherwise : value;
  };
  const std::string preset = early("preset", "");
  flags.method = early("method", "");
  if (flags.method.empty()) flags.method = preset.empty() ? kDefaultMethod : method_of_preset(preset);
  Model model(flags.method);
  if (!preset.empty()) model.set_preset(preset);
  const std::string method = model.method().traits().name;
  for (const auto& option : model.options().all()) {
    if (options.find(option.name) != nullptr)
      throw std::logic_error("two options are named " +
                             option.name);  // ours and the method's: a mistake of ours
    options.all().push_back(option);
    if (option.group.empty()) options.all().back().group = "settings of " + method;
  }
  options.find("preset")->suggest(model.method().presets());
  check_settings_of(method, options, arguments);
  apply_config(config, options, kNotInConfig);
  parse_or_help(options, arguments, help.verb, help.about + "\n\n" + presets_text(), help.examples);
  for (const auto& [name, value] : settings(flags.set, "set"))
    model.options().set(name, value, "method " + method);
  const Protocol protocol = protocol_from_name(flags.source.protocol);
  if (protocol == Protocol::transductive && flags.source.folds.empty())
    fail(Exit::usage,
         "--protocol transductive needs --folds, which say what is scored; without folds, add the items to the "
         "data with empty labels: training then uses their views");
  apply_protocol(protocol, model);
  flags.preset = model.preset();
  if (flags.print_config) {
    std::fputs(config_text(options, kNotInConfig).c_str(), stdout);
    throw HelpShown();
  }
  set_threads(flags.threads);
  set_device(parse_device(flags.device));
  return model;
}

LearningRows rows_to_learn(const LearningFlags& flags, const Source& source) {
  if (const std::string warning = protocol_warning(source.protocol()); !warning.empty()) tell("", {warning});
  LearningRows rows = source.has_folds()
                          ? learning_rows(source.data(), source.folds(), source.fold(), source.protocol())
                          : learning_rows(select_all(source.data()), flags.hold_out, flags.seed);
  if (rows.without_view > 0)
    tell(flags.source.path,
         {fmt::format("{} of {} rows have no view: they are not used in training or in any figure",
                      rows.without_view, rows.without_view + rows.learn.rows.size() + rows.val.rows.size())});
  return rows;
}

nlohmann::json fingerprint(const LearningFlags& flags, const Source& source, Model& model) {
  nlohmann::json print = {{"method", model.method().traits().name}, {"preset", model.preset()},
                          {"options", model.options().json()},      {"seed", flags.seed},
                          {"data", content_hash(source.data())},    {"protocol", flags.source.protocol}};
  if (source.has_folds()) {
    print["folds"] = source.folds().hash();
    print["fold"] = flags.source.fold;
  } else {
    print["hold-out"] = flags.hold_out;
  }
  return print;
}

std::string differences(const nlohmann::json& was, const nlohmann::json& is) {
  const nlohmann::json a = was.flatten(), b = is.flatten();
  std::vector<std::string> found;
  const auto look = [&](const std::string& key) {
    const std::string left = a.contains(key) ? a[key].dump() : "absent",
                      right = b.contains(key) ? b[key].dump() : "absent";
    if (left == right) return;
    std::string name = key.substr(1);
    if (name.starts_with("options/")) name = name.substr(8);
    found.push_back(fmt::format("{} was {} and is {}", name, left, right));
  };
  for (const auto& [key, value] : a.items()) look(key);
  for (const auto& [key, value] : b.items())
    if (!a.contains(key)) look(key);
  if (found.size() > 4) found = {found[0], found[1], found[2], fmt::format("{} more", found.size() - 3)};
  return join(found, "; ");
}

}  // namespace lacuna::cli
