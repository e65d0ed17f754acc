// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/attention/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "engines/cpu/attention/vectors.hpp"
#include "engines/cpu/gemm/tile.hpp"

namespace tsr::cpu::attention {
namespace {

// Bounds of the band beyond this bound nothing, and sums with them stay in range.
constexpr int64_t kFar = int64_t{1} << 40;

}  // namespace

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

const Tensor* input(const Graph& g, const Node& n, int slot) {
  return sdpa::has(n, slot) ? &g.tensor(n.in[static_cast<size_t>(slot)]) : nullptr;
}

Numbers make_numbers(const Graph& g, const Node& n, int slot) {
  const Tensor* t = input(g, n, slot);
  if (!t) return {};
  Numbers y = {n.in[static_cast<size_t>(slot)], t->dtype, 0};
  for (int i = 0; i < t->rank(); ++i)
    if (t->dims[i] > 1) y.stride = t->strides[i];
  return y;
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

Problem::Problem(const Graph& g, const Node& node)
    : n(sdpa::shape(g, node)), options(attrs<tessera::SdpaOptions>(node)) {
  const sdpa::Slots& s = sdpa::slots(node);
  auto numbers = [&](int slot) { return make_numbers(g, node, slot); };
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
  alibi = options.alibi || slopes.given();
  rounds_to_fp8 = sdpa::is_fp8(q.type) && v.scales == kNone;
  if (sdpa::has(node, s.block_mask)) key_tile = sdpa::kMaskBlock;
  if (group * n.sq <= kFew) key_tile = kFewKeys;
}

int64_t Problem::length(Tensors t, const Numbers& lengths, const Numbers& prefix, int64_t b, int64_t full) {
  int64_t y = full;
  if (lengths.given()) y = lengths.integer(t, b);
  if (prefix.given()) y = prefix.integer(t, b + 1) - prefix.integer(t, b);
  return std::clamp<int64_t>(y, 0, full);
}

int Problem::workers(int threads, int64_t operations) const {
  constexpr double kOperations = 2e6, kElements = 2e5;  // about 20 microseconds of one thread
  auto scores = static_cast<double>(volume(n.scores())), keys = static_cast<double>(n.b * n.skv);
  double elements = keys * static_cast<double>(n.hk * n.d + n.hv * n.dv);
  double pieces = scores * static_cast<double>(operations) / kOperations + elements / kElements;
  return static_cast<int>(std::clamp<double>(pieces, 1, threads));
}

float Problem::score_scale(Tensors t) const {
  return static_cast<float>(options.scale * scale.read(t, 1) * descale_q.read(t, 1) * descale_k.read(t, 1));
}

float Problem::sink_of(Tensors t, int64_t h) const {
  return sink.given() ? static_cast<float>(sink.at(t, h)) : -INFINITY;
}

void Problem::fill(Lanes& y, Tensors t, int64_t b, int64_t head, int64_t heads, int64_t first) const {
  int64_t len_q = length_q(t, b), len_kv = length_kv(t, b);
  int64_t off = options.align == tessera::Align::bottom_right ? len_kv - len_q : 0;
  int64_t right = std::min(options.right.value_or(kFar), kFar), left = std::min(options.left.value_or(kFar), kFar);
  y.b = b;
  y.k_head = head / (n.hq / n.hk);
  y.v_head = head / (n.hq / n.hv);
  y.count = std::clamp<int64_t>(heads * len_q - first, 0, kRows);
  y.width = y.few() ? kVectorLanes : round_up(y.count, tile().columns > kVectorLanes ? tile().columns : kVectorLanes);
  y.lo = len_kv, y.hi = 0, y.inner_lo = 0, y.inner_hi = len_kv;
  for (int64_t i = 0; i < y.width; ++i) {
    // Lanes behind the last repeat it, so that every lane has sound numbers.
    int64_t row = first + std::min(i, y.count - 1), h = head + row / len_q, query = row % len_q;
    y.head[i] = h;
    y.query[i] = query;
    y.last[i] = std::clamp<int64_t>(query + off + right + 1, 0, len_kv);
    y.first[i] = std::clamp<int64_t>(query + off - left + 1, 0, y.last[i]);
    if (alibi)
      y.slope[i] = slopes.given() ? static_cast<float>(slopes.at(t, h))
                                  : std::exp2(-8.0f * static_cast<float>(h + 1) / static_cast<float>(n.hq));
    y.lo = std::min(y.lo, y.first[i]);
    y.hi = std::max(y.hi, y.last[i]);
    y.inner_lo = std::max(y.inner_lo, y.first[i]);
    y.inner_hi = std::min(y.inner_hi, y.last[i]);
  }
}

void Problem::pack(const Sequences& x, const Lanes& lanes, Tensors t, float factor, float* rows, float* to) const {
  int64_t d = x.dims[3];
  float* at = lanes.few() ? to : rows;
  for (int64_t i = 0; i < lanes.count; ++i) read_row(x, t, lanes.b, lanes.head[i], lanes.query[i], at + i * d);
  vectors().scale(lanes.count * d, at, factor);
  if (lanes.few()) return;
  tile().transpose(lanes.count, d, rows, d, to, lanes.width);
  for (int64_t i = 0; i < d; ++i) std::fill(to + i * lanes.width + lanes.count, to + (i + 1) * lanes.width, 0.0f);
}

bool Problem::narrow(const Sequences& x, const Sequences& y) const {
  auto plain = [](const Sequences& z) {
    return z.type == DType::bf16 && z.strides[3] == 1 && z.dims[3] % 2 == 0 && z.offsets == kNone && !z.pages;
  };
  return plain(x) && plain(y) && group * n.sq > kFew && has_bf16();
}

void Problem::pack_pairs(const Sequences& x, const Lanes& lanes, Tensors t, uint32_t* to) const {
  int64_t pairs = x.dims[3] / 2;
  for (int64_t i = 0; i < lanes.width; ++i) {
    const auto* row = static_cast<const uint16_t*>(t[x.id]) + x.row(t, lanes.b, lanes.head[i], lanes.query[i]);
    for (int64_t p = 0; p < pairs; ++p) std::memcpy(to + p * lanes.width + i, row + 2 * p, 4);
  }
}

void Problem::multiply_pairs(const Sequences& y, const Lanes& lanes, Tensors t, int64_t head, int64_t first,
                             int64_t keys, const uint32_t* pairs, float scale_by, float* s) const {
  const auto* rows = static_cast<const uint16_t*>(t[y.id]) + y.row(t, lanes.b, head, first);
  vectors().multiply_bf16(keys, lanes.width, y.dims[3], rows, y.strides[2], pairs, s, lanes.width, scale_by);
}

}  // namespace tsr::cpu::attention
