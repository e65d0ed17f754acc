#!/usr/bin/env bash
# Installs the library into a fresh prefix and builds a separate project against it, by CMake and by pkg-config.
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/tests/install" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
"$work/build/uses_tessera"
export PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig:$work/prefix/lib/$(gcc -print-multiarch)/pkgconfig"
# shellcheck disable=SC2046
g++ -std=c++20 "$source/tests/install/main.cpp" $(pkg-config --cflags --libs --static tessera) -o "$work/by_pkg_config"
"$work/by_pkg_config"
