// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <optional>

#include "capi/backend/translate.hpp"
#include "graph/gradient.hpp"
#include "graph/ops/sdpa_common.hpp"

namespace tsr::capi {
namespace {

// An attribute and the slot of the operation that it fills.
struct Role {
  std::string_view slot;
  Attr name;
};

constexpr Role kForwardIn[] = {
    {"q", CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC},
    {"k", CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC},
    {"v", CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC},
    {"scale", CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC},
    {"block_mask", CUDNN_ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC},
    {"page_table_k", CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC},
    {"page_table_v", CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC},
    {"seq_len_q", CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC},
    {"seq_len_kv", CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC},
    {"cu_seq_len_q", CUDNN_ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_QDESC},
    {"cu_seq_len_kv", CUDNN_ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_KVDESC},
    {"dropout_seed", CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_SEED_DESC},
    {"dropout_offset", CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_OFFSET_DESC},
    {"descale_q", CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_QDESC},
    {"descale_k", CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_KDESC},
    {"descale_v", CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_VDESC},
    {"descale_s", CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_SDESC},
    {"scale_s", CUDNN_ATTR_OPERATION_SDPA_FWD_SCALE_SDESC},
    {"scale_o", CUDNN_ATTR_OPERATION_SDPA_FWD_SCALE_ODESC},
};
constexpr Role kForwardOut[] = {
    {"o", CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC},
    {"stats", CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC},
    {"rng_dump", CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_RNG_DUMP_DESC},
    {"amax_s", CUDNN_ATTR_OPERATION_SDPA_FWD_AMAX_SDESC},
    {"amax_o", CUDNN_ATTR_OPERATION_SDPA_FWD_AMAX_ODESC},
};
// Of the softmax descriptor, whose x and y are placeholders.
constexpr Role kSoftmaxIn[] = {{"sink", CUDNN_ATTR_OPERATION_SOFTMAX_SINK_DESC}};
constexpr Role kSoftmaxOut[] = {{"stats", CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC},
                                {"max", CUDNN_ATTR_OPERATION_SOFTMAX_MAX_DESC},
                                {"sum_exp", CUDNN_ATTR_OPERATION_SOFTMAX_SUM_EXP_DESC}};
constexpr Role kBackwardIn[] = {
    {"q", CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC},
    {"k", CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC},
    {"v", CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC},
    {"o", CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC},
    {"do", CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC},
    {"stats", CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC},
    {"scale", CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC},
    {"seq_len_q", CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_QDESC},
    {"seq_len_kv", CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_KVDESC},
    {"sink", CUDNN_ATTR_OPERATION_SDPA_BWD_SINK_DESC},
};
constexpr Role kBackwardOut[] = {
    {"dq", CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC},
    {"dk", CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC},
    {"dv", CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC},
    {"dsink", CUDNN_ATTR_OPERATION_SDPA_BWD_DSINK_DESC},
};

size_t slot_of(const std::vector<Slot>& slots, std::string_view name) {
  auto slot = std::find_if(slots.begin(), slots.end(), [&](const Slot& s) { return s.name == name; });
  return static_cast<size_t>(slot - slots.begin());
}

void fill(std::vector<TensorId>& ids, const std::vector<Slot>& slots, std::span<const Role> roles, const Descriptor& op,
          GraphBuilder& to) {
  ids.resize(slots.size(), kNone);
  for (const Role& r : roles)
    if (TensorId t = to.optional(op, r.name); t != kNone) ids[slot_of(slots, r.slot)] = t;
}

// A score modification: an operation graph of its own between two of its tensors.
class ScoreMod {
 public:
  ScoreMod(const Descriptor& sub, int64_t input, int64_t output) {
    for (const auto& op : sub.parts(CUDNN_ATTR_OPERATIONGRAPH_OPS)) translate(*op, body_);
    param_ = body_.find(input, "input");
    result_ = body_.find(output, "output");
  }

  int64_t longest_sequence() const { return body_[param_].dims.back(); }

  // Among the masks at the end, one that hides what lies right of the diagonal becomes the operation's own: engines
  // then skip that half. What it fills in arrives with each execution; it is taken on trust that it stands for minus
  // infinity. `in` are the operation's inputs.
  void take_causal_mask(GraphBuilder& outer, const std::vector<TensorId>& in, tessera::SdpaOptions& o) {
    for (TensorId t = result_;;) {
      const Node* mask = body_.producer(t);
      if (!mask || mask->op != &ops::band_mask || !may_be_minus_infinity(body_[mask->in[kFill]])) return;
      TensorId x = mask->in[kX];
      if (is_causal(*mask, outer, in, o)) {
        body_.replace(t, x);
        if (t == result_) result_ = x;
        return;
      }
      t = x;
    }
  }

  // Null when nothing is left of it.
  tessera::Subgraph finish(DType type, GraphBuilder& to, std::vector<TensorId>& captured) {
    return param_ == result_ ? nullptr : body_.finish_body(param_, type, result_, to, captured);
  }

 private:
  enum In { kX, kFill, kSeqQ, kSeqKv, kCuSeqQ, kCuSeqKv, kLeft, kShift };

  static bool may_be_minus_infinity(const Tensor& fill) {
    if (fill.is_constant())
      return load<double>(fill.dtype, fill.constant.data(), 0) == -std::numeric_limits<double>::infinity();
    return fill.by_value;
  }

  // Without lengths the diagonal begins in the upper left corner; with those of the operation itself it ends in the
  // lower right one.
  bool is_causal(const Node& mask, GraphBuilder& outer, const std::vector<TensorId>& in,
                 tessera::SdpaOptions& o) const {
    if (attrs<tessera::BandMaskOptions>(mask).compare != tessera::PointwiseMode::cmp_ge || mask.in[kLeft] != kNone ||
        mask.in[kShift] != kNone)
      return false;
    bool lengths = false;
    for (auto [slot, name] : {std::pair(kSeqQ, "seq_len_q"), std::pair(kSeqKv, "seq_len_kv"),
                              std::pair(kCuSeqQ, "cu_seq_len_q"), std::pair(kCuSeqKv, "cu_seq_len_kv")}) {
      TensorId inner = mask.in[slot];
      if (inner == kNone) continue;
      if (outer.tensor(body_.descriptor(inner)) != in[slot_of(ops::sdpa_fwd.in, name)]) return false;
      lengths = true;
    }
    o.right = 0;
    if (lengths) o.align = tessera::Align::bottom_right;
    return true;
  }

  GraphBuilder body_;
  TensorId param_ = kNone, result_ = kNone;
};

// Page tables do not tell the longest sequence; tensors of the scores' sizes do.
int64_t longest_sequence(const Descriptor& op, const Descriptor* softmax, const std::optional<ScoreMod>& mod) {
  if (softmax) return dims_of(part_of(*softmax, CUDNN_ATTR_OPERATION_SOFTMAX_XDESC)).back();
  if (mod) return mod->longest_sequence();
  const Descriptor* dump = op.part(CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_RNG_DUMP_DESC);
  return dump ? dims_of(*dump).back() : 0;
}

// Programs give a block mask one byte for each tile of scores, as it is documented, or one bit.
TensorId mask_of_tiles(TensorId mask, int64_t keys, GraphBuilder& to) {
  int64_t tiles = ceil_div(keys, sdpa::kMaskBlock);
  if (mask == kNone || to[mask].dims.back() != ceil_div(tiles, 8)) return mask;
  to.read_as_bits(mask);
  TensorId all = to.like(mask, DType::boolean);
  to.pointwise({}, {mask}, DType::boolean, all);
  return all;
}

}  // namespace

void translate_sdpa_fwd(const Descriptor& op, GraphBuilder& to) {
  const OpSpec& spec = ops::sdpa_fwd;
  std::vector<TensorId> in, out, captured;
  fill(in, spec.in, kForwardIn, op, to);
  fill(out, spec.out, kForwardOut, op, to);
  tessera::SdpaOptions o;
  o.dropout = op.number(CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_PROBABILITY, 0);
  const Descriptor* softmax = op.part(CUDNN_ATTR_OPERATION_SDPA_FWD_SOFTMAX_DESC);
  if (softmax) {
    fill(in, spec.in, kSoftmaxIn, *softmax, to);
    fill(out, spec.out, kSoftmaxOut, *softmax, to);
    o.stats_log2 = softmax->one(CUDNN_ATTR_OPERATION_SOFTMAX_STATS_LOG2, false);
  }
  DType compute = compute_for(to, in[0]);
  std::optional<ScoreMod> mod;
  if (const Descriptor* sub = op.part(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH)) {
    mod.emplace(*sub, op.one<int64_t>(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID, -1),
                op.one<int64_t>(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_OUTPUT_UID, -1));
    mod->take_causal_mask(to, in, o);
    o.score_mod = mod->finish(compute, to, captured);
  }
  if (op.part(CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC) ||
      op.part(CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC))
    o.max_seq_kv = longest_sequence(op, softmax, mod);
  TensorId& mask = in[slot_of(spec.in, "block_mask")];
  mask = mask_of_tiles(mask, o.max_seq_kv > 0 ? o.max_seq_kv : to[in[1]].dims[2], to);
  to.add(spec, std::move(in), std::move(out), o, compute, captured);
}

// The largest total lengths are hints for buffers that this library does not need.
void translate_sdpa_bwd(const Descriptor& op, GraphBuilder& to) {
  const OpSpec& spec = ops::sdpa_bwd;
  std::vector<TensorId> in, out, captured;
  fill(in, spec.in, kBackwardIn, op, to);
  fill(out, spec.out, kBackwardOut, op, to);
  tessera::SdpaOptions o;
  DType compute = compute_for(to, in[0]);
  if (const Descriptor* sub = op.part(CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH)) {
    ScoreMod mod(*sub, op.one<int64_t>(CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH_INPUT_UID, -1),
                 op.one<int64_t>(CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH_OUTPUT_UID, -1));
    o.score_mod = mod.finish(compute, to, captured);
    if (o.score_mod) o.score_mod_bwd = gradient(*o.score_mod);
    std::vector<TensorId> again = captured;  // for the gradient, which reads the same tensors
    captured.insert(captured.end(), again.begin(), again.end());
  }
  to.add(spec, std::move(in), std::move(out), o, compute, captured);
}

}  // namespace tsr::capi
