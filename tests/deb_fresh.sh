#!/usr/bin/env bash
# The Debian packages of FOLDER on a Debian that has nothing else of this project: installed, used, removed. It changes the
# machine that it runs on, which is meant to be a fresh one:
#
#   make deb && scripts/fresh --with build-deb/packages -- tests/deb_fresh.sh build-deb/packages
set -euo pipefail
packages=$(realpath "$1") source=$(dirname "$(dirname "$(realpath "$0")")")
work=$(mktemp -d)
step() { printf '== %s\n' "$1"; }
wrong() { echo "$1" >&2; exit 1; }
export DEBIAN_FRONTEND=noninteractive
apt() { apt-get -qq -y -o Dpkg::Use-Pty=0 "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }; }
apt update
libraries=/usr/lib/$(dpkg --print-architecture | sed 's/amd64/x86_64/; s/arm64/aarch64/')-linux-gnu

step "beside a libcudnn.so.9 that is there already"
echo "NVIDIA's" >"$libraries/libcudnn.so.9"

step "the command line and the drop-in library"
apt install --no-install-recommends "$packages"/tessera_*.deb "$packages"/tessera-cudnn_*.deb
tessera run 'x = input f32[1,16,14,14]; w = input f32[16,16,3,3]; y = conv_fprop x w pad=1,1; output y' --check | grep "agree with the oracle"
tessera doctor >/dev/null
tessera exec --device cpu -- true 2>&1 | grep -F "$libraries/tessera/libcudnn.so.9"
if ldconfig -p | grep -F /tessera/; then wrong "the linker finds the drop-in library unasked"; fi

step "programs, by pkg-config and by CMake"
apt install --no-install-recommends "$packages"/libtessera0_*.deb "$packages"/libtessera-dev_*.deb g++ cmake pkg-config
# shellcheck disable=SC2046
g++ -std=c++20 "$source/tests/install/main.cpp" $(pkg-config --cflags --libs tessera) -o "$work/program"
# shellcheck disable=SC2046
cc "$source/tests/install/cudnn/client.c" $(pkg-config --cflags --libs tessera-cudnn) -o "$work/client"
TESSERA_DEVICE=cpu "$work/client" "$libraries/tessera/libcudnn.so.9"
cmake -S "$source/tests/install" -B "$work/build" >/dev/null
cmake --build "$work/build" >/dev/null
"$work/build/uses_tessera"

step "without the files for compiling"
apt purge libtessera-dev
"$work/program"

step "removed"
apt purge libtessera0 tessera tessera-cudnn
left=$(find /usr -name '*tessera*' -not -path "$source/*")
[ -z "$left" ] || wrong "left over: $left"
[ "$(cat "$libraries/libcudnn.so.9")" = "NVIDIA's" ] || wrong "the other libcudnn.so.9 was changed"
rm "$libraries/libcudnn.so.9"

step "lintian"
apt install --no-install-recommends lintian
lintian --fail-on=warning "$packages"/*.deb
rm -r "$work"
echo "the packages work"
