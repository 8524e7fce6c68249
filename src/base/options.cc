#include "base/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace lacuna {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

std::string number_text(double value) {
  return fmt::format("{}", value);
}

bool parse_bool(const std::string& name, const std::string& text) {
  if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
  if (text == "false" || text == "no" || text == "off" || text == "0") return false;
  fail(Exit::usage, "--{} takes true or false, not '{}'", name, text);
}

}  // namespace

Option::Option(std::string n, Target t, std::string h) : name(std::move(n)), help(std::move(h)), target(t) {
  default_text = text();
}

Option& Option::range(double lowest, double highest) {
  low = lowest;
  high = highest;
  return *this;
}
Option& Option::choices(std::vector<std::string> values) {
  allowed = std::move(values);
  return *this;
}
Option& Option::symbol(std::string paper_symbol) {
  symbol_text = std::move(paper_symbol);
  return *this;
}
Option& Option::positional() {
  is_positional = true;
  return *this;
}
Option& Option::required() {
  is_required = true;
  return *this;
}
Option& Option::metavar(std::string text) {
  placeholder = std::move(text);
  return *this;
}
Option& Option::common() {
  is_common = true;
  return *this;
}
Option& Option::suggest(std::vector<std::string> values) {
  suggested = std::move(values);
  return *this;
}
Option& Option::tunable(std::vector<std::string> values) {
  candidates = std::move(values);
  return *this;
}

bool Option::is_list() const {
  return std::holds_alternative<std::vector<std::string>*>(target) ||
         std::holds_alternative<std::vector<double>*>(target);
}

std::string Option::range_text() const {
  if (std::isinf(low) && std::isinf(high)) return "";
  if (std::isinf(high)) return " from " + number_text(low) + " on";
  if (std::isinf(low)) return " up to " + number_text(high);
  return fmt::format(" from {} to {}", number_text(low), number_text(high));
}

Option& Option::needs(std::string other) {
  needed = std::move(other);
  return *this;
}
Option& Option::excludes(std::string other) {
  excluded = std::move(other);
  return *this;
}

void Option::check_number(double value, const std::string& text) const {
  if (std::isnan(value) || value < low || value > high)
    fail(Exit::usage, "--{} takes a number{}, not {}", name, range_text(), text);
}

void Option::set(const std::string& text, bool extend) {
  const auto whole = [&]() -> std::int64_t {
    const auto value = parse_int(text);
    if (!value) fail(Exit::usage, "--{} takes a whole number{}, not '{}'", name, range_text(), text);
    check_number(static_cast<double>(*value), text);
    return *value;
  };
  const auto real = [&](std::string_view part) {
    const auto value = parse_double(part);
    if (!value) fail(Exit::usage, "--{} takes a number{}, not '{}'", name, range_text(), std::string(part));
    check_number(*value, std::string(part));
    return *value;
  };
  const auto check_choice = [&](const std::string& value) {
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      fail(Exit::usage, "{} takes one of {}, not '{}'{}", is_positional ? value_name() : "--" + name,
           join(allowed, ", "), value, did_you_mean(value, allowed));
  };
  std::visit(Overloaded{
                 [&](bool* t) { *t = parse_bool(name, text); },
                 [&](int* t) {
                   const auto value = whole();
                   if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
                     fail(Exit::usage, "--{}: {} is out of range", name, text);
                   *t = static_cast<int>(value);
                 },
                 [&](std::int64_t* t) { *t = whole(); },
                 [&](std::uint64_t* t) {
                   const auto value = whole();
                   if (value < 0) fail(Exit::usage, "--{} takes a non-negative number, not {}", name, text);
                   *t = static_cast<std::uint64_t>(value);
                 },
                 [&](double* t) { *t = real(text); },
                 [&](std::string* t) {
                   check_choice(text);
                   *t = text;
                 },
                 [&](Choice& t) {
                   check_choice(text);
                   t.put(t.member,
                         static_cast<std::size_t>(std::ranges::find(t.names, text) - t.names.begin()));
                 },
                 [&](std::vector<std::string>* t) {  // repeated on the command line, or separated by commas
                   if (!extend) t->clear();
                   if (trim(text).empty()) return;
                   for (auto& part : split_list(text)) {
                     check_choice(part);
                     t->push_back(std::move(part));
                   }
                 },
                 [&](std::vector<double>* t) {
                   if (!extend) t->clear();
                   if (trim(text).empty()) return;
                   for (auto part : split(text, ',')) t->push_back(real(part));
                 },
             },
             target);
  given = true;
}

std::string Option::text() const {
  return std::visit(Overloaded{
                        [](const bool* t) -> std::string { return *t ? "true" : "false"; },
                        [](const std::string* t) { return *t; },
                        [](const Choice& t) { return t.names.at(t.get(t.member)); },
                        [](const double* t) { return number_text(*t); },
                        [](const std::vector<std::string>* t) { return join_list(*t); },
                        [](const std::vector<double>* t) {
                          std::vector<std::string> parts;
                          for (double value : *t) parts.push_back(number_text(value));
                          return join(parts, ",");
                        },
                        [](const auto* t) { return std::to_string(*t); },
                    },
                    target);
}

nlohmann::json Option::json() const {
  return std::visit(Overloaded{
                        [](const auto* t) { return nlohmann::json(*t); },
                        [](const Choice& t) { return nlohmann::json(t.names.at(t.get(t.member))); },
                    },
                    target);
}

void Option::from_json(const nlohmann::json& value) {
  if (value.is_string()) {
    set(value.get<std::string>());
  } else if (value.is_array()) {
    std::vector<std::string> parts;
    for (const auto& item : value) parts.push_back(item.is_string() ? item.get<std::string>() : item.dump());
    set(join_list(parts));
  } else if (value.is_boolean() || value.is_number()) {
    set(value.dump());
  } else {
    fail(Exit::usage, "'{}' cannot be set to {}", name, value.dump());
  }
}

Option* Options::find(const std::string& name) {
  const auto at =
      std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  return at == options_.end() ? nullptr : &*at;
}

std::vector<std::string> Options::names() const {
  std::vector<std::string> names;
  for (const auto& option : options_) names.push_back(option.name);
  return names;
}

void Options::set(const std::string& name, const std::string& text, const std::string& where) {
  Option* option = find(name);
  if (option == nullptr)
    fail(Exit::usage, "{} has no setting '{}'{}", where, name, did_you_mean(name, names()));
  option->set(text);
}

void Options::parse(const std::vector<std::string>& arguments, const std::string& where) {
  std::vector<Option*> positionals;
  for (auto& option : options_)
    if (option.is_positional) positionals.push_back(&option);
  std::size_t next_positional = 0;
  bool only_positionals = false;
  std::set<const Option*> seen;  // what is said again on one command line extends a list
  const auto set = [&](Option& option, const std::string& text) {
    const bool list_of_names = std::holds_alternative<std::vector<std::string>*>(option.target);
    if (text.empty() && !list_of_names && !option.is_flag())
      fail(Exit::usage, "{}: {}{} is empty; write a value{}", where, option.is_positional ? "" : "--",
           option.is_positional ? option.placeholder : option.name, option.is_required ? "" : ", or omit it");
    option.set(text, !seen.insert(&option).second);
    // An empty text is a name here (that of a column without a header); in a file it is an empty list.
    if (list_of_names && text.empty()) std::get<std::vector<std::string>*>(option.target)->emplace_back();
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!only_positionals && argument == "--") {
      only_positionals = true;
      continue;
    }
    if (only_positionals || !argument.starts_with("--")) {
      if (next_positional == positionals.size())
        fail(Exit::usage, "{}: '{}' is one argument too many; see {} --help", where, argument, where);
      Option* option = positionals[next_positional];
      set(*option, argument);
      if (!std::holds_alternative<std::vector<std::string>*>(option->target)) ++next_positional;
      continue;
    }
    const auto equals = argument.find('=');
    std::string name = argument.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
    Option* option = find(name);
    const bool negated = option == nullptr && name.starts_with("no-") &&
                         (option = find(name.substr(3))) != nullptr &&
                         std::holds_alternative<bool*>(option->target);
    if (option == nullptr || option->is_positional ||
        (name.starts_with("no-") && !negated && option->name != name)) {
      std::vector<std::string> known;
      for (const auto& o : options_)
        if (!o.is_positional) known.push_back("--" + o.name);
      fail(Exit::usage, "{} has no option '--{}'{} (see {} --help)", where, name,
           did_you_mean("--" + name, known), where);
    }
    if (std::holds_alternative<bool*>(option->target)) {
      if (negated && equals != std::string::npos) fail(Exit::usage, "--{} takes no value", name);
      set(*option, negated ? "false" : equals == std::string::npos ? "true" : argument.substr(equals + 1));
    } else if (equals != std::string::npos) {
      set(*option, argument.substr(equals + 1));
    } else {
      if (i + 1 == arguments.size()) fail(Exit::usage, "{}: --{} needs a value", where, name);
      set(*option, arguments[++i]);
    }
  }
  const auto in_force = [&](const std::string& name) {
    const Option* other = find(name);
    return other != nullptr && other->given && other->text() != "false" && !other->text().empty();
  };
  for (const Option* option : seen) {
    if (!option->needed.empty() && !in_force(option->needed))
      fail(Exit::usage, "{}: --{} has no effect without --{}", where, option->name, option->needed);
    if (!option->excluded.empty() && in_force(option->excluded))
      fail(Exit::usage, "{}: --{} has no effect together with --{}", where, option->name, option->excluded);
  }
  for (const auto& option : options_)
    if (option.is_required && !option.given)
      fail(Exit::usage, "{} needs {}{} (see {} --help)", where, option.is_positional ? "" : "--",
           option.is_positional ? option.placeholder : option.name, where);
}

std::string Option::value_name() const {
  if (!placeholder.empty()) return placeholder;
  if (const std::string choices = join(allowed, "|"); !allowed.empty())
    return choices.size() <= 22 ? choices : "NAME";
  return std::holds_alternative<std::string*>(target) ||
                 std::holds_alternative<std::vector<std::string>*>(target)
             ? "TEXT"
             : "N";
}

std::string Option::usage() const {
  return is_positional ? value_name() : "--" + name + (is_flag() ? "" : " " + value_name());
}

std::string Option::explanation() const {
  std::string text = help;
  if (!symbol_text.empty()) text += fmt::format(" ({})", symbol_text);
  if (!words().empty() && value_name() != join(words(), "|")) text += ": " + join(words(), ", ");
  if (is_flag() && default_text == "true") text += fmt::format(" [on; --no-{} turns it off]", name);
  if (!is_flag() && !default_text.empty()) text += fmt::format(" [{}]", default_text);
  if (is_required && !is_positional) text += " (required)";
  return text;
}

namespace {

bool always_shown(const Option& option) {
  return option.group.empty() || option.is_common || option.is_positional || option.is_required;
}

}  // namespace

std::vector<std::string> Options::groups() const {
  std::vector<std::string> names = {""};
  for (const auto& option : options_)
    if (std::find(names.begin(), names.end(), option.group) == names.end()) names.push_back(option.group);
  return names;
}

std::size_t Options::hidden() const {
  return static_cast<std::size_t>(
      std::count_if(options_.begin(), options_.end(), [](const Option& o) { return !always_shown(o); }));
}

std::string Options::help(std::size_t width, bool all) const {
  std::size_t left = 0;
  for (const auto& option : options_)
    if (all || always_shown(option)) left = std::max(left, code_points(option.usage()));
  left = std::min<std::size_t>(left, 24);
  std::string text;
  for (const auto& group : groups()) {
    std::string lines;
    for (const auto& option : options_) {
      if ((option.is_positional ? "" : option.group) != group || !(all || always_shown(option))) continue;
      const std::string usage = option.usage();
      const std::size_t size = code_points(usage);
      lines += "  " + usage +
               (size > left ? "\n" + std::string(left + 4, ' ') : std::string(left + 2 - size, ' '));
      lines += wrapped(option.explanation(), width, left + 4) + "\n";
    }
    if (lines.empty()) continue;
    if (!group.empty()) text += (text.empty() ? "" : "\n") + group + ":\n";
    text += lines;
  }
  return text;
}

nlohmann::json Options::json() const {
  nlohmann::json values = nlohmann::json::object();
  for (const auto& option : options_) values[option.name] = option.json();
  return values;
}

void Options::from_json(const nlohmann::json& values, const std::string& where) {
  for (const auto& [name, value] : values.items()) {
    Option* option = find(name);
    if (option == nullptr)
      fail(Exit::usage, "{} has no setting '{}'{}", where, name, did_you_mean(name, names()));
    option->from_json(value);
  }
}

}  // namespace lacuna
