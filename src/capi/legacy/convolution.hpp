// SPDX-License-Identifier: Apache-2.0
// What the calls for convolutions share: the descriptor, what tensors must agree on, and the node of the graph.
#pragma once

#include "capi/call.hpp"

struct cudnnConvolutionStruct {
  tsr::Dims pad, stride, dilation;  // one value for each spatial dimension; empty: not set yet
  cudnnConvolutionMode_t mode = CUDNN_CONVOLUTION;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int groups = 1;
  cudnnReorderType_t reorder = CUDNN_DEFAULT_REORDER;
};

namespace tsr::capi {

enum class ConvPass : char { forward, backward_data, backward_filter };

// A convolution by the tensors x, w and y; the one that its pass computes, and the others, may be gradients.
struct Convolution {
  ConvPass pass;
  const cudnnConvolutionStruct& conv;
  const Shape& x;
  const cudnnFilterStruct& w;
  const Shape& y;
};
enum : int64_t { kConvX = 1, kConvW, kConvY };  // their ids in a Call

// Refuses null descriptors and tensors that do not belong together.
Convolution make_convolution(ConvPass pass, cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t x,
                             cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t y);
// Sizes of y; refuses x and w that do not belong together.
Dims forward_dims(const cudnnConvolutionStruct& conv, const Shape& x, const Shape& w);

// Where filters of INT8x32 come in the order of cudnnReorderFilterAndBias, biases do too.
bool is_reordered(const Convolution& c);

// Names the convolution's tensors in a call. Queries have no pointers.
struct ConvPointers {
  const void *x, *w, *y;
};
inline const ConvPointers kUnknownPointers = {kSomewhere, kSomewhere, kSomewhere};
void describe_to(Call& call, const Convolution& c, const ConvPointers& p);

// The convolution in a call's graph; its result goes to `out`, or to a new temporary.
TensorId convolve(Maker& m, const Convolution& c, TensorId out = kNew);
// The same of another tensor than x: what was computed from it.
TensorId convolve(Maker& m, const Convolution& c, TensorId x, TensorId out);
// Ends the graph of a plain convolution.
void make_convolution_graph(Maker& m, const Convolution& c, const Blend& blend);

// Which engines an algorithm stands for (docs/cudnn.md). `small` is `products` in the handle's own memory: programs
// rely on there being algorithms that need no workspace.
enum class Route : char { planner, products, small, onednn, winograd, fourier };
Route route_of(ConvPass pass, int algorithm);
// Restricts a call's plan to them; where they cannot do it, others may.
void follow(Call& call, cudnnHandle_t handle, Route route);
// The workspace that queries answer.
size_t workspace_of(cudnnHandle_t handle, const Convolution& c, Route route);
// Runs a call in the caller's workspace, which must be as large as queries told.
template <class Make>
void run_in(Call& call, const Make& make, cudnnHandle_t handle, const Convolution& c, Route route, void* workspace,
            size_t bytes) {
  if (route == Route::small) return call.run(make);
  if (bytes < call.plan(make)->workspace_bytes()) {
    size_t told = workspace_of(handle, c, route);
    demand(bytes >= told, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "workSpaceSizeInBytes is ", bytes,
           ", the algorithm needs ", told);
  }
  call.run_in(workspace, bytes, make);
}

}  // namespace tsr::capi
