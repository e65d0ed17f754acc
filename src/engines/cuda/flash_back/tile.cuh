// SPDX-License-Identifier: Apache-2.0
// A block of gradients on tensor cores: its shape and shared memory, which queries its keys meet, and the thread that
// asks the copy engine for them.
#pragma once

#include "device/ring.cuh"
#include "engines/cuda/flash_back/args.cuh"
#include "engines/cuda/scores/boxes.cuh"
#include "engines/cuda/scores/turned.cuh"

namespace tsr::dev::attention {

// T: type of q, k, v and do; TK and TV: of dk and dv. DEPTH and COLUMNS: elements of a row of q and k, and of v, as
// multiplied. ROWS: queries of a step. KEYS: of a block, 64 for each of two warpgroups, or 64 for both, where rows are
// long (kWide): these then share columns of results. CUT: behind the ends of sequences anything may lie in memory.
// SPLIT: several blocks share the heads of q of the same keys. ORDERED: dq is the sum of keys in a fixed order. DIRECT:
// dq is added to memory from registers, not from shared memory. KEEPS: gradients want the scores. BIAS: how scores'
// gradients become that of a bias. LARGEST: the largest of them is wanted.
enum class BiasGradient { none, stored, added };  // added: the bias repeats
template <class T, class TK, class TV, int DEPTH, int COLUMNS, int ROWS, int KEYS, int STAGES, bool CUT, bool SPLIT,
          bool ORDERED, bool DIRECT, bool KEEPS, BiasGradient BIAS, bool LARGEST>
struct BackTile {
  using In = T;
  using GradK = TK;
  using GradV = TV;
  static constexpr int kDepth = DEPTH, kColumns = COLUMNS, kRows = ROWS, kKeys = KEYS, kStages = STAGES;
  static constexpr bool kCut = CUT, kSplit = SPLIT, kOrdered = ORDERED, kDirect = DIRECT, kKeeps = KEEPS;
  static constexpr BiasGradient kBias = BIAS;
  static constexpr bool kLargest = LARGEST;
  static constexpr bool kWide = KEYS == 64;
  static constexpr int kQueries = kWide ? ROWS / 2 : ROWS;  // whose scores a warpgroup has
  // Boxes of 64 elements, 128 bytes, lie side by side; in halves where warpgroups share columns.
  static constexpr int kEven = kWide ? 128 : 64;
  static constexpr int kChunks = (DEPTH + kEven - 1) / kEven * kEven / 64;
  static constexpr int kValueChunks = (COLUMNS + kEven - 1) / kEven * kEven / 64;
  static constexpr int kKBytes = kChunks * KEYS * 128, kVBytes = kValueChunks * KEYS * 128;
  static constexpr int kQBytes = kChunks * ROWS * 128, kOBytes = kValueChunks * ROWS * 128;
  static constexpr int kScoreBytes = ROWS / 64 * KEYS * 128;
  // Each of the warpgroups has a part of dq: rows below each other, or columns side by side.
  static constexpr bool kRowParts = ROWS == 128;
  static constexpr int kPartElements = ROWS * kChunks * 32;
  static_assert(!ORDERED || !DIRECT);
  static_assert(ROWS == 64 || (ROWS == 128 && !kWide && DEPTH == 64));
  static_assert(kChunks == 1 ? kRowParts : kChunks % 2 == 0);
};

template <class T>
struct alignas(1024) BackMemory {
  char k[T::kKBytes], v[T::kVBytes];
  char q[T::kStages][T::kQBytes], d_o[T::kStages][T::kOBytes];
  // Rows are keys. Gradients of scores of this step and the one before; or probabilities and gradients.
  char scores[2][T::kScoreBytes];
  float dq[2][T::kDirect ? 4 : T::kPartElements];
  float kept[T::kKeeps ? T::kRows * T::kKeys : 4];  // scores, of one thread each
  float stats[T::kStages][T::kRows], delta[T::kStages][T::kRows];
  u64 keys_full, values_full;
  RingBarriers<T::kStages> ring;  // `full` tells of q
  u64 o_full[T::kStages];
  ScoreFactors<float> factors;
  float exponent;                      // what makes a score an exponent of 2
  u32 largest[T::kLargest ? 256 : 1];  // magnitude of a gradient of scores so far, of each thread, as bits
};

// What a block does.
struct BackWork : KeyWork {
  i32 split, tile;
};

// Keys of one head follow each other: blocks that run at the same time read the same queries. Under a causal mask the
// first keys have the most to do: those of all heads come first, so that none is left for the end. But where the order
// is fixed the last keys of a head come first, since with those a tile of dq begins and blocks can only wait for those
// before them.
template <class T>
BackWork work_of(const BackArgs& a) {
  i32 index = blockIdx.x, head;
  BackWork w;
  if (!T::kOrdered && a.tile_blocks) {
    w.tile = index / a.tile_blocks, head = index - w.tile * a.tile_blocks;
  } else {
    head = index / a.key_tiles, w.tile = index - head * a.key_tiles;
    if constexpr (T::kOrdered) w.tile = a.key_tiles - 1 - w.tile;
  }
  w.split = head % a.splits, head /= a.splits;
  w.b = head / a.hk, w.head = head - w.b * a.hk;
  w.key = w.tile * T::kKeys;
  // Nothing is packed. Kernels whose warpgroups hand registers on must not call functions, such as 64-bit divisions.
  w.len_q = length_of(a.lengths_q, a.padded_q, a.prefix_q, w.b, a.sq);
  w.len_kv = length_of(a.lengths_kv, a.padded_kv, a.prefix_kv, w.b, a.skv);
  find_queries<T::kKeys, T::kRows>(a, w);
  return w;
}

// How many blocks add to a tile of dq before this one: those of further keys that its queries meet.
template <class T>
u32 turn_of(const BackArgs& a, const BackWork& w, i32 tile) {
  i64 last = min((tile + 1) * T::kRows, w.len_q) - 1 + a.right + (a.bottom_right ? i64(w.len_kv) - w.len_q : 0);
  return u32(clamp(last, 0, w.len_kv - 1) / T::kKeys - w.tile);
}

// Those of a block's share of the heads.
inline QueryWalk walk_of(const BackArgs& a, const BackWork& w) {
  i32 sharers = a.hq / a.hk, each = sharers / a.splits;
  return QueryWalk(w, w.head * sharers + w.split * each, each);
}

// A tile's number among those of all heads of q.
inline i64 tile_number(const BackArgs& a, i32 b, i32 head, i32 tile) {
  return (i64(b) * a.hq + head) * a.query_tiles + tile;
}

template <class T>
void produce(const BackArgs& a, BackMemory<T>& m) {
  prefetch_map(&a.k_map), prefetch_map(&a.q_map), prefetch_map(&a.v_map), prefetch_map(&a.do_map);
  BackWork w = work_of<T>(a);
  QueryWalk walk = walk_of(a, w);
  if (!walk.any()) return;
  barrier_expect(&m.keys_full, T::kKBytes);
  fetch_boxes<T::kChunks, T::kKeys>(m.k, &a.k_map, w.key, w.head, w.b, &m.keys_full);
  constexpr u32 kNumbers = T::kRows * sizeof(float);
  RingPlace at;
  for (bool begins = true; walk.any(); walk.next(), at.next<T::kStages>()) {
    i64 row = tile_number(a, w.b, walk.head, walk.tile) * T::kRows;
    i32 step = walk.tile * T::kRows;
    barrier_wait(m.ring.empty + at.slot, at.parity ^ 1);
    u64 *full = m.ring.full + at.slot, *o_full = m.o_full + at.slot;
    barrier_expect(full, T::kQBytes + kNumbers);
    fetch_boxes<T::kChunks, T::kRows>(m.q[at.slot], &a.q_map, step, walk.head, w.b, full);
    bulk_load(m.stats[at.slot], a.row_stats + row, kNumbers, full);
    if (begins) {
      barrier_expect(&m.values_full, T::kVBytes);
      fetch_boxes<T::kValueChunks, T::kKeys>(m.v, &a.v_map, w.key, w.head, w.b, &m.values_full);
      begins = false;
    }
    barrier_expect(o_full, T::kOBytes + kNumbers);
    fetch_boxes<T::kValueChunks, T::kRows>(m.d_o[at.slot], &a.do_map, step, walk.head, w.b, o_full);
    bulk_load(m.delta[at.slot], a.row_delta + row, kNumbers, o_full);
  }
}

}  // namespace tsr::dev::attention
