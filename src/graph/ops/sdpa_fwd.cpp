// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention: o = softmax(q k^T) v with scales, masks, dropout, paged and ragged sequences, fp8.
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/sdpa_common.hpp"

namespace tsr {
namespace {

using tessera::SdpaOptions;
using namespace sdpa::fwd;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<SdpaOptions>(&options);
  sdpa::common_fields(o, v);
  v("max_seq_kv", o.max_seq_kv, "paged k and v: the longest sequence; 0: all pages of the table");
}

void infer(Infer& ctx) {
  sdpa::Shape n = sdpa::check(ctx);
  const Tensor& q = ctx.in(0);
  sdpa::check_one_element(ctx, kScaleO);
  ctx.check(!ctx.has(kScaleO) || is_fp8(q.dtype), "scale_o is for fp8 inputs");
  const sdpa::Slots& s = sdpa::slots(ctx.node());
  ctx.check(!ctx.wants(kRngDump) || !ctx.has(s.dropout_mask),
            "rng_dump has nothing to show when a dropout_mask is given");
  DType type = ctx.node().compute;
  ctx.output(kO, {n.b, n.hq, n.sq, n.dv}, q.dtype, &q);
  for (int t : {kStats, kMax, kSumExp}) ctx.output(t, {n.b, n.hq, n.sq, 1}, type);
  sdpa::check_steps(ctx, ctx.out(kO));
  ctx.output(kRngDump, n.scores(), type);
  for (int t : {kAmaxS, kAmaxO}) ctx.output(t, {1, 1, 1, 1}, type);
}

double terms(const Graph& g, const Node& n) {
  sdpa::Shape s = sdpa::shape(g, n);
  return static_cast<double>(std::max({s.d, s.skv, int64_t{1}}));
}

double flops(const Graph& g, const Node& n) {
  sdpa::Shape s = sdpa::shape(g, n);
  return 2 * static_cast<double>(volume(s.scores())) * static_cast<double>(s.d + s.dv);
}

void backward(Gradient& g) {
  auto o = g.options<SdpaOptions>();
  const sdpa::Slots& s = sdpa::slots(g.node());
  g.refuse_other_outputs(kO);
  g.refuse_captures("score_mod counts what it reads as constant; input bias has a gradient");
  const std::vector<Slot>& names = g.node().op->in;
  std::vector<TensorId> in(ops::sdpa_bwd.in.size(), kNone);
  for (int i = 0; i < static_cast<int>(names.size()); ++i) {
    bool data = i == s.q || i == s.k || i == s.v, learned = data || i == s.bias || i == s.sink;
    if (!learned) g.refuse(i, "scales, lengths, masks and slopes count as constants");
    if (data && (g.has(s.page_table_k) || g.has(s.page_table_v))) g.refuse(i, "pages have no gradient");
    if (data && is_fp8(g.tensor(g.in(i)).dtype)) g.refuse(i, "8-bit attention needs scales for its gradients");
    for (size_t k = 0; k < in.size(); ++k)
      if (ops::sdpa_bwd.in[k].name == names[static_cast<size_t>(i)].name) in[k] = g.in(i);
  }
  using namespace sdpa;
  in[bwd::kO] = g.out(kO);
  in[bwd::kDo] = g.d(kO);
  in[bwd::kStats] = g.out(kStats);
  if (o.score_mod) {
    auto mod = std::make_shared<Subgraph>(*o.score_mod);
    mod->captured = g.node().captures;
    o.score_mod = mod;
    o.score_mod_bwd = gradient(*mod);
  }
  std::vector<int> wanted;
  if (g.wants(s.bias)) wanted.push_back(bwd::kDbias);
  if (g.wants(s.sink)) wanted.push_back(bwd::kDsink);
  auto r = g.call(ops::sdpa_bwd, in, o, wanted);
  if (g.wants(s.q)) g.add(s.q, r[bwd::kDq]);
  if (g.wants(s.k)) g.add(s.k, r[bwd::kDk]);
  if (g.wants(s.v)) g.add(s.v, r[bwd::kDv]);
  if (g.wants(s.bias)) g.add(s.bias, r[bwd::kDbias]);
  if (g.wants(s.sink)) g.add(s.sink, r[bwd::kDsink]);
}

}  // namespace

const OpSpec ops::sdpa_fwd = {
    .name = "sdpa_fwd",
    .family = Family::attention,
    .in = {{"q"},
           {"k"},
           {"v"},
           {"scale", Slot::optional},
           {"bias", Slot::optional},
           {"seq_len_q", Slot::optional},
           {"seq_len_kv", Slot::optional},
           {"cu_seq_len_q", Slot::optional},
           {"cu_seq_len_kv", Slot::optional},
           {"page_table_k", Slot::optional},
           {"page_table_v", Slot::optional},
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
           {"scale_o", Slot::optional}},
    .out = {{"o"},
            {"stats", Slot::optional},
            {"max", Slot::optional},
            {"sum_exp", Slot::optional},
            {"rng_dump", Slot::optional},
            {"amax_s", Slot::optional},
            {"amax_o", Slot::optional}},
    .defaults = SdpaOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "s = mask(score_mod(scale q k^T) + bias + alibi); p = dropout(softmax([s, sink])); o = p v; "
        "stats = log sum exp s; what is masked contributes nothing, rows with nothing to attend to give o = 0. Beyond "
        "its length a sequence is not read, and o and sum_exp are 0, stats and max -inf there; packed results are not "
        "written there; rng_dump has a number for each score",
    .shapes =
        "q [b,hq,sq,d], k [b,hk,skv,d], v [b,hv,skv,dv] -> o [b,hq,sq,dv], stats, max, sum_exp [b,hq,sq,1]; hq a "
        "multiple of hk and hv; f16, bf16, f32, f64, 8-bit floats with a sign; paged k, v [blocks,h,block_size,d] with "
        "page "
        "tables [b,1,pages,1]; bias broadcasts to [b,hq,sq,skv]; seq_len [b,1,1,1], cu_seq_len [b+1,1,1,1]; sink, "
        "alibi_slopes [1,hq,1,1]; block_mask [b,hq,sq/128,skv/128] or with more columns. Packed sequences may be "
        "longer than sq and skv "
        "say: their lengths and offsets decide, unless a bias, a mask or block scales end with the sizes; results that "
        "are not packed end with them too",
    .example =
        "q = input bf16[2,4,8,16]\nk = input bf16[2,2,8,16]\nv = input bf16[2,2,8,16]\n"
        "o, stats = sdpa_fwd q k v scale=0.25 right=0\noutput o\noutput stats",
    .params = sdpa::params,
    .gradient = backward,
};

}  // namespace tsr
