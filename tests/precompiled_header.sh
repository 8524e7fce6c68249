#!/bin/sh
# A precompiled header that is made again holds what its headers say now, and does not depend on itself.
# usage: precompiled_header.sh SOURCE_FOLDER COMPILER
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
make_header() {
  "$source_folder/tools/instead.sh" "$compiler" -- g++ -x c++-header -include "$folder/all.h" -MD -MT all.h.gch -MF all.h.gch.d \
    -o all.h.gch -c all.h.cc
}
source_folder=$1 compiler=$2
echo '#include "one.h"' > all.h
: > all.h.cc
echo '#include "all.h"
static_assert(kOne == 2, "the old header");' > use.cc
echo '#pragma once
constexpr int kOne = 1;' > one.h
make_header
sed -i 's/= 1/= 2/' one.h
make_header
if grep -q ' all.h.gch' all.h.gch.d; then
  echo "the header depends on itself:"
  cat all.h.gch.d
  exit 1
fi
"$source_folder/tools/instead.sh" "$compiler" -- g++ -include "$folder/all.h" -c use.cc -o use.o
