#!/bin/bash
# usage: tests/mpi.sh LACUNA LIBRARY SOURCE
# The program under mpirun: models of several ranks are those of one process, mistakes are told once, a killed rank ends
# the run and another number of ranks takes it up. Skipped (77) where there is no mpirun or MPI was not built in.
set -eu
lacuna=$1 library=$2 source=$3
[ -f "$library" ] && command -v mpirun >/dev/null || { echo "SKIPPED: no mpirun here"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "$1"; cat "$folder/out" "$folder/err"; exit 1; }
"$lacuna" data simulate "$folder/small.npz" --rows 120 --views 3 --labels 5 --sizes 12,9,15 >"$folder/out" 2>"$folder/err"

for preset in best authors; do
  settings="--preset $preset --epochs 3 --quiet --threads 1"
  if [ $preset = authors ]; then settings="$settings --width 0.05 --embedding 16"; fi
  # shellcheck disable=SC2086
  "$lacuna" train "$folder/small.npz" --out "$folder/one" $settings >"$folder/out" 2>"$folder/err"
  for ranks in 2 6; do
    # shellcheck disable=SC2086
    mpirun -n $ranks "$lacuna" train "$folder/small.npz" --out "$folder/many" $settings >"$folder/out" 2>"$folder/err" ||
      fail "$preset on $ranks ranks failed"
    cmp "$folder/one" "$folder/many" || fail "$preset on $ranks ranks has other bits"
    [ "$(grep -c 'on 102 rows' "$folder/out")" = 1 ] || fail "one rank speaks"
    grep -q '"ranks"' "$folder/many.history.json" || fail "the history does not tell of ranks"
  done
done

# Rows are divided: the scores of one process.
"$lacuna" data simulate "$folder/many.npz" --rows 9000 --views 3 --labels 5 --sizes 12,9,15 >"$folder/out" 2>"$folder/err"
for form in npy csv; do
  "$lacuna" predict "$folder/one" "$folder/many.npz" --threads 1 --out "$folder/alone.$form" >"$folder/out" 2>"$folder/err"
  mpirun -n 3 "$lacuna" predict "$folder/one" "$folder/many.npz" --threads 1 --out "$folder/ranks.$form" >"$folder/out" \
    2>"$folder/err" || fail "predicting on 3 ranks failed"
  cmp "$folder/alone.$form" "$folder/ranks.$form" || fail "predictions of 3 ranks are others"
  [ "$(grep -c '9,000 rows\|9000 rows' "$folder/err")" = 1 ] || fail "one rank speaks of predictions"
done

# A mistake is told by rank 0, with the exit code of one process.
expect() {  # CODE TEXT ARGUMENTS...
  local code=$1 text=$2 got=0
  shift 2
  mpirun "$@" >"$folder/out" 2>"$folder/err" || got=$?
  [ "$got" = "$code" ] || fail "exit code $got, expected $code: $text"
  grep -q "^lacuna: .*$text" "$folder/err" || fail "not told: $text"
}
expect 2 "is not divided among ranks, and there are 2" -n 2 "$lacuna" train "$folder/small.npz" --out "$folder/x" --method naim3l
expect 2 "divides into 6 parts" -n 7 "$lacuna" train "$folder/small.npz" --out "$folder/x" --threads 1
expect 2 "preset 'bset'" -n 2 "$lacuna" train "$folder/small.npz" --out "$folder/x" --preset bset
expect 2 "are not divided among 2 ranks" -n 2 "$lacuna" predict "$folder/one" - --out "$folder/x.csv"
LACUNA_MPI_LIBRARY=/dev/null "$lacuna" train "$folder/small.npz" --out "$folder/x" --epochs 1 --quiet >/dev/null 2>&1 ||
  fail "without mpirun nobody looks for MPI"

"$source/tools/mpi_kill_test.sh" "$lacuna" 3
