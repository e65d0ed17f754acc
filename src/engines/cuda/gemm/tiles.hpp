// SPDX-License-Identifier: Apache-2.0
// Which tiles a product is cut into and how many blocks share the inner dimension, by modelled time.
#pragma once

#include <optional>
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

// What the product is summed in: f32, f64, i32 or i64.
DType sum_type(const Graph& g, const Node& n, const Problem& p);

// What tensor cores multiply operands as, if they can without rounding them: f16 or bf16 both, 8-bit integers, or f32,
// of which they take 10 bits of the mantissa (all that f16 and bf16 have, or all that the graph wants).
struct TensorTypes {
  DType a, b;
};
std::optional<TensorTypes> tensor_types(const Graph& g, const Problem& p, DType sum);

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
// What the tiles of a product are computed with.
struct TileKind {
  DType sum;
  std::optional<TensorTypes> tensor;  // nothing: CUDA cores
  bool vectors = true;                // operands come in vectors: tensor cores are fast enough to wait for single ones
  bool computed = false;              // on their way through registers
  bool reduced = false;               // what follows reduces, in a kernel more
};
// Best first; empty where no tile keeps the number of blocks below the device's limit. `direct`: also without tiles.
std::vector<Choice> choices(const Problem& p, const TileKind& k, bool direct, const Region& r, const Device& d);

}  // namespace tsr::cuda
