// SPDX-License-Identifier: Apache-2.0
// Attention forward on tensor cores (sm_90a). One block on each multiprocessor walks over tiles of queries. Its first
// warpgroup asks the copy engine for queries, keys and values; each of the others has 64 queries, whose scores and
// results stay in registers: scores become weights there, and are the left operand of the product with values.
//
// The product of the next step's keys is under way with that of this step's values while the softmax runs, and the
// warpgroups take turns: one has the tensor cores while another computes exponentials.
#pragma once

#include "device/ptx/launch.cuh"
#include "device/ptx/registers.cuh"
#include "device/ptx/wgmma.cuh"
#include "engines/cuda/flash/finish.cuh"

namespace tsr::dev::attention {

// --- barriers by number: one for each warpgroup's turn, one for all of them
constexpr int kTurn = 1, kAll = 8;

// Warpgroups have the tensor cores one after the other.
template <class T>
struct Turns {
  int mine;
  static constexpr int kThreads = 256;  // whoever gives the turn, and whoever takes it
  explicit Turns(int consumer) : mine(consumer) {
    if (T::kConsumers > 1 && mine == T::kConsumers - 1) give();
  }
  void take() const {
    if constexpr (T::kConsumers > 1) named_sync(kTurn + mine, kThreads);
  }
  void give() const {
    if constexpr (T::kConsumers > 1) named_arrive(kTurn + (mine + 1) % T::kConsumers, kThreads);
  }
  // The last turn that was given is taken: barriers end as they began.
  void end() const {
    if (mine == 0) take();
  }
};

// Frees a place whose results have left; one that is owed nothing is null.
inline void free_results(u64*& owed) {
  if (owed && threadIdx.x % 32 == 0) {
    stores_wait_read<0>();
    barrier_arrive(owed);
  }
  owed = nullptr;
}

// Asks for scores of 64 queries and a step's keys.
template <class T, class Scores>
void multiply_keys(const char* q, const char* k, typename Scores::Sums& s) {
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < T::kDepth / Scores::kDepth; ++i)
    Scores::run(s, operand_descriptor(q + i / 4 * T::kRows * 128 + i % 4 * 32, 16, 1024, Swizzle::bytes_128),
                operand_descriptor(k + i / 4 * T::kKeys * 128 + i % 4 * 32, 16, 1024, Swizzle::bytes_128), i > 0);
  wgmma_commit();
}

// Asks for weights times a step's values; unless turned, elements of v follow each other across the inner dimension.
template <class T, class Values, int N>
void multiply_values(const u32 (&p)[N][4], const char* v, bool add, typename Values::Sums& o) {
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < N; ++i) {
    constexpr int kBytes = T::kValueBytes, kEach = kBytes / 32;
    const char* at = T::kNarrow ? v + i / kEach * T::kValueRows * kBytes + i % kEach * 32 : v + i * 16 * 128;
    Values::run(o, p[i], operand_descriptor(at, T::kNarrow ? 16 : T::kKeys * 128, 8 * kBytes, T::kValueSwizzle),
                add || i > 0);
  }
  wgmma_commit();
}

// By one thread, before the others read them.
template <class T, class O>
void read_factors(const FlashArgs& a, FlashMemory<T>& m) {
  read_score_factors<O>(a, m.factors);
  m.masked = 1.0f;
  if constexpr (T::kNarrow) {
    m.result = read<float>(a.descale_v) * m.factors.scale_s * read<float>(a.descale_s) * (1.0f / (1 << T::kLift));
    m.scale_o = read<float>(a.scale_o);
    float score = m.factors.score;
    if (T::kFolded && !(score > 0.0f && score * kLog2e < infinity())) m.masked = score, m.factors.score = 1.0f;
  }
  m.exponent = T::kFolded ? m.factors.score * kLog2e : kLog2e;
  if constexpr (T::kRagged) {
    i32 most = a.sq;
    for (i32 b = 0; b < a.b; ++b) most = max(most, queries_of<T>(a, b));
    m.row_tiles = (most + T::kRows - 1) / T::kRows;
  }
}

template <class T>
RowPair start_rows(const FlashArgs& a, const FlashWork& w) {
  RowPair r;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    Band keys = band_of(a, query_of<T>(w, i), w.len_q, w.len_kv);
    r.first[i] = keys.first, r.last[i] = keys.last;
    r.max[i] = -infinity(), r.sum[i] = 0.0f;
  }
  return r;
}

// The values of a step that are none of the sequence's [first, end) become 0, whatever they are: their weights are 0.
template <class T>
void clear_values(char* v, i32 first, i32 end) {
  for (int i = threadIdx.x - 128; i < T::kValueChunks * T::kKeys * 8; i += T::kConsumers * 128)
    if (i / 8 % T::kKeys < first || i / 8 % T::kKeys >= end)
      store_vector(reinterpret_cast<u32*>(v) + i * 4, Vec<u32, 4>{});
  fence_for_copies();
  named_sync(kAll, T::kConsumers * 128);
}

// The steps of a tile. Sums of its results end in `o`; `p` are the weights of a step, until its values have come.
template <class T, class Scores, class Values, class O>
struct FlashSteps {
  const FlashArgs& a;
  FlashMemory<T>& m;
  const Turns<T>& turns;
  RingPlace &k, &v;
  const FlashWork& w;
  RowPair& r;
  const char* queries;
  u64*& owed;
  float (&o)[T::kColumns / 2];
  u32 p[T::kKeys / Values::kDepth][4];
  bool add = false;
  // 8-bit numbers: sums of a step and of as many columns as registers hold, and what those before are multiplied by.
  float part[T::kNarrow ? Values::kColumns / 2 : 1], before[2];

  // Masked scores become weights.
  template <bool MASKED>
  void soften(int n, typename Scores::Sums& s, float (&factor)[2]) {
    i32 key = MASKED && T::kRagged ? w.key_of(n, T::kKeys) : n * T::kKeys;
    finish_scores<T, O, MASKED>(a, m, w, r, key + i32(threadIdx.x) % 4 * 2, n * T::kKeys, s);
    update_softmax<T::kLift>(r, m.exponent, s, factor);
    if constexpr (O::kDrops) drop_weights<O>(a, m.factors, w.b, w.head, query_of<T>(w, threadIdx.x % 2), key, s);
  }

  void free_keys() {
    free_place<T>(m.k_ring.empty + k.slot);
    k.next<T::kStages>();
  }
  void free_values() {
    free_place<T>(m.v_ring.empty + v.slot);
    v.next<T::kStages>();
  }

  // Products with values go to the sums of all steps, or to those of one.
  void multiply() {
    barrier_wait(m.v_ring.full + v.slot, v.parity);
    if constexpr (T::kNarrow)
      multiply_part(0);
    else
      multiply_values<T, Values>(p, m.v[v.slot], add, o);
  }
  void multiply_part(int i) {
    multiply_values<T, Values>(p, m.v[v.slot] + i * Values::kColumns * T::kValueBytes, false, part);
  }
  void finish_values() {
    if constexpr (T::kNarrow) return finish_parts();
    wgmma_wait<0>();
    sums_ready(o);
    free_values();
  }
  void finish_parts() {
    constexpr int kParts = T::kColumns / Values::kColumns, kSums = Values::kColumns / 2;
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      wgmma_wait<0>();
      sums_ready(part);
      if (i + 1 == kParts) free_values();
#pragma unroll
      for (int j = 0; j < kSums; ++j) o[i * kSums + j] = __fmaf_rn(o[i * kSums + j], before[j / 2 % 2], part[j]);
      if (i + 1 < kParts) multiply_part(i + 1);
    }
  }

  // The first step has no values to multiply yet.
  void begin(int n) {
    typename Scores::Sums s;
    float factor[2];
    barrier_wait(m.k_ring.full + k.slot, k.parity);
    multiply_keys<T, Scores>(queries, m.k[k.slot], s);
    free_results(owed);
    wgmma_wait<0>();
    sums_ready(s);
    free_keys();
    if (T::kCut && (n + 1) * T::kKeys > w.len_kv) {
      barrier_wait(m.v_ring.full + v.slot, v.parity);
      clear_values<T>(m.v[v.slot], w.shift, w.len_kv - n * T::kKeys + w.shift);
    }
    soften<true>(n, s, factor);
    to_weights<typename T::In>(s, p);
    if constexpr (T::kNarrow) {
#pragma unroll
      for (int i = 0; i < T::kColumns / 2; ++i) o[i] = 0.0f;
      before[0] = before[1] = 0.0f;
    }
  }

  // Keys of step n, values of the one before.
  template <bool MASKED>
  void step(int n) {
    typename Scores::Sums s;
    float factor[2];
    barrier_wait(m.k_ring.full + k.slot, k.parity);
    turns.take();
    multiply_keys<T, Scores>(queries, m.k[k.slot], s);
    multiply();
    turns.give();
    wgmma_wait<1>();
    sums_ready(s);
    free_keys();
    soften<MASKED>(n, s, factor);
    finish_values();
    to_weights<typename T::In>(s, p);
    if constexpr (T::kNarrow) {
      before[0] = factor[0], before[1] = factor[1];
    } else {
#pragma unroll
      for (int i = 0; i < T::kColumns / 2; ++i) o[i] *= factor[i / 2 % 2];
    }
    add = true;
  }

  // The values of the last step.
  void end() {
    multiply();
    finish_values();
  }

  void run() {
    int n = w.end - 1;
    begin(n);
    for (--n; n >= w.first && n >= w.full_end; --n) step<true>(n);
    for (; n >= w.first && n >= w.full_first; --n) step<false>(n);
    for (; n >= w.first; --n) step<true>(n);
    end();
  }
};

// Results and statistics of a tile.
template <class T, int N>
void finish_tile(const FlashArgs& a, const FlashMemory<T>& m, const FlashWork& w, const RowPair& r, float sink,
                 char* place, float (&o)[N]) {
  FinishedRow rows[2];
  float factor[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) rows[i] = finish_row<T>(m, w, r, sink, i), factor[i] = rows[i].factor;
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (factor[i / 2 % 2] == 0.0f) o[i] = 0.0f;  // nothing was attended to; what was multiplied may be NaN
  if constexpr (T::kNarrow) finish_narrow<T>(a, m, r, o, factor);
  i32 query = w.row + i32(threadIdx.x - 128) / 32 * 16;
  bool boxed = T::kStaged && (!T::kRagged || (w.any() && w.holds(query) && w.holds(query + 15)));
  if constexpr (T::kStaged)
    if (boxed) store_boxes<T>(a, place, w, o, factor);
  if constexpr (T::kRagged || !T::kStaged)
    if (!boxed) store_each<T>(a, w, o, factor);
  store_statistics<T>(a, w, rows);
}

template <class T, class Scores, class Values, class O>
void consume(const FlashArgs& a, FlashMemory<T>& m) {
  int consumer = threadIdx.x / 128 - 1;
  Turns<T> turns(consumer);
  RingPlace q, k, v;
  u64* owed = nullptr;  // the place of a tile's results, while they leave
  int row_tiles = T::kRagged ? m.row_tiles : a.row_tiles, tiles = tiles_of<T>(a, row_tiles);
  for (TileWalk<T> walk; walk.index() < tiles; ++walk.round) {
    FlashWork w = work_of<T>(a, row_tiles, walk.index());
    if (T::kNarrow && m.masked != 1.0f) w.full_end = 0;
    RowPair r = start_rows<T>(a, w);
    float sink = O::kSink ? read<float>(a.sink, w.head) : -infinity();
    float o[T::kColumns / 2];
    char* queries = m.q[q.slot];
    bool asked = !T::kRagged || w.any();
    if (asked) barrier_wait(m.q_ring.full + q.slot, q.parity);
    FlashSteps<T, Scores, Values, O> steps{a, m, turns, k, v, w, r, queries + consumer * 64 * 128, owed, o};
    if (w.any()) steps.run();
    free_results(owed);
    u64* empty = m.q_ring.empty + q.slot;
    if (!T::kStaged && asked && threadIdx.x % 32 == 0) barrier_arrive(empty);
    finish_tile<T>(a, m, work_of<T>(a, row_tiles, again(walk.index())), r, sink, queries, o);
    if (!asked) continue;
    if (T::kStaged) owed = empty;
    if (T::kQStages == 1) free_results(owed);
    q.next<T::kQStages>();
  }
  turns.end();
  if (T::kStaged && threadIdx.x % 32 == 0) stores_wait<0>();
}

template <class T, class Scores, class Values, class O>
void flash_forward(const FlashArgs& a) {
  auto& m = *reinterpret_cast<FlashMemory<T>*>(shared_memory());
  if (threadIdx.x == 0) {
    prefetch_map(&a.q_from.map), prefetch_map(&a.k_from.map), prefetch_map(&a.v_from.map);
    m.q_ring.start(1, T::kConsumers * 4);
    m.k_ring.start(1, T::kConsumers * T::kCluster);
    m.v_ring.start(1, T::kConsumers * T::kCluster);
    barriers_ready();
  }
  wait_for_previous();
  if (threadIdx.x == 128) read_factors<T, O>(a, m);
  if constexpr (T::kCluster > 1)
    cluster_sync();
  else
    __syncthreads();
  if (threadIdx.x < 128) {
    registers_fewer<T::kConsumers == 3 ? 32 : T::kLooksUp ? 40 : 24>();
    if (threadIdx.x == 0) produce<T>(a, m);
  } else {
    registers_more<T::kConsumers == 3 ? 160 : T::kLooksUp ? 232 : 240>();
    consume<T, Scores, Values, O>(a, m);
  }
}

}  // namespace tsr::dev::attention
