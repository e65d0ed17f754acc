// SPDX-License-Identifier: Apache-2.0
// Copies from or to packed sequences: steps that a source does not have read as 0, those that a target does not have
// are not written.
#pragma once

#include "device/memory.cuh"
#include "engines/cuda/move/copy.cuh"

namespace tsr::dev {

// Where the element numbered `number` lies; false if its sequence does not reach that far.
template <class Index>
bool find_element(const RaggedSide& s, Index number, i64* at) {
  i64 batch = s.batch_start, time = s.time_start;
  *at = s.first;
  for (int l = s.loops - 1; l >= 0; --l) {
    Index rest = l ? divide(number, s.size[l]) : 0, index = number - rest * Index(s.size[l].value);
    number = rest;
    *at += index * s.step[l];
    if (l == s.batch_loop) batch += s.batch_scale * index;
    if (l == s.time_loop) time += s.time_scale * index;
  }
  if (!s.ragged.offsets) return true;
  *at += ragged_start(s.ragged, batch);
  return time < ragged_steps(s.ragged, batch);
}

// Sequences start anywhere, so only the address tells whether a run of elements is a word.
template <class T, int V>
bool is_word(const T* p) {
  return u64(p) % sizeof(Vec<T, V>) == 0;
}

// Words of V elements of one type; every thread loads all of its own before it stores the first.
template <class T, int V, class Index>
void copy_ragged(const RaggedArgs& a) {
  Index first = Index(blockIdx.x) * Index(kRaggedUnroll * blockDim.x) + Index(threadIdx.x);
  Vec<T, V> words[kRaggedUnroll] = {};
  i64 from, to[kRaggedUnroll];
  bool stored[kRaggedUnroll];
#pragma unroll
  for (int u = 0; u < kRaggedUnroll; ++u) {
    Index number = first + u * Index(blockDim.x);
    stored[u] = number < a.count && find_element(a.to, number, &to[u]);
    if (!stored[u] || !find_element(a.from, number, &from)) continue;
    const T* p = static_cast<const T*>(a.from.data) + from;
    is_word<T, V>(p) ? load_vector(p, words[u]) : load_each(p, 1, words[u]);
  }
#pragma unroll
  for (int u = 0; u < kRaggedUnroll; ++u) {
    if (!stored[u]) continue;
    T* p = static_cast<T*>(a.to.data) + to[u];
    is_word<T, V>(p) ? store_vector(p, words[u]) : store_each(p, 1, words[u]);
  }
}

template <class From, class To, class Index>
void convert_ragged(const RaggedArgs& a) {
  Index number = Index(blockIdx.x) * Index(blockDim.x) + Index(threadIdx.x);
  i64 from, to;
  if (number >= a.count || !find_element(a.to, number, &to)) return;
  To v = {};
  if (find_element(a.from, number, &from)) v = convert<To>(static_cast<const From*>(a.from.data)[from]);
  static_cast<To*>(a.to.data)[to] = v;
}

// Elements of BITS bits. Threads share the words they write, but no bits of them.
template <int BITS, class Index>
void copy_ragged_bits(const RaggedArgs& a) {
  constexpr int kPer = 8 / BITS;
  constexpr u32 kMask = (1u << BITS) - 1;
  Index number = Index(blockIdx.x) * Index(blockDim.x) + Index(threadIdx.x);
  i64 from, to;
  if (number >= a.count || !find_element(a.to, number, &to)) return;
  u32 v = 0;
  if (find_element(a.from, number, &from))
    v = static_cast<const u8*>(a.from.data)[from / kPer] >> (from % kPer * BITS) & kMask;
  u64 byte = u64(a.to.data) + u64(to / kPer);
  u32* word = reinterpret_cast<u32*>(byte / 4 * 4);
  int shift = int(byte % 4) * 8 + int(to % kPer) * BITS;
  for (u32 seen, now = *word;;) {
    seen = now;
    now = atomicCAS(word, seen, (seen & ~(kMask << shift)) | v << shift);
    if (now == seen) return;
  }
}

}  // namespace tsr::dev
