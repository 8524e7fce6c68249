// Help, man pages and shell completion, all generated from the declarations of the verbs.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "cli/verbs.h"

namespace lacuna::cli {

// What a verb declares, thrown by parse_or_help when it is asked for. Its options are for reading only: the members
// that they point to are gone.
struct Declaration {
  Options options;
  std::string verb, about, examples;
  bool all = false;  // --help all

  std::string usage() const;  // "lacuna train DATA --out MODEL [options]"
};
// Of a verb after some arguments, which may choose among its options (--method). Falls back to none where they are
// wrong.
Declaration declaration(const Verb& verb, const Arguments& arguments = {});

std::string help_text(const Declaration& verb, std::size_t width);
std::string overview(const std::string& group, std::size_t width);  // all verbs, or those of "data", "bench"

std::string man_page(const Declaration& verb, const std::string& summary);  // troff
std::string man_overview();
std::string man_name(const std::string& verb);  // "lacuna-data-inspect"

// What could stand at the place of the last word, one per line, behind a tab what it is. Nothing where a file or a value
// of the user's own belongs.
std::string completions(const Arguments& words);

}  // namespace lacuna::cli
