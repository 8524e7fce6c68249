// An option is declared once, beside the member that holds it:
//
//   struct MaskOptions {
//     double missing_views = .5;  // share of every view's instances that is hidden
//     void declare(Options& o) {
//       o.add("missing-views", missing_views, "share of every view's instances to hide").range(0, 1).symbol("ρ_v");
//     }
//   };
//
// The parser, the help, the echo, config files, model files and reports walk that one declaration. The declared struct
// must outlive the Options that points into it.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

namespace lacuna {

class Option {
 public:
  using Target = std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                              std::vector<std::string>*, std::vector<double>*>;
  Option(std::string name, Target target, std::string help);

  // Builders, used in declare().
  Option& range(double low, double high);                   // both ends allowed
  Option& choices(std::vector<std::string> allowed);        // for text options
  Option& symbol(std::string paper_symbol);                 // the paper's letter, shown in help
  Option& positional();                                     // taken in order, without --name
  Option& required();
  Option& metavar(std::string placeholder);                 // FILE, DIR, K ... in help
  Option& tunable(std::vector<std::string> candidates);     // values that `lacuna tune` tries

  // Checks type, range and choices; Exit::usage on error. A list is replaced, or extended.
  void set(const std::string& text, bool extend = false);
  std::string text() const;                                 // the current value, as set() would read it
  nlohmann::json json() const;
  void from_json(const nlohmann::json& value);

  std::string name, help, symbol_text, placeholder;
  Target target;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  std::vector<std::string> allowed, candidates;
  std::string default_text;
  bool is_positional = false, is_required = false, given = false;

 private:
  void check_number(double value, const std::string& text) const;
};

class Options {
 public:
  template <class T>
  Option& add(std::string name, T& target, std::string help) {
    options_.emplace_back(std::move(name), Option::Target(&target), std::move(help));
    return options_.back();
  }

  // Reads "--name value", "--name=value", "--flag", "--no-flag" and positionals. An unknown name is an error that
  // names the nearest right one. `where` names the command in messages ("lacuna data mask").
  void parse(const std::vector<std::string>& arguments, const std::string& where);
  Option* find(const std::string& name);
  void set(const std::string& name, const std::string& text, const std::string& where);  // unknown name: Exit::usage
  std::string help() const;                                                              // aligned, with defaults
  nlohmann::json json() const;                                                           // {name: value}
  void from_json(const nlohmann::json& values, const std::string& where);                // unknown key: Exit::usage
  std::vector<std::string> names() const;
  std::vector<Option>& all() { return options_; }
  const std::vector<Option>& all() const { return options_; }

 private:
  std::vector<Option> options_;
};

}  // namespace lacuna
