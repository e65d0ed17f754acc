// SPDX-License-Identifier: Apache-2.0
// The gradient of a strided convolution's input, as one without strides. With x padded and folded by the stride u,
// element (c u + i, k) being element (c, k u + i), and filters folded alike, y[p] = sum x[c u + i, p + q] w[c u + i,
// q]. So the folded gradient has P + Q - 1 elements where dy has P and the folded filter Q; dy is padded behind its end
// where x has elements that no filter reached. Groups stay groups, since their channels stay neighbours. A dimension
// that cannot be folded is left as it is, with its stride: taps that lie apart, and those of a flipped filter, whose
// residues would come in the wrong order.
#include <algorithm>

#include "capi/legacy/convolution.hpp"

using namespace tsr;
using namespace tsr::capi;

namespace {

// How one of the tensors is changed.
struct Change {
  Change(const Dims& from, bool unfold = false)
      : dims(from), direction(unfold ? CUDNN_TRANSFORM_UNFOLD : CUDNN_TRANSFORM_FOLD) {}
  Dims dims;  // what becomes of it
  int32_t before[CUDNN_DIM_MAX] = {}, after[CUDNN_DIM_MAX] = {};
  uint32_t fold[CUDNN_DIM_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
  cudnnFoldingDirection_t direction;

  void set(cudnnTensorTransformDescriptor_t desc, cudnnTensorFormat_t format, const char* name) const {
    given(desc, name);
    cudnnStatus_t status = cudnnSetTensorTransformDescriptor(desc, static_cast<uint32_t>(dims.size()), format, before,
                                                             after, fold, direction);
    demand(status == CUDNN_STATUS_SUCCESS, status, name, " cannot be set");
  }
};

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnGetFoldedConvBackwardDataDescriptors(
    const cudnnHandle_t handle, const cudnnFilterDescriptor_t filterDesc, const cudnnTensorDescriptor_t diffDesc,
    const cudnnConvolutionDescriptor_t convDesc, const cudnnTensorDescriptor_t gradDesc,
    const cudnnTensorFormat_t transformFormat, cudnnFilterDescriptor_t foldedFilterDesc,
    cudnnTensorDescriptor_t paddedDiffDesc, cudnnConvolutionDescriptor_t foldedConvDesc,
    cudnnTensorDescriptor_t foldedGradDesc, cudnnTensorTransformDescriptor_t filterFoldTransDesc,
    cudnnTensorTransformDescriptor_t diffPadTransDesc, cudnnTensorTransformDescriptor_t gradFoldTransDesc,
    cudnnTensorTransformDescriptor_t gradUnfoldTransDesc) {
  auto entry = TESSERA_CALL(cudnnGetFoldedConvBackwardDataDescriptors, handle, filterDesc, diffDesc, convDesc, gradDesc,
                            transformFormat, foldedFilterDesc, paddedDiffDesc, foldedConvDesc, foldedGradDesc,
                            filterFoldTransDesc, diffPadTransDesc, gradFoldTransDesc, gradUnfoldTransDesc);
  return answer(entry, [&] {
    given(handle, "handle");
    Convolution c = make_convolution(ConvPass::backward_data, convDesc, gradDesc, filterDesc, diffDesc);
    demand(transformFormat == CUDNN_TENSOR_NCHW || transformFormat == CUDNN_TENSOR_NHWC, CUDNN_STATUS_NOT_SUPPORTED,
           "transformFormat is ", static_cast<int>(transformFormat), "; supported are NCHW and NHWC");
    Change filter(c.w.dims), diff(c.y.dims), grad(c.x.dims), unfolded(c.x.dims, true);
    cudnnConvolutionStruct folded = c.conv;
    for (int i = 0; i < c.conv.pad.size(); ++i) {
      int64_t u = c.conv.stride[i], pad = c.conv.pad[i], taps = c.w.dims[2 + i], size = c.x.dims[2 + i];
      if (c.conv.dilation[i] != 1 || (u != 1 && c.conv.mode == CUDNN_CONVOLUTION)) continue;
      folded.pad[i] = 0, folded.stride[i] = 1;
      int64_t folded_taps = (taps + u - 1) / u;
      int64_t reached = std::max(c.y.dims[2 + i] + folded_taps - 1, (pad + size + u - 1) / u);
      filter.after[2 + i] = static_cast<int32_t>(folded_taps * u - taps), filter.dims[2 + i] = folded_taps;
      diff.dims[2 + i] = reached - folded_taps + 1;
      diff.after[2 + i] = static_cast<int32_t>(diff.dims[2 + i] - c.y.dims[2 + i]);
      grad.before[2 + i] = static_cast<int32_t>(pad), grad.dims[2 + i] = reached;
      grad.after[2 + i] = static_cast<int32_t>(reached * u - size - pad);
      unfolded.before[2 + i] = -grad.before[2 + i], unfolded.after[2 + i] = -grad.after[2 + i];
      filter.fold[i] = grad.fold[i] = unfolded.fold[i] = static_cast<uint32_t>(u);
      filter.dims[1] *= u, grad.dims[1] *= u;
    }
    filter.set(filterFoldTransDesc, transformFormat, "filterFoldTransDesc");
    diff.set(diffPadTransDesc, transformFormat, "diffPadTransDesc");
    grad.set(gradFoldTransDesc, transformFormat, "gradFoldTransDesc");
    unfolded.set(gradUnfoldTransDesc, transformFormat, "gradUnfoldTransDesc");

    given(foldedConvDesc, "foldedConvDesc") = folded;
    auto shape = [&](const Shape& like, const Dims& dims) {
      return Shape{like.type, dims, format_strides(transformFormat, dims)};
    };
    static_cast<Shape&>(given(foldedFilterDesc, "foldedFilterDesc")) = shape(c.w, filter.dims);
    foldedFilterDesc->format = transformFormat;
    static_cast<Shape&>(given(paddedDiffDesc, "paddedDiffDesc")) = shape(c.y, diff.dims);
    static_cast<Shape&>(given(foldedGradDesc, "foldedGradDesc")) = shape(c.x, grad.dims);
  });
}
