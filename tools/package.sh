#!/bin/sh
# Packages of one build folder: two .deb files and a tar that runs on other distributions. The same sources give the same
# bytes: times are those of the last commit (or of SOURCE_DATE_EPOCH), names are sorted, owners are root.
# usage: tools/package.sh BUILD OUT
set -eu
build=$1 out=$2
here=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^project(Lacuna VERSION \([0-9.]*\).*/\1/p' "$here/CMakeLists.txt")
[ -n "${SOURCE_DATE_EPOCH:-}" ] || SOURCE_DATE_EPOCH=$(git -C "$here" log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# What dpkg-shlibdeps finds that these files need, as a Depends field.
libraries_of() {
  mkdir -p "$work/debian" && : > "$work/debian/control"
  (cd "$work" && dpkg-shlibdeps -O --ignore-missing-info "$@" 2>/dev/null) | sed 's/^shlibs:Depends=//'
}

# NAME DEPENDS DESCRIPTION: a package of the files in $work/NAME.
debian_package() {
  root=$work/$1
  mkdir -p "$root/DEBIAN" "$root/usr/share/doc/$1"
  cp "$here/packaging/copyright" "$root/usr/share/doc/$1/copyright"
  find "$root" -newermt "@$SOURCE_DATE_EPOCH" -print0 | xargs -0r touch --no-dereference --date="@$SOURCE_DATE_EPOCH"
  cat > "$root/DEBIAN/control" <<CONTROL
Package: $1
Version: $version
Architecture: amd64
Maintainer: The founders of Lacuna <lacuna@localhost>
Installed-Size: $(du -k --apparent-size -s "$root/usr" | cut -f1)
Depends: $2
Section: science
Priority: optional
Description: $3
CONTROL
  dpkg-deb --root-owner-group -Zxz --build "$root" "$out/$1_${version}_amd64.deb" > /dev/null
}

cmake --install "$build" --prefix "$work/lacuna/usr" --component program --strip > /dev/null
find "$work/lacuna/usr/share/man" -name '*.1' -exec gzip -9n {} +
mv "$work/lacuna/usr/share/doc/Lacuna" "$work/lacuna/usr/share/doc/lacuna"
"$here/tools/licences.sh" "$work/lacuna/usr/share/doc/lacuna/licences"
debian_package lacuna "$(libraries_of "$work/lacuna/usr/bin/lacuna")" \
  "multi-label learning with missing views and unknown labels"

cmake --install "$build" --prefix "$work/liblacuna-dev/usr" --component development > /dev/null
"$here/tools/licences.sh" "$work/liblacuna-dev/usr/share/doc/liblacuna-dev/licences"
find "$work/liblacuna-dev/usr" -name 'liblacuna.so.*.*' -exec strip --strip-unneeded {} +
shared=$(find "$work/liblacuna-dev/usr" -name 'liblacuna.so.*.*')
debian_package liblacuna-dev "$(libraries_of "$shared"), libfmt-dev, nlohmann-json3-dev, libeigen3-dev,
 zlib1g-dev, libmatio-dev, libhdf5-dev, pkg-config" "library and headers of Lacuna, for C and C++"

# The tar: the program with every library but the C library inside, and what goes with it.
name=lacuna-$version-linux-x86_64
mkdir -p "$work/$name/bin"
cp -r "$work/lacuna/usr/share" "$work/$name/share"
strip -o "$work/$name/bin/lacuna" "$build/lacuna_portable"
tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
  --pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime "$name" | gzip -9n > "$out/$name.tar.gz"
(cd "$out" && sha256sum -- *"$version"*)
