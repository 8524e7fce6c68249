// The program: a table of verbs. Errors become one line on stderr and an exit code.
#include <cstdio>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/text.h"
#include "cli/verbs.h"

namespace lacuna::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"data inspect", "what is in a data set, and what will hurt", data_inspect},
    {"data convert", "a data set from one form to another", data_convert},
    {"data mask", "gaps and splits by the paper's protocol, as a file", data_mask},
    {"data simulate", "data drawn from a known model", data_simulate},
    {"train", "learn from a data set and write a model", train},
    {"tune", "try settings of a method and keep the best model", tune},
    {"predict", "score the items of a data set with a model", predict},
    {"evaluate", "compare scores with the true labels", evaluate},
    {"export", "a trained network as an ONNX file", export_model},
    {"serve", "predictions over HTTP", serve},
    {"methods", "the methods and what each can do by itself", methods},
    {"metrics", "the metrics and their definitions", metrics},
    {"doctor", "what this machine can do, and what was chosen for it", doctor},
    {"completion", "completion of verbs and options for a shell", completion},
    {"bench table", "methods against methods, with missing views and labels", bench_table},
    {"bench complete", "the same without gaps", bench_complete},
    {"bench ablation", "parts of MTD added and taken away", bench_ablation},
    {"bench sensitivity", "MTD against its loss weights and mask rate", bench_sensitivity},
    {"bench similarity", "how MTD's channels come apart", bench_similarity},
    {"bench timing", "seconds and memory of every method", bench_timing},
    {"bench missing", "metrics against the share of missing data", bench_missing},
    {"bench cell", "run one cell and store it", bench_cell},
    {"bench rerun", "repeat one cell and compare", bench_rerun},
    {"report", "a page about experiments, with tables and plots", report},
};

// The verbs, or those of a group ("data", "bench") alone.
void print_usage(std::FILE* out, const std::string& group = "") {
  fmt::print(out, "lacuna: tags for items with missing views and missing labels\n\nusage: lacuna {} ...\n\n",
             group.empty() ? "VERB" : group + " VERB");
  for (const auto& verb : kVerbs)
    if (group.empty() || std::string(verb.name).starts_with(group + " "))
      fmt::print(out, "  {:<18}  {}\n", verb.name, verb.summary);
  fmt::print(out, "\nlacuna {}VERB --help explains a verb and gives examples.\n",
             group.empty() ? "" : group + " ");
}

bool is_help(const std::string& word) {
  return word == "--help" || word == "-h" || word == "help";
}

int dispatch(Arguments arguments) {
  if (arguments.size() > 1 && arguments[0] == "help") {  // help VERB is VERB --help
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  if (arguments.empty() || is_help(arguments[0])) {
    print_usage(arguments.empty() ? stderr : stdout);
    return static_cast<int>(arguments.empty() ? Exit::usage : Exit::ok);
  }
  if (arguments[0] == "--version") {
    fmt::print("lacuna {}\n", LACUNA_VERSION);
    return static_cast<int>(Exit::ok);
  }
  std::vector<std::string> names;
  bool is_group = false;
  for (const auto& verb : kVerbs) {
    const std::string name = verb.name;
    names.push_back(name);
    const auto words = split(name, ' ');
    is_group = is_group || (words.size() > 1 && words[0] == arguments[0]);
    if (arguments.size() < words.size()) continue;
    bool matches = true;
    for (std::size_t i = 0; i < words.size(); ++i) matches = matches && arguments[i] == words[i];
    if (matches)
      return verb.run({arguments.begin() + static_cast<std::ptrdiff_t>(words.size()), arguments.end()});
  }
  if (is_group && (arguments.size() == 1 || is_help(arguments[1]))) {
    print_usage(arguments.size() == 1 ? stderr : stdout, arguments[0]);
    return static_cast<int>(arguments.size() == 1 ? Exit::usage : Exit::ok);
  }
  std::string given = arguments[0];
  if (arguments.size() > 1 && !arguments[1].starts_with("-")) given += " " + arguments[1];
  std::string hint = did_you_mean(given, names);
  if (hint.empty()) hint = did_you_mean(arguments[0], names);
  fail(Exit::usage, "there is no verb '{}'{} (lacuna --help lists them)", given, hint);
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

// The command that makes the experiment again: without --resume and --threads, which change nothing in the
// result.
std::string command_line(const std::string& verb, const Arguments& arguments) {
  std::string text = "lacuna " + verb;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--resume" || word == "--retry-failed" || word == "--json" || word.starts_with("--threads="))
      continue;
    if (word == "--threads") {
      ++i;
      continue;
    }
    text += " " + shell_quoted(word);
  }
  return text;
}

void parse_or_help(Options& options, const Arguments& arguments, const std::string& verb,
                   const std::string& about, const std::string& examples) {
  for (const auto& argument : arguments) {
    if (argument == "--") break;
    if (argument != "--help" && argument != "-h") continue;
    std::string usage = "lacuna " + verb;
    for (const auto& option : options.all())
      if (option.is_positional) usage += " " + option.placeholder;
    fmt::print("{}\n\nusage: {} [options]\n\n{}\nexamples:\n{}", about, usage, options.help(), examples);
    throw HelpShown();
  }
  options.parse(arguments, "lacuna " + verb);
}

}  // namespace lacuna::cli

int main(int argc, char** argv) {
  using namespace lacuna;
  try {
    return cli::dispatch({argv + 1, argv + argc});
  } catch (const cli::HelpShown&) {
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "lacuna: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "lacuna: not enough memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "lacuna: {}\n", error.what());
  }
  return static_cast<int>(Exit::failed);
}
