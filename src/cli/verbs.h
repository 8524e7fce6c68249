// One function per verb; each reads as parse, load, call, print. Arguments exclude the verb itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/options.h"

namespace lacuna::cli {

using Arguments = std::vector<std::string>;

struct Verb {
  const char* name;              // "data inspect"
  const char* summary;           // one line; empty: not listed
  int (*run)(const Arguments&);  // null: `summary` is a heading
};
std::span<const Verb> verbs();

// Parses; if --help is among the arguments, throws a Declaration (cli/help.h), from which main makes the help.
// `about` and `examples` are shown above and below the options.
struct HelpShown {};  // something was printed instead of running the verb; the program ends with exit code 0
void parse_or_help(Options& options, const Arguments& arguments, const std::string& verb,
                   const std::string& about, const std::string& examples);

// A command as one would type it again: quoted where a shell needs it, without flags that change nothing in
// the result (--resume, --threads, --json).
std::string shell_quoted(const std::string& word);
std::string command_line(const std::string& verb, const Arguments& arguments);

int complete(const Arguments& arguments);
int complete_words(const Arguments& arguments);
int completion(const Arguments& arguments);
int data_convert(const Arguments& arguments);
int data_inspect(const Arguments& arguments);
int data_mask(const Arguments& arguments);
int data_simulate(const Arguments& arguments);
int doctor(const Arguments& arguments);
int evaluate(const Arguments& arguments);
int explain(const Arguments& arguments);
int export_model(const Arguments& arguments);
int man(const Arguments& arguments);
int methods(const Arguments& arguments);
int metrics(const Arguments& arguments);
int predict(const Arguments& arguments);
int serve(const Arguments& arguments);
int train(const Arguments& arguments);
int tune(const Arguments& arguments);
int bench_paper(const Arguments& arguments);
int bench_slurm(const Arguments& arguments);
int bench_status(const Arguments& arguments);
int bench_table(const Arguments& arguments);
int bench_complete(const Arguments& arguments);
int bench_ablation(const Arguments& arguments);
int bench_sensitivity(const Arguments& arguments);
int bench_similarity(const Arguments& arguments);
int bench_timing(const Arguments& arguments);
int bench_missing(const Arguments& arguments);
int bench_cell(const Arguments& arguments);
int bench_rerun(const Arguments& arguments);
int recover(const Arguments& arguments);
int report(const Arguments& arguments);
int show(const Arguments& arguments);

}  // namespace lacuna::cli
