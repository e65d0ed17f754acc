#!/usr/bin/env bash
# Installs the library into a fresh prefix, looks at what cuDNN's interface exports there, and builds and runs programs
# against it: by pkg-config, by the CMake package, and with its sub-libraries.
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null
library=$(find "$work/prefix" -name libcudnn.so.9)
folder=$(dirname "$library")
programs=$source/tests/install/cudnn

# With nothing in the environment that could help to find libraries. (What is measured of the machine is kept in HOME.)
run() { env -i HOME="$work" TESSERA_DEVICE=cpu "$@"; }

size=$(stat -Lc %s "$library")
[ "$size" -lt 20000000 ] || { echo "$library has $size bytes, the limit is 20000000" >&2; exit 1; }
for file in "$folder"/libcudnn_*.so.9; do
  size=$(stat -Lc %s "$file")
  [ "$size" -lt 100000 ] || { echo "$file has $size bytes, the limit is 100000" >&2; exit 1; }
done
if readelf -d "$folder"/*.so.9 | grep -F "$build"; then
  echo "a library depends on the build folder" >&2
  exit 1
fi

"$source/tests/capi/exports.py" "$folder" "$source/src/capi"
# The check itself: a function that is missing is noticed, and one that is not listed.
mkdir -p "$work/lists/sublibraries"
cp "$source"/src/capi/*.map "$work/lists"
cp "$source"/src/capi/sublibraries/*.map "$work/lists/sublibraries"
for change in 's/    cudnnPoolingForward;/&\n    cudnnNotThere;/' '/cudnnPoolingForward;/d'; do
  sed "$change" "$source/src/capi/sublibraries/ops.map" >"$work/lists/sublibraries/ops.map"
  if "$source/tests/capi/exports.py" "$folder" "$work/lists" >/dev/null; then
    echo "exports.py accepts a wrong list: $change" >&2
    exit 1
  fi
done

PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name tessera-cudnn.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
cc "$programs/client.c" $(pkg-config --cflags --libs tessera-cudnn) -o "$work/by_pkg_config"
run "$work/by_pkg_config" "$library"

cmake -S "$programs" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
run "$work/build/uses_cudnn" "$library"

# The folder is a root of cuDNN, headers included.
link=("-I$folder/include" "-L$folder" "-Wl,-rpath,$folder" "-Wl,--no-as-needed")
for pair in graph:cudnnGraphVersionCheck ops:cudnnOpsVersionCheck cnn:cudnnCnnVersionCheck adv:cudnnAdvVersionCheck \
  ext:cudnnSubquadraticOpsVersionCheck engines_precompiled:none engines_runtime_compiled:none engines_tensor_ir:none \
  heuristic:none; do
  cc "$programs/part.c" "-DCALL=${pair#*:}" "${link[@]}" "-lcudnn_${pair%:*}" -o "$work/part"
  run "$work/part"
done
# One that was copied without the main library says so.
mkdir "$work/alone"
cp "$folder/libcudnn_heuristic.so.9" "$work/alone"
(ulimit -c 0 && run LD_LIBRARY_PATH="$work/alone" "$work/part") 2>"$work/said" || true
grep -qF "$work/alone/libcudnn_heuristic.so.9 needs libcudnn.so.9" "$work/said"

cc "$programs/client.c" "${link[@]}" -lcudnn_graph -lcudnn_ops -lcudnn_cnn -o "$work/by_parts"
run "$work/by_parts" "$folder/libcudnn_cnn.so.9" "$library"
all=()
for file in "$folder"/libcudnn_*.so; do
  name=$(basename "$file" .so)
  all+=("-l${name#lib}")
done
cc "$programs/client.c" "${link[@]}" -lcudnn "${all[@]}" -o "$work/by_all"
run "$work/by_all" "$library" "$folder"/libcudnn_*.so.9
echo "${#all[@]} sub-libraries; programs linked by pkg-config, by CMake and with the parts ran"
