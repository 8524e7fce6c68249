#!/bin/sh
# Installs packages of npm for tests and benchmarks into a folder of the build, without their scripts. Exit code 77, and
# the reason on stderr, where npm or its registry is not to be had.
# usage: tools/npm-packages.sh FOLDER PACKAGE@VERSION...
set -eu
folder=$1
shift
command -v node >/dev/null && command -v npm >/dev/null || { echo "no npm here: npm packages cannot be installed" >&2; exit 77; }
mkdir -p "$folder"
exec 9> "$folder/.lock"
flock 9 # two tests may ask at once
missing=""
for package in "$@"; do
  grep -qs "\"version\": \"${package##*@}\"" "$folder/node_modules/${package%@*}/package.json" || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
[ -f "$folder/package.json" ] || echo '{"private": true}' > "$folder/package.json"
# shellcheck disable=SC2086
timeout 300 npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error $missing >&2 \
  || { echo "npm cannot install$missing" >&2; exit 77; }
