#!/bin/sh
# Runs every fuzz target for SECONDS (default 30). New inputs that reach new code stay in BUILD/corpus; an input that
# fails is kept under tests/fuzz/corpus, where make test replays it from then on.
# usage: tests/fuzz/run.sh BUILD [SECONDS] [FORM...]
set -eu
build=$1
seconds=${2:-30}
[ $# -gt 2 ] && shift 2 || set --
here=$(dirname "$0")
status=0
dictionary_of() {
  case $1 in
    arff|files|libsvm|mtx|toml|xml|safetensors) echo "$1" ;;
    jsonl|infer) echo json ;;
    npy|npz|folds-npz) echo npy ;;
    mat|folds-mat) echo mat ;;
    mat73|h5ad|h5mu) echo hdf5 ;;
    fvec|hvecs|hvecs32|clist) echo lear ;;
    *) echo text ;;
  esac
}
for corpus in "$here"/corpus/*/; do
  form=$(basename "$corpus")
  target=$build/tests/fuzz/fuzz_$form
  if [ $# -gt 0 ]; then
    case " $* " in *" $form "*) ;; *) continue ;; esac
  fi
  mkdir -p "$build/corpus/$form"
  echo "== $form"
  if ! "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
      -dict="$here/dictionaries/$(dictionary_of "$form").dict" \
      -artifact_prefix="$here/corpus/$form/failed-" "$build/corpus/$form" "$here/corpus/$form" > "$build/corpus/$form.log" 2>&1; then
    status=1
    tail -n 40 "$build/corpus/$form.log"
  else  # HDF5 is read by a child, whose requests for too much memory libFuzzer writes down although they are refused
    rm -f "$here/corpus/$form"/failed-oom-*
  fi
  grep -E 'stat::(number_of_executed_units|peak_rss_mb)' "$build/corpus/$form.log" || true
done
rm -rf /dev/shm/lacuna-fuzz-*
exit $status
