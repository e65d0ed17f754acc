// SPDX-License-Identifier: Apache-2.0
// beside THEIRS local|global FIRST: a process that uses our library, told to report version 9.0.0, and opens another
// libcudnn.so.9 by its path, with RTLD_LOCAL or RTLD_GLOBAL. FIRST says which is called first, ours or theirs; "mixed",
// that theirs may find our sub-libraries and answer as we do.
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int softmax_is_right(void) {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t d;
  float x[2] = {3, 3}, y[2] = {0, 0}, one = 1, zero = 0;
  if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS || cudnnCreateTensorDescriptor(&d) != CUDNN_STATUS_SUCCESS) return 0;
  cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 2, 1, 1);
  cudnnStatus_t status =
      cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, d, x, &zero, d, y);
  cudnnDestroyTensorDescriptor(d);
  return cudnnDestroy(handle) == CUDNN_STATUS_SUCCESS && status == CUDNN_STATUS_SUCCESS && y[0] == 0.5f && y[1] == 0.5f;
}

static int ours_is_right(void) { return cudnnGetVersion() == 90000 && softmax_is_right(); }

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  if (strcmp(argv[3], "ours") == 0 && !ours_is_right()) return 1;
  void* theirs = dlopen(argv[1], RTLD_NOW | (strcmp(argv[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!theirs) return fprintf(stderr, "%s\n", dlerror()), 1;
  size_t (*version)(void) = (size_t(*)(void))dlsym(theirs, "cudnnGetVersion");
  const char* (*name)(cudnnStatus_t) = (const char* (*)(cudnnStatus_t))dlsym(theirs, "cudnnGetErrorString");
  printf("%s, opened %s, %s: version %zu\n", argv[1], argv[2], argv[3], version());
  if (strcmp(name(CUDNN_STATUS_SUCCESS), "CUDNN_STATUS_SUCCESS") != 0) return 1;
  if (version() == 90000 && strcmp(argv[3], "mixed") != 0) return 1;
  return !ours_is_right();
}
