// SPDX-License-Identifier: Apache-2.0
// What finalizing an attention operation refuses: the rules that the real library was seen to enforce.
#include "capi/backend/translate.hpp"

namespace tsr::capi {
namespace {

constexpr Attr kQ = CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, kK = CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
               kV = CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC;

bool is_fp8(const Descriptor& tensor) {
  return type_of(tensor) == CUDNN_DATA_FP8_E4M3 || type_of(tensor) == CUDNN_DATA_FP8_E5M2;
}

void check_heads(const Descriptor& op) {
  for (Attr name : {kQ, kK, kV})
    demand(dims_of(part_of(op, name)).size() == 4, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, name),
           " must have 4 dimensions");
  int64_t heads = dims_of(part_of(op, kQ))[1];
  for (Attr name : {kK, kV})
    demand(heads % dims_of(part_of(op, name))[1] == 0, CUDNN_STATUS_BAD_PARAM, op.describe(), ": the ", heads,
           " heads of ", describe(op, kQ), " are no multiple of those of ", describe(op, name));
}

void check_lengths(const Descriptor& op) {
  constexpr Attr kSeqQ = CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC,
                 kSeqKv = CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC,
                 kCuQ = CUDNN_ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_QDESC,
                 kCuKv = CUDNN_ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_KVDESC;
  int64_t batches = dims_of(part_of(op, kQ))[0];
  for (auto [length, cumulative] : {std::pair(kSeqQ, kCuQ), std::pair(kSeqKv, kCuKv)}) {
    demand(!op.part(length) || !op.part(cumulative), CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, length),
           " and ", describe(op, cumulative), " exclude each other");
    check_dims(op, length, {batches, 1, 1, 1});
    check_dims(op, cumulative, {batches + 1, 1, 1, 1});
  }
  bool q = op.part(kSeqQ) || op.part(kCuQ), kv = op.part(kSeqKv) || op.part(kCuKv);
  demand(q == kv, CUDNN_STATUS_BAD_PARAM, op.describe(), ": lengths of q and kv must be set both or not at all");
}

void check_scores(const Descriptor& op) {
  const Descriptor* softmax = op.part(CUDNN_ATTR_OPERATION_SDPA_FWD_SOFTMAX_DESC);
  demand(!softmax || !op.part(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC), CUDNN_STATUS_BAD_PARAM, op.describe(),
         ": STATSDESC and SOFTMAX_DESC exclude each other");
  bool sub = op.part(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH);
  for (Attr name :
       {CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID, CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_OUTPUT_UID})
    demand(op.has(name) == sub, CUDNN_STATUS_BAD_PARAM, op.describe(),
           ": SUBGRAPH, SUBGRAPH_INPUT_UID and SUBGRAPH_OUTPUT_UID must be set together");
  bool paged = op.part(CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC);
  if (!softmax || paged) return;
  Dims x = dims_of(part_of(*softmax, CUDNN_ATTR_OPERATION_SOFTMAX_XDESC));
  int64_t steps = dims_of(part_of(op, kK))[2];
  demand(x.back() == steps, CUDNN_STATUS_BAD_PARAM, op.describe(), ": its softmax is over ", x.back(),
         " keys, the sequences of ", describe(op, kK), " have ", steps);
}

void check_dropout(const Descriptor& op) {
  double p = op.number(CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_PROBABILITY, 0);
  demand(p >= 0 && p <= 1, CUDNN_STATUS_BAD_PARAM, op.describe(), ": DROPOUT_PROBABILITY is ", p,
         "; allowed are 0 to 1");
  for (Attr name :
       {CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_SEED_DESC, CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_OFFSET_DESC}) {
    demand(p == 0 || op.part(name), CUDNN_STATUS_BAD_PARAM, op.describe(),
           ": dropout needs DROPOUT_SEED_DESC and DROPOUT_OFFSET_DESC");
    check_one_element(op, name);
  }
}

// Per tensor: all factors and the largest magnitude of o. In blocks (E8M0): factors of q, k and v only.
void check_scales(const Descriptor& op) {
  constexpr Attr kDescales[] = {CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_QDESC,
                                CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_KDESC,
                                CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_VDESC};
  constexpr Attr kPerTensor[] = {CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_SDESC, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALE_SDESC,
                                 CUDNN_ATTR_OPERATION_SDPA_FWD_SCALE_ODESC, CUDNN_ATTR_OPERATION_SDPA_FWD_AMAX_ODESC};
  bool fp8 = is_fp8(part_of(op, kQ));
  const Descriptor* first = op.part(kDescales[0]);
  bool blocks = first && type_of(*first) == CUDNN_DATA_FP8_E8M0;
  auto check = [&](Attr name, bool needed) {
    demand(op.part(name) || !needed, CUDNN_STATUS_BAD_PARAM, op.describe(), ": attribute ", static_cast<int>(name),
           " is needed for ", describe(op, kQ));
    demand(!op.part(name) || fp8, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, name),
           " is for 8-bit inputs, not for ", describe(op, kQ));
  };
  for (Attr name : kDescales) check(name, fp8);
  for (Attr name : kPerTensor) check(name, fp8 && !blocks);
  check(CUDNN_ATTR_OPERATION_SDPA_FWD_AMAX_SDESC, false);
}

}  // namespace

void check_sdpa_fwd(Descriptor& op) {
  check_heads(op);
  check_lengths(op);
  check_scores(op);
  check_dropout(op);
  check_scales(op);
}

}  // namespace tsr::capi
