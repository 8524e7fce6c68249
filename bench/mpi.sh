#!/bin/bash
# usage: bench/mpi.sh LACUNA DATA FOLDER [-r "RANKS..."] [-e EPOCHS] [-p PYTHON]
# Training of the paper's network on 1 and on more ranks of one machine, one thread each, through shared memory and
# through TCP: seconds of an epoch, what a rank sends and how long it waits, and whether the model has the bytes of one
# rank. With -p, PyTorch's DistributedDataParallel over gloo with as many processes. FOLDER needs a gigabyte per model.
set -eu
if [ $# -lt 3 ]; then sed -n '2,5s/^# //p' "$0" >&2; exit 2; fi
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
first=
printf '%-6s %5s %12s %10s %12s %12s  %s\n' line ranks 's/epoch' times 'MB sent/step' 'wait s/step' model
one=
for transport in vader tcp; do
  for n in $ranks; do
    if [ "$transport" = tcp ] && [ "$n" = 1 ]; then continue; fi
    out=$folder/model.safetensors
    rm -f "$out"*
    mpirun -n "$n" --mca btl "self,$transport" "$lacuna" train "$data" --preset authors --epochs "$epochs" --threads 1 --device cpu \
      --validate-every "$epochs" --checkpoint-every 36000 --quiet --json --out "$out" >"$folder/run.json" 2>"$folder/run.log" ||
      { cat "$folder/run.log"; exit 1; }
    sum=$(sha256sum "$out" | cut -c1-16)
    : "${first:=$sum}"
    line=$(python3 - "$folder/run.json" "$epochs" "$sum" "$first" "${one:-0}" <<'END'
import json, sys
run, epochs = json.load(open(sys.argv[1])), int(sys.argv[2])
seconds = run["history"][-1]["seconds"] / epochs
steps = -(-run["rows"]["train"] // 128) * epochs
ranks = run.get("ranks", [])
sent = max((r["sent"] for r in ranks), default=0) / steps / 1e6
wait = sum(r["seconds"] for r in ranks) / max(len(ranks), 1) / steps
one = float(sys.argv[5]) or seconds
print(f"{seconds:12.3f} {one / seconds:10.2f} {sent:12.2f} {wait:12.4f}  {'same bytes' if sys.argv[3] == sys.argv[4] else 'OTHER BYTES'}")
END
)
    one=${one:-$(awk '{print $1}' <<<"$line")}
    printf '%-6s %5s %s\n' "$transport" "$n" "$line"
  done
done
[ -z "$python" ] || for n in $ranks; do
  printf '%-6s %5s %12s s/step\n' ddp "$n" "$("$python" "$(dirname "$0")/peer_ddp.py" 1 "$n" 3)"
done
