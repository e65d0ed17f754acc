#!/usr/bin/env bash
# The Debian packages, built, looked at and used from a folder. Usage: deb_test.sh SOURCE. tests/deb_fresh.sh installs them.
# Skipped (77) where there is no Debian.
set -euo pipefail
source=$(realpath "$1")
command -v dpkg-shlibdeps >/dev/null || { echo "skipped: dpkg-shlibdeps is missing (Debian: dpkg-dev)"; exit 77; }
make --no-print-directory -C "$source" deb >/dev/null
packages=$source/build-deb/packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong() { echo "$1" >&2; exit 1; }

libraries=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
expected="libtessera-dev libtessera0 tessera tessera-cudnn"
found=$(for p in "$packages"/*.deb; do dpkg-deb -f "$p" Package; done | sort | xargs)
[ "$found" = "$expected" ] || wrong "packages: $found; expected: $expected"
for package in $expected; do
  file=$(echo "$packages/${package}"_[0-9]*.deb)
  dpkg-deb -x "$file" "$work/root"
  dpkg-deb -x "$file" "$work/$package"
  bytes=$(stat -c %s "$file")
  [ "$bytes" -lt 30000000 ] || wrong "$file has $bytes bytes"
  # Files of NVIDIA's names lie in the folder of this project alone, and nothing lies outside the folders of packages.
  (cd "$work/$package" && find . -not -type d | sed 's/^..//') >"$work/files"
  if others=$(grep -E 'cudnn|cudart' "$work/files" |
    grep -vE "^usr/($libraries/tessera|include/tessera-cudnn|share/doc/$package|$libraries/pkgconfig/tessera-cudnn\.pc)"); then
    wrong "$package has files outside its folder: $others"
  fi
  if others=$(grep -vE "^usr/(bin/tessera$|$libraries/|include/tessera|share/(doc|man)/)" "$work/files"); then
    wrong "$package: $others"
  fi
done
# Run-time files and those for compiling are apart.
for file in tessera-cudnn/usr/$libraries/tessera/{libcudnn.so.9,libtessera_exec.so,host/libcudart.so.12,host/libcudart.so.13} \
  libtessera0/usr/$libraries/libtessera.so.0 tessera/usr/bin/tessera libtessera-dev/usr/$libraries/{libtessera.so,tessera/libcudnn.so}; do
  [ -e "$work/$file" ] || [ -L "$work/$file" ] || wrong "$file is missing"
done
[ "$(dpkg-deb -f "$packages"/libtessera-dev_*.deb Depends | grep -oE '\(= [^)]*\)' | wc -l)" -eq 2 ] ||
  wrong "libtessera-dev does not depend on the libraries of its own version"

"$work/root/usr/bin/tessera" run 'x = input f32[4,64]; y = gelu (rms_norm x axes=1); output y' --check | grep -q "agree with the oracle"
"$work/root/usr/bin/tessera" exec --device cpu -- true 2>&1 | grep -qF "$work/root/usr/$libraries/tessera/libcudnn.so.9"

if command -v lintian >/dev/null; then
  lintian --fail-on=warning "$packages"/*.deb
else
  echo "lintian is not installed; tests/deb_fresh.sh runs it"
fi
ls -s --block-size=kB "$packages" | sed 1d
