#!/bin/bash
# usage: tools/kill_test.sh LACUNA [KILLS [SEED]]
# Kills `lacuna bench paper --quick` on a tiny data set with SIGKILL at random moments, resumes it, and compares every
# file that may not depend on interruptions with those of an undisturbed run. Exit code 0: all the same.
set -eu
lacuna=$1 kills=${2:-20} RANDOM=${3:-1}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$lacuna" data simulate "$folder/tiny.npz" --rows 80 --views 2 --labels 4 --sizes 6,5 >"$folder/log" 2>&1
paper() {
  "$lacuna" bench paper --data "$folder/tiny.npz" --quick --threads 1 --set mtd.width=0.02 --set dicnet.width=0.02 \
    --set mtd.embedding=4 --set lacuna.encoder-widths=8 --set lacuna.embedding=8 --set c2ae.hidden=8 "$@" >>"$folder/log" 2>&1
}
begun=$(date +%s%N)
paper --out "$folder/whole"
milliseconds=$((($(date +%s%N) - begun) / 1000000))

# Kill moments are drawn from the part of the run that the remaining kills leave.
done_kills=0
while [ "$done_kills" -lt "$kills" ]; do
  if [ -d "$folder/killed/experiments" ]; then set -- --resume; else set --; fi
  paper --out "$folder/killed" "$@" &
  child=$!
  wait_ms=$((30 + RANDOM % (milliseconds / kills + 60)))
  sleep "$(printf '%d.%03d' $((wait_ms / 1000)) $((wait_ms % 1000)))"
  # The program and the cells that it started: all processes that were given this folder.
  victims=$(pgrep -f -- "--out $folder/killed" || true)
  # shellcheck disable=SC2086
  if [ -n "$victims" ] && kill -KILL $victims 2>/dev/null; then done_kills=$((done_kills + 1)); fi
  wait "$child" 2>/dev/null || true
  if [ -f "$folder/killed/report.html" ]; then break; fi
done 2>/dev/null  # the shell would tell of every kill
if [ -d "$folder/killed/experiments" ]; then set -- --resume; else set --; fi
paper --out "$folder/killed" "$@"
# A process of one cell that began just before its parent was killed goes on and ends by itself.
while pgrep -f -- "--out $folder/killed" >/dev/null; do sleep .05; done

differ=0
compare() { cmp -s "$1" "$2" || { echo "differs: ${1#"$folder/"}"; differ=1; }; }
for path in "$folder"/whole/cells/*/; do
  id=$(basename "$path")
  for file in spec.json result.json details.json; do
    if [ -f "$path$file" ]; then compare "$path$file" "$folder/killed/cells/$id/$file"; fi
  done
done
[ "$(ls "$folder/whole/cells")" = "$(ls "$folder/killed/cells")" ] || { echo "other cells"; differ=1; }
[ -z "$(ls -A "$folder/killed/claims" "$folder/killed/failed" | grep -v ':$' | grep .)" ] || { echo "claims or failures are left"; differ=1; }
for path in "$folder"/whole/tables/*.csv; do
  case $path in *timing*|*cells*) continue ;; esac  # they hold times
  compare "$path" "$folder/killed/tables/$(basename "$path")"
done
echo "killed $done_kills times; $(ls "$folder/whole/cells" | wc -l) cells; $([ $differ = 0 ] && echo 'the same files' || echo 'files differ')"
exit $differ
