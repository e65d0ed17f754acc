// SPDX-License-Identifier: Apache-2.0
// Matrix products: one, or one for each expert.
#include "capi/backend/translate.hpp"

namespace tsr::capi {

void translate_matmul(const Descriptor& op, GraphBuilder& to) {
  const Descriptor& part = part_of(op, CUDNN_ATTR_OPERATION_MATMUL_DESC);
  tessera::MatmulOptions o{.padding_value = part.number(CUDNN_ATTR_MATMUL_PADDING_VALUE, 0)};
  int64_t irregular = op.one<int64_t>(CUDNN_ATTR_OPERATION_MATMUL_IRREGULARLY_STRIDED_BATCH_COUNT, 1);
  demand(irregular == 1, CUDNN_STATUS_NOT_SUPPORTED, op.describe(), ": an irregularly strided batch of ", irregular,
         "; allowed is 1");
  std::vector<TensorId> in = {to.required(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC),
                              to.required(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC)};
  to.add(ops::matmul, in, {to.required(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC)}, o,
         compute_type(part, CUDNN_ATTR_MATMUL_COMP_TYPE));
}

void check_matmul(Descriptor& op) {
  demand(op.part(CUDNN_ATTR_OPERATION_MATMUL_CDESC), CUDNN_STATUS_NOT_SUPPORTED, op.describe(),
         ": CUDNN_ATTR_OPERATION_MATMUL_CDESC is not set");
}

void translate_moe(const Descriptor& op, GraphBuilder& to) {
  using M = tessera::MoeMode;
  tessera::MoeOptions o;
  auto mode = op.one(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE, CUDNN_MOE_GROUPED_MATMUL_MODE_NONE);
  switch (mode) {
    case CUDNN_MOE_GROUPED_MATMUL_MODE_NONE:
      o.mode = M::none;
      break;
    case CUDNN_MOE_GROUPED_MATMUL_MODE_GATHER:
      o.mode = M::gather;
      break;
    case CUDNN_MOE_GROUPED_MATMUL_MODE_SCATTER:
      o.mode = M::scatter;
      break;
    default:
      refuse(CUDNN_STATUS_BAD_PARAM, op.describe(), ": mode ", static_cast<int>(mode), " does not exist");
  }
  bool routed = o.mode != M::none, scatters = o.mode == M::scatter;
  if (scatters) o.top_k = op.one<int32_t>(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOP_K, 1);
  std::vector<TensorId> in = {
      to.required(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC),
      to.required(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC),
      to.required(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC),
      routed ? to.optional(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_INDEX_DESC) : kNone,
      scatters ? to.optional(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_KS_DESC) : kNone};
  to.add(ops::moe_matmul, in, {to.required(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC)}, o,
         compute_type(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MATH_PREC));
}

void translate_moe_bwd(const Descriptor& op, GraphBuilder& to) {
  TensorId dweight = to.required(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_DWEIGHT_DESC);
  std::vector<TensorId> in = {to.required(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_DOUTPUT_DESC),
                              to.required(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_TOKEN_DESC),
                              to.required(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_FIRST_TOKEN_OFFSET_DESC)};
  to.add(ops::moe_matmul_bwd, in, {dweight}, tessera::MoeBwdOptions{.experts = to[dweight].dims[0]},
         compute_type(op, CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_MATH_PREC));
}

void check_moe_bwd(Descriptor& op) {
  constexpr Attr kToken = CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_TOKEN_DESC,
                 kDweight = CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_DWEIGHT_DESC,
                 kOffset = CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_FIRST_TOKEN_OFFSET_DESC,
                 kDoutput = CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_DOUTPUT_DESC;
  Dims token = dims_of(part_of(op, kToken)), dweight = dims_of(part_of(op, kDweight));
  Dims offset = dims_of(part_of(op, kOffset)), doutput = dims_of(part_of(op, kDoutput));
  for (Attr name : {kToken, kDweight, kOffset, kDoutput})
    demand(dims_of(part_of(op, name)).size() == 3, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, name),
           " must have 3 dimensions");
  check_dims(op, kDoutput, {token[0], token[1], dweight[2]});
  check_dims(op, kDweight, {dweight[0], token[2], doutput[2]});
  demand(dweight[0] > 0 && offset[0] % dweight[0] == 0, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ",
         describe(op, kOffset), " must hold a multiple of ", dweight[0], " offsets, one for each expert");
}

}  // namespace tsr::capi
