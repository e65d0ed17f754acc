// SPDX-License-Identifier: Apache-2.0
// A small program as tutorials have them: a convolution of tensors in the memory of CUDA's runtime.
#include <cudnn.h>
#include <stdio.h>

#ifndef TESSERA_HAS_CUDA_HEADERS
int cudaMalloc(void** pointer, size_t size);
int cudaFree(void* pointer);
int cudaMemcpy(void* dst, const void* src, size_t count, int kind);
int cudaRuntimeGetVersion(int* version);
int cudaDeviceSynchronize(void);
enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
#endif

#define CHECK(call)                                                                \
  do {                                                                             \
    int status_ = (int)(call);                                                     \
    if (status_ != 0) return fprintf(stderr, "%s gives %d\n", #call, status_), 10; \
  } while (0)

int main(int count, char** words) {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x_desc, y_desc;
  cudnnFilterDescriptor_t w_desc;
  cudnnConvolutionDescriptor_t conv;
  float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[4] = {1, 0, 0, 2}, y[4], one = 1, zero = 0;
  float *device_x, *device_w, *device_y;
  void* workspace;
  size_t bytes;
  int version;
  CHECK(cudaRuntimeGetVersion(&version));
  CHECK(cudnnCreate(&handle));
  CHECK(cudnnCreateTensorDescriptor(&x_desc));
  CHECK(cudnnCreateTensorDescriptor(&y_desc));
  CHECK(cudnnCreateFilterDescriptor(&w_desc));
  CHECK(cudnnCreateConvolutionDescriptor(&conv));
  CHECK(cudnnSetTensor4dDescriptor(x_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 3, 3));
  CHECK(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2, 2));
  CHECK(cudnnSetFilter4dDescriptor(w_desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 2, 2));
  CHECK(cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudaMalloc((void**)&device_x, sizeof x));
  CHECK(cudaMalloc((void**)&device_w, sizeof w));
  CHECK(cudaMalloc((void**)&device_y, sizeof y));
  CHECK(cudaMemcpy(device_x, x, sizeof x, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(device_w, w, sizeof w, cudaMemcpyHostToDevice));
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle, x_desc, w_desc, conv, y_desc,
                                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes));
  CHECK(cudaMalloc(&workspace, bytes));
  CHECK(cudnnConvolutionForward(handle, &one, x_desc, device_x, w_desc, device_w, conv,
                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, workspace, bytes, &zero, y_desc, device_y));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(y, device_y, sizeof y, cudaMemcpyDeviceToHost));
  printf("runtime %d, cuDNN %zu: %g %g %g %g", version / 1000, cudnnGetVersion(), y[0], y[1], y[2], y[3]);
  for (int i = 1; i < count; ++i) printf(" %s", words[i]);
  printf("\n");
  CHECK(cudaFree(workspace));
  CHECK(cudaFree(device_x));
  CHECK(cudaFree(device_w));
  CHECK(cudaFree(device_y));
  return cudnnDestroy(handle) != CUDNN_STATUS_SUCCESS;
}
