// SPDX-License-Identifier: Apache-2.0
// Gradients of attention on tensor cores (sm_90a). A block has 128 keys of a head and walks over the queries of all
// heads that share them, so that dk and dv are sums in registers. Its first warpgroup asks the copy engine for queries;
// each of two others has 64 keys. Scores are computed with keys as rows: probabilities and their gradients are then
// left operands in registers of the products with do and q. For dq gradients of scores also go to shared memory, where
// both warpgroups find those of all keys; its sums are added to memory.
#pragma once

#include "engines/cuda/flash_back/steps.cuh"

namespace tsr::dev::attention {

// Asks for weights times a step's queries, added to what 64 keys have.
template <class T, class Keys>
void add_rows(const u32 (&weights)[T::kRows / 16][4], const char* rows, typename Keys::Sums& sums) {
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < T::kRows / 16; ++i)
    Keys::run(sums, weights[i], operand_descriptor(rows + i * 16 * 128, T::kRows * 128, 1024, Swizzle::bytes_128),
              true);
  wgmma_commit();
}

// Asks for a part of dq, of all keys.
template <class T, class Queries>
void multiply_part(const char* ds, const char* k, int part, typename Queries::Sums& dq) {
  (T::kRowParts ? ds : k) += part * T::kKeys * 128;
  multiply_keys<T, Queries>(ds, k, dq);
}

// Sums of 64 keys that are to be added to what other blocks have.
template <int N>
void store_part(float* to, const float (&sums)[N]) {
#pragma unroll
  for (int i = 0; i < N; i += 4)
    store_vector(to + i * 128 + threadIdx.x % 128 * 4, Vec<float, 4>{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]});
}

template <class T, class Scores, class Keys, class Queries, class O>
struct BackSteps : StepBase<T> {
  using Base = StepBase<T>;
  using Base::a, Base::m, Base::w, Base::walk, Base::at, Base::part;
  typename Keys::Sums dk = {}, dv = {};
  int buffer = 0;  // for gradients of scores
  // The product for dk is under way while the next step begins, if registers suffice.
  static constexpr bool kOverlaps = !T::kRowParts && T::kStages > 1;

  void step() {
    typename Scores::Sums s, dp;
    const char* rows = Base::queries();
    multiply_rows<T, T::kDepth, Scores>(m.k + part() * 64 * 128, rows, s);
    const char* gradients = Base::gradients();
    multiply_rows<T, T::kColumns, Scores>(m.v + part() * 64 * 128, gradients, dp);
    wgmma_wait<1>();
    sums_ready(s);
    if constexpr (kOverlaps) Base::free_last();
    Meeting t = meeting_of<T>(a, w, walk);
    if (kChangesScores<O> || Base::masked())
      weigh<T, O, true>(a, m, t, at.slot, s);
    else
      weigh<T, O, false>(a, m, t, at.slot, s);
    if constexpr (O::kRandom) drop<O>(a, m.factors, t, s);
    u32 p[T::kRows / 16][4], ds[T::kRows / 16][4];
    to_weights<typename T::In, O>(a, t, s, p);
    wgmma_wait<0>();
    sums_ready(dp);
    add_rows<T, Keys>(p, gradients, dv);
    differentiate<T, O>(a, m, t, at.slot, s, dp);
    to_weights<typename T::In>(dp, ds);
    keep_words<T>(m.scores[buffer] + part() * 64 * 128, ds, 0);
    Base::part_left();
    fence_for_copies();
    named_sync(kBoth, 256);
    typename Queries::Sums dq;
    multiply_part<T, Queries>(m.scores[buffer], m.k, part(), dq);
    add_rows<T, Keys>(ds, rows, dk);
    wgmma_wait<1>();
    sums_ready(dq);
    Base::add_part(dq);
    buffer ^= 1;
    Base::next();
    if constexpr (!kOverlaps) {
      wgmma_wait<0>();
      Base::free_last();
    }
  }

  void run() {
    Base::begin();
    while (walk.any()) step();
    wgmma_wait<0>();
    Base::end();
  }

  void store() {
    sums_ready(dk);
    sums_ready(dv);
    if constexpr (T::kSplit) {
      i64 place = ((i64(w.b) * a.hk + w.head) * a.key_tiles + w.tile) * a.splits + w.split;
      constexpr int kElements = 64 * T::kDepth;
      float* to = a.key_parts + (place * 4 + part()) * kElements;
      store_part(to, dk);
      store_part(to + 2 * kElements, dv);
    } else {
      i32 first = first_key<T>(w);
      store_keys<typename T::GradK>(Base::result(a.grad_k, a.d, a.dk_whole, m.factors.scale), first, 0, dk);
      store_keys<typename T::GradV>(Base::result(a.grad_v, a.dv, a.dv_whole, m.factors.keep), first, 0, dv);
    }
  }
};

}  // namespace tsr::dev::attention
