// SPDX-License-Identifier: Apache-2.0
// The end of kernels whose results go through generated code (Epilogue of the toolkit): E holds its operands and
// numbers.
#pragma once

#include "device/block.cuh"
#include "device/code_args.cuh"
#include "device/memory.cuh"

namespace tsr::dev {

// Values that all elements share.
template <class C, class E>
typename C::Rows known_to_all(const E& e) {
  typename C::Rows r;
  i64 origin[C::kOperands + 1] = {};
  C::before(e, origin, r);
  return r;
}

template <class C>
typename C::Partial nothing_yet() {
  typename C::Partial p;
  if constexpr (C::kStages > 0) C::template start<0>(p);
  return p;
}

// Operands as they lie from some element on: what is added to a pointer once need not be added for each element.
template <class C>
struct OperandsFrom {
  struct Operand {
    void* data;
    i64 step, at;
  } operands[C::kOperands + 1];
  const Number* numbers;

  OperandsFrom() = default;
  template <class E>
  OperandsFrom(const E& e, const i64* at) : numbers(e.numbers) {
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k)
      operands[k] = {static_cast<char*>(e.operands[k].data) + at[k] * C::bytes_of(k), e.operands[k].step,
                     C::bytes_of(k) > 0 ? 0 : at[k]};
  }
  // Offsets of the element n neighbours further on.
  struct Offsets {
    i64 at[C::kOperands + 1];
  };
  Offsets further(int n) const {
    Offsets o;
#pragma unroll
    for (int k = 0; k < C::kOperands; ++k)
      o.at[k] = operands[k].at + n * (C::step_of(k) < 0 ? operands[k].step : C::step_of(k));
    return o;
  }
};

// V values of the product, already what they count for, whose operands are loaded; the code stores what becomes of them
// where `at` says. What reductions take in is joined to `part`.
template <class C, int V, class E, class L>
void finish_loaded(const E& e, const i64* at, typename C::Loaded& x, const typename C::Rows& r, const L (&values)[V],
                   typename C::Partial& part) {
  typename C::Late late;
  typename C::Kept kept;
  typename C::Sums none;
#pragma unroll
  for (int v = 0; v < V; ++v) x.t0.v[v] = values[v];
  if constexpr (C::kStages > 0) C::template accumulate<0>(e, at, x, kept, r, part);
  C::store(e, at, x, late, kept, r, none);
}
// The same, and loads the operands.
template <class C, int V, class E, class L>
void finish_values(const E& e, const i64* at, const typename C::Rows& r, const L (&values)[V],
                   typename C::Partial& part) {
  typename C::Loaded x;
  C::load(e, at, x);
  finish_loaded<C, V>(e, at, x, r, values, part);
}
template <class C, int V, class E, class L>
void finish_values(const E& e, const i64* at, const typename C::Rows& r, const L (&values)[V]) {
  typename C::Partial none;
  finish_values<C, V>(e, at, r, values, none);
}

// Joins the parts of the lanes of a warp whose numbers differ by these powers of two alone.
template <class C, int FIRST, int LAST>
void join_lanes(typename C::Partial& p) {
#pragma unroll
  for (int bits = FIRST; bits <= LAST; bits *= 2) C::template join<0>(p, C::template shuffle<0>(p, bits));
}

// A block of 256 threads joins the parts that reductions left in memory, those of LANES neighbouring pieces, in a fixed
// order. LAST: `place(group, piece, at)` says where the results go; otherwise the block leaves one part for its chunk.
template <class C, int LANES, bool LAST, class E, class Place>
void join_parts(const E& e, const Parts& a, Place&& place) {
  using Part = typename C::Partial;
  constexpr int kShares = 256 / LANES;
  int lane = threadIdx.x % LANES, share = threadIdx.x / LANES, chunks = LAST ? 1 : a.chunks;
  i64 across = (a.pieces + LANES - 1) / LANES, number = blockIdx.x / u32(chunks);
  int chunk = int(blockIdx.x % u32(chunks)), slots = LAST ? a.chunks : a.slots;
  i64 group = number / across, piece = (number - group * across) * LANES + lane;
  bool there = piece < a.pieces;
  auto* from = static_cast<const Part*>(LAST ? a.joined : a.left) + group * slots * a.pieces + piece;
  int first = int(i64(chunk) * slots / chunks), last = int(i64(chunk + 1) * slots / chunks);
  auto& shared = *reinterpret_cast<Part(*)[256]>(shared_memory());
  Part p = nothing_yet<C>();
  if (there)
    for (int s = first + share; s < last; s += kShares) C::template join<0>(p, from[s * a.pieces]);
  shared[threadIdx.x] = p;
#pragma unroll
  for (int half = kShares / 2; half > 0; half /= 2) {
    __syncthreads();
    if (share < half) C::template join<0>(shared[threadIdx.x], shared[threadIdx.x + half * LANES]);
  }
  if (share > 0 || !there) return;
  p = shared[threadIdx.x];
  if constexpr (LAST) {
    i64 at[C::kOperands + 1] = {};
    place(group, piece, at);
    typename C::Rows r;
    C::before(e, at, r);
    C::template rows<0>(e, at, p, r);
    C::store_rows(e, at, r);
  } else {
    static_cast<Part*>(a.joined)[(group * chunks + chunk) * a.pieces + piece] = p;
  }
}

}  // namespace tsr::dev
