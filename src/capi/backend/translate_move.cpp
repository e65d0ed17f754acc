// SPDX-License-Identifier: Apache-2.0
// Operations that move, draw or pack elements.
#include <algorithm>

#include "capi/backend/translate.hpp"

namespace tsr::capi {

void translate_reshape(const Descriptor& op, GraphBuilder& to) {
  tessera::ReshapeOptions o;
  auto mode = op.one(CUDNN_ATTR_OPERATION_RESHAPE_MODE, CUDNN_RESHAPE_VIEW_ONLY);
  o.mode = mode == CUDNN_RESHAPE_LOGICAL ? tessera::ReshapeMode::logical : tessera::ReshapeMode::view;
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
  to.add(ops::reshape, {x}, {to.required(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC)}, o, compute_for(to, x));
}

void check_reshape(Descriptor& op) {
  int64_t x = volume(dims_of(part_of(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC)));
  int64_t y = volume(dims_of(part_of(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC)));
  demand(x == y, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC), " has ",
         y, " elements, it must have the ", x, " of ", describe(op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
}

void translate_transpose(const Descriptor& op, GraphBuilder& to) {
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_TRANSPOSE_XDESC);
  tessera::TransposeOptions o{ints_of(op, CUDNN_ATTR_OPERATION_TRANSPOSE_PERMUTATION, to[x].rank())};
  to.add(ops::transpose, {x}, {to.required(op, CUDNN_ATTR_OPERATION_TRANSPOSE_YDESC)}, o, compute_for(to, x));
}

void check_transpose(Descriptor& op) {
  Dims x = dims_of(part_of(op, CUDNN_ATTR_OPERATION_TRANSPOSE_XDESC)), y;
  Ints perm = ints_of(op, CUDNN_ATTR_OPERATION_TRANSPOSE_PERMUTATION, x.size());
  for (int i = 0; i < x.size(); ++i)
    demand(std::count(perm.begin(), perm.end(), i) == 1, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", Dims(perm),
           " is no permutation of 0..", x.size() - 1);
  for (int64_t p : perm) y.push_back(x[static_cast<int>(p)]);
  check_dims(op, CUDNN_ATTR_OPERATION_TRANSPOSE_YDESC, y);
  check_same_type(op, CUDNN_ATTR_OPERATION_TRANSPOSE_YDESC, CUDNN_ATTR_OPERATION_TRANSPOSE_XDESC);
}

void translate_slice(const Descriptor& op, GraphBuilder& to) {
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_SLICE_XDESC);
  int rank = to[x].rank();
  tessera::SliceOptions o{.start = ints_of(op, CUDNN_ATTR_OPERATION_SLICE_START_INDICES, rank),
                          .limit = ints_of(op, CUDNN_ATTR_OPERATION_SLICE_LIMIT_INDICES, rank),
                          .stride = ints_of(op, CUDNN_ATTR_OPERATION_SLICE_STRIDES, rank)};
  to.add(ops::slice, {x}, {to.required(op, CUDNN_ATTR_OPERATION_SLICE_YDESC)}, o, compute_for(to, x));
}

void check_slice(Descriptor& op) {
  Dims x = dims_of(part_of(op, CUDNN_ATTR_OPERATION_SLICE_XDESC)), y;
  Ints start = ints_of(op, CUDNN_ATTR_OPERATION_SLICE_START_INDICES, x.size());
  Ints limit = ints_of(op, CUDNN_ATTR_OPERATION_SLICE_LIMIT_INDICES, x.size());
  Ints stride = ints_of(op, CUDNN_ATTR_OPERATION_SLICE_STRIDES, x.size());
  for (int d = 0; d < x.size(); ++d) {
    auto i = static_cast<size_t>(d);
    demand(0 <= start[i] && start[i] <= limit[i] && limit[i] <= x[d] && stride[i] > 0, CUDNN_STATUS_BAD_PARAM,
           op.describe(), ": dimension ", d, " of ", describe(op, CUDNN_ATTR_OPERATION_SLICE_XDESC), " is cut from ",
           start[i], " to ", limit[i], " in steps of ", stride[i], "; allowed are 0 <= start <= limit <= ", x[d],
           " and steps above 0");
    y.push_back(limit[i] == start[i] ? 0 : (limit[i] - start[i] - 1) / stride[i] + 1);  // any stride fits
  }
  check_dims(op, CUDNN_ATTR_OPERATION_SLICE_YDESC, y);
  check_same_type(op, CUDNN_ATTR_OPERATION_SLICE_YDESC, CUDNN_ATTR_OPERATION_SLICE_XDESC);
}

void translate_concat(const Descriptor& op, GraphBuilder& to) {
  tessera::ConcatOptions o;
  o.axis = op.one<int64_t>(CUDNN_ATTR_OPERATION_CONCAT_AXIS, 0);
  if (int64_t i = op.one<int64_t>(CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, -1); i >= 0) o.inplace_index = i;
  std::vector<TensorId> in;
  for (const auto& d : op.parts(CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS)) in.push_back(to.tensor(*d));
  demand(!in.empty(), CUDNN_STATUS_BAD_PARAM, op.describe(), ": CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS is not set");
  to.add(ops::concat, in, {to.required(op, CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC)}, o, compute_for(to, in[0]));
}

namespace {

// Pages hold [steps, elements]; the result may be the other way round. Square ones are told apart by their strides.
bool is_transposed(const Tensor& container, const Tensor& y) {
  if (container.rank() != 4 || y.rank() != 4) return false;
  int64_t elements = container.dims[3];
  if (y.dims[2] != elements || y.dims[3] != elements) return y.dims[2] == elements && y.dims[3] != elements;
  return y.strides[2] < y.strides[3];
}

}  // namespace

void translate_paged_load(const Descriptor& op, GraphBuilder& to) {
  std::vector<TensorId> in = {to.required(op, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC),
                              to.required(op, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC)};
  TensorId y = to.required(op, CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC);
  tessera::PagedLoadOptions o{.transposed = is_transposed(to[in[0]], to[y])};
  to.add(ops::paged_load, in, {y}, o, compute_for(to, in[0]));
}

void translate_rng(const Descriptor& op, GraphBuilder& to) {
  using D = tessera::Distribution;
  const Descriptor& part = part_of(op, CUDNN_ATTR_OPERATION_RNG_DESC);
  tessera::RngOptions o;
  auto distribution = part.one(CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_RNG_DISTRIBUTION_BERNOULLI);
  // Programs leave anything in the parameters of the other distributions.
  switch (distribution) {
    case CUDNN_RNG_DISTRIBUTION_BERNOULLI:
      o.distribution = D::bernoulli;
      o.p = part.number(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, 0.5);
      break;
    case CUDNN_RNG_DISTRIBUTION_UNIFORM:
      o.distribution = D::uniform;
      o.low = part.number(CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM, 0);
      o.high = part.number(CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM, 1);
      break;
    case CUDNN_RNG_DISTRIBUTION_NORMAL:
      o.distribution = D::normal;
      o.mean = part.number(CUDNN_ATTR_RNG_NORMAL_DIST_MEAN, 0);
      o.stddev = part.number(CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION, 1);
      break;
    default:
      refuse(CUDNN_STATUS_BAD_PARAM, "distribution ", static_cast<int>(distribution), " does not exist");
  }
  // The seed is a tensor or a number.
  TensorId seed = to.optional(op, CUDNN_ATTR_OPERATION_RNG_SEED);
  if (seed == kNone) o.seed = op.one<int64_t>(CUDNN_ATTR_OPERATION_RNG_SEED, 0);
  TensorId y = to.required(op, CUDNN_ATTR_OPERATION_RNG_YDESC);
  to.add(ops::rng, {seed, to.optional(op, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC)}, {y}, o, compute_for(to, y));
}

void translate_quantize(const Descriptor& op, GraphBuilder& to) {
  tessera::BlockScaleOptions o{.block = ints_of(op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE, 1)};
  to.add(ops::block_scale_quantize, {to.required(op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC)},
         {to.required(op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC),
          to.required(op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC)},
         o, compute_type(op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC));
}

void translate_dequantize(const Descriptor& op, GraphBuilder& to) {
  tessera::BlockScaleOptions o{.block = op.ints(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE)};
  o.neg_scale = op.one(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE, false);
  std::vector<TensorId> in = {to.required(op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC),
                              to.required(op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC)};
  to.add(ops::block_scale_dequantize, in, {to.required(op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC)}, o,
         compute_type(op, CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC));
}

}  // namespace tsr::capi
