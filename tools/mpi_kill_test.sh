#!/bin/bash
# usage: tools/mpi_kill_test.sh LACUNA [KILLS [SEED]]
# Trains on several ranks, kills a random one of them with SIGKILL at a random moment, resumes with another number of
# ranks, and so on; then compares the model with that of one undisturbed process, and begins again until there were so
# many kills. Exit code 0: the same bytes each time.
set -eu
lacuna=$1 kills=${2:-20} RANDOM=${3:-1}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$lacuna" data simulate "$folder/small.npz" --rows 200 --views 3 --labels 5 --sizes 12,9,15 >"$folder/log" 2>&1
settings="--preset authors --width 0.05 --embedding 16 --epochs 200 --threads 1 --quiet --checkpoint-every 0"
# shellcheck disable=SC2086
"$lacuna" train "$folder/small.npz" --out "$folder/whole.safetensors" $settings >>"$folder/log" 2>&1

# shellcheck disable=SC2086
train() {  # RANKS
  mpirun -n "$1" "$lacuna" train "$folder/small.npz" --out "$folder/killed.safetensors" $settings --resume >>"$folder/log" 2>"$folder/errors"
}
done_kills=0 messages=0 trainings=0 sizes=(2 3 6 4 5) runs=0
whole() {  # the killed training came to its end: its model is that of the undisturbed one, and nothing else is left
  trainings=$((trainings + 1))
  cmp "$folder/whole.safetensors" "$folder/killed.safetensors" || exit 1
  [ "$code" != 0 ] || [ ! -e "$folder/killed.safetensors.checkpoint" ] || { echo "a checkpoint is left"; exit 1; }
  rm -f "$folder"/killed.safetensors*
}
while [ "$done_kills" -lt "$kills" ]; do
  size=${sizes[$((runs % 5))]} runs=$((runs + 1))
  train "$size" &
  mpirun=$!
  for _ in $(seq 200); do  # until all ranks are there
    mapfile -t ranks < <(pgrep -f -- "^$lacuna train $folder/small.npz --out $folder/killed" || true)
    if [ "${#ranks[@]}" -eq "$size" ] || ! kill -0 "$mpirun" 2>/dev/null; then break; fi
    sleep .02
  done
  code=0
  sleep "0.$((RANDOM % 900 + 100))"
  if [ "${#ranks[@]}" -gt 0 ] && kill -KILL "${ranks[$((RANDOM % ${#ranks[@]}))]}" 2>/dev/null; then
    done_kills=$((done_kills + 1))
    wait "$mpirun" || code=$?
    [ "$code" != 0 ] || { echo "mpirun ended with 0 after a rank was killed"; exit 1; }
    if grep -q "signal 9\|Killed" "$folder/errors"; then messages=$((messages + 1)); fi
  else
    wait "$mpirun" || { cat "$folder/errors"; exit 1; }
  fi
  if [ -f "$folder/killed.safetensors" ]; then whole; fi
done 2>/dev/null  # the shell would tell of every kill
code=0
train 3 || { cat "$folder/errors"; exit 1; }
whole
[ "$messages" = "$done_kills" ] || { echo "a killed rank was not told of: $messages of $done_kills"; exit 1; }
echo "killed a rank $done_kills times in $runs runs of 2 to 6 ranks; $trainings trainings gave the same model"
