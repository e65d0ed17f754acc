#!/usr/bin/env bash
# cudnn-frontend as a client of the library, on the processor. Usage: frontend_test.sh python|cpp BUILD
set -euo pipefail
kind=$1 build=$(realpath "$2") here=$(dirname "$(realpath "$0")")
packages=$("$here/setup_frontend" "$build/frontend")
export LD_LIBRARY_PATH=$build TESSERA_DEVICE=cpu OMP_WAIT_POLICY=passive PYTHONDONTWRITEBYTECODE=1

case $kind in
python)
  client=("$build/frontend/env/bin/python" "$here/frontend_client.py")
  "${client[@]}"  # as on a machine that has nothing of CUDA
  CUDNN_FRONTEND_CUDART_LIB_NAME=$build/host_cuda/libcudart.so.13 "${client[@]}"
  ;;
esac
