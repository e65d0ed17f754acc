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

template <class List>
i64 extent(const List& list) {
  i64 n = 1;
#pragma unroll 1
  for (int i = 0; i < list.count; ++i) n *= list.axis[i].size.value;
  return n;
}

// Adapts the axes to a residue of the positions; see Residue.
inline void take_residue(const GemmArgs& g, i64 number, int operands, Frame& f) {
#pragma unroll 1
  for (int d = 0; d < kSpatial; ++d) {
    const Residue& c = g.residue[d];
    i32 r = i32(number % c.stride), q = 0;
    number /= c.stride;
#pragma unroll 1
    while (q < c.taps && q < c.tap_step && (r - c.origin - q * c.step) % c.stride != 0) ++q;
    bool met = q < c.taps && q < c.tap_step;
    f.origin[d] = met ? (r - c.origin - q * c.step) / c.stride : 0;
#pragma unroll 1
    for (int i = 0; i < f.space.inner.count; ++i) {
      Axis& x = f.space.inner.axis[i];
      if (x.dim != d) continue;
      (g.meets_a ? f.b : f.a) += q * ((g.meets_a ? x.b : x.a) / c.tap_step);  // the filter begins at its first tap
      x.size = make_divisor(met ? (c.taps - q + c.tap_step - 1) / c.tap_step : 1);
      if (!met) f.depth = 0;
    }
    auto shift = [&](Axes<kSideAxes>& list, auto stride) {
#pragma unroll 1
      for (int i = 0; i < list.count; ++i) {
        Axis& x = list.axis[i];
        if (x.dim != d) continue;
        i32 left = c.size - r;
        x.size = make_divisor(left > c.stride ? (left + c.stride - 1) / c.stride : 1);
        if (left <= 0) f.rows = 0;
        for (int k = 0; k < operands; ++k) f.at[k] += r * (stride(g.rest.operands[k])[i] / c.stride);
      }
    };
    shift(f.space.rows, [](const RestOperand& o) { return o.rows; });
    shift(f.space.columns, [](const RestOperand& o) { return o.columns; });
  }
  if (f.depth) f.depth = extent(f.space.inner);
  if (f.rows) f.rows = extent(f.space.rows);
  f.columns = extent(f.space.columns);
}

// Tiles that run side by side share rows and columns: bands of kBand tile rows, column by column.
inline void place_tile(const GemmArgs& g, i64 tile, int height, int width, Frame& f) {
  constexpr int kBand = 8;
  i64 band = tile / (kBand * g.column_tiles), in_band = tile % (kBand * g.column_tiles);
  i64 left = g.row_tiles - band * kBand, rows = left < kBand ? left : i64(kBand);
  f.first_row = (band * kBand + in_band % rows) * height;
  f.first_column = in_band / rows * width;
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
    f.b += f.range % m.experts * m.expert_step;
  else
    f.row_limit = f.depth = 0;
}

// By one thread, once the axes are in `f.space`. `number` counts splits, tiles and batches.
inline void enter(const GemmArgs& g, i64 number, int height, int width, int operands, bool listed, Frame& f) {
  f.split = number % g.splits;
  number /= g.splits;
  i64 tiles = g.row_tiles * g.column_tiles, batch = number / tiles;
  place_tile(g, number % tiles, height, width, f);
  i64 residue = batch / g.batches;
  f.batch = batch -= residue * g.batches;
  f.a = f.b = 0;
  for (int k = 0; k < operands; ++k) f.at[k] = 0;
  locate(g.batch, batch, [&](int i, i64 here) {
    f.a += here * g.batch.axis[i].a, f.b += here * g.batch.axis[i].b;
    for (int k = 0; k < operands; ++k) f.at[k] += here * g.rest.operands[k].batch[i];
  });
  f.rows = g.row_count, f.columns = g.column_count, f.depth = g.depth;
  for (int d = 0; d < kSpatial; ++d) f.origin[d] = g.origin[d];
  if (g.residues > 1) take_residue(g, residue, operands, f);
  for (int d = 0; d < kSpatial; ++d) (g.meets_a ? f.a : f.b) += f.origin[d] * g.position_stride[d];
  i64 index = batch / g.limit_batches;
  f.row_limit = clamp(read(g.row_limit, index), 0, f.rows);
  f.column_limit = clamp(read(g.column_limit, index), 0, f.columns);
  f.depth = clamp(read(g.depth_limit, index), 0, f.depth);
  if (listed) take_item(g, f.first_row / height, height, f);
}

}  // namespace tsr::dev
