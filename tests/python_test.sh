#!/usr/bin/env bash
# The Python package as the build made it. Usage: python_test.sh SOURCE BUILD. Skipped (77) where it could not be built.
set -euo pipefail
source=$(realpath "$1") build=$(realpath "$2")
if ! ls "$build"/python/tessera/_tessera*.so >/dev/null 2>&1; then
  reason=$("$source/scripts/python_env" "$build/python" 2>&1 >/dev/null) || { echo "skipped: $reason"; exit 77; }
  echo "skipped: the package is not built, though its tools are there: configure again, then build tessera_python"
  exit 77
fi
export PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=passive
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TESSERA_CACHE=$work/cache
cd "$work"  # nothing of the source tree is found by accident
"$build/python/env/bin/python" -m pytest -q -rs -p no:cacheprovider "$source/tests/python"
for example in "$source"/examples/python/*.py; do
  echo "== $example"
  case $example in
    *_cudnn.py) "$build/tessera" exec --device cpu -- "$build/python/env/bin/python" "$example" ;;
    *) "$build/python/env/bin/python" "$example" ;;
  esac
done
