// SPDX-License-Identifier: Apache-2.0
// What both ways to walk over queries share: products of scores, dq on its way to memory, and the kernel around the
// walk.
#pragma once

#include "device/grid.cuh"
#include "device/ptx/matrix.cuh"
#include "device/ptx/registers.cuh"
#include "device/ptx/store.cuh"
#include "device/ptx/wgmma.cuh"
#include "engines/cuda/flash_back/weights.cuh"
#include "engines/cuda/scores/results.cuh"

namespace tsr::dev::attention {

// --- barriers by number: of both warpgroups, and of each
constexpr int kBoth = 1, kEach = 2;

// Asks for the products of 64 keys or values with a step's queries.
template <class T, int DEPTH, class Scores>
void multiply_rows(const char* keys, const char* rows, typename Scores::Sums& s) {
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < DEPTH / 16; ++i)
    Scores::run(s, operand_descriptor(keys + i / 4 * T::kKeys * 128 + i % 4 * 32, 16, 1024, Swizzle::bytes_128),
                operand_descriptor(rows + i / 4 * T::kRows * 128 + i % 4 * 32, 16, 1024, Swizzle::bytes_128), i > 0);
  wgmma_commit();
}

// Asks for gradients of scores times keys, all of which are summed over: columns of dq.
template <class T, class Queries>
void multiply_keys(const char* ds, const char* k, typename Queries::Sums& dq) {
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
  read_score_factors<O>(a, m.factors);
  m.exponent = kChangesScores<O> ? kLog2e : m.factors.score * kLog2e;
}

// Numbers of a warp's 16 keys go to shared memory; `rows` are those of its warpgroup, from a multiple of 32 bytes on.
template <class T, int N>
void keep_words(char* rows, const u32 (&words)[N][4], int first) {
  int row = threadIdx.x % 16;
  rows += threadIdx.x % 128 / 32 * 16 * 128 + row * 128;
#pragma unroll
  for (int i = 0; i < N; ++i)
    matrix_store(rows + i / 4 * T::kKeys * 128 + (((first + i) % 4 * 32 + threadIdx.x % 32 / 16 * 16) ^ row % 8 * 16),
                 words[i]);
}

// Sums of 64 keys leave, of columns from `column` on.
template <class TO, int N>
void store_keys(const Result& r, i32 first, i32 column, const float (&sums)[N]) {
  if (!r.to.data) return;
#pragma unroll
  for (int i = 0; i < N / 16; ++i) {
    Vec<float, 4> fours[4];
    take_fours(sums, i, fours);
    store_columns<TO>(r, first, column + 32 * i, fours);
  }
}

template <class T>
struct StepBase {
  const BackArgs& a;
  BackMemory<T>& m;
  const BackWork& w;
  QueryWalk& walk;
  RingPlace at = {};
  u64* last = nullptr;  // tells that the place of the step before is free
  u32* owed = nullptr;  // the count of a part of dq that is leaving

  int part() const { return threadIdx.x / 128 - 1; }
  bool leads() const { return threadIdx.x % 128 == 0; }
  bool cut() const { return T::kCut && (walk.tile + 1) * T::kRows > w.len_q; }
  i32 rows_left() const { return w.len_q - walk.tile * T::kRows; }
  bool masked() const { return walk.tile < w.full_first || walk.tile >= w.full_end; }

  // A part of dq leaves: by the copy engine, or from registers.
  void add_part(const float (&dq)[T::kPartElements / 128]) {
    float* to = a.dq_sums + (tile_number(a, w.b, walk.head, walk.tile) * 2 + part()) * T::kPartElements;
    float* from = T::kDirect ? to : m.dq[part()];
#pragma unroll
    for (int i = 0; i < T::kPartElements / 128; i += 4) {
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
      owed = a.turns + (to - a.dq_sums) / T::kPartElements;
      wait_for_count(owed, turn_of<T>(a, w, walk.tile));
    }
    bulk_add(to, from, T::kPartElements * 4);
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

  // Keys and values have come; what lies behind their end is gone.
  void begin() {
    barrier_wait(&m.keys_full, 0);
    barrier_wait(&m.values_full, 0);
    if (!T::kCut || w.key + T::kKeys <= w.len_kv) return;
    clear_rows<T::kChunks, T::kKeys>(m.k, w.len_kv - w.key);
    clear_rows<T::kValueChunks, T::kKeys>(m.v, w.len_kv - w.key);
  }
  char* queries() {
    barrier_wait(m.ring.full + at.slot, at.parity);
    if (cut()) clear_rows<T::kChunks, T::kRows>(m.q[at.slot], rows_left());
    return m.q[at.slot];
  }
  char* gradients() {
    barrier_wait(m.o_full + at.slot, at.parity);
    if (cut()) clear_rows<T::kValueChunks, T::kRows>(m.d_o[at.slot], rows_left());
    return m.d_o[at.slot];
  }
  // The place of the step before is free: its last products are done.
  void free_last() {
    if (leads() && last) barrier_arrive(last);
  }
  void next() {
    last = m.ring.empty + at.slot;
    walk.next();
    at.template next<T::kStages>();
  }
  void end() {
    part_left();
    if (!T::kDirect && leads()) stores_wait<0>();
    if constexpr (T::kLargest) {
      u32 largest = m.largest[threadIdx.x - 128];
#pragma unroll
      for (int bits = 1; bits < 32; bits *= 2) largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, bits));
      if (threadIdx.x % 32 == 0) atomicMax(a.largest, largest);
    }
  }

  Result result(const Sequences& to, i32 width, bool whole, float factor) const {
    return result_of(to, w.b, w.head, a.skv, w.len_kv, width, whole, factor);
  }
};

// `Steps` walk over the queries of a block's keys and store their gradients.
template <class Steps, class T, class O>
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
    if constexpr (T::kLargest) m.largest[threadIdx.x - 128] = 0;
    BackWork w = work_of<T>(a);
    QueryWalk walk = walk_of(a, w);
    Steps steps{{a, m, w, walk}};
    if (walk.any()) steps.run();
    steps.store();
  }
}

}  // namespace tsr::dev::attention
