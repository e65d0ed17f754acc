#!/usr/bin/env bash
# cudnn-frontend as a client of the library, on the processor. Usage: frontend_test.sh python|cpp BUILD
set -euo pipefail
kind=$1 build=$(realpath "$2") here=$(dirname "$(realpath "$0")")
packages=$("$here/setup_frontend" "$build/frontend")
export TESSERA_DEVICE=cpu OMP_WAIT_POLICY=passive

case $kind in
python)
  export LD_LIBRARY_PATH=$build PYTHONDONTWRITEBYTECODE=1
  client=("$build/frontend/env/bin/python" "$here/frontend_client.py")
  "${client[@]}"  # as on a machine that has nothing of CUDA
  CUDNN_FRONTEND_CUDART_LIB_NAME=$build/host_cuda/libcudart.so.13 "${client[@]}"
  ;;
cpp)
  $(command -v ccache || true) "${CXX:-c++}" -std=c++17 -O0 -Wall -Wextra -c "$here/frontend/client_test.cpp" -o "$build/frontend/client_test.o" \
    -I"$here/frontend/nvrtc" -I"$here/../../include/cudnn" -isystem "$packages/include" -isystem "$packages/nvidia/cu13/include"
  "${CXX:-c++}" "$build/frontend/client_test.o" -o "$build/frontend/client_test" -L"$build" -lcudnn "$build/host_cuda/libcudart.so.13" \
    -lgtest_main -lgtest -ldl -lpthread
  LD_LIBRARY_PATH=$build:$build/host_cuda "$build/frontend/client_test" --gtest_brief=1
  ;;
esac
