// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/attention/problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engines/cpu/attention/vectors.hpp"
#include "engines/cpu/product/tile.hpp"

namespace tsr::cpu::attention {

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

Problem::Problem(const Graph& g, const Node& node) : tsr::attention::Problem(g, node) {
  if (block_mask.given()) key_tile = sdpa::kMaskBlock;
  if (group * n.sq <= kFew) key_tile = kFewKeys;
}

int64_t Problem::length(Tensors t, const Numbers& lengths, const Numbers& prefix, int64_t b, int64_t full) {
  int64_t y = full;
  if (lengths.given()) y = lengths.integer(t, b);
  if (prefix.given()) y = prefix.integer(t, b + 1) - prefix.integer(t, b);
  return std::clamp<int64_t>(y, 0, full);
}

int64_t Problem::longest_q(Tensors t) const {
  int64_t y = n.sq;
  for (int64_t b = 0; open.q && b < n.b; ++b) y = std::max(y, length_q(t, b));
  return y;
}

int64_t Problem::longest_kv(Tensors t) const {
  int64_t y = n.skv;
  for (int64_t b = 0; open.kv && b < n.b; ++b) y = std::max(y, length_kv(t, b));
  return y;
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
