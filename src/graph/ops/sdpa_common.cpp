// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/sdpa_common.hpp"

#include <algorithm>

#include "graph/ops/block_scale.hpp"
#include "graph/ops/list.hpp"
#include "graph/ragged.hpp"

namespace tsr::sdpa {
namespace {

using tessera::SdpaOptions;

constexpr Slots kForward = {.scale = 3,
                            .bias = 4,
                            .seq_len_q = 5,
                            .seq_len_kv = 6,
                            .cu_seq_len_q = 7,
                            .cu_seq_len_kv = 8,
                            .page_table_k = 9,
                            .page_table_v = 10,
                            .block_mask = 11,
                            .sink = 12,
                            .dropout_seed = 13,
                            .dropout_offset = 14,
                            .dropout_mask = 15,
                            .dropout_scale = 16,
                            .alibi_slopes = 17,
                            .descale_q = 18,
                            .descale_k = 19,
                            .descale_v = 20,
                            .descale_s = 21,
                            .scale_s = 22};

constexpr Slots kBackward = {.scale = 6,
                             .bias = 7,
                             .seq_len_q = 8,
                             .seq_len_kv = 9,
                             .cu_seq_len_q = 10,
                             .cu_seq_len_kv = 11,
                             .block_mask = 12,
                             .sink = 13,
                             .dropout_seed = 14,
                             .dropout_offset = 15,
                             .dropout_mask = 16,
                             .dropout_scale = 17,
                             .alibi_slopes = 18,
                             .descale_q = 19,
                             .descale_k = 20,
                             .descale_v = 21,
                             .descale_s = 22,
                             .scale_s = 23};

void check_real(const Infer& ctx, int slot) {
  if (!ctx.has(slot)) return;
  ctx.check(is_real(ctx.in(slot).dtype), ctx.describe(slot), " must be of a real type");
}

void check_sizes(const Infer& ctx, const Slots& s, const Shape& n) {
  for (int slot : {s.q, s.k, s.v}) {
    DType t = ctx.in(slot).dtype;
    ctx.check(is_fp8(t) || (is_real(t) && info(t).bits >= 16), ctx.describe(slot), " has type ", t,
              "; allowed: f16, bf16, f32, f64 and 8-bit floats with a sign");
  }
  ctx.check(n.hq > 0 && n.hk > 0 && n.hv > 0, "q, k and v need at least one head each");
  ctx.check(n.hq % n.hk == 0, ctx.describe(s.k), ": ", n.hq, " heads of q are no multiple of ", n.hk, " heads");
  ctx.check(n.hq % n.hv == 0, ctx.describe(s.v), ": ", n.hq, " heads of q are no multiple of ", n.hv, " heads");
  const Tensor &k = ctx.in(s.k), &v = ctx.in(s.v);
  ctx.check(k.dims[3] == n.d, ctx.describe(s.k), " must have ", n.d, " elements per head like ", ctx.describe(s.q));
  for (auto [slot, table] : {std::pair(s.k, s.page_table_k), std::pair(s.v, s.page_table_v)}) {
    if (has(ctx.node(), table)) continue;
    const Tensor& t = ctx.in(slot);
    ctx.check(t.dims[0] == n.b, ctx.describe(slot), " must have ", n.b, " batches like ", ctx.describe(s.q));
    ctx.check(t.dims[2] == n.skv, ctx.describe(slot), " must have sequences of ", n.skv, " steps like ",
              slot == s.v ? ctx.describe(s.k) : ctx.describe(s.v));
  }
  ctx.check(!is_fp8(ctx.in(s.q).dtype) || (is_fp8(k.dtype) && is_fp8(v.dtype)), ctx.describe(s.q),
            " is fp8, so k and v must be too; they are ", k.dtype, " and ", v.dtype);
}

void check_lengths(const Infer& ctx, const Slots& s, const Shape& n) {
  for (auto [length, prefix] : {std::pair(s.seq_len_q, s.cu_seq_len_q), std::pair(s.seq_len_kv, s.cu_seq_len_kv)}) {
    ctx.check_integer(length);
    ctx.check_integer(prefix);
    ctx.check(!ctx.has(length) || !ctx.has(prefix), "give seq_len or cu_seq_len of a side, not both");
    if (ctx.has(length))
      ctx.check(ctx.in(length).numel() == n.b, ctx.describe(length), " must hold ", n.b,
                " lengths, one for each batch");
    if (ctx.has(prefix))
      ctx.check(ctx.in(prefix).numel() == n.b + 1, ctx.describe(prefix), " must hold ", n.b + 1,
                " prefix sums, one for each batch and the end");
  }
  bool q_known = ctx.has(s.seq_len_q) || ctx.has(s.cu_seq_len_q);
  bool kv_known = ctx.has(s.seq_len_kv) || ctx.has(s.cu_seq_len_kv);
  ctx.check(q_known || ctx.in(s.q).ragged == kNone, ctx.describe(s.q), " is ragged: give seq_len_q or cu_seq_len_q");
  for (int t : {s.k, s.v})
    ctx.check(kv_known || ctx.in(t).ragged == kNone, ctx.describe(t), " is ragged: give seq_len_kv or cu_seq_len_kv");
  for (auto [slot, table] : {std::pair(s.k, s.page_table_k), std::pair(s.v, s.page_table_v)}) {
    if (!has(ctx.node(), table)) continue;
    ctx.check_integer(table);
    const Tensor &t = ctx.in(table), &container = ctx.in(slot);
    ctx.check(t.dims[0] == n.b && t.dims[1] == 1 && t.dims[3] == 1, ctx.describe(table), " must have sizes [", n.b,
              ",1,pages,1]");
    ctx.check(kv_known, ctx.describe(slot), " is paged: give seq_len_kv or cu_seq_len_kv");
    ctx.check(container.ragged == kNone, ctx.describe(slot), " is paged and cannot be ragged as well");
    ctx.check(n.skv <= t.dims[2] * container.dims[2], ctx.describe(table), ": ", t.dims[2], " pages of ",
              container.dims[2], " steps do not hold sequences of ", n.skv);
  }
}

void check_masks(const Infer& ctx, const Slots& s, const Shape& n) {
  const auto& o = ctx.options<SdpaOptions>();
  check_real(ctx, s.bias);
  ctx.check_broadcast(s.bias, n.scores());
  ctx.check_type(s.block_mask, {DType::u8, DType::i8, DType::boolean});
  if (ctx.has(s.block_mask)) {
    // Masks of one bit for each tile come in whole bytes.
    Dims tiles{n.b, n.hq, ceil_div(n.sq, kMaskBlock), ceil_div(n.skv, kMaskBlock)}, most = tiles;
    const Dims& given = ctx.in(s.block_mask).dims;
    if (given.size() > 0) most[3] = std::max(tiles[3], given.back());
    auto all = broadcast(given, most);
    ctx.check(all && *all == most, ctx.describe(s.block_mask), " does not broadcast to ", tiles,
              ": each size must be 1 or equal, the last one may be larger");
  }
  for (int t : {s.sink, s.alibi_slopes}) {
    check_real(ctx, t);
    ctx.check_dims(t, {1, n.hq, 1, 1});
  }
  // -1 means "no bound" elsewhere; here the option is left out.
  int64_t left = o.left.value_or(0), right = o.right.value_or(0);
  ctx.check(left >= 0, "left=", left, " must not be negative; leave it out for no bound");
  ctx.check(right >= 0, "right=", right, " must not be negative; leave it out for no bound");
}

void check_dropout(const Infer& ctx, const Slots& s, const Shape& n) {
  const auto& o = ctx.options<SdpaOptions>();
  ctx.check(o.dropout >= 0 && o.dropout <= 1, "dropout=", o.dropout, " is no probability");
  for (int t : {s.dropout_seed, s.dropout_offset}) {
    ctx.check_integer(t);
    ctx.check(!ctx.has(t) || ctx.in(t).numel() == 1, "the seed and the offset of dropout have one element each");
  }
  ctx.check(o.dropout == 0 || (ctx.has(s.dropout_seed) && ctx.has(s.dropout_offset)),
            "dropout needs dropout_seed and dropout_offset");
  ctx.check(o.dropout == 0 || !ctx.has(s.dropout_mask), "give a dropout probability or a dropout_mask, not both");
  ctx.check(!ctx.has(s.dropout_scale) || ctx.has(s.dropout_mask) || o.dropout != 0,
            "dropout_scale goes with a dropout_mask or a dropout probability");
  ctx.check_broadcast(s.dropout_mask, n.scores());
  check_one_element(ctx, s.dropout_scale);
}

// One factor for the whole fp8 tensor, or one e8m0 factor for each block of it.
void check_descale(const Infer& ctx, int slot, int tensor, const Dims& block, int table) {
  if (!ctx.has(slot)) return;
  ctx.check(is_fp8(ctx.in(tensor).dtype), ctx.describe(slot), " goes with an fp8 tensor, not ", ctx.describe(tensor));
  if (ctx.in(slot).dtype != DType::e8m0) return check_one_element(ctx, slot);
  ctx.check(!has(ctx.node(), table), ctx.describe(slot), ": paged tensors have one scale, not one for each block");
  ctx.check_dims(slot, scale_sizes(ctx.in(tensor).dims, block, ctx.in(slot).reordering));
  check_scale(ctx, ctx.in(slot), block);
}

void check_scales(const Infer& ctx, const Slots& s) {
  check_descale(ctx, s.descale_q, s.q, kBlockOfQk, -1);
  check_descale(ctx, s.descale_k, s.k, kBlockOfQk, s.page_table_k);
  check_descale(ctx, s.descale_v, s.v, kBlockOfV, s.page_table_v);
  bool blocks = ctx.has(s.descale_v) && ctx.in(s.descale_v).dtype == DType::e8m0;
  for (int t : {s.descale_s, s.scale_s}) {
    check_one_element(ctx, t);
    ctx.check(!ctx.has(t) || (is_fp8(ctx.in(s.q).dtype) && !blocks),
              "scale_s and descale_s are for fp8 inputs with one scale per tensor");
  }
}

// More than one number for the queries or the keys of a head.
bool spreads(const Tensor& t) {
  int r = t.rank();
  return (r > 0 && t.dims[r - 1] > 1) || (r > 1 && t.dims[r - 2] > 1);
}

// Element by element, with nothing that has the sizes of the scores besides.
bool works_on_any_scores(const Graph& g) {
  for (NodeId n = 0; n < g.node_count(); ++n)
    if (g.node(n).op != &ops::pointwise && g.node(n).op != &ops::band_mask) return false;
  for (TensorId t = 0; t < g.tensor_count(); ++t)
    if (g.tensor(t).is_constant() && spreads(g.tensor(t))) return false;
  return true;
}

}  // namespace

const Slots& slots(const Node& n) { return n.op == &ops::sdpa_bwd ? kBackward : kForward; }

Open open_sides(const Graph& g, const Node& n) {
  const Slots& s = slots(n);
  bool backward = n.op == &ops::sdpa_bwd;
  bool spread = backward && n.out[bwd::kDbias] != kNone;
  for (int slot : {s.bias, s.block_mask, s.dropout_mask}) spread = spread || has(n, slot);
  for (TensorId t : n.captures) spread = spread || spreads(g.tensor(t));
  for (const tessera::Subgraph& sub : subgraphs(n)) spread = spread || !works_on_any_scores(sub->graph);
  for (int slot : {s.descale_q, s.descale_k, s.descale_v})
    spread = spread || (has(n, slot) && g.tensor(n.in[static_cast<size_t>(slot)]).dtype == DType::e8m0);
  if (spread) return {false, false};
  auto packed = [&](int slot) { return g.tensor(n.in[static_cast<size_t>(slot)]).ragged != kNone; };
  bool q = packed(s.q);
  if (backward) q = q && packed(bwd::kO) && packed(bwd::kDo) && packed(bwd::kStats);
  return {q, packed(s.k) && packed(s.v)};
}

bool has(const Node& n, int slot) {
  return slot >= 0 && slot < static_cast<int>(n.in.size()) && n.in[static_cast<size_t>(slot)] != kNone;
}

Shape shape(const Graph& g, const Node& n) {
  const Slots& s = slots(n);
  auto input = [&](int slot) -> const Tensor& {
    const Tensor& t = g.tensor(n.in[static_cast<size_t>(slot)]);
    require(t.rank() == 4, spelling(n), ": input ", n.op->in[static_cast<size_t>(slot)].name, " ", describe(t),
            " must have 4 dimensions, it has ", t.rank());
    return t;
  };
  const Tensor &q = input(s.q), &k = input(s.k), &v = input(s.v);
  int64_t skv = k.dims[2];
  bool paged_k = has(n, s.page_table_k), paged_v = has(n, s.page_table_v);
  if (paged_v) (void)input(s.page_table_v);
  if (paged_k) skv = paged_v ? input(s.page_table_k).dims[2] * k.dims[2] : v.dims[2];
  int64_t longest = attrs<SdpaOptions>(n).max_seq_kv;
  require(longest >= 0, spelling(n), ": max_seq_kv=", longest, " must not be negative");
  require(longest == 0 || paged_k || paged_v, spelling(n), ": max_seq_kv goes with paged k and v");
  if (longest > 0) skv = longest;
  return {q.dims[0], q.dims[1], k.dims[1], v.dims[1], q.dims[2], skv, q.dims[3], v.dims[3]};
}

void common_fields(SdpaOptions& o, FieldVisitor& v) {
  static constexpr std::string_view kAlign[] = {"top_left", "bottom_right"};
  v("scale", o.scale, "factor of q k");
  v("left", o.left, "keys that a query sees to its left, itself among them");
  v("right", o.right, "keys that a query sees to its right; 0: causal");
  v("align", o.align, kAlign,
    "where the diagonal of the mask begins; bottom_right: moved by length of k - length of q");
  v("alibi", o.alibi, "adds slope (col - row) to scores; slopes 2^(-8(i+1)/heads) unless given");
  v("dropout", o.dropout, "probability of dropping a weight");
  v("stats_log2", o.stats_log2, "stats in powers of 2 instead of e");
  v("score_mod", o.score_mod, "what is done to scaled scores: { s -> value }");
}

void check_one_element(const Infer& ctx, int slot) {
  if (!ctx.has(slot)) return;
  check_real(ctx, slot);
  ctx.check(ctx.in(slot).numel() == 1, ctx.describe(slot), " must have one element");
}

void check_steps(const Infer& ctx, const Tensor& t) {
  ctx.check(t.ragged == kNone || ragged_axis(t) == 2, tsr::describe(t), " is ragged, and its strides ", t.strides,
            " put steps within elements; steps of attention are dimension 2 and lie further apart than dimension 3");
}

Shape check(Infer& ctx) {
  const Slots& s = slots(ctx.node());
  Shape n = shape(ctx.graph(), ctx.node());
  check_sizes(ctx, s, n);
  check_one_element(ctx, s.scale);
  check_lengths(ctx, s, n);
  for (int t : {s.q, s.k, s.v}) check_steps(ctx, ctx.in(t));
  check_masks(ctx, s, n);
  check_dropout(ctx, s, n);
  check_scales(ctx, s);
  check_score_mod(ctx, ctx.options<SdpaOptions>().score_mod, "score_mod", n);
  return n;
}

std::vector<Tensor> params(const Graph& g, const Node& n, std::string_view field) {
  Tensor t;
  t.dtype = g.tensor(n.in[0]).dtype == DType::f64 ? DType::f64 : DType::f32;
  t.dims = shape(g, n).scores();
  t.strides = packed_strides(t.dims);
  return field == "score_mod" ? std::vector{t} : std::vector{t, t};
}

void check_score_mod(const Infer& ctx, const tessera::Subgraph& s, std::string_view field, const Shape& n) {
  if (!s) return;
  ctx.check(s->results.size() == 1, field, " must have one result, it has ", s->results.size());
  const Tensor& t = s->graph.tensor(s->results[0]);
  ctx.check(t.dims == n.scores(), "the result ", describe(t), " of ", field, " must have sizes ", n.scores());
  ctx.check(is_real(t.dtype), "the result ", describe(t), " of ", field, " must be of a real type");
}

}  // namespace tsr::sdpa
