// SPDX-License-Identifier: Apache-2.0
// What stands around the walks over tiles: joining parts, row sums, dumps and the largest magnitudes.
#pragma once

#include "engines/cuda/attention/forward.cuh"

namespace tsr::dev::attention {

// Parts of the keys add up once they are scaled to the same maximum. One block for each query.
template <class L, class TO>
void combine(const AttentionArgs& a) {
  i64 index = blockIdx.x;
  i32 query = i32(index % a.sq), head = i32(index / a.sq % a.hq), b = i32(index / a.sq / a.hq);
  i64 row = i64(head % a.group) * a.sq + query;
  Softmax<L> all = {-L(infinity()), L(0)};
  auto part = [&](i32 split) { return part_index(a, b, head, split, row); };
  auto factor = [&](i32 split) {
    L max = static_cast<const L*>(a.part_max)[part(split)];
    return max == -L(infinity()) ? L(0) : f_exp(max - all.max);
  };
  for (i32 s = 0; s < a.splits; ++s) all.max = Max::join(all.max, static_cast<const L*>(a.part_max)[part(s)]);
  for (i32 s = 0; s < a.splits; ++s) all.sum += static_cast<const L*>(a.part_sum)[part(s)] * factor(s);
  i32 length = length_q(a, b);
  if (threadIdx.x == 0) write_statistics(a, b, head, query, length, all);
  L scale = result_scale<L>(a), stored = read<L>(a.scale_o), largest = L(0);
  scale *= all.sum == L(0) ? L(0) : read<L>(a.keep_factor) / all.sum;
  Place at = place(a.o, b);
  bool there = a.o.data && holds(a.o, at, query, length);
  for (i32 c = threadIdx.x; c < a.dv; c += kAroundThreads) {
    L sum = L(0);
    for (i32 s = 0; s < a.splits; ++s) {
      L f = factor(s);
      if (f != L(0)) sum += static_cast<const L*>(a.part_o)[part(s) * a.dv + c] * f;
    }
    L y = sum * scale;
    largest = Max::join(largest, f_abs(y));
    if (there)
      static_cast<TO*>(a.o.data)[row_offset(a.o, at, head, query) + c * a.o.strides[3]] = from_lane<TO>(y * stored);
  }
  if (!a.amax[1]) return;
  largest = group_reduce<Max, kAroundThreads>(largest, reinterpret_cast<L*>(shared_memory()));
  if (threadIdx.x == 0) static_cast<L*>(a.amax[1])[blockIdx.x] = largest;
}

// The largest of what the blocks met, one block for each result.
template <class L>
void join_amax(const AttentionArgs& a) {
  int which = blockIdx.x;
  if (!a.amax_to[which].data) return;
  L largest = L(0);
  for (i64 i = threadIdx.x; i < a.amax_count[which]; i += kAroundThreads)
    largest = Max::join(largest, static_cast<const L*>(a.amax[which])[i]);
  largest = group_reduce<Max, kAroundThreads>(largest, reinterpret_cast<L*>(shared_memory()));
  if (threadIdx.x == 0) store_any(a.amax_to[which].data, a.amax_to[which].type, 0, largest);
}

// The factors of dropout of all scores, four keys to a thread.
template <class L, class O>
void dump(const AttentionArgs& a) {
  i64 runs = (a.skv + 3) / 4, index = i64(blockIdx.x) * kAroundThreads + threadIdx.x;
  i32 key = i32(index % runs) * 4;
  index /= runs;
  i32 query = i32(index % a.sq), head = i32(index / a.sq % a.hq);
  i64 b = index / a.sq / a.hq;
  if (b >= a.b) return;
  L keep[4] = {L(1), L(1), L(1), L(1)};
  if constexpr (O::kRandom) {
    Factors<L> f;
    f.seed = u64(read_integer(a.seed)), f.offset = u64(read_integer(a.offset));
    keep_four<O>(a, f, i32(b), head, query, key, keep);
  }
  const i64* s = a.dump.strides;
  for (int j = 0; j < 4 && key + j < a.skv; ++j)
    store_any(a.dump.data, a.dump.type, b * s[0] + head * s[1] + query * s[2] + (key + j) * s[3], keep[j]);
}

// Before the gradients: statistics as natural logarithms, and sums of do o, times what dropout multiplies by where the
// caller gave them without. One warp for each query.
template <class L, class TO, class TD>
void prepare(const AttentionArgs& a) {
  i64 index = i64(blockIdx.x) * (kAroundThreads / 32) + threadIdx.x / 32;
  i32 query = i32(index % a.sq), head = i32(index / a.sq % a.hq), lane = threadIdx.x % 32;
  i64 batch = index / a.sq / a.hq;
  i32 b = i32(batch);
  if (batch >= a.b || query >= length_q(a, b)) return;
  L sum = L(0);
  if (a.delta.data) {
    sum = row_number<L>(a.delta, b, head, query) * read<L>(a.keep_factor);
  } else {
    Place at_o = place(a.o, b), at_do = place(a.grad_o, b);
    i64 o = row_offset(a.o, at_o, head, query), d = row_offset(a.grad_o, at_do, head, query);
    bool there = query < at_o.steps && query < at_do.steps;
    for (i32 c = lane; there && c < a.dv; c += 32)
      sum += to_lane<L>(static_cast<const TO*>(a.o.data)[o + c * a.o.strides[3]]) *
             to_lane<L>(static_cast<const TD*>(a.grad_o.data)[d + c * a.grad_o.strides[3]]);
    sum = warp_reduce<Add>(sum) * read<L>(a.descale_o) * read<L>(a.descale_do);
  }
  if (lane != 0) return;
  static_cast<L*>(a.row_delta)[index] = sum;
  static_cast<L*>(a.row_stats)[index] = natural_stats<L>(a, b, head, query);
}

// The sink has probability exp(sink - stats) and no value. One block for each head.
template <class L>
void sink_gradient(const AttentionArgs& a) {
  i32 head = blockIdx.x;
  L sink = read<L>(a.sink, head), sum = L(0);
  for (i32 b = 0; b < a.b; ++b) {
    i32 length = length_q(a, b);
    for (i32 i = threadIdx.x; i < length; i += kAroundThreads) {
      RowNumbers<L> row = row_numbers<L>(a, b, head, i);
      if (row.stats != -L(infinity())) sum -= f_exp(sink - row.stats) * row.delta;
    }
  }
  sum = group_reduce<Add, kAroundThreads>(sum, reinterpret_cast<L*>(shared_memory()));
  if (threadIdx.x == 0) store_any(a.dsink.data, a.dsink.type, head * a.dsink.strides[1], sum);
}

// Joins the parts of a bias gradient, one thread for each element.
template <class L>
void join_bias(const AttentionArgs& a) {
  i64 index = i64(blockIdx.x) * kAroundThreads + threadIdx.x, rest = index, offset = 0, all = 1;
  for (int i = 3; i >= 0; --i) {
    offset += rest % a.dbias_sizes[i] * a.dbias.strides[i];
    rest /= a.dbias_sizes[i];
    all *= a.dbias_sizes[i];
  }
  if (index >= all) return;
  L sum = L(0);
  for (i32 s = 0; s < a.splits; ++s) sum += static_cast<const L*>(a.bias_parts)[s * all + index];
  store_any(a.dbias.data, a.dbias.type, offset, sum);
}

}  // namespace tsr::dev::attention
