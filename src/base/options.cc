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

std::string number_text(double value) { return fmt::format("{}", value); }

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
Option& Option::tunable(std::vector<std::string> values) {
  candidates = std::move(values);
  return *this;
}

void Option::check_number(double value, const std::string& text) const {
  if (std::isnan(value) || value < low || value > high)
    fail(Exit::usage, "--{} takes a number from {} to {}, not {}", name, number_text(low), number_text(high), text);
}

void Option::set(const std::string& text, bool extend) {
  const auto whole = [&]() -> std::int64_t {
    const auto value = parse_int(text);
    if (!value) fail(Exit::usage, "--{} takes a whole number, not '{}'", name, text);
    check_number(static_cast<double>(*value), text);
    return *value;
  };
  const auto real = [&](std::string_view part) {
    const auto value = parse_double(part);
    if (!value) fail(Exit::usage, "--{} takes a number, not '{}'", name, std::string(part));
    check_number(*value, std::string(part));
    return *value;
  };
  const auto check_choice = [&](const std::string& value) {
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), value) == allowed.end())
      fail(Exit::usage, "--{} takes one of {}, not '{}'{}", name, join(allowed, ", "), value,
           did_you_mean(value, allowed));
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
                   if (value < 0) fail(Exit::usage, "--{} takes a number from 0 on, not {}", name, text);
                   *t = static_cast<std::uint64_t>(value);
                 },
                 [&](double* t) { *t = real(text); },
                 [&](std::string* t) {
                   check_choice(text);
                   *t = text;
                 },
                 [&](std::vector<std::string>* t) {  // repeated on the command line, or separated by commas
                   if (!extend) t->clear();
                   if (trim(text).empty()) return;
                   for (auto part : split(text, ',')) {
                     check_choice(std::string(part));
                     t->emplace_back(part);
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
                        [](const double* t) { return number_text(*t); },
                        [](const std::vector<std::string>* t) { return join(*t, ","); },
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
  return std::visit([](const auto* t) { return nlohmann::json(*t); }, target);
}

void Option::from_json(const nlohmann::json& value) {
  if (value.is_string()) {
    set(value.get<std::string>());
  } else if (value.is_array()) {
    std::vector<std::string> parts;
    for (const auto& item : value) parts.push_back(item.is_string() ? item.get<std::string>() : item.dump());
    set(join(parts, ","));
  } else if (value.is_boolean() || value.is_number()) {
    set(value.dump());
  } else {
    fail(Exit::usage, "'{}' cannot be set to {}", name, value.dump());
  }
}

Option* Options::find(const std::string& name) {
  const auto at = std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
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
    option.set(text, !seen.insert(&option).second);
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
    const bool negated = option == nullptr && name.starts_with("no-") && (option = find(name.substr(3))) != nullptr &&
                         std::holds_alternative<bool*>(option->target);
    if (option == nullptr || option->is_positional || (name.starts_with("no-") && !negated && option->name != name)) {
      std::vector<std::string> known;
      for (const auto& o : options_)
        if (!o.is_positional) known.push_back("--" + o.name);
      fail(Exit::usage, "{} has no option '--{}'{} (see {} --help)", where, name, did_you_mean("--" + name, known),
           where);
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
  for (const auto& option : options_)
    if (option.is_required && !option.given)
      fail(Exit::usage, "{} needs {}{} (see {} --help)", where, option.is_positional ? "" : "--",
           option.is_positional ? option.placeholder : option.name, where);
}

std::string Options::help() const {
  struct Line {
    std::string left, right;
  };
  std::vector<Line> lines;
  std::size_t width = 0;
  for (const auto& o : options_) {
    const bool flag = std::holds_alternative<bool*>(o.target);
    std::string placeholder = !o.placeholder.empty() ? o.placeholder
                              : !o.allowed.empty()   ? join(o.allowed, "|")
                              : std::holds_alternative<std::string*>(o.target) ? "TEXT"
                                                                               : "N";
    if (placeholder.size() > 28) placeholder = "NAME";
    std::string left = o.is_positional ? placeholder : "--" + o.name + (flag ? "" : " " + placeholder);
    std::string right = o.help;
    if (!o.symbol_text.empty()) right += fmt::format(" ({})", o.symbol_text);
    if (placeholder == "NAME" && !o.allowed.empty()) right += ": " + join(o.allowed, ", ");
    if (flag && o.default_text == "true") right += fmt::format(" [on; --no-{} turns it off]", o.name);
    if (!flag && !o.default_text.empty()) right += fmt::format(" [{}]", o.default_text);
    if (o.is_required) right += " (required)";
    width = std::max(width, std::min<std::size_t>(left.size(), 34));
    lines.push_back({std::move(left), std::move(right)});
  }
  std::string text;
  for (const auto& line : lines)
    text += line.left.size() <= width ? fmt::format("  {:<{}}  {}\n", line.left, width, line.right)
                                      : fmt::format("  {}\n  {:<{}}  {}\n", line.left, "", width, line.right);
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
