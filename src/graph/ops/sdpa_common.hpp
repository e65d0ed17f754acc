// SPDX-License-Identifier: Apache-2.0
// What sdpa_fwd and sdpa_bwd have in common: where their inputs sit, sizes, options and validation.
#pragma once

#include "graph/op.hpp"

namespace tsr::sdpa {

// Slots of the inputs that both operations have, and of the page tables (forward only).
struct Slots {
  int q = 0, k = 1, v = 2;
  int scale, bias, seq_len_q, seq_len_kv, cu_seq_len_q, cu_seq_len_kv, page_table_k = -1, page_table_v = -1;
  int block_mask, sink, dropout_seed, dropout_offset, dropout_mask, dropout_scale, alibi_slopes;
  int descale_q, descale_k, descale_v, descale_s, scale_s;
};
const Slots& slots(const Node& n);

namespace fwd {
enum In { kScaleO = 23 };
enum Out { kO, kStats, kMax, kSumExp, kRngDump, kAmaxS, kAmaxO };
}  // namespace fwd

namespace bwd {
enum In { kO = 3, kDo, kStats, kDescaleO = 24, kDescaleDo, kDescaleDp, kScaleDq, kScaleDk, kScaleDv, kScaleDp, kDelta };
enum Out { kDq, kDk, kDv, kDbias, kDsink, kAmaxDq, kAmaxDk, kAmaxDv, kAmaxDp };
}  // namespace bwd

struct Shape {
  int64_t b, hq, hk, hv, sq, skv, d, dv;
  Dims scores() const { return {b, hq, sq, skv}; }
};
// Sizes of the problem; raises when q, k, v and page tables do not have the dimensions that this takes.
Shape shape(const Graph& g, const Node& n);

constexpr int64_t kMaskBlock = 128;  // queries and keys behind one element of block_mask
// Sizes of the blocks that share an e8m0 factor: along the dimension that the products sum over.
inline const Dims kBlockOfQk = {1, 1, 1, 32}, kBlockOfV = {1, 1, 32, 1};

// Packed sequences may be longer at execution than the sizes say: offsets and lengths in memory decide. On each side,
// that takes that all inputs which count its steps are packed, and none that spreads over the scores, such as a bias.
struct Open {
  bool q, kv;
};
Open open_sides(const Graph& g, const Node& n);

bool has(const Node& n, int slot);

void common_fields(tessera::SdpaOptions& o, FieldVisitor& v);
// Checks everything that the two operations share.
Shape check(Infer& ctx);
void check_one_element(const Infer& ctx, int slot);  // a real number, if present
// Of a tensor of sequences [b, h, s, d]: if it is ragged, s counts its steps.
void check_steps(const Infer& ctx, const Tensor& t);
// Parameters of score_mod (s) and score_mod_bwd (ds, s).
std::vector<Tensor> params(const Graph& g, const Node& n, std::string_view field);
void check_score_mod(const Infer& ctx, const tessera::Subgraph& s, std::string_view field, const Shape& n);

}  // namespace tsr::sdpa
