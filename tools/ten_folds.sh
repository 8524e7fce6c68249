#!/bin/sh
# Trains systems on the folds of a data set under the strict protocol and writes one JSON line a run.
#
#   LACUNA=build/release/lacuna DATA=../shared/data/corel5k OUT=build/folds tools/ten_folds.sh
#   python3 tools/summarise_folds.py build/folds/results.jsonl
#
# Environment, with defaults:
#   LACUNA   the program                        build/release/lacuna
#   DATA     folder with the data and its folds ../shared/data/corel5k
#   FILE     data file in it                    corel5k_six_view.mat
#   FOLDS    folds file in it                   corel5k_six_view_MaskRatios_0.5_LabelMaskRatio_0.5_TraindataRatio_0.7.mat
#   OUT      folder for results                 build/folds
#   SYSTEMS  of one alone three distilled ...   "distilled three one"   (the longest first keeps all cores busy)
#   WHICH    folds                              "0 1 2 3 4 5 6 7 8 9"
#   JOBS     runs at once                       number of cores / THREADS
#   THREADS  threads of a run                   2
#   MORE     more flags of lacuna train         none   (--precision bf16)
#
# A run that is already in OUT is left out, so that an interrupted call can be repeated.
set -eu
LACUNA=${LACUNA:-build/release/lacuna}
DATA=${DATA:-../shared/data/corel5k}
FILE=${FILE:-corel5k_six_view.mat}
FOLDS=${FOLDS:-corel5k_six_view_MaskRatios_0.5_LabelMaskRatio_0.5_TraindataRatio_0.7.mat}
OUT=${OUT:-build/folds}
SYSTEMS=${SYSTEMS:-distilled three one}
WHICH=${WHICH:-0 1 2 3 4 5 6 7 8 9}
THREADS=${THREADS:-2}
cores=$(getconf _NPROCESSORS_ONLN)
JOBS=${JOBS:-$(( (cores + THREADS - 1) / THREADS ))}
MORE=${MORE:-}
export LACUNA DATA FILE FOLDS OUT THREADS MORE

case $(basename "$0"):${1:-} in
*:--one)
  system=$2 fold=$3 stem=$OUT/$2.$3
  [ -s "$stem.json" ] && exit 0
  case $system in
  one) flags="--preset best" ;;
  alone) flags="--preset best --memory off" ;;
  three) flags="--preset best --members 3" ;;
  distilled) flags="--preset distilled" ;;
  distilled3) flags="--preset distilled --members 3" ;;
  plain) flags="--preset best --prepare log-pca --guess-weight 0" ;;
  wide) flags="--preset best --encoder-widths 2048 --weight-decay 8" ;;
  early) flags="--preset best --fusion early --encoder-widths 2048 --gamma 0" ;;
  *) flags="--preset $system" ;;
  esac
  begin=$(date +%s)
  # The words of flags and of MORE are separate arguments on purpose.
  # shellcheck disable=SC2086
  "$LACUNA" train "$DATA/$FILE" --folds "$DATA/$FOLDS" --fold "$fold" --threads "$THREADS" --validate-every 5 \
    --checkpoint-every 1000000 --quiet --json $flags $MORE --out "$stem.safetensors" >"$stem.train" 2>"$stem.log"
  end=$(date +%s)
  "$LACUNA" predict "$stem.safetensors" "$DATA/$FILE" --folds "$DATA/$FOLDS" --fold "$fold" --part test \
    --threads "$THREADS" --out "$stem.npy" >>"$stem.log" 2>&1
  "$LACUNA" evaluate "$stem.npy" "$DATA/$FILE" --folds "$DATA/$FOLDS" --fold "$fold" --part test --json \
    >"$stem.test" 2>>"$stem.log"
  {
    printf '{"system":"%s","fold":%s,"flags":"%s %s","seconds":%s,"train":' \
      "$system" "$fold" "$flags" "$MORE" $((end - begin))
    tr -d '\n' <"$stem.train"
    printf ',"test":'
    tr -d '\n' <"$stem.test"
    printf '}\n'
  } >"$stem.json.part"
  mv "$stem.json.part" "$stem.json"
  rm -f "$stem.npy" "$stem.train" "$stem.test" "$stem.safetensors.history.json"
  [ "$fold" = 0 ] || rm -f "$stem.safetensors"
  exit 0
  ;;
esac

mkdir -p "$OUT"
for system in $SYSTEMS; do
  for fold in $WHICH; do echo "$system $fold"; done
done | xargs -P "$JOBS" -L 1 "$0" --one || echo "some runs failed: see the .log files in $OUT" >&2
cat "$OUT"/*.json >"$OUT/results.jsonl"
echo "$(wc -l <"$OUT/results.jsonl") runs in $OUT/results.jsonl"
