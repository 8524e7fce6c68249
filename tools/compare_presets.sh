#!/bin/sh
# Presets against each other on many data sets: gaps drawn by the paper's protocol, strict protocol, test rows.
#
#   LACUNA=build/release/lacuna OUT=build/presets tools/compare_presets.sh emotions.mat yeast.mat ...
#   PRESETS="authors best" WHICH="0 1 2" MORE="" as in tools/ten_folds.sh
#
# Every data set is a file that the program reads (convert others first: lacuna data convert). Its folds are drawn once,
# with seed 1, into OUT/NAME/folds.npz. Results: OUT/NAME/results.jsonl and a table of means.
set -eu
here=$(dirname "$0")
LACUNA=${LACUNA:-build/release/lacuna}
OUT=${OUT:-build/presets}
for file in "$@"; do
  name=$(basename "$file" | sed 's/\.[a-z]*$//')
  mkdir -p "$OUT/$name"
  # Half of the views cannot be missing where there is only one: such sets lose labels alone.
  [ -s "$OUT/$name/folds.npz" ] ||
    "$LACUNA" data mask "$file" "$OUT/$name/folds.npz" --seed 1 >/dev/null 2>&1 ||
    "$LACUNA" data mask "$file" "$OUT/$name/folds.npz" --seed 1 --missing-views 0 >/dev/null
  LACUNA=$LACUNA DATA=/ FILE=$(realpath "$file") FOLDS=$(realpath "$OUT/$name/folds.npz") OUT=$OUT/$name \
    SYSTEMS=${PRESETS:-authors best} WHICH=${WHICH:-0 1 2} "$here/ten_folds.sh" >&2
  echo "$name"
  python3 "$here/summarise_folds.py" "$OUT/$name/results.jsonl"
done
