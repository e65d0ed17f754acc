// SPDX-License-Identifier: Apache-2.0
// Gradients of attention on tensor cores (sm_90a). A block has 128 keys of a head and walks over the queries of all
// heads that share them, so that dk and dv are sums in registers. Its first warpgroup asks the copy engine for queries;
// each of two others has 64 keys. Scores are computed with keys as rows: probabilities and their gradients are then
// left operands in registers of the products with do and q. For dq gradients of scores also go to shared memory, where
// both warpgroups find those of all keys; its sums are added to memory by the copy engine.
#pragma once

#include "device/grid.cuh"
#include "device/ptx/matrix.cuh"
#include "device/ptx/registers.cuh"
#include "device/ptx/store.cuh"
#include "device/ptx/wgmma.cuh"
#include "engines/cuda/flash_back/results.cuh"
#include "engines/cuda/flash_back/weights.cuh"

namespace tsr::dev::attention {

// --- barriers by number: of both warpgroups, and of each
constexpr int kBoth = 1, kEach = 2;

// Asks for the products of 64 keys or values with a step's queries.
template <class T, class Scores>
void multiply_rows(const char* keys, const char* rows, typename Scores::Sums& s) {
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < T::kDepth / 16; ++i)
    Scores::run(s, operand_descriptor(keys + i / 4 * T::kKeys * 128 + i % 4 * 32, 16, 1024, Swizzle::bytes_128),
                operand_descriptor(rows + i / 4 * T::kRows * 128 + i % 4 * 32, 16, 1024, Swizzle::bytes_128), i > 0);
  wgmma_commit();
}

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
void multiply_keys(const char* ds, const char* k, int part, typename Queries::Sums& dq) {
  (T::kRowParts ? ds : k) += part * T::kKeys * 128;
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < T::kKeys / 16; ++i)
    Queries::run(dq, operand_descriptor(ds + i * 16 * 128, T::kKeys * 128, 1024, Swizzle::bytes_128),
                 operand_descriptor(k + i * 16 * 128, T::kKeys * 128, 1024, Swizzle::bytes_128), i > 0);
  wgmma_commit();
}

// The rows of a tile from `from` on become 0, whatever they are: they are multiplied by 0.
template <int CHUNKS, int COUNT>
void clear_rows(char* place, i32 from) {
  for (int i = threadIdx.x - 128; i < CHUNKS * COUNT * 8; i += 256)
    if (i / 8 % COUNT >= from) store_vector(reinterpret_cast<u32*>(place) + i * 4, Vec<u32, 4>{});
  fence_for_copies();
  named_sync(kBoth, 256);
}

// By one thread, before the others read them.
template <class O, class T>
void read_factors(const BackArgs& a, BackMemory<T>& m) {
  constexpr float kLog2e = 1.44269504088896340736f;
  read_score_factors<O>(a, m.factors);
  m.exponent = kChangesScores<O> ? kLog2e : m.factors.score * kLog2e;
}

template <class T, class Scores, class Keys, class Queries, class O>
struct BackSteps {
  const BackArgs& a;
  BackMemory<T>& m;
  const BackWork& w;
  QueryWalk& walk;
  typename Keys::Sums &dk, &dv;
  RingPlace at = {};
  int buffer = 0;       // for gradients of scores
  u32* owed = nullptr;  // the count of a part of dq that is leaving

  int part() const { return threadIdx.x / 128 - 1; }
  bool leads() const { return threadIdx.x % 128 == 0; }
  void keep_gradients(const u32 (&words)[T::kRows / 16][4]) {
    int row = threadIdx.x % 16;
    char* rows = m.ds[buffer] + i32(threadIdx.x - 128) / 32 * 16 * 128 + row * 128;
#pragma unroll
    for (int i = 0; i < T::kRows / 16; ++i)
      matrix_store(rows + i / 4 * T::kKeys * 128 + ((i % 4 * 32 + threadIdx.x % 32 / 16 * 16) ^ row % 8 * 16),
                   words[i]);
  }

  // A part of dq leaves: by the copy engine, or from registers.
  void add_part(const typename Queries::Sums& dq) {
    float* to = a.dq_sums + (tile_number(a, w.b, walk.head, walk.tile) * 2 + part()) * kPartElements;
    float* from = T::kDirect ? to : m.dq[part()];
#pragma unroll
    for (int i = 0; i < kPartElements / 128; i += 4) {
      Vec<float, 4> four = {dq[i], dq[i + 1], dq[i + 2], dq[i + 3]};
      float* place = from + i * 128 + threadIdx.x % 128 * 4;
      if constexpr (T::kDirect)
        add_four(place, four);
      else
        store_vector(place, four);
    }
    if constexpr (T::kDirect) return;
    fence_for_copies();
    named_sync(kEach + part(), 128);
    if (!leads()) return;
    if constexpr (T::kOrdered) {
      owed = a.turns + (to - a.dq_sums) / kPartElements;
      wait_for_count(owed, turn_of<T>(a, w, walk.tile));
    }
    bulk_add(to, from, kPartElements * 4);
    stores_commit();
  }

  // Until the part of the step before has left.
  void part_left() {
    if (T::kDirect || !leads()) return;
    if constexpr (!T::kOrdered) return stores_wait_read<0>();
    stores_wait<0>();
    if (owed) count_up(owed);
    owed = nullptr;
  }

  void step() {
    typename Scores::Sums s, dp;
    i32 row = walk.tile * T::kRows;
    bool cut = T::kCut && row + T::kRows > w.len_q;
    char *rows = m.q[at.slot], *gradients = m.d_o[at.slot];
    barrier_wait(m.ring.full + at.slot, at.parity);
    if (cut) clear_rows<T::kChunks, T::kRows>(rows, w.len_q - row);
    multiply_rows<T, Scores>(m.k + part() * 64 * 128, rows, s);
    barrier_wait(m.o_full + at.slot, at.parity);
    if (cut) clear_rows<T::kChunks, T::kRows>(gradients, w.len_q - row);
    multiply_rows<T, Scores>(m.v + part() * 64 * 128, gradients, dp);
    wgmma_wait<1>();
    sums_ready(s);
    Meeting t = meeting_of<T>(a, w, walk);
    if (kChangesScores<O> || walk.tile < w.full_first || walk.tile >= w.full_end)
      weigh<T, O, true>(a, m, t, at.slot, s);
    else
      weigh<T, O, false>(a, m, t, at.slot, s);
    if constexpr (O::kRandom) drop<O>(a, m.factors, t, s);
    u32 p[T::kRows / 16][4], ds[T::kRows / 16][4];
    to_weights<T, O>(a, t, s, p);
    wgmma_wait<0>();
    sums_ready(dp);
    add_rows<T, Keys>(p, gradients, dv);
    differentiate<T, O>(a, m, t, at.slot, s, dp);
    to_words<typename T::In>(dp, ds);
    keep_gradients(ds);
    part_left();
    fence_for_copies();
    named_sync(kBoth, 256);
    typename Queries::Sums dq;
    multiply_keys<T, Queries>(m.ds[buffer], m.k, part(), dq);
    add_rows<T, Keys>(ds, rows, dk);
    wgmma_wait<1>();
    sums_ready(dq);
    add_part(dq);
    wgmma_wait<0>();
    if (leads()) barrier_arrive(m.ring.empty + at.slot);
    buffer ^= 1;
    walk.next();
    at.next<T::kStages>();
  }

  void run() {
    barrier_wait(&m.keys_full, 0);
    barrier_wait(&m.values_full, 0);
    if (T::kCut && w.key + T::kKeys > w.len_kv) {
      clear_rows<T::kChunks, T::kKeys>(m.k, w.len_kv - w.key);
      clear_rows<T::kChunks, T::kKeys>(m.v, w.len_kv - w.key);
    }
    while (walk.any()) step();
    part_left();
    if (!T::kDirect && leads()) stores_wait<0>();
  }
};

// Sums of 64 keys leave.
template <class TO, int N>
void store_keys(const Result& r, i32 first, const float (&sums)[N]) {
  if (!r.to.data) return;
#pragma unroll
  for (int i = 0; i < N; i += 16) {
    Vec<float, 4> fours[4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      fours[k] = {sums[i + 4 * k], sums[i + 4 * k + 1], sums[i + 4 * k + 2], sums[i + 4 * k + 3]};
    store_columns<TO>(r, first, 2 * i, fours);
  }
}

// The same, to be added to what other blocks have.
template <int N>
void store_part(float* to, const float (&sums)[N]) {
#pragma unroll
  for (int i = 0; i < N; i += 4)
    store_vector(to + i * 128 + threadIdx.x % 128 * 4, Vec<float, 4>{sums[i], sums[i + 1], sums[i + 2], sums[i + 3]});
}

template <class T, class Scores, class Keys, class Queries, class O>
void consume(const BackArgs& a, BackMemory<T>& m) {
  BackWork w = work_of<T>(a);
  QueryWalk walk(a, w);
  typename Keys::Sums dk = {}, dv = {};
  BackSteps<T, Scores, Keys, Queries, O> steps{a, m, w, walk, dk, dv};
  if (walk.any()) steps.run();
  sums_ready(dk);
  sums_ready(dv);
  if constexpr (T::kSplit) {
    i64 place = ((i64(w.b) * a.hk + w.head) * a.key_tiles + w.tile) * a.splits + w.split;
    constexpr int kElements = 64 * T::kDepth;
    float* to = a.key_parts + (place * 4 + threadIdx.x / 128 - 1) * kElements;
    store_part(to, dk);
    store_part(to + 2 * kElements, dv);
    return;
  }
  i32 first = w.key + i32(threadIdx.x - 128) / 32 * 16 + i32(threadIdx.x) % 32 / 4;
  auto result = [&](const Sequences& to, i32 width, bool whole, float factor) {
    return result_of(to, w.b, w.head, a.skv, w.len_kv, width, whole, factor);
  };
  store_keys<typename T::GradK>(result(a.grad_k, a.d, a.dk_whole, m.factors.scale), first, dk);
  store_keys<typename T::GradV>(result(a.grad_v, a.dv, a.dv_whole, m.factors.keep), first, dv);
}

template <class T, class Scores, class Keys, class Queries, class O>
void flash_backward(const BackArgs& a) {
  auto& m = *reinterpret_cast<BackMemory<T>*>(shared_memory());
  if (threadIdx.x == 0) {
    barrier_init(&m.keys_full, 1);
    barrier_init(&m.values_full, 1);
    m.ring.start(1, 2);
    for (int i = 0; i < T::kStages; ++i) barrier_init(m.o_full + i, 1);
    barriers_ready();
  }
  if (threadIdx.x == 128) read_factors<O>(a, m);
  __syncthreads();
  if (threadIdx.x < 128) {
    registers_fewer<24>();
    if (threadIdx.x == 0) produce<T>(a, m);
  } else {
    registers_more<240>();
    consume<T, Scores, Keys, Queries, O>(a, m);
  }
}

}  // namespace tsr::dev::attention
