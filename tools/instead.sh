#!/bin/sh
# Runs another compiler than the build's, with its arguments less those that only g++ knows.
# A precompiled header may come from ccache, so clang must not compare the times of files with those of its making.
# Nor may it find the old header while it makes the new one: it would read it, and refuse it for what has changed since.
# usage: tools/instead.sh COMPILER... -- THE_BUILD'S_COMPILER ARGUMENTS
set -eu
compiler=""
while [ "$1" != -- ]; do compiler="$compiler $1"; shift; done
shift 2
for word in "$@"; do  # each word goes from the front to the back, or away
  shift
  case $word in -fpch-preprocess | -Werror | -W[!lp]*) continue ;; esac
  case $word in *.gch) rm -f "$word" ;; esac
  set -- "$@" "$word"
done
# shellcheck disable=SC2086
exec $compiler "$@" -Xclang -fno-pch-timestamp -Wall -Wextra -Werror
