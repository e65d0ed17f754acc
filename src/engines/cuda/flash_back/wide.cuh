// SPDX-License-Identifier: Apache-2.0
// The same where rows are so long that registers hold dk and dv of 64 keys only if two warpgroups share their columns.
// Each has the scores of half of a step's queries; probabilities and gradients of scores go to shared memory, and are
// left operands there for both.
#pragma once

#include "engines/cuda/flash_back/steps.cuh"

namespace tsr::dev::attention {

// Asks for weights times half of the columns of a step's queries, added to what 64 keys have.
template <class T, class Keys, int CHUNKS>
void add_half(const char* weights, const char* rows, int part, typename Keys::Sums& sums) {
  rows += part * (CHUNKS / 2) * T::kRows * 128;
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < T::kRows / 16; ++i)
    Keys::run(sums, operand_descriptor(weights + i * 32, 16, 1024, Swizzle::bytes_128),
              operand_descriptor(rows + i * 16 * 128, T::kRows * 128, 1024, Swizzle::bytes_128), true);
  wgmma_commit();
}

// Asks for half of the columns of dq.
template <class T, class Queries>
void multiply_half(const char* ds, const char* k, int part, typename Queries::Sums& dq) {
  multiply_keys<T, Queries>(ds, k + part * (T::kChunks / 2) * T::kKeys * 128, dq);
}

template <class T, class Scores, class Keys, class Values, class Queries, class O>
struct WideSteps : StepBase<T> {
  using Base = StepBase<T>;
  using Base::a, Base::m, Base::w, Base::walk, Base::at, Base::part;
  typename Keys::Sums dk = {};
  typename Values::Sums dv = {};

  void step() {
    typename Scores::Sums s, dp;
    const char *rows = Base::queries(), *half = rows + part() * T::kQueries * 128;
    multiply_rows<T, T::kDepth, Scores>(m.k, half, s);
    const char* gradients = Base::gradients();
    multiply_rows<T, T::kColumns, Scores>(m.v, gradients + part() * T::kQueries * 128, dp);
    wgmma_wait<1>();
    sums_ready(s);
    Meeting t = meeting_of<T>(a, w, walk);
    if (kChangesScores<O> || Base::masked())
      weigh<T, O, true>(a, m, t, at.slot, s);
    else
      weigh<T, O, false>(a, m, t, at.slot, s);
    if constexpr (O::kRandom) drop<O>(a, m.factors, t, s);
    u32 words[T::kQueries / 16][4];
    to_weights<typename T::In, O>(a, t, s, words);
    wgmma_wait<0>();
    sums_ready(dp);
    named_sync(kBoth, 256);  // products of the step before have read what lies there
    keep_words<T>(m.scores[0], words, part() * 2);
    differentiate<T, O>(a, m, t, at.slot, s, dp);
    to_weights<typename T::In>(dp, words);
    keep_words<T>(m.scores[1], words, part() * 2);
    Base::part_left();
    fence_for_copies();
    named_sync(kBoth, 256);
    typename Queries::Sums dq;
    multiply_half<T, Queries>(m.scores[1], m.k, part(), dq);
    add_half<T, Values, T::kValueChunks>(m.scores[0], gradients, part(), dv);
    add_half<T, Keys, T::kChunks>(m.scores[1], rows, part(), dk);
    wgmma_wait<2>();
    sums_ready(dq);
    Base::add_part(dq);
    wgmma_wait<0>();
    Base::next();
    Base::free_last();
  }

  void run() {
    Base::begin();
    while (walk.any()) step();
    Base::end();
  }

  void store() {
    sums_ready(dk);
    sums_ready(dv);
    i32 first = first_key<T>(w);
    store_keys<typename T::GradK>(Base::result(a.grad_k, a.d, a.dk_whole, m.factors.scale), first,
                                  part() * T::kChunks * 32, dk);
    store_keys<typename T::GradV>(Base::result(a.grad_v, a.dv, a.dv_whole, m.factors.keep), first,
                                  part() * T::kValueChunks * 32, dv);
  }
};

}  // namespace tsr::dev::attention
