// SPDX-License-Identifier: Apache-2.0
// Patches as rows of a matrix: one row for each position of the result, one column for each channel and tap.
#include "capi/legacy/convolution.hpp"

using namespace tsr;
using namespace tsr::capi;

namespace {

enum : int64_t { kX = 1, kColumns };

// x with zeros around it: each channel by a filter of the single tap 1, which leaves out what lies outside.
TensorId padded(Maker& m, TensorId x, const cudnnConvolutionStruct& conv, DType type) {
  bool any = false;
  for (int64_t p : conv.pad) any |= p > 0;
  if (!any) return x;
  const Dims dims = m.graph().tensor(x).dims;
  Tensor ones;
  ones.dtype = type;
  ones.dims = Dims::filled(dims.size(), 1);
  ones.dims[0] = dims[1];
  ones.strides = packed_strides(ones.dims);
  ones.dtype_given = ones.dims_given = ones.strides_given = true;
  ones.constant.resize(static_cast<size_t>(byte_size(type, dims[1])));
  for (int64_t i = 0; i < dims[1]; ++i) store<double>(type, ones.constant.data(), i, 1);
  TensorId out = m.inferred(type);
  DType sum = type == DType::f64 ? type : is_integer(type) ? DType::i32 : DType::f32;
  m.add(ops::conv_fprop, {x, m.graph().add_tensor(std::move(ones))}, {out},
        tessera::ConvOptions{.pad = conv.pad.to_vector(), .groups = dims[1]}, sum);
  return out;
}

// What one tap of the filter meets, as [n, c, 1, positions..].
TensorId tap_of(Maker& m, TensorId x, const cudnnConvolutionStruct& conv, const Dims& y, const Dims& tap, DType type) {
  const Dims dims = m.graph().tensor(x).dims;
  tessera::SliceOptions slice{.start = {0, 0}, .limit = {dims[0], dims[1]}, .stride = {1, 1}};
  tessera::ReshapeOptions shape{.size = {dims[0], dims[1], 1}, .mode = tessera::ReshapeMode::logical};
  for (int i = 0; i < tap.size(); ++i) {
    int64_t start = tap[i] * conv.dilation[i];
    slice.start.push_back(start);
    slice.limit.push_back(start + (y[2 + i] - 1) * conv.stride[i] + 1);
    slice.stride.push_back(conv.stride[i]);
    shape.size.push_back(y[2 + i]);
  }
  TensorId met = m.inferred(type), shaped = m.inferred(type);
  m.add(ops::slice, {x}, {met}, slice);
  m.add(ops::reshape, {met}, {shaped}, shape);
  return shaped;
}

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnIm2Col(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc, const void* x,
                                      const cudnnFilterDescriptor_t wDesc, const cudnnConvolutionDescriptor_t convDesc,
                                      void* colBuffer) {
  return answer(TESSERA_CALL(cudnnIm2Col, handle, xDesc, x, wDesc, convDesc, colBuffer), [&] {
    const Shape &xs = given(xDesc, "xDesc"), &ws = given(wDesc, "wDesc");
    const cudnnConvolutionStruct& conv = given(convDesc, "convDesc");
    Dims y = forward_dims(conv, xs, ws), taps;
    for (int i = 2; i < ws.dims.size(); ++i) taps.push_back(ws.dims[i]);
    Shape columns{to_data_type(from_data_type(xs.type)), {y[0]}, {}};
    for (int i = 2; i < y.size(); ++i) columns.dims.push_back(y[i]);
    columns.dims.push_back(xs.dims[1]);
    columns.dims.push_back(volume(taps));
    columns.strides = packed_strides(columns.dims);

    Call call(handle, "cudnnIm2Col");
    call.key(conv.pad, conv.stride, conv.dilation, taps, xs).input(kX, xs, x, "x");
    call.output(kColumns, columns, colBuffer, "colBuffer");
    call.run([&](Maker& m) {
      DType type = from_data_type(columns.type);
      TensorId wide = padded(m, m[kX], conv, type);
      std::vector<TensorId> met;
      Dims tap = Dims::filled(taps.size(), 0);
      do met.push_back(tap_of(m, wide, conv, y, tap, type));
      while (next_index(tap, taps));
      TensorId all = met[0];
      if (met.size() > 1) m.add(ops::concat, met, {all = m.inferred(type)}, tessera::ConcatOptions{.axis = 2});
      tessera::TransposeOptions order{{0}};  // n, positions.., c, taps
      for (int i = 2; i < y.size(); ++i) order.perm.push_back(i + 1);
      order.perm.push_back(1), order.perm.push_back(2);
      m.add(ops::transpose, {all}, {m.result(kColumns)}, order);
    });
  });
}
