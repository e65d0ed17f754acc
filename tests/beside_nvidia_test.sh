#!/usr/bin/env bash
# Our libcudnn.so.9 is preloaded into a process that also opens NVIDIA's: each answers for itself. CUDNN may name NVIDIA's
# file. Where none is found, the test is skipped (77).
set -euo pipefail
source=$1 build=$2
PATH=$PATH:/sbin:/usr/sbin

find_theirs() {
  if [ -n "${CUDNN:-}" ]; then echo "$CUDNN"; fi
  ls /usr/local/cuda/lib64/libcudnn.so.9 /usr/local/cuda*/lib*/libcudnn.so.9 2>/dev/null || true
  ldconfig -p | sed -n 's/.*=> *\(.*libcudnn\.so\.9\)$/\1/p'
}
theirs=$(find_theirs | sed -n 1p)
if [ -z "$theirs" ]; then
  echo "NVIDIA's libcudnn.so.9 was not found: nothing to stand beside"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cc "$source/tests/install/cudnn/beside.c" "-I$source/include/cudnn" "-L$build" -lcudnn -o "$work/beside"
run() { env -i HOME="$work" TESSERA_DEVICE=cpu TESSERA_REPORT_VERSION=90000 "$@"; }
for opened in local global; do
  for first in ours theirs; do
    run LD_PRELOAD="$build/libcudnn.so.9" "$work/beside" "$theirs" "$opened" "$first"
  done
  # Theirs may now find our sub-libraries where it looks for its own.
  run LD_LIBRARY_PATH="$build" "$work/beside" "$theirs" "$opened" mixed
done
