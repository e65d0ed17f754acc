// SPDX-License-Identifier: Apache-2.0
// Attention backward: row sums first, then one kernel for each gradient.
#include <algorithm>

#include "engines/cuda/attention/steps.hpp"

namespace tsr::cuda {
namespace {

using namespace sdpa::bwd;

class BackwardStep : public AttentionStep {
 public:
  BackwardStep(const Region& r, const Device& d) : AttentionStep(r, d) {
    attention::Sequences o = attention::make_sequences(g_, n_.in[kO]);
    attention::Sequences grad_o = attention::make_sequences(g_, n_.in[kDo]);
    do_type_ = grad_o.type;
    fill(r, o, grad_o);
    int64_t rows = p_.n.b * p_.n.hq * p_.n.sq;
    dev::attention::AttentionArgs& a = arguments_.base();
    arguments_.reserve(a.row_stats, rows * lane_bytes_);
    arguments_.reserve(a.row_delta, rows * lane_bytes_);
    launches_.add(plain("prepare<", {o.type, do_type_}), ceil_div(rows, dev::attention::kAroundThreads / 32), 0, {});
    Columns of_d = columns_of(p_.n.d), of_dv = columns_of(p_.n.dv);
    if (wants(r, {kDq, kAmaxDq, kAmaxDp})) {
      int64_t blocks = add(r, kDq, {"query_gradient<", "query_gradient_beyond<", p_.open.q}, of_d,
                           p_.n.b * p_.groups() * of_d.parts, a.row_tiles);
      add_amax(r, 0, kAmaxDq, blocks);
      add_amax(r, 3, kAmaxDp, blocks);
    }
    if (wants(r, {kDk, kAmaxDk}))
      add_amax(r, 1, kAmaxDk,
               add(r, kDk, {"key_gradient<false, ", "key_gradient_beyond<false, ", p_.open.kv}, of_d,
                   p_.n.b * p_.n.hk * of_d.parts, a.key_tiles));
    if (wants(r, {kDv, kAmaxDv}))
      add_amax(r, 2, kAmaxDv,
               add(r, kDv, {"key_gradient<true, ", "key_gradient_beyond<true, ", p_.open.kv}, of_dv,
                   p_.n.b * p_.n.hv * of_dv.parts, a.key_tiles));
    if (wants(r, {kDbias})) add_bias();
    if (wants(r, {kDsink})) launches_.add(plain("sink_gradient<"), p_.n.hq, dev::attention::kAroundShared, {});
    join_amax();
    launches_.compile(d);
  }

 private:
  static bool wants(const Region& r, std::initializer_list<int> slots) {
    return std::any_of(slots.begin(), slots.end(), [&](int slot) { return attention::make_output(r, slot).given(); });
  }

  void fill(const Region& r, const attention::Sequences& o, const attention::Sequences& grad_o) {
    dev::attention::AttentionArgs& a = arguments_.base();
    arguments_.set(a.o, o);
    arguments_.set(a.grad_o, grad_o);
    arguments_.set(a.stats, attention::make_sequences(g_, n_.in[kStats]));
    if (sdpa::has(n_, kDelta)) arguments_.set(a.delta, attention::make_sequences(g_, n_.in[kDelta]));
    const std::pair<dev::attention::Sequences*, int> outputs[] = {
        {&a.grad_q, kDq}, {&a.grad_k, kDk}, {&a.grad_v, kDv}, {&a.dbias, kDbias}, {&a.dsink, kDsink}};
    for (auto [to, slot] : outputs) arguments_.set(*to, attention::make_output(r, slot));
    const std::pair<dev::attention::Numbers*, int> factors[] = {
        {&a.descale_o, kDescaleO}, {&a.descale_do, kDescaleDo}, {&a.descale_dp, kDescaleDp}, {&a.scale_dq, kScaleDq},
        {&a.scale_dk, kScaleDk},   {&a.scale_dv, kScaleDv},     {&a.scale_dp, kScaleDp}};
    for (auto [to, slot] : factors) arguments_.set(*to, numbers(slot), 1);
    a.rounds_dp = p_.rounds_to_fp8 && is_fp8(do_type_);
    attention::Sequences dbias = attention::make_output(r, kDbias);
    for (int i = 0; dbias.given() && i < 4; ++i) a.dbias_sizes[i] = dbias.dims[i];
  }

  // The kernel for what the sizes count, and that for sequences which may be longer.
  struct Kernels {
    const char *counted, *beyond;
    bool open;
  };
  // Returns the number of blocks, `sequences` times the tiles of each.
  int64_t add(const Region& r, int slot, const Kernels& k, Columns c, int64_t sequences, int64_t counted_tiles) {
    DType type = attention::make_output(r, slot).type;
    auto kernel = [&](const char* function) {
      return tiles("backward", function, {p_.q.type, p_.k.type, p_.v.type, do_type_, type}, cat(", ", c.slices),
                   c.slices);
    };
    int64_t blocks = sequences * counted_tiles;
    launches_.add(kernel(k.counted), blocks, tile_bytes(), {c.parts, 1});
    if (!k.open) return blocks;
    int more = tiles_beyond(sequences);
    Program beyond = kernel(k.beyond);
    beyond.blocks_per_unit = 1;  // it counts tiles besides, for which registers of two blocks do not suffice
    launches_.add(beyond, sequences * more, tile_bytes(), {c.parts, 1, more, blocks});
    return blocks + sequences * more;
  }

  // Where the bias is small, many tiles of scores add up to each of its own: they are shared among blocks.
  void add_bias() {
    dev::attention::AttentionArgs& a = arguments_.base();
    const dev::i64* size = a.dbias_sizes;
    int64_t all = size[0] * size[1] * size[2] * size[3];
    auto tiles_of = [](int64_t n) { return ceil_div(n, dev::attention::kTile); };
    int64_t blocks = size[0] * size[1] * tiles_of(size[2]) * tiles_of(size[3]);
    if (blocks == 0) return;
    int64_t scores = p_.n.b * p_.n.hq * tiles_of(p_.n.sq) * tiles_of(p_.n.skv);
    int splits = splits_of(blocks, int64_t{2} * d_.units, scores / blocks, 1);
    arguments_.reserve(a.bias_parts, splits * all * lane_bytes_);
    launches_.add(tiles("backward", "bias_gradient<", {p_.q.type, p_.k.type, p_.v.type, do_type_}, "", 1),
                  blocks * splits, tile_bytes(), {1, splits});
    launches_.add(plain("join_bias<"), ceil_div(all, dev::attention::kAroundThreads), 0, {1, splits});
  }

  DType do_type_;
};

}  // namespace

std::unique_ptr<Step> make_attention_backward(const Region& r, const Device& d) {
  return std::make_unique<BackwardStep>(r, d);
}

}  // namespace tsr::cuda
