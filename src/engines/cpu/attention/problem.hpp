// SPDX-License-Identifier: Apache-2.0
// What forward and backward share on the processor: rows of tensors as f32, tiles of queries, lengths of sequences.
#pragma once

#include <algorithm>
#include <optional>

#include "engines/attention/problem.hpp"
#include "engines/cpu/attention/vectors.hpp"

namespace tsr::cpu::attention {

using namespace tsr::attention;

// Rows of f32, in the caller's memory or converted into scratch memory.
struct Rows {
  const float* data;
  int64_t ld;
};
// Rows [first, first + count) of a head; those past the end of a ragged sequence are 0. `padded` asks for rows that are
// readable up to a multiple of the matrix tile's columns. Scratch: `count` rows of `ld`.
Rows read_rows(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t first, int64_t count, bool padded,
               float* scratch, int64_t ld);
// The same rows, to be fetched before they are read.
Soon soon(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t first, int64_t count);
// Rows that are not all finite become 0, because 0 times them is not: what a mask hides must not count. Lists them in
// `which` and returns how many there are; `x` moves to the scratch memory when there are any.
int64_t take_out(Rows& x, int64_t count, int64_t columns, float* scratch, int64_t ld, int64_t* which);
// Puts one such row back into products: y[i] += c[i] * row, wherever the probability p[i] is not 0.
void put_back(int64_t n, const float* p, const float* c, int64_t stride, const float* row, int64_t columns, float* y,
              int64_t ld);
void read_row(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t step, float* to);
void write_row(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t step, const float* from);
// Elements [first, first + count) of a row.
void write_part(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t step, int64_t first, int64_t count,
                const float* from);

constexpr int64_t kRows = 96;     // queries of a tile: a multiple of the matrix tile's rows and columns
constexpr int64_t kKeys = 192;    // keys of a tile, unless blocks of 128 may be masked
constexpr int64_t kFewKeys = 64;  // keys of a tile of few queries: converted, they stay in the first-level cache
constexpr int64_t kFew = 8;       // up to so many queries, scores are dot products instead of matrix tiles

// The queries of a tile. Heads that share keys and values share tiles: a row is a query of one of these heads.
struct Lanes {
  int64_t b, k_head, v_head, count, width;
  int64_t head[kRows], query[kRows];
  int64_t first[kRows], last[kRows];  // keys that the row attends to, before masks that depend on data
  int64_t lo, hi;                     // the union of these
  int64_t inner_lo, inner_hi;         // and their intersection
  float slope[kRows];
  bool few() const { return count <= kFew; }
};

struct Problem : tsr::attention::Problem {
  Problem(const Graph& g, const Node& n);

  // Threads that a step with so many operations for each score should use: waking one costs as much as some work.
  int workers(int threads, int64_t operations) const;
  int64_t key_tile = kKeys;  // keys of a tile
  int64_t length_q(Tensors t, int64_t b) const {
    return length(t, seq_len_q, cu_seq_len_q, b, open.q ? std::max(n.sq, q.room(t, b)) : n.sq);
  }
  int64_t length_kv(Tensors t, int64_t b) const {
    return length(t, seq_len_kv, cu_seq_len_kv, b, open.kv ? std::max(n.skv, k.room(t, b)) : n.skv);
  }
  // Steps of the longest sequence, at least what the sizes say.
  int64_t longest_q(Tensors t) const;
  int64_t longest_kv(Tensors t) const;
  // What products of stored q and k are multiplied by.
  float score_scale(Tensors t) const;
  float sink_of(Tensors t, int64_t h) const;
  // Rows [first, ...) of the queries of batch b that `heads` neighbours from `head` on have: at most kRows.
  void fill(Lanes& y, Tensors t, int64_t b, int64_t head, int64_t heads, int64_t first) const;
  // Queries of these lanes times `factor`: [d][width] for matrix tiles, [count][d] where there are few. `rows` holds
  // kRows rows of d.
  void pack(const Sequences& x, const Lanes& lanes, Tensors t, float factor, float* rows, float* to) const;
  // Both are bf16 that the processor multiplies as it lies in memory: rows of y with packed pairs of x.
  bool narrow(const Sequences& x, const Sequences& y) const;
  void pack_pairs(const Sequences& x, const Lanes& lanes, Tensors t, uint32_t* to) const;
  // Tile of products of rows [first, first + keys) of one head of y with pairs.
  void multiply_pairs(const Sequences& y, const Lanes& lanes, Tensors t, int64_t head, int64_t first, int64_t keys,
                      const uint32_t* pairs, float scale, float* s) const;

 private:
  static int64_t length(Tensors t, const Numbers& lengths, const Numbers& prefix, int64_t b, int64_t full);
};

int64_t round_up(int64_t n, int64_t to);

// Keeps the largest magnitude so far, or NaN once there is one.
inline void note(float& amax, int64_t n, const float* x) {
  float largest = vectors().max_abs(n, x);
  if (!(largest <= amax)) amax = largest;
}

// Memory cut into aligned pieces, in the order in which they are asked for. Without memory it only counts: the same
// function sizes a workspace when a step is built and hands it out when it runs.
class Pieces {
 public:
  explicit Pieces(std::byte* memory) : base_(reinterpret_cast<uintptr_t>(memory)) {}
  template <class T = float>
  T* take(int64_t n) {
    auto* y = reinterpret_cast<T*>(base_ + used_);
    used_ += static_cast<size_t>(round_up(n * static_cast<int64_t>(sizeof(T)), 64));
    return y;
  }
  size_t used() const { return used_; }

 private:
  uintptr_t base_;
  size_t used_ = 0;
};

}  // namespace tsr::cpu::attention
