// SPDX-License-Identifier: Apache-2.0
// A blocked, threaded matrix product over packed operands: the frame of matrix products and convolutions. What the
// operands are and what becomes of a finished tile are the callers' business.
//
// Both operands are packed into panels before the tiles are computed. A right operand that every batch reads once only
// (few rows: products with a vector, decoding) is packed by the tile that needs it instead, so that memory is read once
// and nothing is written back.
//
// A small result with long sums has too few tiles for many threads: its inner dimension is divided too, by sizes alone,
// so that sums are the same for any number of threads.
#pragma once

#include <cstddef>
#include <vector>

#include "engines/cpu/product/tile.hpp"

namespace tsr::cpu {

// One side of a product, packed as T: [slot][neighbour][inner], where neighbours are rows of the left and columns of
// the right side.
template <class T>
class Operand {
 public:
  virtual ~Operand() = default;
  virtual DType type() const = 0;                 // in memory
  virtual int64_t slots() const = 0;              // different matrices
  virtual int64_t slot(int64_t batch) const = 0;  // the one that a batch reads
  // Neighbours [first, first + n), inner positions [from, from + depth), to the start of the panels.
  virtual void pack(void* const* tensors, int64_t slot, int64_t first, int64_t n, int64_t from, int64_t depth,
                    const Panels<T>& to) const = 0;
};

// A part of the result.
template <class Sum>
struct ResultTile {
  int64_t batch, row, rows, column, columns;
  Sum* at;
  int64_t stride;    // from one row to the next
  bool add = false;  // to what is there
};

// What becomes of finished tiles.
template <class Sum>
class Result {
 public:
  virtual ~Result() = default;
  // Where the tile may be computed in place (at and stride filled in); false: in scratch memory.
  virtual bool place(void* const* tensors, ResultTile<Sum>& tile) const = 0;
  // Inner positions that count for a batch.
  virtual int64_t depth(void* const* tensors, int64_t batch, int64_t depth) const = 0;
  virtual void finish(void* const* tensors, const ResultTile<Sum>& tile, std::byte* scratch) const = 0;
};

struct ProductShape {
  int64_t batches = 1, rows = 0, columns = 0, depth = 0;
};

struct ProductOptions {
  enum Stream : uint8_t { automatic, left, right };
  size_t finish_scratch = 0;  // bytes that Result::finish needs for each worker
  bool whole_rows = false;    // tiles are as wide as the result
  Stream stream = automatic;  // a side that is too large to be packed beforehand: tiles pack it, and span the other
  int threads = 1;
  int64_t packed_bytes = 32 << 20;  // of one side that is packed at a time
};

// Operands are packed as T; sums are of a type that holds products of T.
template <class T>
class Product {
 public:
  using Sum = SumOf<T>;
  // The operands must outlive the product.
  Product(const ProductShape& largest, const Operand<T>& left, const Operand<T>& right, const ProductOptions& options);
  size_t workspace_bytes() const;
  void run(const ProductShape& shape, void* const* tensors, std::byte* workspace, const Result<Sum>& result) const;

 private:
  // A piece of the problem whose packed operands fit the workspace.
  struct Slab {
    int64_t batch, batches, row, rows, column, columns;
  };
  // Packed matrices of one side.
  struct Packed {
    bool resident = false;  // all slots are packed once; otherwise those of the slab, batch by batch
    int64_t width = 1, neighbours = 0, slots = 0, bytes = 0;
  };
  struct Run;

  // Elements that a neighbour takes, and the panels of a side from `at` on.
  int64_t packed_depth(const Operand<T>& side, int64_t depth) const;
  Panels<T> panels(const Operand<T>& side, T* at, int64_t depth) const;
  Packed plan_side(const Operand<T>& side, int64_t width, int64_t neighbours, int64_t grain) const;
  void choose_tiles(const ProductOptions& o);
  void pack_side(const Run& r, const Operand<T>& side, const Packed& p, T* to, int64_t slot_count, int64_t first_batch,
                 int64_t first, int64_t n) const;
  // With zeros behind the last inner position, up to the end of its word.
  void pack_words(const Run& r, const Operand<T>& side, int64_t slot, int64_t first, int64_t n, int64_t from,
                  int64_t depth, const Panels<T>& to) const;
  void run_slab(const Run& r, const Slab& s) const;
  ResultTile<Sum> tile_at(const Slab& s, int64_t index) const;
  void run_tile(const Run& r, const Slab& s, int64_t index, int worker) const;
  // A part of a tile's sums, and all of them together for a strip of its rows.
  void run_part(const Run& r, const Slab& s, int64_t index, int64_t part, int worker) const;
  void join_parts(const Run& r, const Slab& s, int64_t index, int64_t strip, int worker) const;
  Sum* partial(const Run& r, int64_t index, int64_t part) const;
  // Sums over inner positions [from, end).
  void multiply(const Run& r, const Slab& s, const ResultTile<Sum>& c, int64_t from, int64_t end, int worker) const;
  // A side of a tile, from inner position k.
  Panels<T> left_panels(const Run& r, const Slab& s, const ResultTile<Sum>& c, int64_t k, int64_t depth,
                        T* streamed) const;
  Panels<T> right_panels(const Run& r, const Slab& s, const ResultTile<Sum>& c, int64_t k, int64_t depth,
                         T* streamed) const;

  ProductShape largest_;
  const Operand<T>&left_, &right_;
  const PanelTile<T>& tile_;
  int64_t step_;  // of the inner dimension
  size_t finish_scratch_;
  int threads_;
  int64_t tile_rows_, tile_columns_;
  bool streams_left_ = false, streams_right_ = false;  // packed by the tiles
  Packed packed_left_, packed_right_;
  int64_t packed_bytes_, batch_step_ = 1;
  int64_t parts_ = 1;  // of the inner dimension
  size_t worker_bytes_ = 0;
};

}  // namespace tsr::cpu
