// SPDX-License-Identifier: Apache-2.0
// A tile of attention with few queries: its shape and shared memory, what a block does, and how keys and values come.
#pragma once

#include "device/ptx/barrier.cuh"
#include "device/ptx/pieces.cuh"
#include "engines/cuda/decode/args.cuh"
#include "engines/cuda/scores/softmax.cuh"

namespace tsr::dev::attention {

// T: type of q, k and v; TO: of o. DEPTH and COLUMNS: elements of a row of q and k, and of v, as multiplied. TEAM:
// warps that have different rows and share keys. STAGES: steps of a team that are in shared memory. FOLDED: the factor
// of scores is part of the exponents. PAGES: whether a table says where keys or values lie. CLUSTER: blocks that share
// keys and meet, or 1.
template <class T, class TO, int DEPTH, int COLUMNS, int TEAM, int STAGES, bool FOLDED, DecodePages PAGES, int CLUSTER>
struct DecodeTile {
  using In = T;
  using Out = TO;
  static constexpr int kDepth = DEPTH, kColumns = COLUMNS, kTeam = TEAM, kStages = STAGES, kCluster = CLUSTER;
  static constexpr bool kFolded = FOLDED;
  static constexpr DecodePages kPages = PAGES;
  static constexpr int kTeams = kDecodeWarps / TEAM;
  static constexpr int kRows = kDecodeEach * TEAM, kKeys = kDecodeEach * TEAM;  // of a tile, and of a team's step
  static constexpr int kSpan = kKeys * kTeams;                                  // keys of one step of all teams
  // Rows are an odd number of 16 bytes apart: the eight of a matrix lie in different banks.
  static constexpr int kKeyPitch = DEPTH * 2 + 16, kValuePitch = COLUMNS * 2 + 16;
  static constexpr int kStageBytes = kKeys * (kKeyPitch + kValuePitch);
  static constexpr int kSumPitch = COLUMNS + 4;
};

template <class T>
struct alignas(16) DecodeMemory {
  ScoreFactors<float> factors;
  float exponent;  // what makes a score an exponent of 2
  Softmax<float> soft[T::kTeams][T::kRows];
  alignas(16) char queries[T::kRows][T::kKeyPitch];
  // Keys and values; in the end what each team has summed up.
  union alignas(16) {
    char ring[T::kTeams][T::kStages][T::kStageBytes];
    float sums[T::kTeams][T::kRows][T::kSumPitch];
  };
};
template <class T>
constexpr int kDecodeBytes = kDecodeFixed + T::kRows* T::kKeyPitch + T::kStages* T::kTeams* T::kStageBytes;

// What a block does with one tile: rows of a group of heads, queries one after the other, and keys [lo, hi), which are
// one of `splits` parts.
struct DecodeWork {
  i32 b, head;   // the first of the group
  i32 row, end;  // the first of the tile, and behind the last that it may have
  i32 len_q, len_kv;
  i32 lo, hi;
  i32 split, splits;
};

// Lengths of a batch. Those of packed sequences end with their room.
inline i32 packed_room(const Sequences& x, i32 b) { return x.offsets ? place(x, b).steps : 0x7fffffff; }
inline i32 decode_queries(const DecodeArgs& a, i32 b) {
  i32 room = packed_room(a.q, b);
  return min(room, length_of(a.lengths_q, a.padded_q, a.prefix_q, b, a.open_q ? room : a.sq));
}
inline i32 decode_keys(const DecodeArgs& a, i32 b) {
  i32 room = min(packed_room(a.k, b), packed_room(a.v, b));
  return min(room, length_of(a.lengths_kv, a.padded_kv, a.prefix_kv, b, a.open_kv ? room : a.skv));
}

// The keys of a tile. Neighbouring queries attend to neighbouring keys: the first and the last say where all lie.
// Splits end where steps do, and steps begin at multiples of 16: none lies on two pages where those are multiples too.
template <class T>
void find_keys(const DecodeArgs& a, DecodeWork& w) {
  w.lo = w.hi = 0;
  i32 query = w.row / a.group;
  if (query >= w.len_q) return;
  Band top = band_of(a, query, w.len_q, w.len_kv);
  Band bottom = band_of(a, min((min(w.row + T::kRows, w.end) - 1) / a.group, w.len_q - 1), w.len_q, w.len_kv);
  if (top.first >= bottom.last) return;
  i32 first = top.first / kDecodeEach * kDecodeEach;
  i32 spans = (bottom.last - first + T::kSpan - 1) / T::kSpan, each = (spans + w.splits - 1) / w.splits;
  i64 lo = first + i64(w.split) * each * T::kSpan, hi = lo + i64(each) * T::kSpan;
  w.lo = i32(lo < bottom.last ? lo : bottom.last), w.hi = i32(hi < bottom.last ? hi : bottom.last);
}

// Row `index` of a group.
template <class O>
Row<float> decode_row(const DecodeArgs& a, const DecodeWork& w, i32 index) {
  Row<float> r = {w.head + index % a.group, index / a.group, -1, -1, 0.0f, 0.0f, 0.0f};
  if (r.query >= w.len_q) return r;
  Band keys = band_of(a, r.query, w.len_q, w.len_kv);
  r.first = keys.first, r.last = keys.last;
  if (O::kAlibi) r.slope = slope_of<float>(a, r.head);
  return r;
}

// Where keys or values of a block lie.
template <class T>
class DecodeSource {
 public:
  DecodeSource(const Operand& x, const Divisor& page, i32 head, const DecodeWork& w) : x_(x), page_(page), hi_(w.hi) {
    paged_ = T::kPages != DecodePages::none && x.pages.data;
    data_ = static_cast<const char*>(x.data) + 2 * (head * x.strides[1] + (paged_ ? 0 : place(x, w.b).start));
    if (!paged_) return;
    Place table = place(x.pages, w.b);
    table_ = table.start, pages_ = table.steps;
  }

  // The page that holds a step, -1 where there is none. It is looked up a step ahead of its use: that takes as long as
  // what it leads to.
  i32 look_up(i32 key) const {
    if (!paged_ || key >= hi_) return -1;
    i32 page = divide(key, page_);
    if (page >= pages_) return -1;
    i64 block = load_integer(x_.pages.data, x_.pages.type, table_ + page * x_.pages.strides[2]);
    return block < 0 || block >= x_.blocks ? -1 : i32(block);
  }

  // Asks for 16 steps from `key` on, of which some row's page is known: of the first, or, where they may lie on
  // different ones, of row lane % 16. What is not there becomes 0, and so does what follows `width` elements.
  template <int WIDTH>
  void fetch(char* place, int pitch, i32 key, i32 block, i32 width) const {
    constexpr bool kAny = T::kPages == DecodePages::any;
    constexpr int kPieces = WIDTH / 8, kTogether = 32 % kPieces == 0 ? 32 / kPieces : 0;  // rows that lanes ask for
    int lane = threadIdx.x % 32;
    i64 step = 2 * x_.strides[2];
    const char* found = row(key + (kAny ? lane % kDecodeEach : 0), block);
    i32 count = kAny || found ? hi_ - key : 0;
    const char* next = found + (lane / kPieces) * step + lane % kPieces * 16;
#pragma unroll
    for (int i = 0; i < kDecodeEach * kPieces / 32; ++i) {
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
    i32 rest = key - divide(key, page_) * i32(page_.value);
    return data_ + 2 * (block * x_.strides[0] + rest * x_.strides[2]);
  }
  static const char* lane_pointer(const char* p, int lane) {
    return reinterpret_cast<const char*>(__shfl_sync(0xffffffffu, reinterpret_cast<u64>(p), lane));
  }

  const Operand& x_;
  const Divisor& page_;
  bool paged_;
  i32 hi_, pages_ = 0;
  const char* data_;
  i64 table_ = 0;
};

// All warps of a team have come here.
template <class T>
void team_sync() {
  if constexpr (T::kTeam == 1)
    __syncwarp();
  else
    named_sync(1 + threadIdx.x / (32 * T::kTeam), 32 * T::kTeam);
}

}  // namespace tsr::dev::attention
