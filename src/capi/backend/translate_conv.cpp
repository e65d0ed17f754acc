// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/translate.hpp"

namespace tsr::capi {
namespace {

tessera::ConvOptions options_of(const Descriptor& part, const Tensor& data) {
  auto spatial = static_cast<int>(part.one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, data.rank() - 2));
  demand(spatial == data.rank() - 2, CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS is ", spatial,
         ", tensor '", data.name, "' ", data.dims, " has ", data.rank() - 2);
  tessera::ConvOptions o;
  o.stride = ints_of(part, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial);
  o.pad = ints_of(part, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial);
  o.post_pad = ints_of(part, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial);
  o.dilation = ints_of(part, CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial);
  if (part.one(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION) == CUDNN_CONVOLUTION)
    o.mode = tessera::ConvMode::convolution;
  return o;
}

// result = alpha * convolution + beta * what it held before
struct Convolution {
  const OpSpec& op;
  const Descriptor& part;
  TensorId first, second, result;
  double alpha, beta;
};

void add(GraphBuilder& to, const Convolution& c) {
  tessera::ConvOptions o = options_of(c.part, to[c.first]);
  DType compute = compute_type(c.part, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  if (c.beta == 0 && (c.alpha == 1 || !is_integer(compute))) {
    o.alpha = c.alpha;
    to.add(c.op, {c.first, c.second}, {c.result}, o, compute);
    return;
  }
  TensorId sum = to.like(c.result, compute);
  to.add(c.op, {c.first, c.second}, {sum}, o, compute);
  to.blend(c.result, sum, c.alpha, c.beta, compute);
}

}  // namespace

void translate_conv_fwd(const Descriptor& op, GraphBuilder& to) {
  add(to, {.op = ops::conv_fprop,
           .part = part_of(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC),
           .first = to.required(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X),
           .second = to.required(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W),
           .result = to.required(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y),
           .alpha = op.number(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1),
           .beta = op.number(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0)});
}

void translate_conv_bwd_data(const Descriptor& op, GraphBuilder& to) {
  add(to, {.op = ops::conv_dgrad,
           .part = part_of(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC),
           .first = to.required(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY),
           .second = to.required(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W),
           .result = to.required(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX),
           .alpha = op.number(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1),
           .beta = op.number(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, 0)});
}

void translate_conv_bwd_filter(const Descriptor& op, GraphBuilder& to) {
  add(to, {.op = ops::conv_wgrad,
           .part = part_of(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
           .first = to.required(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY),
           .second = to.required(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
           .result = to.required(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW),
           .alpha = op.number(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 1),
           .beta = op.number(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 0)});
}

}  // namespace tsr::capi
