#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `tessera exec`: a program for cuDNN and each version of CUDA's runtime, on the processor; and what cannot be started.
# Usage: exec_test.sh SOURCE BUILD
set -u
source=$1 build=$(realpath "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
export OMP_WAIT_POLICY=passive
tessera="$build/tessera"

# expect CODE PHRASE COMMAND...: stdout and stderr together must contain PHRASE.
expect() {
  local code=$1 phrase=$2 got
  shift 2
  "$@" >"$work/log" 2>&1
  got=$?
  if [ $got -ne "$code" ] || ! grep -qF -- "$phrase" "$work/log"; then
    echo "FAIL: $*"
    echo "  exit code $got, expected $code; output must contain: $phrase"
    sed 's/^/  | /' "$work/log" | head -20
    failures=$((failures + 1))
  fi
}

compile() { ${CC:-cc} -I"$source/include/cudnn" "$source/tests/cudart/exec_client.c" "$@"; }
# fake FILE TEXT: another library of that name, whose functions fail.
fake() {
  echo "$(basename "$1") { global: *; };" >"$1.map"
  echo "$2" | ${CC:-cc} -shared -fPIC -x c - -Wl,-soname,"$(basename "$1")" -Wl,--version-script="$1.map" -o "$1"
}
for version in 12 13; do
  compile -o "$work/client$version" "$build/host_cuda/libcudart.so.$version" "$build/libcudnn.so.9" || exit 1
  # A path inside a program is stronger than what the environment says.
  mkdir -p "$work/theirs$version"
  fake "$work/theirs$version/libcudart.so.$version" 'int cudaRuntimeGetVersion(int* v) { return *v = 999; }'
  fake "$work/theirs$version/libcudnn.so.9" 'int cudnnCreate(void** h) { return *h = 0, 1001; }'
  fake "$work/theirs$version/libcudnn_ops.so.9" 'int cudnnOpsVersionCheck(void) { return 1001; }'
  compile -o "$work/stubborn$version" "$build/host_cuda/libcudart.so.$version" "$build/libcudnn.so.9" \
    -Wl,--no-as-needed "$build/libcudnn_ops.so.9" -Wl,--disable-new-dtags,-rpath,"$work/theirs$version" || exit 1
done

# the program gets the runtime of its version, the values are right, and one line says what happened
for version in 12 13; do
  line="runtime $version, cuDNN 92700: 11 14 20 23"
  expect 0 "$line" "$tessera" exec --device cpu -- "$work/client$version"
  expect 0 "tessera exec: $build/libcudnn.so.9 reports 92700, " "$tessera" exec --device cpu "$work/client$version"
  expect 0 "on cpu, with a stand-in of CUDA's runtime" "$tessera" exec --device cpu "$work/client$version"
  expect 0 "$line --device x" "$tessera" exec --device cpu "$work/client$version" --device x
  expect 10 "cudaRuntimeGetVersion(&version) gives 999" "$work/stubborn$version"
  expect 0 "$line" "$tessera" exec --device cpu -- "$work/stubborn$version"
  expect 0 "calling init: $build/libcudnn_ops.so.9" env LD_DEBUG=files "$tessera" exec --device cpu -- "$work/stubborn$version"
  expect 0 "in place of $work/theirs$version/libcudnn.so.9" "$tessera" exec --device cpu -- "$work/stubborn$version"
done
expect 0 "reports 91900" env TESSERA_REPORT_VERSION=91900 "$tessera" exec --device cpu -- "$work/client12"
expect 0 "cuDNN 91900" env TESSERA_REPORT_VERSION=91900 "$tessera" exec --device cpu -- "$work/client12"

# memory that a GPU could not read, or that ends too early, is refused by name; arguments are logged
cat >"$work/pointers.c" <<'END'
#include <cudnn.h>
#include <stdio.h>
#ifndef TESSERA_HAS_CUDA_HEADERS
int cudaMalloc(void** p, size_t bytes);
#endif
int main(void) {
  cudnnHandle_t h;
  cudnnTensorDescriptor_t d;
  float one = 1, zero = 0, host[256] = {0}, *small, *large;
  char text[400];
  cudnnCreate(&h);
  cudnnCreateTensorDescriptor(&d);
  cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 4, 8, 8);
  cudaMalloc((void**)&small, 64);
  cudaMalloc((void**)&large, 1024);
  for (int i = 0; i < 3; ++i) {
    float* from = i == 0 ? small : i == 1 ? host : large;
    int status = cudnnSoftmaxForward(h, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, &one, d, from, &zero, d, large);
    cudnnGetLastErrorString(text, sizeof text);
    printf("%d %s\n", status, status ? text : "fine");
  }
  // The same holds for workspaces.
  cudnnTensorDescriptor_t dx, dy;
  cudnnFilterDescriptor_t dw;
  cudnnConvolutionDescriptor_t c;
  float *x, *w, *y;
  char* space;
  size_t bytes;
  cudnnCreateTensorDescriptor(&dx);
  cudnnCreateTensorDescriptor(&dy);
  cudnnCreateFilterDescriptor(&dw);
  cudnnCreateConvolutionDescriptor(&c);
  cudnnSetTensor4dDescriptor(dx, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 8, 16, 32, 32);
  cudnnSetTensor4dDescriptor(dy, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 8, 32, 32, 32);
  cudnnSetFilter4dDescriptor(dw, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 32, 16, 3, 3);
  cudnnSetConvolution2dDescriptor(c, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  cudnnGetConvolutionForwardWorkspaceSize(h, dx, dw, c, dy, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, &bytes);
  cudaMalloc((void**)&x, 8 * 16 * 32 * 32 * 4);
  cudaMalloc((void**)&w, 32 * 16 * 9 * 4);
  cudaMalloc((void**)&y, 8 * 32 * 32 * 32 * 4);
  cudaMalloc((void**)&space, bytes);
  for (int i = 0; i < 4; ++i) {
    void* given = i == 0 ? 0 : i == 1 ? (void*)host : i == 2 ? space + 16 : space;
    int status = cudnnConvolutionForward(h, &one, dx, x, dw, w, c, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                         given, bytes, &zero, dy, y);
    cudnnGetLastErrorString(text, sizeof text);
    printf("workspace %d: %d %s\n", i, status, status ? text : "fine");
  }
  return 0;
}
END
${CC:-cc} -I"$source/include/cudnn" "$work/pointers.c" -o "$work/pointers" "$build/host_cuda/libcudart.so.13" "$build/libcudnn.so.9" || exit 1
expect 0 "2000 cudnnSoftmaxForward: 'x' f32[1,4,8,8] takes 1024 bytes, but the memory at " "$tessera" exec --device cpu -- "$work/pointers"
expect 0 "which is no memory of cudaMalloc or its like, or was freed" "$tessera" exec --device cpu -- "$work/pointers"
expect 0 "0 fine" "$tessera" exec --device cpu -- "$work/pointers"
expect 0 "workspace 0: 2000 cudnnConvolutionForward: the workspace is a null pointer, its size " "$tessera" exec --device cpu -- "$work/pointers"
expect 0 "workspace 1: 2000 cudnnConvolutionForward: the workspace was given " "$tessera" exec --device cpu -- "$work/pointers"
expect 0 "workspace 2: 2000 cudnnConvolutionForward: the workspace is said to have " "$tessera" exec --device cpu -- "$work/pointers"
expect 0 "workspace 3: 0 fine" "$tessera" exec --device cpu -- "$work/pointers"
expect 0 "xDesc=FLOAT [1,4,8,8] strides [256,64,8,1]" \
  env CUDNN_LOGLEVEL_DBG=3 CUDNN_LOGDEST_DBG=stdout "$tessera" exec --device cpu -- "$work/pointers"
# a program that holds CUDA's runtime is told so: by two texts that every such runtime has
printf 'const char* used[] = {"libcuda.so.1", "cudaErrorCudartUnloading"};\nint main(int n, char** v) { return used[n - 1] == v[0]; }\n' |
  ${CC:-cc} -x c - -o "$work/static_runtime" || exit 1
expect 0 "link it with \`nvcc -cudart shared\`" "$tessera" exec --device cpu -- "$work/static_runtime"

# paths that a program opens itself: the file of that name is ours, whatever its path and the rest of its version
opener="$work/opener"
${CC:-cc} -x c - -o "$opener" -ldl -Wl,-rpath,"$work/beside" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
int main(int count, char** files) {
  for (int i = 1; i < count; ++i) {
    struct link_map* map;
    void* library = dlopen(files[i], RTLD_NOW);
    if (!library) printf("no: %s\n", dlerror());
    else if (!dlinfo(library, RTLD_DI_LINKMAP, &map)) printf("got %s\n", map->l_name);
  }
}
C
theirs="$work/theirs12" packages="$work/site-packages/nvidia/cudnn/lib"
mkdir -p "$packages" "$work/beside"
fake "$work/beside/libbeside.so" 'int beside;'
for name in libcudnn.so.9 libcudnn.so.9.1.0 libcudnn_ops.so.9 libcudnn_adv.so.9.1 libcudnn.so.8 libcudart.so.12.4.127 libcudart.so.13; do
  cp "$theirs/libcudnn.so.9" "$packages/$name"
done
expect 0 "got $packages/libcudnn.so.9" "$opener" "$packages/libcudnn.so.9"
for device in "" "--device cpu"; do
  for name in libcudnn.so.9 libcudnn.so.9.1.0; do
    expect 0 "got $build/libcudnn.so.9" "$tessera" exec $device -- "$opener" "$packages/$name"
    expect 0 "got $build/libcudnn.so.9" "$tessera" exec $device -- sh -c "cd '$packages' && '$opener' ./$name"
  done
  expect 0 "got $build/libcudnn_ops.so.9" "$tessera" exec $device -- "$opener" "$packages/libcudnn_ops.so.9"
  expect 0 "got $build/libcudnn_adv.so.9" "$tessera" exec $device -- "$opener" "$packages/libcudnn_adv.so.9.1"
  expect 0 "got $packages/libcudnn.so.8" "$tessera" exec $device -- "$opener" "$packages/libcudnn.so.8"
  # a name without a folder is looked up for the program, whose own search path counts
  expect 0 "got $work/beside/libbeside.so" "$tessera" exec $device -- "$opener" libbeside.so
  expect 0 "no: libno_such.so" "$tessera" exec $device -- "$opener" libno_such.so
done
expect 0 "got $packages/libcudart.so.13" "$tessera" exec -- "$opener" "$packages/libcudart.so.13"
expect 0 "got $build/host_cuda/libcudart.so.12" "$tessera" exec --device cpu -- "$opener" "$packages/libcudart.so.12.4.127"
expect 0 "got $build/host_cuda/libcudart.so.13" "$tessera" exec --device cpu -- "$opener" "$packages/libcudart.so.13"
# who tries the names of all runtimes finds one: the first, or the one that is there already
expect 0 "got $build/host_cuda/libcudart.so.12" "$tessera" exec --device cpu -- "$opener" libcudart.so.12 libcudart.so.13
expect 0 "(libcudart.so.12 is loaded)" "$tessera" exec --device cpu -- "$opener" libcudart.so.12 libcudart.so.13
expect 0 "(libcudart.so.13 is loaded)" "$tessera" exec --device cpu -- "$opener" "$packages/libcudart.so.13" libcudart.so.12
if command -v python3 >/dev/null; then
  expect 0 "92700" "$tessera" exec --device cpu -- \
    python3 -c "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).cudnnGetVersion())" "$packages/libcudnn.so.9"
fi

# what the environment held is kept; without --device cpu there is no stand-in
expect 0 "libcudnn.so.9:libm.so.6" env LD_PRELOAD=libm.so.6 "$tessera" exec -- sh -c 'echo $LD_PRELOAD'
expect 0 "$build:/some/folder" env LD_LIBRARY_PATH=/some/folder "$tessera" exec -- sh -c 'echo $LD_LIBRARY_PATH'
expect 0 "$build:$build/host_cuda" "$tessera" exec --device cpu -- sh -c 'echo $LD_LIBRARY_PATH $TESSERA_DEVICE'
expect 7 "" "$tessera" exec -- sh -c 'exit 7'
echo 'echo no first line' >"$work/script" && chmod +x "$work/script"
expect 0 "no first line" "$tessera" exec -- "$work/script"

# an installation
mkdir -p "$work/prefix/bin" "$work/prefix/lib/tessera/host"
cp "$tessera" "$work/prefix/bin/"
cp "$build/libcudnn.so.9" "$build/libtessera_exec.so" "$work/prefix/lib/tessera/"
cp "$build"/host_cuda/libcudart.so.1? "$work/prefix/lib/tessera/host/"
expect 0 "runtime 12, cuDNN 92700: 11" "$work/prefix/bin/tessera" exec --device cpu -- "$work/client12"
expect 0 "exec: $work/prefix/lib/tessera/libcudnn.so.9" "$work/prefix/bin/tessera" exec --device cpu -- "$work/client12"
rm "$work/prefix/lib/tessera/host/libcudart.so.13"
expect 2 "host/libcudart.so.13, is missing" "$work/prefix/bin/tessera" exec --device cpu -- "$work/client12"
rm "$work/prefix/lib/tessera/libcudnn.so.9"
expect 2 "build the target \`cudnn\`, or install the project" "$work/prefix/bin/tessera" exec -- true

# what cannot be started
expect 2 "PROGRAM is required" "$tessera" exec
expect 2 "'tpu' is not cpu, cuda or cuda:NUMBER" "$tessera" exec --device tpu -- true
expect 2 "there is no CUDA device" env TESSERA_CUDA_DRIVER="$work/none.so" "$tessera" exec --device cuda -- true
expect 127 "there is no program 'no_such_program'" "$tessera" exec -- no_such_program
expect 126 "is not a file that may be executed" "$tessera" exec -- "$source/README.md"
echo 'int main(void) { return 0; }' | ${CC:-cc} -x c - -static -o "$work/static" 2>/dev/null &&
  expect 126 "is linked statically" "$tessera" exec -- "$work/static"

if [ $failures -ne 0 ]; then
  echo "$failures failed"
  exit 1
fi
echo "all passed"
