// The program: a table of verbs. Errors become one line on stderr and an exit code.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/mpi.h"
#include "base/text.h"
#include "cli/help.h"
#include "cli/source.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace lacuna::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"", "data", nullptr},
    {"data inspect", "what a data set contains, and its likely problems", data_inspect},
    {"data convert", "write a data set in another format", data_convert},
    {"data mask", "draw gaps and splits by the paper's protocol", data_mask},
    {"data simulate", "draw data from a known model", data_simulate},
    {"", "models", nullptr},
    {"train", "learn from a data set and write a model", train},
    {"tune", "search the settings of a method and keep the best model", tune},
    {"predict", "score the items of a data set with a model", predict},
    {"recover", "reconstruct missing views from the present ones", recover},
    {"complete", "predict the unknown labels of a data set, as calibrated probabilities", complete},
    {"evaluate", "compare scores with the true labels", evaluate},
    {"show", "what a model contains", show},
    {"explain", "which view drove which tag", explain},
    {"export", "write a trained network as an ONNX file", export_model},
    {"serve", "serve predictions over HTTP", serve},
    {"", "experiments", nullptr},
    {"bench paper", "every table and figure of the paper that introduced MTD",
     bench_paper},
    {"bench table", "compare methods, with missing views and labels", bench_table},
    {"bench complete", "compare methods without gaps", bench_complete},
    {"bench ablation", "MTD with parts added and removed", bench_ablation},
    {"bench sensitivity", "MTD against its loss weights and mask rate", bench_sensitivity},
    {"bench similarity", "how MTD's channels separate", bench_similarity},
    {"bench timing", "time and memory of every method", bench_timing},
    {"bench missing", "metrics against the share of missing data", bench_missing},
    {"bench slurm", "an sbatch script that runs an experiment as an array of tasks", bench_slurm},
    {"bench status", "progress of the experiments in a folder", bench_status},
    {"bench cell", "run one cell and store it", bench_cell},
    {"bench rerun", "repeat one cell and compare the result", bench_rerun},
    {"report", "write a page about experiments, with tables and plots", report},
    {"", "about the program", nullptr},
    {"methods", "list the methods and their settings", methods},
    {"metrics", "define the metrics", metrics},
    {"doctor", "what this machine can do, and what was chosen for it", doctor},
    {"completion", "print shell completion for bash, zsh or fish", completion},
    {"man", "", man},
    {"__complete", "", complete_words},
};

// What other programs call it.
constexpr std::pair<const char*, const char*> kSynonyms[] = {
    {"fit", "train"},       {"learn", "train"},         {"score", "predict"},
    {"tag", "predict"},     {"infer", "predict"},       {"test", "evaluate"},
    {"eval", "evaluate"},   {"info", "data inspect"},   {"describe", "data inspect"},
    {"split", "data mask"}, {"compare", "bench table"}, {"search", "tune"},
    {"optimize", "tune"},   {"list", "methods"},        {"impute", "recover"},
};

bool is_help(const std::string& word) {
  return word == "--help" || word == "-h" || word == "help";
}

// "; did you mean 'data inspect'?" for a verb that is not there: by another program's name for it, by the second word
// alone, by a spelling that is near.
std::string suggestion(const std::string& first, const std::string& given) {
  for (const auto& [other, ours] : kSynonyms)
    if (first == other) return fmt::format("; did you mean '{}'?", ours);
  std::vector<std::string> names, last_words;
  for (const auto& verb : kVerbs) {
    if (verb.run == nullptr || *verb.summary == '\0') continue;
    names.emplace_back(verb.name);
    last_words.emplace_back(split(verb.name, ' ').back());
  }
  for (const auto& word : {given, first})
    if (const std::string hint = did_you_mean(word, names); !hint.empty()) return hint;
  const std::string near = nearest(first, last_words);
  const auto at = std::find(last_words.begin(), last_words.end(), near);
  return near.empty()
             ? ""
             : fmt::format("; did you mean '{}'?", names[static_cast<std::size_t>(at - last_words.begin())]);
}

int dispatch(Arguments arguments) {
  if (arguments.size() > 1 && arguments[0] == "help") {  // help VERB is VERB --help
    arguments.erase(arguments.begin());
    const bool all = arguments.back() == "all" && arguments.size() > 1;
    if (all) arguments.pop_back();
    arguments.push_back(all ? "--help=all" : "--help");
  }
  const std::size_t width = terminal_width(STDOUT_FILENO);
  if (arguments.empty() || is_help(arguments[0])) {
    std::fputs(overview("", width).c_str(), arguments.empty() ? stderr : stdout);
    return static_cast<int>(arguments.empty() ? Exit::usage : Exit::ok);
  }
  if (arguments[0] == "--version" || arguments[0] == "-V" || arguments[0] == "version") {
    fmt::print("lacuna {}\n", LACUNA_VERSION);
    return static_cast<int>(Exit::ok);
  }
  bool is_group = false;
  for (const auto& verb : kVerbs) {
    if (verb.run == nullptr) continue;
    const auto words = split(verb.name, ' ');
    is_group = is_group || (words.size() > 1 && words[0] == arguments[0]);
    if (arguments.size() < words.size() || !std::equal(words.begin(), words.end(), arguments.begin()))
      continue;
    return verb.run({arguments.begin() + static_cast<std::ptrdiff_t>(words.size()), arguments.end()});
  }
  if (is_group && (arguments.size() == 1 || is_help(arguments[1]))) {
    std::fputs(overview(arguments[0], width).c_str(), arguments.size() == 1 ? stderr : stdout);
    return static_cast<int>(arguments.size() == 1 ? Exit::usage : Exit::ok);
  }
  std::string given = arguments[0];
  if (is_group && !arguments[1].starts_with("-")) given += " " + arguments[1];
  fail(Exit::usage, "there is no verb '{}'{} (lacuna --help lists them)", given,
       suggestion(arguments[0], given));
}

int run(const Arguments& arguments) {
  try {
    return dispatch(arguments);
  } catch (const Declaration& verb) {
    if (joined_ranks().leads()) std::fputs(help_text(verb, terminal_width(STDOUT_FILENO)).c_str(), stdout);
  } catch (const HelpShown&) {
  }
  return static_cast<int>(Exit::ok);
}

// What was printed is part of the result: a full disk behind standard output is a failure.
void finish_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    fail(Exit::failed, "standard output: writing failed: {}", std::strerror(errno));
}

// A line of a program that has more to say than one stream: what stdout holds comes first.
template <class... Args>
void complain(fmt::format_string<Args...> format, Args&&... args) {
  std::fflush(stdout);
  fmt::print(stderr, format, std::forward<Args>(args)...);
}

// The end of a program that cannot go on, and of all ranks where it is one of several. What stops one of them mostly
// stops all: rank 0 says it first, and a rank of its own mind says who it is.
int give_up(Exit code, const std::string& message) {
  constexpr unsigned kLeaderFirst = 3;  // seconds
  const Ranks& ranks = joined_ranks();
  if (!ranks.leads()) sleep(kLeaderFirst);
  const bool names_itself =
      ranks.leads() && message.starts_with("lacuna ");  // "lacuna train: --budget is empty"
  complain("{}{}{}\n",
           names_itself ? "" : "lacuna: ", ranks.leads() ? "" : fmt::format("rank {}: ", ranks.rank()),
           message);
  abort_ranks(static_cast<int>(code));
  return static_cast<int>(code);
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  if (!word.empty() &&
      word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+%@") ==
          std::string::npos)
    return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// The command that makes the experiment again: without what changes nothing in the result.
std::string command_line(const std::string& verb, const Arguments& arguments) {
  std::string text = "lacuna " + verb;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--resume" || word == "--retry-failed" || word == "--json" ||
        word.starts_with("--threads=") || word.starts_with("--shard="))
      continue;
    if (word == "--threads" || word == "--shard") {
      ++i;
      continue;
    }
    text += " " + shell_quoted(word);
  }
  return text;
}

std::span<const Verb> verbs() {
  return kVerbs;
}

void parse_or_help(Options& options, const Arguments& arguments, const std::string& verb,
                   const std::string& about, const std::string& examples) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    if (word != "--help" && word != "-h" && word != "--help=all") continue;
    const bool all = word == "--help=all" || (i + 1 < arguments.size() && arguments[i + 1] == "all");
    throw Declaration{options, verb, about, examples, all};
  }
  options.parse(arguments, "lacuna " + verb);
  check_outputs(options);
}

}  // namespace lacuna::cli

int main(int argc, char** argv) {
  using namespace lacuna;
  try {
    const int code = cli::run({argv + 1, argv + argc});
    cli::finish_output();
    leave_ranks();
    return code;
  } catch (const Error& error) {
    return cli::give_up(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return cli::give_up(Exit::failed, "not enough memory");
  } catch (const std::exception& error) {
    return cli::give_up(Exit::failed, error.what());
  }
}
