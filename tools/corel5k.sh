#!/bin/bash
# usage: tools/corel5k.sh LACUNA DATA FOLDER [-g PROCESSES] [-p PROCESSES] [-d DEVICE] [-x EXPERIMENT] [-n] [ARGUMENT...]
# The paper's nine methods on Corel5k, ten repetitions each: networks on DEVICE (cuda) by -g processes at once (2), all
# others on the CPUs by -p processes (2) that share the cores. EXPERIMENT is `table` (table 1, the default) or `paper`
# (everything). -n prints the cells with estimates and runs nothing. Other arguments go to the program, such as --folds FILE.
# Whatever stops it, the same command goes on where it was.
set -eu
if [ $# -lt 3 ]; then sed -n '2,6s/^# //p' "$0" >&2; exit 2; fi
lacuna=$1 data=$2 folder=$3
shift 3
gpu_processes=2 processes=2 device=cuda experiment=table dry=
while [ $# -gt 0 ]; do
  case $1 in
    -g) gpu_processes=$2 && shift 2 ;;
    -p) processes=$2 && shift 2 ;;
    -d) device=$2 && shift 2 ;;
    -x) experiment=$2 && shift 2 ;;
    -n) dry=1 && shift ;;
    *) break ;;
  esac
done
threads=$((($(nproc) + processes - 1) / processes))
bench() {
  "$lacuna" bench "$experiment" --data "$data" --out "$folder" --settings paper --repeats 10 --device "$device" "$@"
}
if [ -n "$dry" ]; then bench --dry-run "$@"; exit; fi
mkdir -p "$folder"
workers=
work() { # NAME NUMBER THREADS ARGUMENT...: so many processes, each takes the next cell that nobody has
  local name=$1 number=$2 own_threads=$3
  shift 3
  for ((i = 1; i <= number; ++i)); do
    bench --threads "$own_threads" --shard "$name" "$@" >"$folder/$name-$i.out" 2>"$folder/$name-$i.log" &
    workers="$workers $!"
  done
}
work networks "$gpu_processes" "$([ "$device" = cpu ] && echo "$threads" || echo 1)" "$@"
work others "$processes" "$threads" "$@"
# shellcheck disable=SC2064,SC2086
trap "kill $workers 2>/dev/null || true" INT TERM
failed=0
for worker in $workers; do wait "$worker" || failed=$?; done
if [ "$failed" -gt 128 ]; then exit "$failed"; fi
bench --resume "$@" >"$folder/whole.out" 2>"$folder/whole.log" || failed=$?  # what runs alone, and the tables
tail -n 1 "$folder/whole.log"
"$lacuna" report "$folder"
exit $failed
