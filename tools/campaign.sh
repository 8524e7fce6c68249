#!/bin/bash
# A year of faults in HOURS: fuzzing of every reader for nine tenths of the time, then kills, full disks, injected errors, memory
# limits and the thread sanitizer. Prints one table; exits with 1 if anything failed.
# usage: tools/campaign.sh BUILD HOURS
set -eu
build=$1
seconds=$(awk "BEGIN { print int($2 * 3600) }")
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
jobs=$(nproc)
status=0
out=$build/campaign
mkdir -p "$out"

CXX=clang++-14 cmake -S . -B "$build/fuzz" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DLACUNA_TESTS=OFF -DLACUNA_FUZZ=ON -DLACUNA_CUDA=OFF > "$out/configure.log"
ninja -C "$build/fuzz" tests/fuzz/all > "$out/build.log"
cmake -S . -B "$build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DLACUNA_TESTS=OFF >> "$out/configure.log"
ninja -C "$build/release" >> "$out/build.log"
cc -shared -fPIC -O1 -o "$out/faulty_writes.so" tests/faulty_writes.c -ldl

# All forms at once, each its share of the time; as many as there are processors side by side.
forms=$(cd tests/fuzz/corpus && echo *)
share=$((seconds * 9 / 10 * jobs / $(echo "$forms" | wc -w)))
[ "$share" -gt 0 ] || share=1
echo "$forms" | tr ' ' '\n' | xargs -P "$jobs" -I{} sh -c "tests/fuzz/run.sh $build/fuzz $share {} > $out/fuzz-{}.log 2>&1 || echo {} >> $out/fuzz-failed" || true
executions=$(awk '/number_of_executed_units/ { n += $NF } END { printf "%.3g", n }' "$out"/fuzz-*.log)
peak=$(awk '/peak_rss_mb/ { if ($NF > n) n = $NF } END { print n + 0 }' "$out"/fuzz-*.log)
failed=$(sort -u "$out/fuzz-failed" 2>/dev/null | tr '\n' ' ' || true)
rm -f "$out/fuzz-failed"
[ -z "$failed" ] || status=1

tools/faults.py "$build/release/lacuna" --kills "${KILLS:-1000}" --full "${FULL:-200}" --injected "${INJECTED:-200}" --memory "${MEMORY:-50}" \
  --preload "$out/faulty_writes.so" --out "$out/faults.json" > "$out/faults.txt" || status=1
make --no-print-directory test-threads > "$out/threads.log" 2>&1 && threads=passed || { threads=failed; status=1; }

echo "Commit $(git rev-parse --short HEAD), $(date -u +%F), $jobs processors."
echo
echo "| part | times | outcome |"
echo "|---|---|---|"
echo "| fuzz executions, $(echo "$forms" | wc -w) forms | $executions | ${failed:+failed: }${failed:-no failure}; largest process $peak MB |"
sed -n 's/^| \(kill\|full\|ENOSPC\|memory\)\(.*\)$/| \1\2/p' "$out/faults.txt" | awk -F'|' '{ print "|" $2 "|" $3 "|" $5 "|" }'
echo "| thread sanitizer: a training, predictions from eight threads, experiments in four processes, the server | | $threads |"
exit $status
