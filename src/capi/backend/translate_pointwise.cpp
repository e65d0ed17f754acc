// SPDX-License-Identifier: Apache-2.0
#include <cfloat>
#include <limits>

#include "capi/backend/translate.hpp"
#include "graph/pointwise_modes.hpp"

namespace tsr::capi {
namespace {

using Mode = tessera::PointwiseMode;

struct ModeRow {
  cudnnPointwiseMode_t theirs;
  Mode ours;
};

constexpr ModeRow kModes[] = {
    {CUDNN_POINTWISE_ADD, Mode::add},
    {CUDNN_POINTWISE_MUL, Mode::mul},
    {CUDNN_POINTWISE_MIN, Mode::min},
    {CUDNN_POINTWISE_MAX, Mode::max},
    {CUDNN_POINTWISE_SQRT, Mode::sqrt},
    {CUDNN_POINTWISE_ADD_SQUARE, Mode::add_square},
    {CUDNN_POINTWISE_DIV, Mode::div},
    {CUDNN_POINTWISE_MOD, Mode::mod},
    {CUDNN_POINTWISE_POW, Mode::pow},
    {CUDNN_POINTWISE_SUB, Mode::sub},
    {CUDNN_POINTWISE_ABS, Mode::abs},
    {CUDNN_POINTWISE_CEIL, Mode::ceil},
    {CUDNN_POINTWISE_COS, Mode::cos},
    {CUDNN_POINTWISE_EXP, Mode::exp},
    {CUDNN_POINTWISE_FLOOR, Mode::floor},
    {CUDNN_POINTWISE_LOG, Mode::log},
    {CUDNN_POINTWISE_NEG, Mode::neg},
    {CUDNN_POINTWISE_RSQRT, Mode::rsqrt},
    {CUDNN_POINTWISE_SIN, Mode::sin},
    {CUDNN_POINTWISE_TAN, Mode::tan},
    {CUDNN_POINTWISE_ERF, Mode::erf},
    {CUDNN_POINTWISE_IDENTITY, Mode::identity},
    {CUDNN_POINTWISE_RECIPROCAL, Mode::reciprocal},
    {CUDNN_POINTWISE_ATAN2, Mode::atan2},
    {CUDNN_POINTWISE_FLOOR_MOD, Mode::floor_mod},
    {CUDNN_POINTWISE_RELU_FWD, Mode::relu},
    {CUDNN_POINTWISE_TANH_FWD, Mode::tanh},
    {CUDNN_POINTWISE_SIGMOID_FWD, Mode::sigmoid},
    {CUDNN_POINTWISE_ELU_FWD, Mode::elu},
    {CUDNN_POINTWISE_GELU_FWD, Mode::gelu},
    {CUDNN_POINTWISE_SOFTPLUS_FWD, Mode::softplus},
    {CUDNN_POINTWISE_SWISH_FWD, Mode::swish},
    {CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, Mode::gelu_tanh},
    {CUDNN_POINTWISE_RELU_BWD, Mode::relu_bwd},
    {CUDNN_POINTWISE_TANH_BWD, Mode::tanh_bwd},
    {CUDNN_POINTWISE_SIGMOID_BWD, Mode::sigmoid_bwd},
    {CUDNN_POINTWISE_ELU_BWD, Mode::elu_bwd},
    {CUDNN_POINTWISE_GELU_BWD, Mode::gelu_bwd},
    {CUDNN_POINTWISE_SOFTPLUS_BWD, Mode::softplus_bwd},
    {CUDNN_POINTWISE_SWISH_BWD, Mode::swish_bwd},
    {CUDNN_POINTWISE_GELU_APPROX_TANH_BWD, Mode::gelu_tanh_bwd},
    {CUDNN_POINTWISE_CMP_EQ, Mode::cmp_eq},
    {CUDNN_POINTWISE_CMP_NEQ, Mode::cmp_neq},
    {CUDNN_POINTWISE_CMP_GT, Mode::cmp_gt},
    {CUDNN_POINTWISE_CMP_GE, Mode::cmp_ge},
    {CUDNN_POINTWISE_CMP_LT, Mode::cmp_lt},
    {CUDNN_POINTWISE_CMP_LE, Mode::cmp_le},
    {CUDNN_POINTWISE_LOGICAL_AND, Mode::logical_and},
    {CUDNN_POINTWISE_LOGICAL_OR, Mode::logical_or},
    {CUDNN_POINTWISE_LOGICAL_NOT, Mode::logical_not},
    {CUDNN_POINTWISE_GEN_INDEX, Mode::gen_index},
    {CUDNN_POINTWISE_BINARY_SELECT, Mode::select},
};
static_assert(std::size(kModes) == static_cast<size_t>(Mode::select) + 1);

bool is_backward(Mode m) { return m >= Mode::relu_bwd && m <= Mode::gelu_tanh_bwd; }

tessera::PointwiseOptions options_of(const Descriptor& op, const Descriptor& part) {
  tessera::PointwiseOptions o;
  o.mode = pointwise_mode(part.one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_IDENTITY));
  o.alpha1 = op.number(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1);
  o.alpha2 = op.number(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1);
  o.lower = part.number(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0);
  o.slope = part.number(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0);
  // Clients that want no upper limit say the largest float.
  double upper = part.number(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, DBL_MAX);
  o.upper = upper >= FLT_MAX ? std::numeric_limits<double>::infinity() : upper;
  o.alpha = part.number(CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1);
  bool softplus = o.mode == Mode::softplus || o.mode == Mode::softplus_bwd;
  o.beta = part.number(softplus ? CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA : CUDNN_ATTR_POINTWISE_SWISH_BETA, 1);
  if (o.mode == Mode::gen_index) o.axis = part.one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
  return o;
}

tessera::ReduceMode reduce_mode(cudnnReduceTensorOp_t mode) {
  using M = tessera::ReduceMode;
  switch (mode) {
    case CUDNN_REDUCE_TENSOR_ADD:
      return M::add;
    case CUDNN_REDUCE_TENSOR_MUL:
      return M::mul;
    case CUDNN_REDUCE_TENSOR_MIN:
      return M::min;
    case CUDNN_REDUCE_TENSOR_MAX:
      return M::max;
    case CUDNN_REDUCE_TENSOR_AMAX:
      return M::amax;
    case CUDNN_REDUCE_TENSOR_AVG:
      return M::avg;
    case CUDNN_REDUCE_TENSOR_NORM1:
      return M::norm1;
    case CUDNN_REDUCE_TENSOR_NORM2:
      return M::norm2;
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
      return M::mul_no_zeros;
    default:
      refuse(CUDNN_STATUS_BAD_PARAM, "reduction operator ", static_cast<int>(mode), " does not exist");
  }
}

}  // namespace

Mode pointwise_mode(cudnnPointwiseMode_t mode) {
  for (const ModeRow& r : kModes)
    if (r.theirs == mode) return r.ours;
  refuse(CUDNN_STATUS_BAD_PARAM, "pointwise mode ", static_cast<int>(mode), " does not exist");
}

// NaN always propagates: the interface documents no other choice.
void translate_pointwise(const Descriptor& op, GraphBuilder& to) {
  const Descriptor& part = part_of(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  tessera::PointwiseOptions o = options_of(op, part);
  DType compute = compute_type(part, CUDNN_ATTR_POINTWISE_MATH_PREC);
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  if (is_backward(o.mode)) {
    TensorId dy = to.required(op, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC);
    to.pointwise(o, {x, dy}, compute, to.required(op, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC));
    return;
  }
  std::vector<TensorId> in = {x, to.optional(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC)};
  in.resize(static_cast<size_t>(info(o.mode).arity));  // operands that the mode does not have do not matter
  to.pointwise(o, in, compute, to.required(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
}

void translate_reduction(const Descriptor& op, GraphBuilder& to) {
  const Descriptor* part = op.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  tessera::ReduceOptions o;
  if (part) o.mode = reduce_mode(part->one(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_REDUCE_TENSOR_ADD));
  if (part) o.deterministic = part->one(CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC, false);
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  TensorId y = to.required(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  TensorId groups = to.optional(op, CUDNN_ATTR_OPERATION_REDUCTION_GROUP_OFFSET_DESC);
  // Dimensions 0 and 1 hold the groups and their rows; the sizes of y tell which others are reduced.
  for (int i = 2; groups != kNone && i < to[x].rank(); ++i)
    if (to[y].dims[i] == 1 && to[x].dims[i] != 1) o.axes.push_back(i);
  to.add(ops::reduce, {x, groups}, {y}, o, part ? compute_type(*part, CUDNN_ATTR_REDUCTION_COMP_TYPE) : DType::f32);
}

void check_reduction(Descriptor& op) {
  Dims x = dims_of(part_of(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
  Dims y = dims_of(part_of(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
  auto text = [&] { return describe(op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC); };
  demand(x.size() == y.size(), CUDNN_STATUS_BAD_PARAM, text(), " must have as many dimensions as ",
         describe(op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
  const Descriptor* groups = op.part(CUDNN_ATTR_OPERATION_REDUCTION_GROUP_OFFSET_DESC);
  if (!groups) return;
  demand(y[0] == dims_of(*groups)[0], CUDNN_STATUS_BAD_PARAM, text(), " must have size ", dims_of(*groups)[0],
         " in dimension 0, one for each group of ", describe(op, CUDNN_ATTR_OPERATION_REDUCTION_GROUP_OFFSET_DESC));
  for (int i = 1; i < y.size(); ++i)
    demand(y[i] == 1 || y[i] == x[i], CUDNN_STATUS_BAD_PARAM, text(), " has size ", y[i], " in dimension ", i,
           "; allowed are 1 and ", x[i]);
}

}  // namespace tsr::capi
