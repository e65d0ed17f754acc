// SPDX-License-Identifier: Apache-2.0
// Where a block works: its tile, its batch, and the axes as its batch sees them.
#pragma once

#include "device/block.cuh"
#include "engines/cuda/gemm/args.cuh"

namespace tsr::dev {

inline i64 read(const Integers& list, i64 i) {
  if (!list.data) return list.value;
  return list.wide ? static_cast<const i64*>(list.data)[i * list.stride]
                   : static_cast<const i32*>(list.data)[i * list.stride];
}

inline i64 clamp(i64 v, i64 low, i64 high) { return v < low ? low : v > high ? high : v; }

// Calls f(axis number, index along it) for each axis of a list.
template <class Index, class List, class F>
void each_axis(const List& list, Index index, const F& f) {
#pragma unroll 1
  for (int i = 0; i < list.count; ++i) {
    Index here = index;
    if (i + 1 < list.count) {
      Index rest = divide(index, list.axis[i].size);
      here = index - rest * Index(list.axis[i].size.value);
      index = rest;
    }
    f(i, i64(here));
  }
}
template <class List, class F>
void locate(const List& list, i64 index, const F& f) {
  if (index < 0x7fffffff)
    each_axis(list, i32(index), f);
  else
    each_axis(list, index, f);
}

// Gives the axis of a spatial dimension another size, and the list another extent.
inline void resize(Axes<kSideAxes>& list, int dim, i32 size, i64& extent) {
#pragma unroll 1
  for (int i = 0; i < list.count; ++i) {
    if (list.axis[i].dim != dim) continue;
    extent = extent / list.axis[i].size.value * size;
    list.axis[i].size = make_divisor(size > 1 ? size : 1);
  }
}

// Adapts the axes to a residue of the positions; see Residue.
inline void take_residue(const GemmArgs& g, u32 number, int operands, Frame& f) {
#pragma unroll 1
  for (int d = 0; d < kSpatial; ++d) {
    const Residue& c = g.residue[d];
    i32 r = i32(number % u32(c.stride)), q = 0;
    number /= u32(c.stride);
#pragma unroll 1
    while (q < c.taps && q < c.tap_step && (r - c.origin - q * c.step) % c.stride != 0) ++q;
    bool met = q < c.taps && q < c.tap_step;
    f.origin[d] = met ? (r - c.origin - q * c.step) / c.stride : 0;
    (g.meets_a ? f.b : f.a) += q * c.tap_stride;  // the filter begins at its first tap
#pragma unroll 1
    for (int k = 0; k < operands; ++k) f.at[k] += r * g.epilogue.operands[k].position[d];
    i32 positions = (c.size - r + c.stride - 1) / c.stride, taps = (c.taps - q + c.tap_step - 1) / c.tap_step;
    resize(f.space.inner, d, met ? taps : 0, f.depth);
    resize(g.meets_a ? f.space.rows : f.space.columns, d, r < c.size ? positions : 0, g.meets_a ? f.rows : f.columns);
  }
}

// Tiles that run side by side share rows and columns: bands of kBand tile rows, column by column.
inline void place_tile(const GemmArgs& g, u32 tile, int height, int width, Frame& f) {
  constexpr u32 kBand = 8;
  u32 size = kBand * u32(g.column_tiles), band = tile / size, in_band = tile % size;
  u32 left = u32(g.row_tiles) - band * kBand, rows = left < kBand ? left : kBand;
  f.first_row = i64(band * kBand + in_band % rows) * height;
  f.first_column = i64(in_band / rows) * width;
}

// Rows of an item. Behind the items come tiles of those rows of a scattered result that nothing reaches.
inline void take_item(const GemmArgs& g, i64 item, int height, Frame& f) {
  const MoeArgs& m = g.moe;
  if (item < m.item_count) {
    f.first_row = m.items[item].first;
    f.rows = item + 1 < m.item_count ? m.items[item + 1].first : m.rows;
    f.range = m.items[item].range;
  } else {
    f.first_row = (item - m.item_count) * height;
    f.range = kNoRange;
  }
  if (f.range >= 0)
    f.b += i64(u32(f.range) % u32(m.experts)) * m.expert_step;
  else
    f.row_limit = f.depth = 0;
}

// By one thread, once the axes are in `f.space`. `number` counts splits, tiles and batches: 32 bits hold all blocks.
inline void enter(const GemmArgs& g, u32 number, int height, int width, int operands, bool listed, Frame& f) {
  f.split = number % u32(g.splits);
  number /= u32(g.splits);
  u32 tiles = u32(g.row_tiles * g.column_tiles), batch = number / tiles;
  place_tile(g, number % tiles, height, width, f);
  u32 residue = batch / u32(g.batches);
  f.batch = batch -= residue * u32(g.batches), f.residue = residue;
  f.a = f.b = 0;
#pragma unroll 1
  for (int k = 0; k < operands; ++k) f.at[k] = 0;
  each_axis(g.batch, i32(batch), [&](int i, i64 here) {
    f.a += here * g.batch.axis[i].a, f.b += here * g.batch.axis[i].b;
#pragma unroll 1
    for (int k = 0; k < operands; ++k) f.at[k] += here * g.epilogue.operands[k].batch[i];
  });
  f.rows = g.row_count, f.columns = g.column_count, f.depth = g.depth;
  for (int d = 0; d < kSpatial; ++d) f.origin[d] = g.origin[d];
  if (g.residues > 1) take_residue(g, residue, operands, f);
  for (int d = 0; d < kSpatial; ++d) (g.meets_a ? f.a : f.b) += f.origin[d] * g.position_stride[d];
  u32 index = batch / u32(g.limit_batches);
  f.row_limit = clamp(read(g.row_limit, index), 0, f.rows);
  f.column_limit = clamp(read(g.column_limit, index), 0, f.columns);
  f.depth = clamp(read(g.depth_limit, index), 0, f.depth);
  if (listed) take_item(g, i32(f.first_row / height), height, f);
}

}  // namespace tsr::dev
