// SPDX-License-Identifier: Apache-2.0
// Pooling and interpolation.
#include <limits>

#include "capi/backend/translate.hpp"

namespace tsr::capi {
namespace {

tessera::ResampleMode mode_of(cudnnResampleMode_t mode) {
  using M = tessera::ResampleMode;
  switch (mode) {
    case CUDNN_RESAMPLE_NEAREST:
      return M::nearest;
    case CUDNN_RESAMPLE_BILINEAR:
      return M::bilinear;
    case CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING:
      return M::avg_pool_include;
    case CUDNN_RESAMPLE_MAXPOOL:
      return M::max_pool;
    case CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING:
      return M::avg_pool_exclude;
    default:
      refuse(CUDNN_STATUS_BAD_PARAM, "resample mode ", static_cast<int>(mode), " does not exist");
  }
}

tessera::PaddingMode padding_of(cudnnPaddingMode_t mode) {
  using M = tessera::PaddingMode;
  switch (mode) {
    case CUDNN_ZERO_PAD:
      return M::zero;
    case CUDNN_NEG_INF_PAD:
      return M::neg_inf;
    case CUDNN_EDGE_VAL_PAD:
      return M::edge;
    default:
      refuse(CUDNN_STATUS_BAD_PARAM, "padding mode ", static_cast<int>(mode), " does not exist");
  }
}

std::vector<tessera::Ratio> ratios_of(const Descriptor& part, Attr name, int count) {
  std::vector<tessera::Ratio> ratios;
  for (const cudnnFraction_t& f : part.list<cudnnFraction_t>(name)) ratios.push_back({f.numerator, f.denominator});
  demand(static_cast<int>(ratios.size()) == count, CUDNN_STATUS_BAD_PARAM, part.describe(), ": attribute ",
         static_cast<int>(name), " has ", ratios.size(), " fractions, it needs one for each of the ", count,
         " spatial dimensions");
  return ratios;
}

tessera::ResampleOptions options_of(const Descriptor& part, const Tensor& data) {
  auto spatial = static_cast<int>(part.one<int64_t>(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, data.rank() - 2));
  demand(spatial == data.rank() - 2, CUDNN_STATUS_BAD_PARAM, "CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS is ", spatial,
         ", tensor '", data.name, "' ", data.dims, " has ", data.rank() - 2);
  tessera::ResampleOptions o;
  o.mode = mode_of(part.one(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_RESAMPLE_NEAREST));
  o.padding = padding_of(part.one(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_ZERO_PAD));
  bool interpolates = o.mode == tessera::ResampleMode::nearest || o.mode == tessera::ResampleMode::bilinear;
  if (!interpolates) o.window = ratios_of(part, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, spatial);
  o.stride = ratios_of(part, CUDNN_ATTR_RESAMPLE_STRIDES, spatial);
  o.pad = ratios_of(part, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, spatial);
  o.post_pad = ratios_of(part, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, spatial);
  return o;
}

// NaN counts as nothing for a maximum, unless it is to be propagated.
TensorId without_nan(const Descriptor& part, GraphBuilder& to, TensorId x) {
  DType type = to[x].dtype;
  if (!is_real(type) || part.one(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_NOT_PROPAGATE_NAN) == CUDNN_PROPAGATE_NAN)
    return x;
  using M = tessera::PointwiseMode;
  DType compute = compute_for(to, x);
  TensorId is_number = to.like(x, DType::boolean), clean = to.like(x, type);
  to.pointwise({.mode = M::cmp_eq}, {x, x}, compute, is_number);
  to.pointwise({.mode = M::select}, {x, to.constant(-std::numeric_limits<double>::infinity(), compute), is_number},
               compute, clean);
  return clean;
}

}  // namespace

void translate_resample_fwd(const Descriptor& op, GraphBuilder& to) {
  const Descriptor& part = part_of(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC);
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC);
  TensorId y = to.required(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
  tessera::ResampleOptions o = options_of(part, to[x]);
  bool maxima = o.mode == tessera::ResampleMode::max_pool;
  TensorId index = maxima ? to.optional(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC) : kNone;
  double alpha = op.number(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA, 1);
  double beta = op.number(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA, 0);
  DType compute = compute_type(part, CUDNN_ATTR_RESAMPLE_COMP_TYPE);
  if (beta == 0) o.alpha = alpha;
  TensorId value = beta == 0 ? y : to.like(y, compute);
  to.add(ops::resample, {maxima ? without_nan(part, to, x) : x}, {value, index}, o, compute);
  if (beta != 0) to.blend(y, value, alpha, beta, compute);
}

void translate_resample_bwd(const Descriptor& op, GraphBuilder& to) {
  const Descriptor& part = part_of(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC);
  TensorId dy = to.required(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC);
  TensorId dx = to.required(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC);
  tessera::ResampleOptions o = options_of(part, to[dy]);
  bool maxima = o.mode == tessera::ResampleMode::max_pool;
  TensorId x = to.optional(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC);
  std::vector<TensorId> in = {dy, maxima && x != kNone ? without_nan(part, to, x) : x,
                              to.optional(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_YDESC),
                              maxima ? to.optional(op, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC) : kNone};
  double alpha = op.number(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_ALPHA, 1);
  double beta = op.number(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_BETA, 0);
  DType compute = compute_type(part, CUDNN_ATTR_RESAMPLE_COMP_TYPE);
  if (beta == 0) o.alpha = alpha;
  TensorId value = beta == 0 ? dx : to.like(dx, compute);
  to.add(ops::resample_bwd, in, {value}, o, compute);
  if (beta != 0) to.blend(dx, value, alpha, beta, compute);
}

}  // namespace tsr::capi
