// SPDX-License-Identifier: Apache-2.0
// Gradients of scaled dot-product attention. Scores are recomputed from q, k and the masks; probabilities from `stats`.
#include "graph/ops/list.hpp"
#include "graph/ops/sdpa_common.hpp"

namespace tsr {
namespace {

using tessera::SdpaOptions;
using namespace sdpa::bwd;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<SdpaOptions>(&options);
  sdpa::common_fields(o, v);
  v("score_mod_bwd", o.score_mod_bwd, "gradient of score_mod: { ds s -> value }");
}

// It has the sizes of the bias. A bias that score_mod adds is no input of its own: then the sizes are declared.
void bias_gradient(Infer& ctx, const sdpa::Slots& s, const sdpa::Shape& n) {
  if (!ctx.wants(kDbias)) return;
  const Tensor& t = ctx.out(kDbias);
  if (ctx.has(s.bias) || !t.dims_given)
    return ctx.output(kDbias, ctx.in(s.bias).dims, ctx.in(s.bias).dtype, &ctx.in(s.bias));
  std::optional<Dims> all = broadcast(t.dims, n.scores());
  ctx.check(all && *all == n.scores(), "output dbias ", tsr::describe(t), " must broadcast to the scores ", n.scores());
  ctx.output(kDbias, t.dims, ctx.node().compute);
}

void infer(Infer& ctx) {
  sdpa::Shape n = sdpa::check(ctx);
  const sdpa::Slots& s = sdpa::slots(ctx.node());
  const auto& o = ctx.options<SdpaOptions>();
  const Tensor &q = ctx.in(s.q), &k = ctx.in(s.k), &v = ctx.in(s.v);
  ctx.check_dims(kO, {n.b, n.hq, n.sq, n.dv});
  ctx.check_dims(kDo, {n.b, n.hq, n.sq, n.dv});
  ctx.check_dims(kStats, {n.b, n.hq, n.sq, 1});
  ctx.check_dims(kDelta, {n.b, n.hq, n.sq, 1});
  for (int t : {kO, kDo, kStats, kDelta}) {
    if (!ctx.has(t)) continue;
    ctx.check(is_real(ctx.in(t).dtype), ctx.describe(t), " must be of a real type");
    sdpa::check_steps(ctx, ctx.in(t));
    bool known = ctx.has(s.seq_len_q) || ctx.has(s.cu_seq_len_q);
    ctx.check(known || ctx.in(t).ragged == kNone, ctx.describe(t), " is ragged: give seq_len_q or cu_seq_len_q");
  }
  for (int t : {kDescaleO, kDescaleDo, kDescaleDp, kScaleDq, kScaleDk, kScaleDv, kScaleDp}) {
    sdpa::check_one_element(ctx, t);
    ctx.check(!ctx.has(t) || is_fp8(q.dtype), ctx.node().op->in[static_cast<size_t>(t)].name, " is for fp8 inputs");
  }
  ctx.check(!o.score_mod_bwd || o.score_mod, "score_mod_bwd goes with a score_mod");
  ctx.check(!o.score_mod || o.score_mod_bwd, "score_mod needs its gradient score_mod_bwd = { ds s -> ... }");
  sdpa::check_score_mod(ctx, o.score_mod_bwd, "score_mod_bwd", n);
  DType type = ctx.node().compute;
  ctx.output(kDq, q.dims, q.dtype, &q);
  ctx.output(kDk, k.dims, k.dtype, &k);
  ctx.output(kDv, v.dims, v.dtype, &v);
  for (int t : {kDq, kDk, kDv})
    if (ctx.wants(t)) sdpa::check_steps(ctx, ctx.out(t));
  bias_gradient(ctx, s, n);
  if (ctx.wants(kDsink)) ctx.output(kDsink, ctx.in(s.sink).dims, type);
  for (int t : {kAmaxDq, kAmaxDk, kAmaxDv, kAmaxDp}) ctx.output(t, {1, 1, 1, 1}, type);
}

// dq sums over keys, dk and dv over the queries of all heads that share them, dbias over what it was broadcast to.
double terms(const Graph& g, const Node& n) {
  sdpa::Shape s = sdpa::shape(g, n);
  int64_t most = std::max({s.d, s.dv, s.skv, s.sq * (s.hq / std::min(s.hk, s.hv)), int64_t{1}});
  if (n.out[kDbias] != kNone)
    most = std::max(most, volume(s.scores()) / std::max<int64_t>(1, g.tensor(n.out[kDbias]).numel()));
  if (n.out[kDsink] != kNone) most = std::max(most, s.b * s.sq);
  return static_cast<double>(most);
}

double flops(const Graph& g, const Node& n) {
  sdpa::Shape s = sdpa::shape(g, n);
  return 2 * static_cast<double>(volume(s.scores())) * static_cast<double>(3 * s.d + 2 * s.dv);
}

}  // namespace

const OpSpec ops::sdpa_bwd = {
    .name = "sdpa_bwd",
    .family = Family::attention,
    .in = {{"q"},
           {"k"},
           {"v"},
           {"o"},
           {"do"},
           {"stats"},
           {"scale", Slot::optional},
           {"bias", Slot::optional},
           {"seq_len_q", Slot::optional},
           {"seq_len_kv", Slot::optional},
           {"cu_seq_len_q", Slot::optional},
           {"cu_seq_len_kv", Slot::optional},
           {"block_mask", Slot::optional},
           {"sink", Slot::optional},
           {"dropout_seed", Slot::optional},
           {"dropout_offset", Slot::optional},
           {"dropout_mask", Slot::optional},
           {"dropout_scale", Slot::optional},
           {"alibi_slopes", Slot::optional},
           {"descale_q", Slot::optional},
           {"descale_k", Slot::optional},
           {"descale_v", Slot::optional},
           {"descale_s", Slot::optional},
           {"scale_s", Slot::optional},
           {"descale_o", Slot::optional},
           {"descale_do", Slot::optional},
           {"descale_dp", Slot::optional},
           {"scale_dq", Slot::optional},
           {"scale_dk", Slot::optional},
           {"scale_dv", Slot::optional},
           {"scale_dp", Slot::optional},
           {"delta", Slot::optional}},
    .out = {{"dq"},
            {"dk"},
            {"dv"},
            {"dbias", Slot::optional},
            {"dsink", Slot::optional},
            {"amax_dq", Slot::optional},
            {"amax_dk", Slot::optional},
            {"amax_dv", Slot::optional},
            {"amax_dp", Slot::optional}},
    .defaults = SdpaOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "p = exp(s - stats); dv = dropout(p)^T do; ds = p (dropout(do v^T) - rowsum(do o)); dbias = sum ds; "
        "dsink = -sum exp(sink - stats) rowsum(do o); ds = score_mod_bwd(ds); dq = scale ds k; dk = scale ds^T q. "
        "Beyond its length a sequence is not read, and every gradient is 0 there; packed ones are not written there",
    .shapes =
        "inputs of sdpa_fwd (no pages), its o and stats, do like o -> dq, dk, dv, dbias, dsink with the sizes of "
        "q, k, v, bias, sink (dbias without a bias: as declared, for one that score_mod adds); delta [b,hq,sq,1] is (1 "
        "- dropout) rowsum(do o) where that is known already",
    .example =
        "q = input f32[2,4,8,16]\nk = input f32[2,2,8,16]\nv = input f32[2,2,8,16]\ndo = input f32[2,4,8,16]\n"
        "o, stats = sdpa_fwd q k v scale=0.25 right=0\n"
        "dq, dk, dv = sdpa_bwd q k v o do stats scale=0.25 right=0\noutput dq\noutput dk\noutput dv",
    .params = sdpa::params,
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
