// lacuna completion, lacuna man: scripts and pages that are installed. The scripts ask the program itself for
// completions at the cursor (lacuna __complete WORDS...), so they are always up to date.
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/help.h"

#include <cstdio>

namespace lacuna::cli {
namespace {

constexpr const char* kBash = R"sh(# bash completion of lacuna: source <(lacuna completion bash)
_lacuna() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line%%$'\t'*}")
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _lacuna lacuna
)sh";

constexpr const char* kZsh = R"sh(#compdef lacuna
# zsh completion of lacuna: source <(lacuna completion zsh), or a file _lacuna in a folder of $fpath
_lacuna() {
  local line
  local -a candidates
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -z $line ]] && continue
    line=${line//:/\\:}
    candidates+=("${line/$'\t'/:}")
  done
  if (( $#candidates )); then _describe -V lacuna candidates; else _files; fi
}
if [ "${funcstack[1]}" = "_lacuna" ]; then
  _lacuna "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -u; }
  compdef _lacuna lacuna
fi
)sh";

constexpr const char* kFish = R"sh(# fish completion of lacuna: lacuna completion fish | source
function __lacuna_words
  set -l words (commandline -opc) (commandline -ct)
  set -l found ($words[1] __complete $words[2..-1] 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c lacuna -f -a '(__lacuna_words)'
)sh";

}  // namespace

int completion(const Arguments& arguments) {
  std::string shell, out;
  Options options;
  options.add("shell", shell, "the shell: bash, zsh or fish")
      .positional()
      .metavar("SHELL")
      .choices({"bash", "zsh", "fish"});
  options
      .add("out", out, "write the scripts of all shells into this folder, under the names that shells look "
                       "for")
      .metavar("DIR");
  parse_or_help(options, arguments, "completion",
                "Prints a script that completes verbs, options and their values.",
                "  source <(lacuna completion bash)\n"
                "  lacuna completion fish > ~/.config/fish/completions/lacuna.fish\n");
  if (out.empty() == shell.empty())
    fail(Exit::usage, "lacuna completion needs SHELL (bash, zsh, fish) or --out DIR");
  if (!out.empty()) {
    make_directories(out);
    write_text(out + "/lacuna", kBash);
    write_text(out + "/_lacuna", kZsh);
    write_text(out + "/lacuna.fish", kFish);
    return 0;
  }
  std::fputs(shell == "fish" ? kFish : shell == "zsh" ? kZsh : kBash, stdout);
  return 0;
}

int man(const Arguments& arguments) {
  std::vector<std::string> words;
  std::string out;
  Options options;
  options.add("verb", words, "the verb; default: the overview of all verbs").positional().metavar("VERB");
  options.add("out", out, "write the pages of all verbs into this folder").metavar("DIR");
  parse_or_help(options, arguments, "man", "Prints a manual page (troff) made from the declared options.",
                "  lacuna man train | man -l -\n  lacuna man --out share/man/man1\n");
  if (!out.empty()) {
    make_directories(out);
    write_text(out + "/lacuna.1", man_overview());
    for (const auto& verb : verbs())
      if (verb.run != nullptr && *verb.summary != '\0')
        write_text(out + "/" + man_name(verb.name) + ".1", man_page(declaration(verb), verb.summary));
    return 0;
  }
  if (words.empty()) {
    std::fputs(man_overview().c_str(), stdout);
    return 0;
  }
  const std::string wanted = join(words, " ");
  for (const auto& verb : verbs())
    if (verb.run != nullptr && verb.name == wanted) {
      std::fputs(man_page(declaration(verb), verb.summary).c_str(), stdout);
      return 0;
    }
  fail(Exit::usage, "there is no verb '{}' (lacuna --help lists them)", wanted);
}

int complete_words(const Arguments& arguments) {
  std::fputs(completions(arguments).c_str(), stdout);
  return 0;
}

}  // namespace lacuna::cli
