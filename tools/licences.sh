#!/bin/sh
# Copies the licences of the libraries that are inside our programs, as Debian's packages state them
# (packaging/copyright says how each is used). usage: tools/licences.sh FOLDER
set -eu
mkdir -p "$1"
for package in libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libeigen3-dev libboost-dev zlib1g-dev libmatio-dev \
  libhdf5-dev libaec-dev libstdc++6; do
  cp -L "/usr/share/doc/$package/copyright" "$1/$package"
done
chmod 644 "$1"/*
