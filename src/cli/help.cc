#include "cli/help.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/text.h"

namespace lacuna::cli {
namespace {

struct Meaning {
  const char *name, *text;
};
constexpr Meaning kExitCodes[] = {
    {"0", "success"},
    {"1", "failure: some cells of an experiment, a file that cannot be written, out of memory"},
    {"2", "the command line or a setting is invalid"},
    {"3", "a file is damaged or has unexpected contents"},
    {"4", "model and data do not match"},
    {"5", "training diverged: a loss became NaN"},
    {"130, 143", "interrupted (SIGINT, SIGTERM); a checkpoint was saved where one is possible"},
};
constexpr Meaning kEnvironment[] = {
    {"LACUNA_ISA",
     "instruction set of matrix products, instead of the best one (lacuna doctor lists those available)"},
    {"COLUMNS", "width of help and progress, instead of the terminal's"},
    {"NAME", "any variable that a dataset.toml refers to as ${NAME}"},
};
constexpr const char* kAbout = "lacuna: multi-label learning with missing views and unknown labels";

template <std::size_t N>
std::string meanings(const Meaning (&list)[N], std::size_t width) {
  std::size_t left = 0;
  for (const auto& one : list) left = std::max(left, std::string(one.name).size());
  std::string text;
  for (const auto& one : list)
    text += fmt::format("  {:<{}}  {}\n", one.name, left, wrapped(one.text, width, left + 4));
  return text;
}

std::string surroundings(std::size_t width) {
  return "\nexit codes:\n" + meanings(kExitCodes, width) + "\nenvironment:\n" + meanings(kEnvironment, width);
}

// Commands that are too long go on behind a backslash, so that they still can be copied; blanks inside quotes stay.
std::string fitted_examples(const std::string& examples, std::size_t width) {
  std::string text;
  for (auto line : split(std::string_view(examples).substr(0, examples.find_last_not_of('\n') + 1), '\n')) {
    std::string_view indent = "";
    while (indent.size() + line.size() > width) {
      std::size_t cut = 0, before_flag = 0;  // a flag stays with its value where that is possible
      char quote = 0;
      for (std::size_t i = 2; i + indent.size() + 2 <= width && i + 1 < line.size(); ++i) {
        if (quote == 0 && (line[i] == '\'' || line[i] == '"'))
          quote = line[i];
        else if (line[i] == quote)
          quote = 0;
        if (line[i] != ' ' || quote != 0 || line[i - 1] == ' ') continue;
        cut = i;
        if (line[i + 1] == '-') before_flag = i;
      }
      if (before_flag > width / 2) cut = before_flag;
      if (cut == 0) break;
      text += fmt::format("{}{} \\\n", indent, line.substr(0, cut));
      line = line.substr(cut + 1);
      indent = "      ";
    }
    text += fmt::format("{}{}\n", indent, line);
  }
  return text;
}

// --- man pages: the few requests of man(7) that every renderer knows ---

std::string troff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

std::string troff_paragraphs(std::string_view text) {
  std::string out = wrapped(text, 100);
  for (auto at = out.find("\n\n"); at != std::string::npos; at = out.find("\n\n", at + 4))
    out.replace(at, 2, "\n.PP\n");
  std::string escaped;
  for (const auto line : split(out, '\n'))
    escaped += (line == ".PP" ? std::string(line) : troff(line)) + "\n";
  return escaped;
}

std::string man_head(const std::string& name) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return fmt::format(".TH {} 1 \"{}\" \"Lacuna {}\" \"Lacuna\"\n", troff(upper), LACUNA_DATE, LACUNA_VERSION);
}

template <std::size_t N>
std::string man_meanings(const char* heading, const Meaning (&list)[N]) {
  std::string text = fmt::format(".SH {}\n", heading);
  for (const auto& one : list) text += fmt::format(".TP\n.B {}\n{}\n", troff(one.name), troff(one.text));
  return text;
}

// --- completion ---

struct Match {
  const Verb* verb = nullptr;
  std::size_t words = 0;
};
Match match(const Arguments& words, std::size_t count) {
  Match best;
  for (const auto& verb : verbs()) {
    const auto name = split(verb.name, ' ');
    if (verb.run == nullptr || name.size() > count || name.size() <= best.words) continue;
    if (std::equal(name.begin(), name.end(), words.begin())) best = {&verb, name.size()};
  }
  return best;
}

void offer(std::string& out, const std::string& word, const std::string& typed,
           const std::string& help = "") {
  if (word.starts_with(typed)) out += word + (help.empty() ? "" : "\t" + help) + "\n";
}

// The words of an option; of a list only its last element is being typed.
void offer_values(std::string& out, const Option& option, const std::string& before,
                  const std::string& typed) {
  const auto comma = option.is_list() ? typed.rfind(',') : std::string::npos;
  const std::string done = comma == std::string::npos ? "" : typed.substr(0, comma + 1);
  for (const auto& word : option.words()) offer(out, before + done + word, before + typed);
}

}  // namespace

std::string Declaration::usage() const {
  std::string text = "lacuna " + verb;
  for (const auto& option : options.all())
    if (option.is_positional)
      text += " " + (option.is_required ? option.usage() : "[" + option.usage() + "]");
  for (const auto& option : options.all())
    if (option.is_required && !option.is_positional) text += " " + option.usage();
  return text + " [options]";
}

Declaration declaration(const Verb& verb, const Arguments& arguments) {
  Arguments asking = arguments;
  asking.push_back("--help");
  try {
    verb.run(asking);
  } catch (const Declaration& found) {
    return found;
  } catch (const Error&) {
    if (!arguments.empty()) return declaration(verb);
    throw;
  }
  throw std::logic_error(std::string(verb.name) + " does not declare its options");
}

std::string help_text(const Declaration& d, std::size_t width) {
  std::string text = wrapped(d.about, width) + "\n\n" + wrapped("usage: " + d.usage(), width) + "\n\n";
  text += d.options.help(width, d.all);
  text += "\nexamples:\n" + fitted_examples(d.examples, width);
  if (d.all) return text + surroundings(width);
  const std::string more =
      d.options.hidden() == 0
          ? "explains exit codes and environment variables."
          : fmt::format("shows {} more options, exit codes and environment variables.", d.options.hidden());
  return text + "\n" + wrapped(fmt::format("lacuna {} --help all {}", d.verb, more), width) + "\n";
}

std::string overview(const std::string& group, std::size_t width) {
  std::string text =
      fmt::format("{}\n\nusage: lacuna {} ...\n", kAbout, group.empty() ? "VERB" : group + " VERB");
  if (!group.empty()) text += "\n";
  for (const auto& verb : verbs()) {
    if (verb.run == nullptr) {
      if (group.empty()) text += fmt::format("\n{}:\n", verb.summary);
      continue;
    }
    if (*verb.summary == '\0' || !(group.empty() || std::string(verb.name).starts_with(group + " ")))
      continue;
    text += fmt::format("  {:<18}  {}\n", verb.name, wrapped(verb.summary, width, 22));
  }
  text += fmt::format("\nlacuna {}VERB --help explains a verb and gives examples.\n",
                      group.empty() ? "" : group + " ");
  return group.empty() ? text + surroundings(width) : text;
}

std::string man_name(const std::string& verb) {
  std::string name = "lacuna-" + verb;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page(const Declaration& d, const std::string& summary) {
  const std::string name = man_name(d.verb);
  std::string text = man_head(name);
  text += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n", troff(name), troff(summary),
                      troff(d.usage()));
  text += ".SH DESCRIPTION\n" + troff_paragraphs(d.about);
  text += ".SH OPTIONS\n";
  for (const auto& group : d.options.groups()) {
    bool headed = group.empty();
    for (const auto& option : d.options.all()) {
      if ((option.is_positional ? "" : option.group) != group) continue;
      if (!headed) text += fmt::format(".SS {}\n", troff(group)), headed = true;
      text +=
          fmt::format(".TP\n.B {}\n{}\n", troff(option.usage()), troff(wrapped(option.explanation(), 100)));
    }
  }
  text += ".SH EXAMPLES\n.nf\n" + troff(fitted_examples(d.examples, 78)) + ".fi\n";
  return text + man_meanings("EXIT STATUS", kExitCodes) + man_meanings("ENVIRONMENT", kEnvironment) +
         ".SH SEE ALSO\n.BR lacuna (1)\n";
}

std::string man_overview() {
  std::string text = man_head("lacuna");
  text +=
      ".SH NAME\nlacuna \\- multi-label learning with missing views and unknown labels\n.SH SYNOPSIS\n.B "
      "lacuna\n.I VERB\n"
      "[options]\n.SH DESCRIPTION\nLearns to tag items that are described by several feature sets (views), "
      "when "
      "some views of\nan item are missing and only some of its tags are known.\n.SH VERBS\n";
  for (const auto& verb : verbs()) {
    if (verb.run == nullptr)
      text += fmt::format(".SS {}\n", troff(verb.summary));
    else if (*verb.summary != '\0')
      text += fmt::format(".TP\n.BR {} (1)\n{}\n", troff(man_name(verb.name)), troff(verb.summary));
  }
  return text + man_meanings("EXIT STATUS", kExitCodes) + man_meanings("ENVIRONMENT", kEnvironment);
}

std::string completions(const Arguments& given) {
  Arguments words;
  for (const auto& word : given)  // bash cuts --name=value into three words
    if (word != "=" || words.empty()) words.push_back(word);
  if (!given.empty() && given.back() == "=") words.emplace_back();
  if (words.empty()) words.emplace_back();
  const std::string typed = words.back();
  const std::size_t count = words.size() - 1;
  std::string out;
  const Match found = match(words, count);
  if (found.verb == nullptr) {
    std::vector<std::string> offered;
    for (const auto& verb : verbs()) {
      const auto name = split(verb.name, ' ');
      if (verb.run == nullptr || *verb.summary == '\0' || name.size() <= count ||
          !std::equal(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(count), words.begin()))
        continue;
      const std::string next(name[count]);
      if (std::find(offered.begin(), offered.end(), next) != offered.end()) continue;
      offered.push_back(next);
      offer(out, next, typed, name.size() == count + 1 ? verb.summary : "");
    }
    if (count == 0)
      for (const char* word : {"help", "version", "--help", "--version"})
        if (!typed.empty()) offer(out, word, typed);
    return out;
  }
  Declaration verb =
      declaration(*found.verb, {words.begin() + static_cast<std::ptrdiff_t>(found.words), words.end() - 1});
  Options& options = verb.options;
  const std::string before = count > 0 ? words[count - 1] : "";
  if (before == "--help" || before == "-h") {
    offer(out, "all", typed, "all options, exit codes, environment");
    return out;
  }
  if (before.starts_with("--"))
    if (const Option* option = options.find(before.substr(2)); option != nullptr && !option->is_flag()) {
      offer_values(out, *option, "", typed);
      return out;
    }
  if (const auto equals = typed.find('='); typed.starts_with("--") && equals != std::string::npos) {
    if (const Option* option = options.find(typed.substr(2, equals - 2)))
      offer_values(out, *option, typed.substr(0, equals + 1), typed.substr(equals + 1));
    return out;
  }
  if (typed.starts_with("-")) {
    for (const auto& option : options.all()) {
      if (option.is_positional) continue;
      const bool on = option.is_flag() && option.default_text == "true";
      offer(out, (on ? "--no-" : "--") + option.name, typed, option.help);
    }
    offer(out, "--help", typed, "explains the verb; --help all shows everything");
    return out;
  }
  // A positional: the first one that is not given yet.
  for (const auto& option : options.all())
    if (option.is_positional && (!option.given || option.is_list())) {
      offer_values(out, option, "", typed);
      break;
    }
  return out;
}

}  // namespace lacuna::cli
