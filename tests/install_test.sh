#!/usr/bin/env bash
# Installs the library into a fresh prefix and builds a separate project against it, by CMake and by pkg-config, with the
# shared library and with the static one.
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$source/tests/install" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
"$work/build/uses_tessera"
"$work/build/uses_shared"
export PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig:$work/prefix/lib/$(gcc -print-multiarch)/pkgconfig"
folder=$(pkg-config --variable=libdir tessera)
compile() { g++ -std=c++20 "$source/tests/install/main.cpp" "$@"; }

# shellcheck disable=SC2046
compile $(pkg-config --cflags --libs tessera) -o "$work/by_pkg_config"
LD_LIBRARY_PATH=$folder "$work/by_pkg_config"
readelf -d "$work/by_pkg_config" | grep -q 'NEEDED.*libtessera\.so\.0\]'
# The C++ API and nothing else, under the version of the symbols.
exported=$(nm -DC --defined-only "$folder/libtessera.so" | cut -d' ' -f3-)
if others=$(grep -vE '^(TESSERA_[0-9.]+$|((typeinfo|typeinfo name|vtable) for )?tessera::.*@@TESSERA_[0-9.]+$)' <<<"$exported"); then
  echo "libtessera.so also exports: $(head -5 <<<"$others")"
  exit 1
fi

# Where there is no shared library, --static names what the archive needs.
rm "$folder"/libtessera.so*
# shellcheck disable=SC2046
compile $(pkg-config --cflags --libs --static tessera) -o "$work/by_pkg_config_static"
"$work/by_pkg_config_static"
