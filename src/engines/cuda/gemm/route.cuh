// SPDX-License-Identifier: Apache-2.0
// Before products of experts: which rows a tile may take together, and which row stays where several go.
#pragma once

#include "engines/cuda/gemm/space.cuh"

namespace tsr::dev {

// The last range that holds a row.
inline i64 range_of(const MoeArgs& m, i64 row) {
  for (i64 i = m.ranges - 1; i >= 0; --i)
    if (read(m.offsets, i) <= row && (i + 1 == m.ranges || row < read(m.offsets, i + 1))) return i;
  return -1;
}

// Items begin where tiles do and where ranges do; each thread places one. Ranges never begin inside an item, so its
// rows belong to the same one.
inline void place_item(const RouteArgs& r, i64 number) {
  const MoeArgs& m = r.moe;
  bool is_tile = number < r.tiles;
  i64 range = number - r.tiles, rank = is_tile ? number : 0;
  i64 first = is_tile ? number * r.height : clamp(read(m.offsets, range), 0, m.rows);
  if (!is_tile) {  // tiles come before ranges that begin at the same row
    rank = first / r.height + 1;
    if (rank > r.tiles) rank = r.tiles;
  }
  for (i64 i = 0; i < m.ranges; ++i) {
    i64 other = clamp(read(m.offsets, i), 0, m.rows);
    if (other < first || (!is_tile && other == first && i < range)) ++rank;
  }
  m.items[rank] = {first, range_of(m, first)};
}

inline void clear_writers(const RouteArgs& r) {
  i64 row = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < r.moe.rows) r.moe.writer[row] = 0;
}

inline void route(const RouteArgs& r) {
  const MoeArgs& m = r.moe;
  i64 thread = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread < r.tiles + m.ranges) place_item(r, thread);
  if (m.mode != kScatter || thread >= m.rows) return;
  i64 k = read(m.ks, thread), place = read(m.index, thread), range = range_of(m, thread);
  if (range < 0 || place < 0 || place >= m.rows || k < 0 || k >= m.top_k || place * m.top_k + k >= m.rows) return;
  atomicMax(&m.writer[place * m.top_k + k], u64(range * m.rows + thread + 1));
}

}  // namespace tsr::dev
