#!/bin/sh
# Runs another compiler than the build's, with its arguments less those that only g++ knows.
# A precompiled header may come from ccache, so clang must not compare the times of files with those of its making.
# Nor must it find the header of before while it makes a new one: it would take that for what is to be included.
# usage: tools/instead.sh COMPILER... -- THE_BUILD'S_COMPILER ARGUMENTS
set -eu
compiler=""
while [ "$1" != -- ]; do compiler="$compiler $1"; shift; done
shift 2
before="" out="" header=""
for word in "$@"; do  # each word goes from the front to the back, or away
  shift
  [ "$before" = -o ] && out=$word
  [ "$before $word" = "-x c++-header" ] && header=yes
  before=$word
  case $word in -fpch-preprocess | -Werror | -W[!lp]*) continue ;; esac
  set -- "$@" "$word"
done
if [ -n "$header" ]; then rm -f "$out"; fi
# shellcheck disable=SC2086
exec $compiler "$@" -Xclang -fno-pch-timestamp -Wall -Wextra -Werror
