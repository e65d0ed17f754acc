// SPDX-License-Identifier: Apache-2.0
// Which tiles a product is cut into and how many blocks share the inner dimension, by modelled time.
#pragma once

#include <span>

#include "engines/cuda/products/problem.hpp"

namespace tsr::cuda {

struct TileShape {
  int height, width;  // of a block
  int rows, columns;  // of a thread
  int depth;          // inner positions at a time
  int resident;       // blocks that share a multiprocessor
  double efficiency;  // part of the peak that large products reach

  int threads() const { return height * width / (rows * columns); }
};
// For sums of this type: f32, f64, i32 or i64.
std::span<const TileShape> tile_shapes(DType sum);

// What the product is summed in.
DType sum_type(const Graph& g, const Node& n, const Problem& p);

// What the work behind the product sees it as.
inline DType product_type(DType sum) { return sum == DType::i32 ? DType::i64 : sum; }

// Rows of tiles; items of experts and, behind them, tiles of rows that nothing reaches.
struct RowTiles {
  int64_t plain, items, all;
};
RowTiles row_tiles(const Problem& p, const TileShape& t);

struct Choice {
  const TileShape* tile;  // null: no tiles, every thread for itself (direct.cuh)
  int64_t splits;
  double seconds;
};
// Best first; empty where no tile keeps the number of blocks below the device's limit.
std::vector<Choice> choices(const Problem& p, DType sum, bool direct, const Region& r, const Device& d);

}  // namespace tsr::cuda
