// Completion scripts. They ask the program itself (--help) for verbs, options and choices, so they cannot
// fall behind.
#include <cstdio>

#include "cli/verbs.h"

namespace lacuna::cli {
namespace {

constexpr const char* kBash = R"sh(# lacuna completion for bash: source <(lacuna completion bash)
_lacuna() {
  local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local verbs verb help choices
  COMPREPLY=()
  verbs=$("$program" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p')
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "$(printf '%s\n' "$verbs" | cut -d' ' -f1 | sort -u)" -- "$word"))
    return
  fi
  verb=${COMP_WORDS[1]}
  if printf '%s\n' "$verbs" | grep -q "^$verb "; then
    if [ "$COMP_CWORD" -eq 2 ]; then
      COMPREPLY=($(compgen -W "$(printf '%s\n' "$verbs" | sed -n "s/^$verb //p")" -- "$word"))
      return
    fi
    verb="$verb ${COMP_WORDS[2]}"
  fi
  help=$("$program" $verb --help 2>/dev/null)
  case $word in
    -*) choices=$(printf '%s\n' "$help" | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p') ;;
    *) case $previous in
         --method|--methods) choices=$("$program" methods 2>/dev/null | sed '1d; s/ .*//') ;;
         --*) choices=$(printf '%s\n' "$help" | sed -n "s/^  $previous \([^ ]*|[^ ]*\).*/\1/p" | tr '|' ' ') ;;
       esac ;;
  esac
  [ -n "$choices" ] && COMPREPLY=($(compgen -W "$choices" -- "$word"))
}
complete -o default -F _lacuna lacuna
)sh";

constexpr const char* kZshHead = R"sh(# lacuna completion for zsh: source <(lacuna completion zsh)
autoload -U +X compinit && compinit -u
autoload -U +X bashcompinit && bashcompinit
)sh";

constexpr const char* kFish = R"sh(# lacuna completion for fish: lacuna completion fish | source
function __lacuna_verbs
  lacuna --help 2>/dev/null | sed -n 's/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p'
end
function __lacuna_words
  set -l given (commandline -opc)
  set -e given[1]
  if test (count $given) -eq 0
    __lacuna_verbs | cut -d' ' -f1 | sort -u
    return
  end
  set -l verb $given[1]
  if __lacuna_verbs | grep -q "^$verb "
    if test (count $given) -eq 1
      __lacuna_verbs | sed -n "s/^$verb //p"
      return
    end
    set verb $given[1..2]
  end
  lacuna $verb --help 2>/dev/null | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p'
end
complete -c lacuna -a '(__lacuna_words)'
)sh";

}  // namespace

int completion(const Arguments& arguments) {
  std::string shell;
  Options options;
  options.add("shell", shell, "bash, zsh or fish")
      .positional()
      .metavar("SHELL")
      .required()
      .choices({"bash", "zsh", "fish"});
  parse_or_help(options, arguments, "completion",
                "Prints a script that completes verbs, options and choices.",
                "  source <(lacuna completion bash)\n"
                "  lacuna completion fish > ~/.config/fish/completions/lacuna.fish\n");
  if (shell == "zsh") std::fputs(kZshHead, stdout);
  std::fputs(shell == "fish" ? kFish : kBash, stdout);
  return 0;
}

}  // namespace lacuna::cli
