// SPDX-License-Identifier: Apache-2.0
// A program outside the source tree: client FILE [LOADED].. computes a convolution and looks whether the function is
// FILE's, and whether the other files are in the process too.
#define _GNU_SOURCE
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>

static int same_file(const char* a, const char* b) {
  struct stat sa, sb;
  return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static int failures = 0;
static void expect(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

static void expect_owner(const char* function, const char* file) {
  Dl_info info = {0};
  int found = dladdr(dlsym(RTLD_DEFAULT, function), &info);
  if (found && same_file(info.dli_fname, file)) return;
  fprintf(stderr, "failed: %s is expected of %s, found in %s\n", function, file, found ? info.dli_fname : "no file");
  ++failures;
}

// 0 to 8 in 3x3 with a filter of 2x2 ones. The call has arguments beyond those that travel in registers.
static void convolve(void) {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t dx, dy;
  cudnnFilterDescriptor_t dw;
  cudnnConvolutionDescriptor_t conv;
  float x[9], w[4], y[4] = {0}, one = 1, zero = 0;
  for (int i = 0; i < 9; ++i) x[i] = (float)i;
  for (int i = 0; i < 4; ++i) w[i] = 1;
  expect(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS, "cudnnCreate");
  cudnnCreateTensorDescriptor(&dx);
  cudnnCreateTensorDescriptor(&dy);
  cudnnCreateFilterDescriptor(&dw);
  cudnnCreateConvolutionDescriptor(&conv);
  cudnnSetTensor4dDescriptor(dx, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 3, 3);
  cudnnSetTensor4dDescriptor(dy, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2, 2);
  cudnnSetFilter4dDescriptor(dw, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 2, 2);
  cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  cudnnStatus_t status = cudnnConvolutionForward(handle, &one, dx, x, dw, w, conv,
                                                 CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &zero, dy, y);
  expect(status == CUDNN_STATUS_SUCCESS, cudnnGetErrorString(status));
  expect(y[0] == 8 && y[1] == 12 && y[2] == 20 && y[3] == 24, "the convolution's values");
  cudnnDestroyConvolutionDescriptor(conv);
  cudnnDestroyFilterDescriptor(dw);
  cudnnDestroyTensorDescriptor(dy);
  cudnnDestroyTensorDescriptor(dx);
  expect(cudnnDestroy(handle) == CUDNN_STATUS_SUCCESS, "cudnnDestroy");
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  expect(cudnnGetVersion() == CUDNN_VERSION, "headers and library have one version");
  convolve();
  expect_owner("cudnnConvolutionForward", argv[1]);
  for (int i = 2; i < argc; ++i) expect(dlopen(argv[i], RTLD_LAZY | RTLD_NOLOAD) != NULL, argv[i]);
  return failures > 0;
}
