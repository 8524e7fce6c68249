#!/bin/sh
# Installs every package that the build and the tests need (Debian 12 names). Does nothing when all are there.
# usage: tools/install-packages.sh [build] [mpi] [test] [wheel] [package] [bench]
set -eu
packages="g++ cmake ninja-build pkg-config ccache libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libeigen3-dev
          zlib1g-dev libmatio-dev libhdf5-dev libboost-dev"
node=no
for group in "$@"; do
  case $group in
    build) ;;
    mpi) packages="$packages libopenmpi-dev openmpi-bin" ;;
    test) packages="$packages libgtest-dev librapidcheck-dev chromium mandoc clang-14 libclang-rt-14-dev lld-14 python3-minimal
          python3-venv python3-pip python3-numpy python3-scipy python3-pandas python3-sklearn python3-joblib python3-matplotlib
          python3-anndata python3-h5py python3-onnx python3-torch curl"; node=yes ;;
    wheel) packages="$packages python3 binutils" ;;
    package) packages="$packages dpkg-dev binutils xz-utils debootstrap" ;;
    bench) packages="$packages python3-minimal python3-numpy python3-scipy python3-sklearn python3-torch libdnnl-dev
          libopenblas-dev wrk bc"; node=yes ;;
    *) echo "tools/install-packages.sh: no group '$group' (build, mpi, test, wheel, package, bench)" >&2; exit 2 ;;
  esac
done
# Node.js also comes from elsewhere, with an npm of its own that Debian's would conflict with.
if [ $node = yes ] && ! { command -v node && command -v npm; } > /dev/null; then packages="$packages nodejs npm"; fi
missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
echo "installing:$missing"
root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "need root (or sudo) to install:$missing" >&2; exit 1; }
  root="sudo"
fi
$root apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing
