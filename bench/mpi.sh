#!/bin/bash
# usage: bench/mpi.sh LACUNA DATA FOLDER [-r "RANKS..."] [-e EPOCHS] [-p PYTHON]
# Training of the paper's network on 1 and on more ranks of one machine, one thread each, through shared memory and
# through TCP: seconds of a step, what the busiest rank sends in it and how long ranks wait in it, by part, the most memory
# of a rank, and whether the model has the bytes of one rank. Seconds are those of the epochs after the first (EPOCHS is
# 2), without validation. With -p, PyTorch's DistributedDataParallel over gloo with as many processes. FOLDER needs two
# gigabytes.
set -eu
if [ $# -lt 3 ]; then sed -n '2,7s/^# //p' "$0" >&2; exit 2; fi
lacuna=$1 data=$2 folder=$3
shift 3
ranks="1 2 3 6 9" epochs=2 python=
while [ $# -gt 0 ]; do
  case $1 in
    -r) ranks=$2 ;;
    -e) epochs=$2 ;;
    -p) python=$2 ;;
    *) echo "bench/mpi.sh: no option $1" >&2; exit 2 ;;
  esac
  shift 2
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
mkdir -p "$folder"
run() { # TRANSPORT RANKS: the sum of the model; what the program says is in run.json
  local out=$folder/model.safetensors
  rm -f "$out"*
  # shellcheck disable=SC2086
  mpirun -n "$2" --mca btl "self,$1" "$lacuna" train $data --preset authors --epochs "$epochs" --threads 1 --device cpu \
    --validate-every "$epochs" --checkpoint-every 36000 --quiet --json --out "$out" >"$folder/run.json" 2>"$folder/run.log" ||
    { cat "$folder/run.log" >&2; exit 1; }
  python3 -c "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest()[:16])" "$out"
}
first='' one=''
printf '%-6s %5s %8s %6s  %-34s %-34s %6s  %s\n' line ranks s/step times 'MB sent: embeddings gradients' 's waited: embeddings gradients' 'MB' model
for transport in vader tcp; do
  for n in $ranks; do
    if [ "$transport" = tcp ] && [ "$n" = 1 ]; then continue; fi
    sum=$(run "$transport" "$n")
    : "${first:=$sum}"
    line=$(python3 - "$folder/run.json" "$epochs" "$sum" "$first" "${one:-0}" <<'END'
import json, sys
run, epochs = json.load(open(sys.argv[1])), int(sys.argv[2])
steps = -(-run["rows"]["train"] // 128)
history = [entry["seconds"] for entry in run["history"]]
seconds = (history[-1] - history[0]) / steps / (epochs - 1)
parts = [rank.get("parts", {}) for rank in run.get("ranks", [])] or [{}]
value = lambda part, name: [rank.get(part, {}).get(name, 0) / steps / epochs for rank in parts]
sent = "".join(f"{max(value(part, 'sent')) / 1e6:17.3f}" for part in ("embeddings", "gradients"))
waited = "".join(f"{sum(value(part, 'seconds')) / len(parts):17.4f}" for part in ("embeddings", "gradients"))
one = float(sys.argv[5]) or seconds
peak = max([rank['peak_bytes'] for rank in run.get('ranks', [])] or [0]) / 1e6  # of a rank
print(f"{seconds:8.3f} {one / seconds:6.2f} {sent} {waited} {peak:6.0f}  {'same bytes' if sys.argv[3] == sys.argv[4] else 'OTHER BYTES'}")
END
)
    one=${one:-$(awk '{print $1}' <<<"$line")}
    printf '%-6s %5s %s\n' "$transport" "$n" "$line"
  done
done
[ -z "$python" ] || for n in $ranks; do
  printf '%-6s %5s %8s s/step\n' ddp "$n" "$("$python" "$(dirname "$0")/peer_ddp.py" 1 "$n" 3)"
done
