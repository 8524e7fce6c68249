// An option is declared once, beside the member that holds it:
//
//   struct MaskOptions {
//     double missing_views = .5;  // share of every view's instances that is hidden
//     void declare(Options& o) {
//       o.add("missing-views", missing_views, "share of every view's instances to hide").range(0, 1).symbol("ρ_v");
//     }
//   };
//
// The parser, the help, man pages, completion, the echo, config files, model files and reports read that one
// declaration. The declared struct must outlive the Options that points into it.
//
// Options that only some users need belong to a group: the short help shows the common ones of a group, the full help
// all of them. Options without a group are always shown.
//
//     const auto group = o.group("reading the data");  // until the end of the block
//     o.add("header", ...);
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace lacuna {

// One of a few named values, held as an enum: names_of(E) lists the names in the order of the enum's values.
struct Choice {
  void* member;
  std::size_t (*get)(const void* member);
  void (*put)(void* member, std::size_t value);
  std::vector<std::string> names;
};

class Option {
 public:
  using Target = std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                              std::vector<std::string>*, std::vector<double>*, Choice>;
  Option(std::string name, Target target, std::string help);

  // Builders, used in declare().
  Option& range(double low, double high);             // both ends allowed
  Option& choices(std::vector<std::string> allowed);  // for text options
  Option& symbol(std::string paper_symbol);           // the paper's letter, shown in help
  Option& positional();                               // taken in order, without --name
  Option& required();
  Option& metavar(std::string placeholder);              // FILE, DIR, K ... in help
  Option& common();                                      // in a group: the short help shows it too
  Option& suggest(std::vector<std::string> values);      // named by help and completion; others are allowed
  Option& tunable(std::vector<std::string> candidates);  // values that `lacuna tune` tries
  // On the command line it is an error without the other option (needs), or together with it (excludes), because it
  // would have no effect.
  Option& needs(std::string other);
  Option& excludes(std::string other);

  // Texts of the help: "--rate N", and the description with choices and default.
  std::string usage() const;
  std::string explanation() const;
  bool is_flag() const { return std::holds_alternative<bool*>(target); }
  bool is_list() const;
  // Allowed or suggested values; completion offers them.
  const std::vector<std::string>& words() const { return allowed.empty() ? suggested : allowed; }

  // Checks type, range and choices; Exit::usage on error. A list is replaced, or extended.
  void set(const std::string& text, bool extend = false);
  std::string text() const;  // the current value, as set() would read it
  nlohmann::json json() const;
  void from_json(const nlohmann::json& value);

  std::string name, help, symbol_text, placeholder, group;
  Target target;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  std::vector<std::string> allowed, suggested, candidates;
  std::string default_text, needed, excluded;
  bool is_positional = false, is_required = false, is_common = false, given = false;

 private:
  std::string value_name() const;
  std::string range_text() const;  // " from 0 to 1", or "" where anything goes
  void check_number(double value, const std::string& text) const;
};

class Options {
 public:
  template <class T>
  Option& add(std::string name, T& target, std::string help) {
    if constexpr (std::is_enum_v<T>) {
      Choice choice{&target, [](const void* member) { return static_cast<std::size_t>(*static_cast<const T*>(member)); },
                    [](void* member, std::size_t value) { *static_cast<T*>(member) = static_cast<T>(value); }, {}};
      for (const char* each : names_of(T{})) choice.names.emplace_back(each);
      std::vector<std::string> names = choice.names;
      options_.emplace_back(std::move(name), Option::Target(std::move(choice)), std::move(help));
      options_.back().choices(std::move(names));  // which may be narrowed
    } else {
      options_.emplace_back(std::move(name), Option::Target(&target), std::move(help));
    }
    options_.back().group = group_;
    return options_.back();
  }
  // Options added during the lifetime of the result belong to the group.
  class [[nodiscard]] Group {
   public:
    Group(Options& options, std::string name) : options_(options), before_(std::move(name)) {
      options_.group_.swap(before_);
    }
    ~Group() { options_.group_.swap(before_); }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;

   private:
    Options& options_;
    std::string before_;
  };
  Group group(std::string name) { return Group(*this, std::move(name)); }

  // Reads "--name value", "--name=value", "--flag", "--no-flag" and positionals. An unknown name is an error that
  // suggests the nearest valid one. `where` names the command in messages ("lacuna data mask").
  void parse(const std::vector<std::string>& arguments, const std::string& where);
  Option* find(const std::string& name);
  void set(const std::string& name, const std::string& text,
           const std::string& where);  // unknown name: Exit::usage
  // By group, aligned, wrapped at `width`; `all`, or only what is common.
  std::string help(std::size_t width = 80, bool all = true) const;
  std::size_t hidden() const;               // number of options that the short help does not show
  std::vector<std::string> groups() const;  // in order, "" (no group) first
  nlohmann::json json() const;              // {name: value}
  void from_json(const nlohmann::json& values, const std::string& where);  // unknown key: Exit::usage
  std::vector<std::string> names() const;
  std::vector<Option>& all() { return options_; }
  const std::vector<Option>& all() const { return options_; }

 private:
  std::vector<Option> options_;
  std::string group_;
};

}  // namespace lacuna
