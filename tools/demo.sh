#!/bin/sh
# The main job on simulated data: simulate, hide half of everything, train, predict, evaluate, compare with the floor.
# usage: tools/demo.sh [PROGRAM] [FOLDER]
set -eu
lacuna=${1:-build/release/lacuna}
folder=${2:-build/demo}
mkdir -p "$folder"

say() { printf '\n%s\n' "$*"; }
run() { printf '  $ lacuna %s\n' "$*"; "$lacuna" "$@"; }
figure() { sed -n "s/^ *\"$2\": \([0-9.e+-]*\).*/\1/p" "$1"; }

say "1. A data set: 1,000 items in 4 views, 20 labels, drawn from a known model."
run data simulate "$folder/toy.npz"

say "2. Gaps as in the paper: half of every view and half of the labels are hidden; 70 % of the rows are for training."
run data mask "$folder/toy.npz" "$folder/folds.npz" --repeats 1

methods=prior
if "$lacuna" methods | grep -q '^lacuna '; then methods="prior lacuna"; fi
say "3. Train, score the test rows with the views they have, compare with all their labels."
for method in $methods; do
  epochs=""
  if [ "$method" = lacuna ]; then epochs="--epochs 30"; fi
  # shellcheck disable=SC2086
  run train "$folder/toy.npz" --method "$method" $epochs --folds "$folder/folds.npz" --out "$folder/$method.safetensors"
  run predict "$folder/$method.safetensors" "$folder/toy.npz" --folds "$folder/folds.npz" --part test \
    --out "$folder/$method.csv"
  printf '  $ lacuna evaluate %s ...\n' "$folder/$method.csv"
  "$lacuna" evaluate "$folder/$method.csv" "$folder/toy.npz" --folds "$folder/folds.npz" --part test --json \
    > "$folder/$method.json"
done

say "4. The six metrics of the paper on the test rows; more is better (lacuna metrics explains them)."
printf '  %-12s' method
for metric in AP 1-HL 1-RL AUC 1-OE 1-Cov; do printf '%8s' "$metric"; done
for method in $methods; do
  printf '\n  %-12s' "$method"
  for metric in AP 1-HL 1-RL AUC 1-OE 1-Cov; do printf '%8.4f' "$(figure "$folder/$method.json" "$metric")"; done
done
printf '\n  (prior gives every item the frequency of each label: the floor)\n'

say "5. The same as an experiment with three repetitions, and its report."
rm -rf "$folder/experiment"
compared=$(printf '%s' "$methods" | tr ' ' ,)
epochs=""
if [ "$compared" != prior ]; then epochs="--set lacuna.epochs=10"; fi
# shellcheck disable=SC2086
run bench table --data "$folder/toy.npz" --methods "$compared" $epochs --repeats 3 --out "$folder/experiment"
"$lacuna" report "$folder/experiment" > "$folder/report.txt"

say "Everything is in $folder. Now with your own data: lacuna data inspect FILE; lacuna train FILE --out MODEL"
say "The report: $(cat "$folder/report.txt")"
