#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "methods/method.h"

namespace lacuna::cli {
namespace {

nlohmann::json traits_json(const Traits& t) {
  return {{"name", t.name},
          {"title", t.title},
          {"source", t.source},
          {"multi_view", t.multi_view},
          {"missing_views", t.missing_views},
          {"missing_labels", t.missing_labels},
          {"iterative", t.iterative},
          {"probabilities", t.probabilities},
          {"reconstructed", t.reconstructed},
          {"prepare", t.prepare}};
}

// Infinite ends of a range have no number in JSON: they are left out.
nlohmann::json option_json(const Option& option) {
  nlohmann::json entry = {{"name", option.name}, {"default", option.json()}, {"help", option.help}};
  if (!option.symbol_text.empty()) entry["symbol"] = option.symbol_text;
  if (option.low > -std::numeric_limits<double>::infinity()) entry["low"] = option.low;
  if (option.high < std::numeric_limits<double>::infinity()) entry["high"] = option.high;
  if (!option.allowed.empty()) entry["choices"] = option.allowed;
  if (!option.candidates.empty()) entry["tune"] = option.candidates;
  return entry;
}

void print_all() {
  TextTable table({"name", "method", "source", "multi-view", "missing views", "missing labels", "prepare",
                   "presets", "note"});
  const auto yes = [](bool b) { return std::string(b ? "yes" : "no"); };
  for (const auto& name : method_names()) {
    const auto method = make_method(name);
    const Traits t = method->traits();
    table.add({t.name, t.title, t.source, yes(t.multi_view), yes(t.missing_views), yes(t.missing_labels),
               t.prepare, join(method->presets(), ", "),
               t.reconstructed ? "reconstructed from descriptions" : ""});
  }
  std::fputs(table.text().c_str(), stdout);
  std::fputs(
      "\nA method without several views runs once per view, and the best view on validation is kept. For one "
      "without missing\nviews they are filled with the view's mean; for one without missing labels they count "
      "as 0. `lacuna methods NAME`\nlists settings.\n",
      stdout);
}

// A method with the settings that `lacuna train --method NAME` starts from.
std::unique_ptr<Method> with_default_preset(const std::string& name) {
  auto method = make_method(name);
  PrepareOptions prepare;
  if (const auto presets = method->presets(); !presets.empty()) method->set_preset(presets.front(), prepare);
  return method;
}

void print_one(const std::string& name) {
  const auto method = with_default_preset(name);
  const Traits t = method->traits();
  Options options;
  method->declare(options);
  const auto presets = method->presets();
  fmt::print("{} ({}){}; default preparation {}\n", t.title, t.source,
             t.reconstructed ? ", reconstructed from descriptions" : "", t.prepare);
  if (!presets.empty()) fmt::print("presets: {}; the first is the default\n", join(presets, ", "));
  fmt::print("\n{}", options.help(terminal_width(STDOUT_FILENO)));
}

}  // namespace

int methods(const Arguments& arguments) {
  std::string name;
  bool json = false;
  Options options;
  options.add("method", name, "one method, with its settings")
      .positional()
      .metavar("NAME")
      .suggest(method_names());
  options.add("json", json, "print one JSON document");
  parse_or_help(options, arguments, "methods",
                "Lists the methods, what each of them supports, and their settings.",
                "  lacuna methods\n  lacuna methods naim3l\n");
  if (json) {
    auto list = nlohmann::json::array();
    for (const auto& each : name.empty() ? method_names() : std::vector<std::string>{name}) {
      const auto method = with_default_preset(each);
      Options settings;
      method->declare(settings);
      nlohmann::json entry = traits_json(method->traits());
      entry["presets"] = method->presets();
      entry["settings"] = nlohmann::json::array();
      for (const Option& option : settings.all()) entry["settings"].push_back(option_json(option));
      list.push_back(std::move(entry));
    }
    fmt::print("{}\n", nlohmann::json{{"schema", "lacuna.methods.1"}, {"methods", std::move(list)}}.dump(2));
  } else if (name.empty()) {
    print_all();
  } else {
    print_one(name);
  }
  return 0;
}

}  // namespace lacuna::cli
