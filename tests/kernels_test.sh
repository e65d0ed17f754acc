#!/usr/bin/env bash
# Compiles a few graphs of every kernel family for every target and fails on spills, stack frames and the like.
# Usage: kernels_test.sh path/to/tessera SOURCE. Exit code 77: skipped, there is no compiler for kernels.
set -eu
cd "$2"
if ! "$1" doctor --json | python3 -c 'import json,sys; sys.exit(not json.load(sys.stdin)["nvrtc"]["found"])'; then
  echo "skipped: NVRTC was not found, no kernel can be compiled"
  exit 77
fi
"$1" compile
