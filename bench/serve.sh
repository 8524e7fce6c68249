#!/bin/sh
# The server's figures beside those of a peer in the same run: onnxruntime behind node's http server. Client and server
# share the machine; everything goes to 127.0.0.1.
# usage: bench/serve.sh BUILD [SECONDS]      BUILD: a build with -DLACUNA_BENCH=ON; SECONDS of each measurement (5)
#        MEMORY_SECONDS=600 bench/serve.sh ...      how long memory is watched at full load, 10 or more (120); 0: not
#        SETS="emotions corel5k corel5k-bare": what is measured; -bare is without the memory of training rows
#        PYTHON: one with numpy (/usr/bin/python3); DATA: the folder of the data sets (../shared/data)
set -eu
build=$(realpath "$1")
seconds=${2:-5}
memory_seconds=${MEMORY_SECONDS:-120}
sets=${SETS-emotions corel5k corel5k-bare}
here=$(dirname "$(realpath "$0")")
data=${DATA:-$here/../../shared/data}
work=$build/serve
npm=$here/../build/npm
lacuna=$build/lacuna
python=${PYTHON:-/usr/bin/python3}
for tool in wrk bc "$python" "$build/bench/constant_rate" "$build/bench/predict_rate"; do
  command -v "$tool" > /dev/null || { echo "serve.sh: $tool is not there" >&2; exit 1; }
done
mkdir -p "$work"
"$here/../tools/npm-packages.sh" "$npm" onnxruntime-node@1.30.0 || echo "no peer: onnxruntime-node is not to be had" >&2
servers=""
trap 'for pid in $servers; do kill "$pid" 2>/dev/null || true; done' EXIT INT TERM

quietly() { # COMMAND...: says something if it fails alone
  "$@" > "$work/quiet.log" 2>&1 || { cat "$work/quiet.log" >&2; exit 1; }
}
prepare() { # NAME FILE MEMORY: model, ONNX file and requests
  [ -f "$work/$1.npz" ] || quietly "$lacuna" data convert "$2" "$work/$1.npz"
  [ -f "$work/$1.safetensors" ] || quietly "$lacuna" train "$work/$1.npz" --epochs 3 --memory "$3" --out "$work/$1.safetensors"
  quietly "$lacuna" export "$work/$1.safetensors" "$work/$1.onnx"
  "$python" "$here/serve_requests.py" "$work/$1.npz" "$1" "$work" 1 256 > /dev/null
}
waits_for() { # PID LOG: a moment, if it is still there
  kill -0 "$1" || { cat "$2" >&2; exit 1; }
  sleep .1
}
start() { # NAME: sets ours, our_port, peer, peer_port
  rm -f "$work/ours.log" "$work/peer.port" # those of the server before
  "$lacuna" serve "m=$work/$1.safetensors" --listen 127.0.0.1:0 --precision f32 2> "$work/ours.log" &
  ours=$!
  servers="$servers $ours"
  peer_port=""
  if [ -d "$npm/node_modules/onnxruntime-node" ]; then
    node "$here/peer_onnx.mjs" "$npm/node_modules" "$work/$1.onnx" > "$work/peer.port" 2> "$work/peer.log" &
    peer=$!
    servers="$servers $peer"
    while [ ! -s "$work/peer.port" ]; do waits_for "$peer" "$work/peer.log"; done
    peer_port=$(cat "$work/peer.port")
  fi
  while ! grep -qs '^listening on' "$work/ours.log"; do waits_for "$ours" "$work/ours.log"; done
  our_port=$(sed -n 's|^listening on http://127.0.0.1:||p' "$work/ours.log")
}
stop() {
  kill "$ours" ${peer_port:+"$peer"}
  wait "$ours" || echo "the server ended with $?" >&2
}
rate() { # PORT STEM CONNECTIONS: requests a second
  wrk -t 1 -c "$3" -d "${seconds}s" -s "$2.lua" "http://127.0.0.1:$1/v2/models/m/infer" > "$work/wrk.log"
  grep -E 'Non-2xx|Socket errors' "$work/wrk.log" >&2 || true
  sed -n 's|^Requests/sec: *||p' "$work/wrk.log"
}
p99() { # PORT STEM RATE: milliseconds at so many requests a second
  "$build/bench/constant_rate" "$1" /v2/models/m/infer "$2" "$(cat "$2.json-bytes")" "$3" "$seconds" 64 |
    sed 's/.*"p99": \([0-9.a-z]*\).*/\1/'
}
row() { # WHAT OURS PEER
  printf '| %-44s | %12s | %12s |\n' "$1" "$2" "$3"
}
echo "load of the machine before: $(cut -d' ' -f1-3 /proc/loadavg)" >&2
row "what" "lacuna serve" "node + ort"
row "---" "---" "---"
single() { # NAME KIND WHAT RATE: the most of each, then p99 of both at RATE a second and of each at half of its most
  stem=$work/$1-1-$2
  mine=$(rate "$our_port" "$stem" 64)
  theirs="-"
  [ -n "$peer_port" ] && theirs=$(rate "$peer_port" "$stem" 64)
  row "$3, $2: requests a second" "$mine" "$theirs"
  late=$(p99 "$our_port" "$stem" "$4")
  peer_late="-"
  [ -n "$peer_port" ] && peer_late=$(p99 "$peer_port" "$stem" "$4")
  row "$3, $2: p99 at $4 a second, ms" "$late" "$peer_late"
  late=$(p99 "$our_port" "$stem" "$(echo "$mine / 2" | bc -l)")
  [ -n "$peer_port" ] && peer_late=$(p99 "$peer_port" "$stem" "$(echo "$theirs / 2" | bc -l)")
  row "$3, $2: p99 at half of its own most, ms" "$late" "$peer_late"
}
memory() { awk '/VmRSS/ {print $2}' "/proc/$ours/status"; }

corel5k() { # NAME WHAT: single rows and batches
  start "$1"
  single "$1" binary "$2" 1250
  single "$1" json "$2" 200
  stem=$work/$1-256-binary
  mine=$(rate "$our_port" "$stem" 4)
  theirs=-
  [ -n "$peer_port" ] && theirs=$(echo "$(rate "$peer_port" "$stem" 4) * 256" | bc -l | cut -d. -f1)
  mine=$(echo "$mine * 256" | bc -l | cut -d. -f1)
  row "$2, batches of 256: rows a second" "$mine" "$theirs"
  whole=$("$build/bench/predict_rate" "$work/$1.safetensors" "$work/$1.npz" "$seconds")
  row "  share of predict from memory ($whole)" "$(echo "100 * $mine / $whole" | bc) %" "-"
  stop
}
for set in $sets; do
  case $set in
    emotions)
      prepare emotions "$data/emotions/emotions.mat" off
      start emotions
      single emotions binary "emotions" 7500
      single emotions json "emotions" 5000
      stop
      ;;
    corel5k)
      prepare corel5k "$data/corel5k/corel5k_six_view.mat" 1
      corel5k corel5k "Corel5k, with a memory"
      ;;
    corel5k-bare)
      prepare corel5k-bare "$data/corel5k/corel5k_six_view.mat" off
      corel5k corel5k-bare "Corel5k"
      ;;
    *)
      echo "serve.sh: there is no set $set" >&2
      exit 1
      ;;
  esac
done
[ "$memory_seconds" -gt 0 ] || exit 0
prepare corel5k "$data/corel5k/corel5k_six_view.mat" 1
npm=none
start corel5k # a fresh one, so that its memory has not grown before, and without a peer beside it
seconds=$memory_seconds
rate "$our_port" "$work/corel5k-1-binary" 64 > "$work/memory.rate" &
load=$!
sleep 10
early=$(memory)
row "memory after 10 s of full load, KB" "$early" "-"
wait "$load"
late=$(memory)
row "memory after $memory_seconds s, KB" "$late" "-"
row "  growth" "$(echo "scale=1; 100 * ($late - $early) / $early" | bc) %" "-"
row "  requests a second meanwhile" "$(cat "$work/memory.rate")" "-"
stop
