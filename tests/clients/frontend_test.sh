#!/usr/bin/env bash
# cudnn-frontend as a client of the library, on the processor. Usage: frontend_test.sh python|cpp BUILD
set -euo pipefail
kind=$1 build=$(realpath "$2") here=$(dirname "$(realpath "$0")")
packages=$("$here/setup_frontend" "$build/frontend")
export OMP_WAIT_POLICY=passive

case $kind in
python)
  export PYTHONDONTWRITEBYTECODE=1
  client=("$build/frontend/env/bin/python" "$here/frontend_client.py")
  TESSERA_DEVICE=cpu LD_LIBRARY_PATH=$build "${client[@]}"  # as on a machine that has nothing of CUDA
  "$build/tessera" exec --device cpu -- "${client[@]}"
  ;;
cpp)
  compiler=${CXX:-c++} program=$build/frontend/client_test
  $(command -v ccache || true) "$compiler" -std=c++17 -O0 -Wall -Wextra -c "$here/frontend/client_test.cpp" -o "$program.o" \
    -I"$here/frontend/nvrtc" -I"$here/../../include/cudnn" -isystem "$packages/include" -isystem "$packages/nvidia/cu13/include"
  "$compiler" "$program.o" -o "$program" -L"$build" -lcudnn "$build/host_cuda/libcudart.so.13" -lgtest_main -lgtest -ldl -lpthread
  "$build/tessera" exec --device cpu -- "$program" --gtest_brief=1
  ;;
esac
