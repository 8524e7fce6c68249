#!/bin/bash
# usage: bench/mpi.sh LACUNA DATA FOLDER [-r "RANKS..."] [-e EPOCHS] [-p PYTHON]
# Training of the paper's network on 1 and on more ranks of one machine, one thread each, through shared memory and
# through TCP: seconds of a step, what a rank sends and how long it waits in it, and whether the model has the bytes of
# one rank. Everything is the difference between a training of 1 epoch and one of EPOCHS (3), so that preparation,
# validation and the gathering of the model do not count. With -p, PyTorch's DistributedDataParallel over gloo with as
# many processes. FOLDER needs two gigabytes.
set -eu
if [ $# -lt 3 ]; then sed -n '2,7s/^# //p' "$0" >&2; exit 2; fi
lacuna=$1 data=$2 folder=$3
shift 3
ranks="1 2 3 6 9" epochs=3 python=
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
run() { # TRANSPORT RANKS EPOCHS: the sum of the model; what the program says is in run-EPOCHS.json
  local out=$folder/model.safetensors
  rm -f "$out"*
  # shellcheck disable=SC2086
  mpirun -n "$2" --mca btl "self,$1" "$lacuna" train $data --preset authors --epochs "$3" --threads 1 --device cpu \
    --validate-every "$3" --checkpoint-every 36000 --quiet --json --out "$out" >"$folder/run-$3.json" 2>"$folder/run.log" ||
    { cat "$folder/run.log" >&2; exit 1; }
  python3 -c "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest()[:16])" "$out"
}
first='' one=''
printf '%-6s %5s %8s %8s %13s %12s  %s\n' line ranks s/step times 'MB sent/step' 'wait s/step' model
for transport in vader tcp; do
  for n in $ranks; do
    if [ "$transport" = tcp ] && [ "$n" = 1 ]; then continue; fi
    run "$transport" "$n" 1 >/dev/null
    sum=$(run "$transport" "$n" "$epochs")
    : "${first:=$sum}"
    line=$(python3 - "$folder/run-1.json" "$folder/run-$epochs.json" "$epochs" "$sum" "$first" "${one:-0}" <<'END'
import json, sys
short, long, more = json.load(open(sys.argv[1])), json.load(open(sys.argv[2])), int(sys.argv[3]) - 1
steps = -(-long["rows"]["train"] // 128) * more
total = lambda run, what: [rank[what] for rank in run.get("ranks", [])] or [0]
seconds = (long["history"][-1]["seconds"] - short["history"][-1]["seconds"]) / steps
sent = max(b - a for a, b in zip(total(short, "sent"), total(long, "sent"))) / steps / 1e6
wait = (sum(total(long, "seconds")) - sum(total(short, "seconds"))) / len(total(long, "seconds")) / steps
one = float(sys.argv[6]) or seconds
print(f"{seconds:8.3f} {one / seconds:8.2f} {sent:13.2f} {wait:12.4f}  {'same bytes' if sys.argv[4] == sys.argv[5] else 'OTHER BYTES'}")
END
)
    one=${one:-$(awk '{print $1}' <<<"$line")}
    printf '%-6s %5s %s\n' "$transport" "$n" "$line"
  done
done
[ -z "$python" ] || for n in $ranks; do
  printf '%-6s %5s %8s s/step\n' ddp "$n" "$("$python" "$(dirname "$0")/peer_ddp.py" 1 "$n" 3)"
done
