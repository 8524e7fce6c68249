#!/bin/sh
# Tries the packages of `make package` where nothing else is installed: the .deb files on a bare Debian 12, whose apt
# resolves what they depend on; the tar there too and on another Debian. Needs root, debootstrap and the network.
# usage: tools/package_test.sh DIST [SUITE...]     (suites for the tar besides bookworm; default trixie)
set -eu
dist=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")/.." && pwd)
mirror=${MIRROR:-$(apt-get indextargets --format "\$(REPO_URI)" "Created-By: Packages" | grep -v security | head -n 1)}  # where this machine has its packages from
work=$(mktemp -d)
cleanup() {
  for root in "$work"/*/; do
    for place in proc dev; do if mountpoint -q "$root$place"; then umount "$root$place"; fi; done
  done
  rm -rf --one-file-system "$work"
}
trap cleanup EXIT

bare() {  # SUITE: a Debian with nothing but what is essential, and apt
  debootstrap --variant=minbase "$1" "$work/$1" "$mirror" > "$work/$1.log" 2>&1 || { tail "$work/$1.log"; exit 1; }
  mount --bind /dev "$work/$1/dev"
  mount -t proc proc "$work/$1/proc"
  cp /etc/resolv.conf "$work/$1/etc/resolv.conf"
  cp "$here/packaging/smoke.sh" "$work/$1/srv/smoke.sh"
}
inside() { root=$1; shift; chroot "$work/$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv "$@"; }

bare bookworm
cp "$dist"/*.tar.gz "$work/bookworm/srv"
inside bookworm sh -c 'cd /srv && tar xzf lacuna-*.tar.gz && sh smoke.sh /srv/lacuna-*/bin/lacuna'
echo "tar on bookworm: passed"
for suite in "${@:-trixie}"; do
  bare "$suite"
  cp "$dist"/*.tar.gz "$work/$suite/srv"
  inside "$suite" sh -c 'cd /srv && tar xzf lacuna-*.tar.gz && sh smoke.sh /srv/lacuna-*/bin/lacuna'
  echo "tar on $suite: passed"
done

cp "$dist"/*.deb "$work/bookworm/srv"
inside bookworm sh -c 'apt-get update -qq && apt-get install -y -qq --no-install-recommends /srv/lacuna_*.deb' > "$work/apt.log" 2>&1 ||
  { tail "$work/apt.log"; exit 1; }
inside bookworm sh -c 'sh /srv/smoke.sh /usr/bin/lacuna && test -s /usr/share/man/man1/lacuna.1.gz &&
  test -s /usr/share/bash-completion/completions/lacuna && test -s /usr/share/doc/lacuna/copyright && test -s /usr/share/doc/lacuna/README.md &&
  test -s /usr/share/doc/lacuna/licences/libfmt-dev && test -s /usr/share/doc/lacuna/packaging/lacuna-serve.service'
echo "lacuna.deb on bookworm: passed"
inside bookworm sh -c 'apt-get install -y -qq --no-install-recommends /srv/liblacuna-dev_*.deb g++ cmake make' > "$work/apt.log" 2>&1 ||
  { tail "$work/apt.log"; exit 1; }
mkdir "$work/bookworm/srv/examples"
cp -r "$here/tests/installed" "$here/examples/quickstart.c" "$work/bookworm/srv/examples"
inside bookworm sh -c 'cd /srv/examples && cmake -S installed -B build -DLACUNA_INCLUDE_DIR=/usr/include > log 2>&1 &&
  cmake --build build >> log 2>&1 && build/elsewhere && cc -std=c99 quickstart.c -o quickstart -lm $(pkg-config --cflags --libs lacuna) &&
  ./quickstart' || { tail "$work/bookworm/srv/examples/log"; exit 1; }
echo "liblacuna-dev.deb on bookworm, by CMake and pkg-config: passed"
inside bookworm sh -c 'apt-get remove -y -qq lacuna liblacuna-dev' > "$work/apt.log" 2>&1
if inside bookworm sh -c 'test -e /usr/bin/lacuna || test -e /usr/include/lacuna'; then
  echo "the packages left files behind" >&2
  exit 1
fi
echo "removed without traces: passed"
