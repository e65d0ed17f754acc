// SPDX-License-Identifier: Apache-2.0
#include "engines/attention/problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "graph/ops/list.hpp"
#include "graph/ragged.hpp"

namespace tsr::attention {
namespace {

Reason check_tensor(const Graph& g, TensorId id, bool sequence) {
  const Tensor& t = g.tensor(id);
  if (info(t.dtype).bits < 8) return Reason::no("tensor ", describe(t), " packs several elements into a byte");
  if (info(t.dtype).vector > 1) return Reason::no("tensor ", describe(t), " is vectorised");
  if (t.ragged == kNone) return Reason::yes();
  if (!sequence)
    return Reason::no("tensor ", describe(t),
                      " is ragged; here only q, k, v, o, statistics, their "
                      "gradients and page tables may be");
  if (ragged_axis(t) != 2) return Reason::no("tensor ", describe(t), " is ragged along dimension 3");
  return Reason::yes();
}

// The distance from number to number, if it is the same for all of them.
std::optional<int64_t> number_stride(const Tensor& t) {
  int64_t stride = 0, count = 1;
  for (int i = t.rank() - 1; i >= 0; --i) {
    if (t.dims[i] == 1) continue;
    if (count > 1 && t.strides[i] != stride * count) return std::nullopt;
    if (count == 1) stride = t.strides[i];
    count *= t.dims[i];
  }
  return stride;
}

// Lengths, prefix sums and the like are read along one line.
Reason check_numbers(const Graph& g, const Node& n, int slot) {
  const Tensor* t = input(g, n, slot);
  if (t && !number_stride(*t))
    return Reason::no("tensor ", describe(*t), " with strides ", t->strides, " has numbers at unequal distances");
  return Reason::yes();
}

// Tensors that may be ragged.
std::vector<int> sequence_inputs(const Node& n) {
  const sdpa::Slots& s = sdpa::slots(n);
  std::vector<int> y = {s.q, s.k, s.v, s.page_table_k, s.page_table_v};
  if (is_backward(n)) y.insert(y.end(), {sdpa::bwd::kO, sdpa::bwd::kDo, sdpa::bwd::kStats, sdpa::bwd::kDelta});
  return y;
}

}  // namespace

bool is_forward(const Node& n) { return n.op == &ops::sdpa_fwd; }
bool is_backward(const Node& n) { return n.op == &ops::sdpa_bwd; }

Reason check_tensors(const Graph& g, const Node& n) {
  std::vector<int> sequences = sequence_inputs(n);
  for (int slot = 0; slot < static_cast<int>(n.in.size()); ++slot) {
    if (!sdpa::has(n, slot)) continue;
    bool sequence = std::find(sequences.begin(), sequences.end(), slot) != sequences.end();
    if (Reason why = check_tensor(g, n.in[static_cast<size_t>(slot)], sequence); !why) return why;
  }
  int last = is_forward(n) ? int{sdpa::fwd::kSumExp} : int{sdpa::bwd::kDv};
  for (int slot = 0; slot < static_cast<int>(n.out.size()); ++slot) {
    TensorId id = n.out[static_cast<size_t>(slot)];
    if (id == kNone) continue;
    if (Reason why = check_tensor(g, id, slot <= last); !why) return why;
  }
  for (TensorId id : n.captures)
    if (Reason why = check_tensor(g, id, false); !why) return why;
  const sdpa::Slots& s = sdpa::slots(n);
  for (int slot : {s.seq_len_q, s.seq_len_kv, s.cu_seq_len_q, s.cu_seq_len_kv})
    if (Reason why = check_numbers(g, n, slot); !why) return why;
  return Reason::yes();
}

const Tensor* input(const Graph& g, const Node& n, int slot) {
  return sdpa::has(n, slot) ? &g.tensor(n.in[static_cast<size_t>(slot)]) : nullptr;
}

Numbers make_numbers(const Graph& g, const Node& n, int slot) {
  const Tensor* t = input(g, n, slot);
  if (!t) return {};
  return {n.in[static_cast<size_t>(slot)], t->dtype, number_stride(*t).value_or(0)};
}

Broadcast make_broadcast(const Tensor& t, TensorId id) {
  int64_t s[4] = {};
  for (int i = 0; i < t.rank(); ++i) s[i + 4 - t.rank()] = t.dims[i] == 1 ? 0 : t.strides[i];
  return {id, t.dtype, s[0], s[1], s[2], s[3]};
}

Sequences make_sequences(const Graph& g, TensorId id) {
  Sequences y;
  if (id == kNone) return y;
  const Tensor& t = g.tensor(id);
  y.id = id;
  y.type = t.dtype;
  // A bias may leave out leading dimensions.
  y.dims = Dims::filled(4 - t.rank(), 1);
  y.strides = Dims::filled(4 - t.rank(), 0);
  for (int i = 0; i < t.rank(); ++i) y.dims.push_back(t.dims[i]), y.strides.push_back(t.strides[i]);
  y.offsets = t.ragged;
  y.multiplier = t.ragged_multiplier;
  if (t.ragged != kNone) y.offsets_type = g.tensor(t.ragged).dtype;
  return y;
}

Sequences make_output(const Region& r, int slot) {
  const Node& n = r.graph->node(r.nodes[0]);
  TensorId id = slot < static_cast<int>(n.out.size()) ? n.out[static_cast<size_t>(slot)] : kNone;
  bool read = std::find(r.outputs.begin(), r.outputs.end(), id) != r.outputs.end();
  return make_sequences(*r.graph, read ? id : kNone);
}

int64_t Sequences::batch_start(Tensors t, int64_t b) const {
  if (offsets == kNone) return b * strides[0];
  return load<int64_t>(offsets_type, t[offsets], b) * multiplier;
}

int64_t Sequences::room(Tensors t, int64_t b) const {
  int64_t elements = load<int64_t>(offsets_type, t[offsets], b + 1) * multiplier - batch_start(t, b);
  return std::max<int64_t>(0, elements / std::max<int64_t>(1, strides[2]));
}

int64_t Sequences::steps(Tensors t, int64_t b, int64_t length) const {
  if (pages) return length;
  return std::min(length, offsets == kNone ? dims[2] : room(t, b));
}

int64_t Sequences::block(Tensors t, int64_t b, int64_t s) const {
  int64_t page = s / dims[2], y = 0;
  if (page < pages->steps(t, b, pages->dims[2]))
    y = load<int64_t>(pages->type, t[pages->id], pages->batch_start(t, b) + page * pages->strides[2]);
  require(y >= 0 && y < dims[0], "page table of sequences ", dims, ": batch ", b, " names block ", y, " of ", dims[0]);
  return y;
}

int64_t Sequences::row(Tensors t, int64_t b, int64_t h, int64_t s) const {
  if (pages) return block(t, b, s) * strides[0] + h * strides[1] + s % dims[2] * strides[2];
  return batch_start(t, b) + h * strides[1] + s * strides[2];
}

int64_t Sequences::run(int64_t s) const {
  if (pages) return dims[2] - s % dims[2];
  return offsets == kNone ? dims[2] - s : kFar;
}

Problem::Problem(const Graph& g, const Node& node)
    : n(sdpa::shape(g, node)), options(attrs<tessera::SdpaOptions>(node)) {
  const sdpa::Slots& s = sdpa::slots(node);
  auto numbers = [&](int slot) { return make_numbers(g, node, slot); };
  auto broadcast = [&](int slot) {
    const Tensor* t = input(g, node, slot);
    return t ? make_broadcast(*t, node.in[static_cast<size_t>(slot)]) : Broadcast{};
  };
  group = std::gcd(n.hq / n.hk, n.hq / n.hv);
  auto operand = [&](Sequences& x, int slot, int table, int scales, const Dims& block) {
    x = make_sequences(g, node.in[static_cast<size_t>(slot)]);
    if (sdpa::has(node, table))
      x.pages = std::make_shared<Sequences>(make_sequences(g, node.in[static_cast<size_t>(table)]));
    const Tensor* t = input(g, node, scales);
    if (!t || t->dtype != DType::e8m0) return numbers(scales);
    x.scales = node.in[static_cast<size_t>(scales)];
    x.scale_tensor = *t;
    x.scale_block = block;
    return Numbers{};
  };
  descale_q = operand(q, s.q, -1, s.descale_q, sdpa::kBlockOfQk);
  descale_k = operand(k, s.k, s.page_table_k, s.descale_k, sdpa::kBlockOfQk);
  descale_v = operand(v, s.v, s.page_table_v, s.descale_v, sdpa::kBlockOfV);
  scale = numbers(s.scale);
  seq_len_q = numbers(s.seq_len_q), seq_len_kv = numbers(s.seq_len_kv);
  cu_seq_len_q = numbers(s.cu_seq_len_q), cu_seq_len_kv = numbers(s.cu_seq_len_kv);
  descale_s = numbers(s.descale_s), scale_s = numbers(s.scale_s);
  sink = numbers(s.sink), slopes = numbers(s.alibi_slopes);
  dropout_seed = numbers(s.dropout_seed), dropout_offset = numbers(s.dropout_offset);
  dropout_scale = numbers(s.dropout_scale);
  bias = broadcast(s.bias), block_mask = broadcast(s.block_mask), dropout_mask = broadcast(s.dropout_mask);
  alibi = options.alibi || slopes.given();
  rounds_to_fp8 = is_fp8(q.type) && v.scales == kNone;
  open = sdpa::open_sides(g, node);
}

double Problem::keep_factor() const {
  double p = options.dropout;
  return dropout_mask.given() ? 1 : p < 1 ? 1 / (1 - p) : 0;
}

uint32_t Problem::keep_threshold() const { return static_cast<uint32_t>(std::ceil((1 - options.dropout) * 0x1p24)); }

}  // namespace tsr::attention
