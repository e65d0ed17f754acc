// SPDX-License-Identifier: Apache-2.0
// Tiles whose rows are the queries of all heads that share keys, query by query; and how queries, keys and values come
// into shared memory, 16 bytes at a time.
#pragma once

#include "device/ptx/pieces.cuh"
#include "engines/cuda/scores/fragments.cuh"
#include "engines/cuda/scores/grouped_args.cuh"
#include "engines/cuda/scores/rows.cuh"

namespace tsr::dev::attention {

// Rows of a tile.
struct GroupedRows {
  i32 b, head;  // the first of the group
  i32 row;      // the first of the tile
  i32 len_q, len_kv;
};

// Lengths of a batch. Those of packed sequences end with their room.
inline i32 packed_room(const Sequences& x, i32 b) { return x.offsets ? place(x, b).steps : 0x7fffffff; }
inline i32 grouped_queries(const ScoreArgs& a, i32 b) {
  i32 room = packed_room(a.q, b);
  return min(room, length_of(a.lengths_q, a.padded_q, a.prefix_q, b, a.open_q ? room : a.sq));
}
inline i32 grouped_keys(const ScoreArgs& a, i32 b) {
  i32 room = min(packed_room(a.k, b), packed_room(a.v, b));
  return min(room, length_of(a.lengths_kv, a.padded_kv, a.prefix_kv, b, a.open_kv ? room : a.skv));
}

// Row `index` of a group.
template <class O>
Row<float> grouped_row(const GroupedArgs& a, const GroupedRows& w, i32 index) {
  Row<float> r = {w.head + index % a.group, index / a.group, -1, -1, 0.0f, 0.0f, 0.0f};
  if (r.query >= w.len_q) return r;
  Band keys = band_of(a, r.query, w.len_q, w.len_kv);
  r.first = keys.first, r.last = keys.last;
  if (O::kAlibi) r.slope = slope_of<float>(a, r.head);
  return r;
}

// Rows of a sequence of queries, `pitch` bytes apart; 0 where there are none, and behind `width` elements.
template <int ROWS, int WIDTH, int THREADS>
void load_queries(const GroupedArgs& a, const Sequences& x, i32 width, const GroupedRows& w, char* to, int pitch) {
  constexpr int kPieces = WIDTH / 8;
  Place at = place(x, w.b);
#pragma unroll 4
  for (int i = threadIdx.x; i < ROWS * kPieces; i += THREADS) {
    i32 row = w.row + i / kPieces, column = i % kPieces * 8, query = row / a.group;
    Vec<u32, 4> words = {};
    if (query < w.len_q && query < at.steps && column < width)
      load_vector(reinterpret_cast<const u32*>(static_cast<const u16*>(x.data) + column +
                                               row_offset(x, at, w.head + row % a.group, query)),
                  words);
    store_vector(reinterpret_cast<u32*>(to + i / kPieces * pitch + column * 2), words);
  }
}

// Where keys or values of a tile lie: steps before `hi`.
template <Pages PAGES>
class KeySource {
 public:
  KeySource(const Operand& x, i32 head, i32 b, i32 hi) : x_(x), hi_(hi) {
    paged_ = PAGES != Pages::none && x.pages.data;
    data_ = static_cast<const char*>(x.data) + 2 * (head * x.strides[1] + (paged_ ? 0 : place(x, b).start));
    if (!paged_) return;
    Place table = place(x.pages, b);
    table_ = table.start, pages_ = table.steps;
  }

  // The page that holds a step, -1 where there is none: of the first of 16 steps, or, where those may lie on different
  // ones, of step lane % 16. It is looked up a step ahead of its use: that takes as long as what it leads to.
  i32 look_up(i32 key) const {
    if (PAGES == Pages::any) key += threadIdx.x % kWarpRows;
    if (!paged_ || key >= hi_) return -1;
    i32 page = divide(key, x_.page);
    if (page >= pages_) return -1;
    i64 block = load_integer(x_.pages.data, x_.pages.type, table_ + page * x_.pages.strides[2]);
    return block < 0 || block >= x_.blocks ? -1 : i32(block);
  }

  // Asks for 16 steps from `key` on, whose page was looked up. What is not there becomes 0, and so does what follows
  // `width` elements.
  template <int WIDTH>
  void fetch(char* place, int pitch, i32 key, i32 block, i32 width) const {
    constexpr bool kAny = PAGES == Pages::any;
    constexpr int kPieces = WIDTH / 8, kTogether = 32 % kPieces == 0 ? 32 / kPieces : 0;  // rows that lanes ask for
    int lane = threadIdx.x % 32;
    if (!kTogether) lane = again(lane);  // or addresses of all pieces would be held
    i64 step = 2 * x_.strides[2];
    const char* found = row(key + (kAny ? lane % kWarpRows : 0), block);
    i32 count = kAny || found ? hi_ - key : 0;
    const char* next = found + (lane / kPieces) * step + lane % kPieces * 16;
#pragma unroll
    for (int i = 0; i < kWarpRows * kPieces / 32; ++i) {
      int index = i * 32 + lane, row = kTogether ? i * kTogether + lane / kPieces : index / kPieces;
      int piece = kTogether ? lane % kPieces : index % kPieces;
      const char* first = kAny ? lane_pointer(found, row) : found;
      const char* from = kTogether && !kAny ? next : first + (kAny ? 0 : row * step) + piece * 16;
      bool there = row < count && piece * 8 < width && (!kAny || first);
      piece_load<16>(place + row * pitch + piece * 16, from, there ? 16 : 0);  // or nothing, wherever that is
      next += kTogether * step;
    }
  }

 private:
  const char* row(i32 key, i32 block) const {
    if (!paged_) return data_ + 2 * (key * x_.strides[2]);
    if (block < 0) return nullptr;
    i32 rest = key - divide(key, x_.page) * i32(x_.page.value);
    return data_ + 2 * (block * x_.strides[0] + rest * x_.strides[2]);
  }
  static const char* lane_pointer(const char* p, int lane) {
    return reinterpret_cast<const char*>(__shfl_sync(0xffffffffu, reinterpret_cast<u64>(p), lane));
  }

  const Operand& x_;
  bool paged_;
  i32 hi_, pages_ = 0;
  const char* data_;
  i64 table_ = 0;
};

}  // namespace tsr::dev::attention
