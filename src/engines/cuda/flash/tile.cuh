// SPDX-License-Identifier: Apache-2.0
// A tile of attention on tensor cores: its shape and shared memory, the order in which blocks walk over tiles, and
// which keys a tile meets.
#pragma once

#include "device/block.cuh"
#include "device/cluster.cuh"
#include "device/ptx/copy.cuh"
#include "device/ring.cuh"
#include "engines/cuda/flash/args.cuh"
#include "engines/cuda/scores/fragments.cuh"
#include "engines/cuda/scores/scores.cuh"

namespace tsr::dev::attention {

// T: type of q, k and v; TO: of o. DEPTH and COLUMNS: elements of a row of q and k, and of v, as multiplied. ROWS and
// KEYS: of a tile and of a step. STAGES: places for keys, and as many for values; Q_STAGES: for queries. STAGED:
// results leave in boxes, from the place of their queries. FOLDED: the factor of scores is known to be positive, and
// taken into the exponent. CUT: behind the end of a sequence anything may lie in memory. RAGGED: sequences
// are packed. PAGED: a table says where keys or values lie. CLUSTER: blocks that share keys and
// values, each of which fetches a part of them for all.
// Numbers of 8 bits have factors, which say how scores are scaled: whether they are positive is seen then. Values of
// theirs are turned (turn.cuh), and sums of a step's products are added up in f32.
template <class T, class TO, int DEPTH, int COLUMNS, int ROWS, int KEYS, int STAGES, int Q_STAGES, bool STAGED,
          bool FOLDED, bool CUT, bool RAGGED, bool PAGED, int CLUSTER>
struct FlashTile {
  using In = T;
  using Out = TO;
  static constexpr int kDepth = DEPTH, kColumns = COLUMNS, kRows = ROWS, kKeys = KEYS;
  static constexpr int kStages = STAGES, kQStages = Q_STAGES, kCluster = CLUSTER;
  static constexpr bool kStaged = STAGED, kFolded = FOLDED, kCut = CUT, kRagged = RAGGED, kPaged = PAGED;
  static constexpr bool kLooksUp = RAGGED || PAGED;  // whoever copies reads offsets or tables
  static constexpr bool kNarrow = sizeof(T) == 1;
  static constexpr bool kTurned = kNarrow && sizeof(TO) == 1;  // columns of turned values are in the order of words
  static constexpr int kLift = kNarrow ? 8 : 0;  // weights of 8 bits are up to 2^8: small ones keep their bits
  static constexpr int kConsumers = ROWS / 64;
  // Boxes whose rows are 128 bytes lie side by side.
  static constexpr int kChunk = 128 / sizeof(T), kResultChunk = 128 / sizeof(TO);
  static constexpr int kChunks = (DEPTH + kChunk - 1) / kChunk;
  static constexpr int kResultChunks = (COLUMNS + kResultChunk - 1) / kResultChunk;
  // Rows of boxes of values are keys, or, turned, columns, with as many keys as fill a step.
  static constexpr int kValueRows = kNarrow ? COLUMNS : KEYS;
  static constexpr int kValueBytes = kNarrow && KEYS % 128 != 0 ? 64 : 128;
  static constexpr Swizzle kValueSwizzle = kValueBytes == 64 ? Swizzle::bytes_64 : Swizzle::bytes_128;
  static constexpr int kValueChunks = kNarrow ? KEYS / kValueBytes : (COLUMNS + kChunk - 1) / kChunk;
  static constexpr int kQBytes = kChunks * ROWS * 128, kKBytes = kChunks * KEYS * 128;
  static constexpr int kVBytes = kValueChunks * kValueRows * kValueBytes;
  // Results take the place of queries.
  static constexpr int kPlaceBytes = (STAGED && kResultChunks > kChunks ? kResultChunks : kChunks) * ROWS * 128;
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
  // --- 8-bit numbers
  float masked;           // factor of scores that only steps with masks have; not 1: all steps are such
  float result, scale_o;  // factors of results: those of operands, and what follows the largest magnitude
  i32 row_tiles;          // of the queries of one head, at most
};

// The tiles of a cluster. Every other round goes backwards: with the longest first, nobody always gets the longer ones.
template <class T>
struct TileWalk {
  int round = 0;
  int index() const {
    int clusters = gridDim.x / T::kCluster, mine = blockIdx.x / T::kCluster;
    return round * clusters + (round % 2 == 0 ? mine : clusters - 1 - mine);
  }
};

// What a tile is: queries of one head, and the steps [first, end) along their keys, of which [full_first, full_end)
// need no mask. Of packed sequences the last boxes begin early, to end with memory: rows of the tile before `from` are
// none of its queries, and the last step begins `shift` keys early.
struct FlashWork {
  i32 b, head, row, from;
  i32 len_q, len_kv;
  i32 first, end, full_first, full_end, shift;
  bool any() const { return first < end; }
  // The key that the first row of a step's box holds.
  i32 key_of(int n, int keys) const { return n * keys - (n == end - 1 ? shift : 0); }
  bool holds(i32 query) const { return query >= from && query < len_q; }
};

// Rows of packed sequences: where a batch begins, and where all of them end.
inline i32 packed_start(const FlashSource& from, const Sequences& x, i32 b) {
  return from.packed_rows ? i32(load_integer(x.offsets, x.offsets_type, b) * from.packed_rows) : 0;
}
// How many rows beyond the end of all sequences a box would reach that begins at `step`.
inline i32 packed_excess(const FlashSource& from, const Sequences& x, i32 batches, i32 b, i32 step, i32 count) {
  if (!from.packed_rows) return 0;
  return max(0, packed_start(from, x, b) + step + count - packed_start(from, x, batches));
}
// Steps that a packed sequence has room for.
inline i32 packed_room(const FlashSource& from, const Sequences& x, i32 b) {
  return from.packed_rows ? packed_start(from, x, b + 1) - packed_start(from, x, b) : 0x7fffffff;
}

// Lengths of a batch. Those of packed sequences end with their room.
template <class T>
i32 queries_of(const FlashArgs& a, i32 b) {
  i32 room = T::kRagged ? packed_room(a.q_from, a.q, b) : 0x7fffffff, full = T::kRagged && a.open_q ? room : a.sq;
  return min(room, length_of(a.lengths_q, a.padded_q, a.prefix_q, b, full));
}
template <class T>
i32 keys_of(const FlashArgs& a, i32 b) {
  i32 room = 0x7fffffff;
  if constexpr (T::kRagged) room = min(packed_room(a.k_from, a.k, b), packed_room(a.v_from, a.v, b));
  i32 full = T::kRagged && a.open_kv ? room : a.skv;
  return min(room, length_of(a.lengths_kv, a.padded_kv, a.prefix_kv, b, full));
}

template <class T>
FlashWork work_of(const FlashArgs& a, int row_tiles, int index) {
  int heads_each = T::kCluster > 1 ? a.heads_each : 1, rows_each = T::kCluster > 1 ? a.rows_each : 1;
  int rank = T::kCluster > 1 ? cluster_rank() : 0;
  int heads = a.b * a.hq / heads_each, per_section = a.together * row_tiles, section = index / per_section;
  int rest = index - section * per_section, first_head = section * a.together;
  int count = min(a.together, heads - first_head), tile = rest / count;
  int head = (first_head + rest - tile * count) * heads_each + (heads_each > 1 ? rank : 0);
  FlashWork w;
  w.b = head / a.hq, w.head = head - w.b * a.hq;
  i32 row = (row_tiles - 1 - tile) * rows_each * T::kRows;  // under a causal mask the last have the most to do
  w.row = w.from = row + (rows_each > 1 ? rank * T::kRows : 0);
  w.len_q = queries_of<T>(a, w.b), w.len_kv = keys_of<T>(a, w.b);
  w.first = w.end = w.full_first = w.full_end = w.shift = 0;
  if (row >= w.len_q) return w;
  // Of all rows of the cluster, whose blocks take the same steps.
  Band top = band_of(a, row, w.len_q, w.len_kv);
  Band bottom = band_of(a, min(row + rows_each * T::kRows, w.len_q) - 1, w.len_q, w.len_kv);
  if (top.first >= bottom.last) return w;
  w.first = top.first / T::kKeys, w.end = (bottom.last + T::kKeys - 1) / T::kKeys;
  if (rows_each > 1) {
    top = band_of(a, w.row, w.len_q, w.len_kv);
    bottom = band_of(a, w.row + T::kRows - 1, w.len_q, w.len_kv);
  }
  w.full_first = (bottom.first + T::kKeys - 1) / T::kKeys, w.full_end = top.last / T::kKeys;
  if constexpr (T::kRagged) {
    w.row -= packed_excess(a.q_from, a.q, a.b, w.b, w.row, T::kRows);
    i32 last = (w.end - 1) * T::kKeys;
    w.shift = max(packed_excess(a.k_from, a.k, a.b, w.b, last, T::kKeys),
                  packed_excess(a.v_from, a.v, a.b, w.b, last, T::kKeys));
  }
  return w;
}

// Where a row of a result begins; -1: it has none. Without the divisions of place(): kernels whose warpgroups hand
// registers on must not call functions.
template <class T>
i64 result_offset(const Sequences& x, const FlashWork& w, i32 query) {
  i64 row = w.head * x.strides[1] + query * x.strides[2];
  if (query < w.from) return -1;
  if (!T::kRagged || !x.offsets) return query < x.steps ? w.b * x.strides[0] + row : -1;
  i64 start = load_integer(x.offsets, x.offsets_type, w.b) * x.multiplier;
  i64 room = load_integer(x.offsets, x.offsets_type, w.b + 1) * x.multiplier - start;
  return query < w.len_q && (query + 1) * x.strides[2] <= room ? start + row : -1;
}

// A box. SHARED: for all blocks of the cluster.
template <class T, bool SHARED>
void fetch_box(char* to, const FlashSource& from, i32 element, i32 row, i32 head, i32 batch, u64* full) {
  if constexpr (SHARED && T::kCluster > 1)
    tensor_load_multicast<4>(to, &from.map, {element, row, head, batch}, full, (1u << T::kCluster) - 1);
  else
    tensor_load<4>(to, &from.map, {element, row, head, batch}, full);
}

// Steps of a sequence from `step` on, in boxes side by side. SHARED: by all blocks of the cluster, for all of them.
template <class T, int CHUNKS, int COUNT, bool SHARED>
void fetch_steps(const FlashSource& from, const Operand& x, char* place, i32 step, i32 head, i32 b, u64* full) {
  constexpr bool kAll = SHARED && T::kCluster > 1;
  head *= from.heads;
  auto fetch = [&](char* to, i32 at, i32 batch) {
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i)
      fetch_box<T, SHARED>(to + i * COUNT * 128, from, T::kChunk * i, at, head, batch, full);
  };
  if (T::kPaged && x.pages.data) {
    for (int i = 0; i < COUNT; i += from.box_steps)
      fetch(place + i * 128, (step + i) % i32(x.steps),
            i32(block_of(x, {b * x.pages.strides[0], i32(x.pages.steps), b, false}, step + i)));
  } else if (T::kRagged && from.packed_rows) {
    fetch(place, packed_start(from, x, b) + step, 0);
  } else {
    int mine = kAll ? cluster_rank() * (COUNT / T::kCluster) : 0;
    fetch(place + mine * 128, step + mine, b * from.batches);
  }
}

// Turned values of the keys from `step` on.
template <class T>
void fetch_turned(const FlashSource& from, char* place, i32 step, i32 head, i32 b, u64* full) {
  int mine = T::kCluster > 1 ? cluster_rank() * (T::kValueRows / T::kCluster) : 0;
#pragma unroll
  for (int i = 0; i < T::kValueChunks; ++i)
    fetch_box<T, true>(place + (i * T::kValueRows + mine) * T::kValueBytes, from, step + T::kValueBytes * i, mine, head,
                       b, full);
}

// Until products of all blocks that a place's copies go to are done with it.
template <class T>
void wait_empty(u64* empty, const RingPlace& at) {
  if constexpr (T::kCluster > 1)
    barrier_wait_cluster(empty, at.parity ^ 1);
  else
    barrier_wait(empty, at.parity ^ 1);
}

template <class T>
int tiles_of(const FlashArgs& a, int row_tiles) {
  return a.b * a.hq / (T::kCluster > 1 ? a.heads_each : 1) * row_tiles;
}

template <class T>
void produce(const FlashArgs& a, FlashMemory<T>& m) {
  RingPlace q, k, v;
  int row_tiles = T::kRagged ? m.row_tiles : a.row_tiles, tiles = tiles_of<T>(a, row_tiles);
  for (TileWalk<T> walk; walk.index() < tiles; ++walk.round) {
    FlashWork w = work_of<T>(a, row_tiles, walk.index());
    i32 k_head = w.head / (a.hq / a.hk), v_head = w.head / (a.hq / a.hv);
    auto keys = [&](int n) {
      u64* full = m.k_ring.full + k.slot;
      wait_empty<T>(m.k_ring.empty + k.slot, k);
      barrier_expect(full, T::kKBytes);
      fetch_steps<T, T::kChunks, T::kKeys, true>(a.k_from, a.k, m.k[k.slot], w.key_of(n, T::kKeys), k_head, w.b, full);
      k.next<T::kStages>();
    };
    auto values = [&](int n) {
      u64* full = m.v_ring.full + v.slot;
      wait_empty<T>(m.v_ring.empty + v.slot, v);
      barrier_expect(full, T::kVBytes);
      if constexpr (T::kNarrow)
        fetch_turned<T>(a.v_from, m.v[v.slot], n * T::kKeys, v_head, w.b, full);
      else
        fetch_steps<T, T::kValueChunks, T::kKeys, true>(a.v_from, a.v, m.v[v.slot], w.key_of(n, T::kKeys), v_head, w.b,
                                                        full);
      v.next<T::kStages>();
    };
    if (T::kRagged && !w.any()) continue;
    u64* full = m.q_ring.full + q.slot;
    barrier_wait(m.q_ring.empty + q.slot, q.parity ^ 1);
    barrier_expect(full, T::kQBytes);
    fetch_steps<T, T::kChunks, T::kRows, false>(a.q_from, a.q, m.q[q.slot], w.row, w.head, w.b, full);
    q.next<T::kQStages>();
    if (!w.any()) continue;
    // In the order in which they are needed: products with keys are one step ahead.
    keys(w.end - 1);
    for (int n = w.end - 2; n >= w.first; --n) keys(n), values(n + 1);
    values(w.first);
  }
  // Blocks of a cluster end together: another one's products may still free places here.
  if constexpr (T::kCluster > 1)
    for (int i = 0; i < T::kStages; ++i) {
      wait_empty<T>(m.k_ring.empty + k.slot, k), k.next<T::kStages>();
      wait_empty<T>(m.v_ring.empty + v.slot, v), v.next<T::kStages>();
    }
}

}  // namespace tsr::dev::attention
