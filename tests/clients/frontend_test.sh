#!/usr/bin/env bash
# cudnn-frontend as a client of the library, on the processor. Usage: frontend_test.sh python|cpp BUILD
set -euo pipefail
kind=$1 build=$(realpath "$2") here=$(dirname "$(realpath "$0")")
export OMP_WAIT_POLICY=passive

case $kind in
python)
  "$here/setup_frontend" "$build/frontend" >/dev/null
  export PYTHONDONTWRITEBYTECODE=1
  client=("$build/frontend/env/bin/python" "$here/frontend_client.py")
  TESSERA_DEVICE=cpu LD_LIBRARY_PATH=$build "${client[@]}"  # as on a machine that has nothing of CUDA
  "$build/tessera" exec --device cpu -- "${client[@]}"
  ;;
cpp)
  "$here/build_frontend" "$build"
  "$build/tessera" exec --device cpu -- "$build/frontend/client_test" --gtest_brief=1
  ;;
esac
