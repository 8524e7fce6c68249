// Help, man pages and shell completion, all generated from the declarations of the verbs.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "cli/verbs.h"

namespace lacuna::cli {

// What a verb declares, thrown by parse_or_help if --help is given. Its options are for reading only: the members that
// they point to no longer exist.
struct Declaration {
  Options options;
  std::string verb, about, examples;
  bool all = false;  // --help all

  std::string usage() const;  // "lacuna train DATA --out MODEL [options]"
};
// The declaration of a verb after some arguments, which may choose among its options (--method). Invalid arguments are
// ignored.
Declaration declaration(const Verb& verb, const Arguments& arguments = {});

std::string help_text(const Declaration& verb, std::size_t width);
std::string overview(const std::string& group, std::size_t width);  // all verbs, or those of "data", "bench"

std::string man_page(const Declaration& verb, const std::string& summary);  // troff
std::string man_overview();
std::string man_name(const std::string& verb);  // "lacuna-data-inspect"

// Completions of the last word, one per line, each followed by a tab and its description. Empty if a file or a free
// value belongs there.
std::string completions(const Arguments& words);

}  // namespace lacuna::cli
