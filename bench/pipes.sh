#!/bin/bash
# 100,000 rows through pipes of the shell against the same rows from a file, in turns.
#   bench/pipes.sh build/release/lacuna [FOLDER]
# PYTHON: one with numpy (/usr/bin/python3), which writes the lines. Prints the best rate of five turns and the processor time beside it.
set -eu
program=$(realpath "${1:?the program}")
folder=${2:-$(mktemp -d)}
mkdir -p "$folder" && cd "$folder"

"$program" data simulate small.npz --rows 400 --views 3 --labels 6 --sizes 12,9,7 > log 2>&1
"$program" data simulate many.npz --rows 100000 --views 3 --labels 6 --sizes 12,9,7 > log 2>&1
"$program" train small.npz --out model --embedding 24 --encoder-widths 32 --decoder-widths 16 --epochs 10 --quiet > log 2>&1
"${PYTHON:-/usr/bin/python3}" - <<'PYTHON'
import numpy as np
data = np.load("many.npz")
names = ["view0", "view1", "view2"]
views = [data[name] for name in names]
with open("many.jsonl", "w") as lines, open("many.csv", "w") as table:
    table.write(",".join(["id"] + [f"{n}:{k}" for n, v in zip(names, views) for k in range(v.shape[1])]) + "\n")
    for i, rows in enumerate(zip(*views)):
        texts = [[str(x) for x in row] for row in rows]
        inside = ", ".join(f'"{n}": [{", ".join(t)}]' for n, t in zip(names, texts))
        lines.write(f'{{"id": "item {i}", "views": {{{inside}}}}}\n')
        table.write(",".join([f"item {i}"] + sum(texts, [])) + "\n")
PYTHON

TIMEFORMAT="%R %U %S"
turn() { # NAME COMMAND
  local spent
  spent=$({ time bash -c "$2" 2> log; } 2>&1)
  echo "$1 $spent" >> times
}
rm -f times
for _ in 1 2 3 4 5; do
  turn "file-npz-to-csv" "'$program' predict model many.npz --out out.csv"
  turn "pipe-jsonl-to-jsonl" "cat many.jsonl | '$program' predict model - --out - > out.jsonl"
  turn "pipe-csv-to-csv" "cat many.csv | '$program' predict model - --out - > out2.csv"
done
awk '{ cpu = $3 + $4; if (!($1 in wall) || $2 < wall[$1]) wall[$1] = $2; if (!($1 in used) || cpu < used[$1]) used[$1] = cpu }
     END { for (name in wall) printf "%-20s %8.0f rows a second, %.0f %% of the file, processor time %.3f s\n", name,
             100000 / wall[name], 100 * wall["file-npz-to-csv"] / wall[name], used[name] }' times | sort
