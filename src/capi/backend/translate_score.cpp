// SPDX-License-Identifier: Apache-2.0
// What attention is made of besides products: softmax, band masks, rotary embeddings.
#include "capi/backend/translate.hpp"

namespace tsr::capi {

void translate_softmax(const Descriptor& op, GraphBuilder& to) {
  tessera::SoftmaxOptions o{.stats_log2 = op.one(CUDNN_ATTR_OPERATION_SOFTMAX_STATS_LOG2, false)};
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_SOFTMAX_XDESC);
  to.add(ops::softmax, {x, to.optional(op, CUDNN_ATTR_OPERATION_SOFTMAX_SINK_DESC)},
         {to.required(op, CUDNN_ATTR_OPERATION_SOFTMAX_YDESC), to.optional(op, CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC),
          to.optional(op, CUDNN_ATTR_OPERATION_SOFTMAX_MAX_DESC),
          to.optional(op, CUDNN_ATTR_OPERATION_SOFTMAX_SUM_EXP_DESC)},
         o, compute_for(to, x));
}

void check_softmax(Descriptor& op) {
  Dims x = dims_of(part_of(op, CUDNN_ATTR_OPERATION_SOFTMAX_XDESC));
  demand(x.size() == 4, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, CUDNN_ATTR_OPERATION_SOFTMAX_XDESC),
         " must have 4 dimensions");
  check_dims(op, CUDNN_ATTR_OPERATION_SOFTMAX_YDESC, x);
  for (Attr name : {CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC, CUDNN_ATTR_OPERATION_SOFTMAX_MAX_DESC,
                    CUDNN_ATTR_OPERATION_SOFTMAX_SUM_EXP_DESC})
    check_dims(op, name, {x[0], x[1], x[2], 1});
  check_dims(op, CUDNN_ATTR_OPERATION_SOFTMAX_SINK_DESC, {1, x[1], 1, 1});
  demand(!op.one(CUDNN_ATTR_OPERATION_SOFTMAX_STATS_LOG2, false) || op.part(CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC),
         CUDNN_STATUS_BAD_PARAM, op.describe(), ": STATS_LOG2 needs STATS_DESC");
}

void translate_band_mask(const Descriptor& op, GraphBuilder& to) {
  auto compare = op.one(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE, CUDNN_POINTWISE_CMP_GT);
  tessera::BandMaskOptions o{.compare = pointwise_mode(compare)};
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC);
  std::vector<TensorId> in = {x,
                              to.required(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_QDESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_KVDESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_QDESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_KVDESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_LEFT_BOUND_DESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SHIFT_RIGHT_BOUND_DESC)};
  to.add(ops::band_mask, in, {to.required(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC)}, o, compute_for(to, x));
}

void check_band_mask(Descriptor& op) {
  constexpr Attr kQ = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_QDESC,
                 kKv = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_KVDESC,
                 kCuQ = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_QDESC,
                 kCuKv = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_KVDESC,
                 kLeft = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_LEFT_BOUND_DESC,
                 kRight = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SHIFT_RIGHT_BOUND_DESC;
  Dims x = dims_of(part_of(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC));
  demand(x.size() == 4, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ",
         describe(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC), " must have 4 dimensions");
  check_dims(op, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC, x);
  for (Attr name : {CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC, kLeft, kRight}) check_one_element(op, name);
  demand(!op.part(kLeft) || !op.part(kRight), CUDNN_STATUS_BAD_PARAM, op.describe(),
         ": a left bound and a shift of the right bound exclude each other");
  for (auto [length, cumulative] : {std::pair(kQ, kCuQ), std::pair(kKv, kCuKv)}) {
    demand(!op.part(length) || !op.part(cumulative), CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, length),
           " and ", describe(op, cumulative), " exclude each other");
    check_dims(op, cumulative, {x[0] + 1, 1, 1, 1});
    for (Attr name : {length, cumulative})
      if (const Descriptor* d = op.part(name))
        demand(type_of(*d) == CUDNN_DATA_INT32 || type_of(*d) == CUDNN_DATA_INT64, CUDNN_STATUS_BAD_PARAM,
               op.describe(), ": ", describe(op, name), " must be INT32 or INT64");
  }
  bool q = op.part(kQ) || op.part(kCuQ), kv = op.part(kKv) || op.part(kCuKv);
  demand(q == kv, CUDNN_STATUS_BAD_PARAM, op.describe(), ": lengths of q and kv must be set both or not at all");
}

namespace {

// The same attributes in both directions.
struct Rope {
  Attr x, y, freqs, scale, dim;
};
constexpr Rope kForward = {CUDNN_ATTR_OPERATION_ROPE_FWD_XDESC, CUDNN_ATTR_OPERATION_ROPE_FWD_YDESC,
                           CUDNN_ATTR_OPERATION_ROPE_FWD_FREQSDESC, CUDNN_ATTR_OPERATION_ROPE_FWD_OUTPUT_SCALE,
                           CUDNN_ATTR_OPERATION_ROPE_FWD_ROPE_DIM};
constexpr Rope kBackward = {CUDNN_ATTR_OPERATION_ROPE_BWD_DYDESC, CUDNN_ATTR_OPERATION_ROPE_BWD_DXDESC,
                            CUDNN_ATTR_OPERATION_ROPE_BWD_FREQSDESC, CUDNN_ATTR_OPERATION_ROPE_BWD_OUTPUT_SCALE,
                            CUDNN_ATTR_OPERATION_ROPE_BWD_ROPE_DIM};

void translate_rope(const Descriptor& op, GraphBuilder& to, const Rope& r, const OpSpec& spec) {
  tessera::RopeOptions o{.scale = op.number(r.scale, 1), .rope_dim = op.one<int64_t>(r.dim, 0)};
  TensorId x = to.required(op, r.x);
  to.add(spec, {x, to.required(op, r.freqs)}, {to.required(op, r.y)}, o, compute_for(to, x));
}

void check_rope(Descriptor& op, const Rope& r) {
  Dims x = dims_of(part_of(op, r.x));
  check_dims(op, r.y, x);
  check_same_type(op, r.y, r.x);
  demand(!x.empty() && x.back() % 2 == 0, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, r.x),
         " must have an even last size");
  int64_t dim = op.one<int64_t>(r.dim, 0);
  if (dim == 0) dim = x.back();
  demand(dim >= 2 && dim <= x.back() && dim % 2 == 0, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ROPE_DIM is ", dim,
         "; allowed are even numbers in 2..", x.back(), " and 0 for all");
  op.put(r.dim, std::vector{dim});
}

}  // namespace

void translate_rope_fwd(const Descriptor& op, GraphBuilder& to) { translate_rope(op, to, kForward, ops::rope); }
void translate_rope_bwd(const Descriptor& op, GraphBuilder& to) { translate_rope(op, to, kBackward, ops::rope_bwd); }
void check_rope_fwd(Descriptor& op) { check_rope(op, kForward); }
void check_rope_bwd(Descriptor& op) { check_rope(op, kBackward); }

}  // namespace tsr::capi
