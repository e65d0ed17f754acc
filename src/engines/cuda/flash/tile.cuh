// SPDX-License-Identifier: Apache-2.0
// A tile of attention on tensor cores: its shape and shared memory, the order in which blocks walk over tiles, and
// which keys a tile meets.
#pragma once

#include "device/block.cuh"
#include "device/ptx/copy.cuh"
#include "device/ring.cuh"
#include "engines/cuda/flash/args.cuh"
#include "engines/cuda/scores/scores.cuh"

namespace tsr::dev::attention {

// T: type of q, k and v; TO: of o. DEPTH and COLUMNS: elements of a row of q and k, and of v, as multiplied. ROWS and
// KEYS: of a tile and of a step. STAGES: places for keys, and as many for values; Q_STAGES: for queries. STAGED:
// results leave in boxes, from the place of their queries. FOLDED: the factor of scores is known to be positive, and
// taken into the exponent. CUT: behind the end of a sequence anything may lie in memory. RAGGED: sequences are packed.
template <class T, class TO, int DEPTH, int COLUMNS, int ROWS, int KEYS, int STAGES, int Q_STAGES, bool STAGED,
          bool FOLDED, bool CUT, bool RAGGED>
struct FlashTile {
  using In = T;
  using Out = TO;
  static constexpr int kDepth = DEPTH, kColumns = COLUMNS, kRows = ROWS, kKeys = KEYS;
  static constexpr int kStages = STAGES, kQStages = Q_STAGES;
  static constexpr bool kStaged = STAGED, kFolded = FOLDED, kCut = CUT, kRagged = RAGGED;
  static constexpr int kConsumers = ROWS / 64;
  // Boxes of 64 elements, 128 bytes, lie side by side.
  static constexpr int kChunks = (DEPTH + 63) / 64, kValueChunks = (COLUMNS + 63) / 64;
  static constexpr int kQBytes = kChunks * ROWS * 128, kKBytes = kChunks * KEYS * 128;
  static constexpr int kVBytes = kValueChunks * KEYS * 128;
  // Results take the place of queries.
  static constexpr int kPlaceBytes = (STAGED && kValueChunks > kChunks ? kValueChunks : kChunks) * ROWS * 128;
};

template <class T>
struct alignas(1024) FlashMemory {
  char q[T::kQStages][T::kPlaceBytes];
  char k[T::kStages][T::kKBytes];
  char v[T::kStages][T::kVBytes];
  RingBarriers<T::kQStages> q_ring;
  RingBarriers<T::kStages> k_ring, v_ring;
  // What does not change from tile to tile: registers are scarce.
  ScoreFactors<float> factors;
  float exponent;  // what makes a score an exponent of 2
};

// The tiles of a block. Every other round goes backwards: with the longest first, nobody always gets the longer ones.
struct TileWalk {
  int round = 0;
  int index() const {
    int block = round % 2 == 0 ? blockIdx.x : gridDim.x - 1 - blockIdx.x;
    return round * gridDim.x + block;
  }
};

// What a tile is: queries of one head, and the steps [first, end) along their keys, of which [full_first, full_end)
// need no mask.
struct FlashWork {
  i32 b, head, row;
  i32 len_q, len_kv;
  i32 first, end, full_first, full_end;
  bool any() const { return first < end; }
};

// The same index as far as anyone knows: what is derived from it is derived again, and need not be held meanwhile.
inline int again(int index) {
#if !defined(TSR_EMULATED)
  asm volatile("" : "+r"(index));
#endif
  return index;
}

template <class T>
FlashWork work_of(const FlashArgs& a, int index) {
  int heads = a.b * a.hq, per_section = a.together * a.row_tiles, section = index / per_section;
  int rest = index - section * per_section, first_head = section * a.together;
  int count = min(a.together, heads - first_head), row = rest / count, head = first_head + rest - row * count;
  FlashWork w;
  w.b = head / a.hq, w.head = head - w.b * a.hq;
  w.row = (a.row_tiles - 1 - row) * T::kRows;  // under a causal mask the last have the most to do
  if constexpr (T::kRagged) {
    w.len_q = length_q(a, w.b), w.len_kv = length_kv(a, w.b);
  } else {
    w.len_q = length_of(a.lengths_q, a.padded_q, a.prefix_q, w.b, a.sq);
    w.len_kv = length_of(a.lengths_kv, a.padded_kv, a.prefix_kv, w.b, a.skv);
  }
  w.first = w.end = w.full_first = w.full_end = 0;
  if (w.row >= w.len_q) return w;
  Band top = band_of(a, w.row, w.len_q, w.len_kv);
  Band bottom = band_of(a, min(w.row + T::kRows, w.len_q) - 1, w.len_q, w.len_kv);
  if (top.first >= bottom.last) return w;
  w.first = top.first / T::kKeys, w.end = (bottom.last + T::kKeys - 1) / T::kKeys;
  w.full_first = (bottom.first + T::kKeys - 1) / T::kKeys, w.full_end = top.last / T::kKeys;
  return w;
}

// Where a result of a batch lies.
template <class T>
Place place_in(const Sequences& x, i32 b) {
  return T::kRagged ? place(x, b) : Place{b * x.strides[0], i32(x.steps), b, false};
}

// The queries, keys or values of a tile, in boxes side by side.
template <int CHUNKS, int COUNT>
void fetch_boxes(char* place, const TensorMap* map, i32 step, i32 head, i32 b, u64* full) {
#pragma unroll
  for (int i = 0; i < CHUNKS; ++i) tensor_load<4>(place + i * COUNT * 128, map, {64 * i, step, head, b}, full);
}

template <class T>
void produce(const FlashArgs& a, FlashMemory<T>& m) {
  RingPlace q, k, v;
  int tiles = a.b * a.hq * a.row_tiles;
  for (TileWalk walk; walk.index() < tiles; ++walk.round) {
    FlashWork w = work_of<T>(a, walk.index());
    i32 k_head = w.head / (a.hq / a.hk), v_head = w.head / (a.hq / a.hv);
    auto keys = [&](int n) {
      barrier_wait(m.k_ring.empty + k.slot, k.parity ^ 1);
      barrier_expect(m.k_ring.full + k.slot, T::kKBytes);
      fetch_boxes<T::kChunks, T::kKeys>(m.k[k.slot], &a.k_map, n * T::kKeys, k_head, w.b, m.k_ring.full + k.slot);
      k.next<T::kStages>();
    };
    auto values = [&](int n) {
      barrier_wait(m.v_ring.empty + v.slot, v.parity ^ 1);
      barrier_expect(m.v_ring.full + v.slot, T::kVBytes);
      fetch_boxes<T::kValueChunks, T::kKeys>(m.v[v.slot], &a.v_map, n * T::kKeys, v_head, w.b, m.v_ring.full + v.slot);
      v.next<T::kStages>();
    };
    barrier_wait(m.q_ring.empty + q.slot, q.parity ^ 1);
    barrier_expect(m.q_ring.full + q.slot, T::kQBytes);
    fetch_boxes<T::kChunks, T::kRows>(m.q[q.slot], &a.q_map, w.row, w.head, w.b, m.q_ring.full + q.slot);
    q.next<T::kQStages>();
    if (!w.any()) continue;
    // In the order in which they are needed: products with keys are one step ahead.
    keys(w.end - 1);
    for (int n = w.end - 2; n >= w.first; --n) keys(n), values(n + 1);
    values(w.first);
  }
}

}  // namespace tsr::dev::attention
