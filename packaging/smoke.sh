#!/bin/sh
# What an installed program must do: simulate, train, show, predict, evaluate, and resist a broken file.
# usage: smoke.sh LACUNA
set -eu
lacuna=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
"$lacuna" --version
"$lacuna" data simulate toy.npz --rows 120 --views 2 --labels 4 --sizes 8,6 --seed 1 > log 2>&1
"$lacuna" train toy.npz --out model.safetensors --epochs 3 --seed 1 >> log 2>&1
"$lacuna" show model.safetensors >> log
"$lacuna" predict model.safetensors toy.npz --out scores.csv >> log 2>&1
[ "$(wc -l < scores.csv)" = 121 ]
for form in mat h5mu; do  # MATLAB and HDF5, by the libraries that came along
  "$lacuna" data convert toy.npz "toy.$form" >> log 2>&1
  "$lacuna" data inspect "toy.$form" >> log 2>&1
done
head -c 100 model.safetensors > broken.safetensors
if "$lacuna" show broken.safetensors >> log 2>&1; then echo "a broken model was read" >&2; exit 1; fi
echo "smoke test passed"
