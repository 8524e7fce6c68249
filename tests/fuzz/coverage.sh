#!/bin/sh
# Which lines of the readers the corpora reach: replays the seeds, every input that ever failed and those that fuzzing found.
# usage: tests/fuzz/coverage.sh BUILD [FOUND]     (BUILD is configured with -DLACUNA_FUZZ=coverage; FOUND holds a folder per form)
set -eu
build=$1 found=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
profiles=$build/profiles
rm -rf "$profiles" && mkdir -p "$profiles"
for corpus in "$here"/corpus/*/; do
  form=$(basename "$corpus")
  set -- "$corpus"
  [ -n "$found" ] && [ -d "$found/$form" ] && set -- "$corpus" "$found/$form"
  LLVM_PROFILE_FILE="$profiles/$form%c.profraw" "$build/tests/fuzz/fuzz_$form" -runs=0 -max_len=1000000 -artifact_prefix="$profiles/" "$@" > "$profiles/$form.log" 2>&1 || echo "$form failed"
done
llvm-profdata-14 merge -o "$profiles/all" "$profiles"/*.profraw
llvm-cov-14 export --summary-only -instr-profile "$profiles/all" "$build/tests/fuzz/fuzz_reader" | /usr/bin/python3 -c '
import json, re, sys
readers = re.compile(r"/(data/(arff|arrays|child|csv|csv_folder|csv_items|dataset_toml|flat_table|folds_file|h5ad(_frame|_labels|_matrix)?|"
                     r"hdf5(_child)?|id_columns|inflate|jsonl|labels|lear|libsvm|lzf|mat|mat5_read|mat73|mat_dataset|matrix_market|"
                     r"npy|npz|npz_dataset|readers|text_file)|base/tensors|serve/(scan|message|infer_request))\.cc$")
print("| file | lines | reached |\n|---|---|---|")
lines = reached = 0
for file in sorted(json.load(sys.stdin)["data"][0]["files"], key=lambda f: f["filename"]):
    if readers.search(file["filename"]):
        n = file["summary"]["lines"]
        lines, reached = lines + n["count"], reached + n["covered"]
        print("| {} | {} | {:.1f} % |".format(re.sub(".*/src/", "", file["filename"]), n["count"], n["percent"]))
print("| all | {} | {:.1f} % |".format(lines, 100 * reached / max(lines, 1)))
'
