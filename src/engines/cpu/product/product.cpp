// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/product/product.hpp"

#include <algorithm>

#include "base/dims.hpp"
#include "base/thread_pool.hpp"

namespace tsr::cpu {
namespace {

constexpr double kFewFlops = 1e6;            // not worth waking another thread
constexpr double kStoreFlops = 16;           // that storing an element takes as long as
constexpr int64_t kLargestTile = 48 * 1024;  // elements: a tile stays in the second cache

int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
// Inner positions as they are packed: whole words.
template <class T>
int64_t padded(int64_t depth) {
  return round_up(depth, kGroup<T>);
}
size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Pieces of work that keep many threads busy, and the shortest sums, in steps of a tile, that are worth a piece.
constexpr int64_t kManyPieces = 64, kLeastSteps = 4;

}  // namespace

template <class T>
struct Product<T>::Run {
  const ProductShape& shape;
  void* const* tensors;
  const Result<SumOf<T>>& result;
  T *left, *right;
  std::byte *workers, *partials;
};

template <class T>
Product<T>::Product(const ProductShape& largest, const Operand<T>& left, const Operand<T>& right,
                    const ProductOptions& o)
    : largest_(largest),
      left_(left),
      right_(right),
      tile_(panel_tile<T>(left.type(), right.type())),
      step_(tile_.depth * kGroup<T>),
      finish_scratch_(aligned(o.finish_scratch)),
      threads_(o.threads),
      packed_bytes_(o.packed_bytes) {
  const auto& tile = tile_;
  const ProductShape& s = largest;
  double flops = static_cast<double>(s.batches) * static_cast<double>(s.rows) * static_cast<double>(s.columns) *
                 (2.0 * static_cast<double>(s.depth) + kStoreFlops);
  if (flops < kFewFlops) threads_ = 1;
  choose_tiles(o);
  streams_left_ = o.stream == ProductOptions::left;
  streams_right_ = o.stream == ProductOptions::right ||
                   (o.stream == ProductOptions::automatic && s.rows <= tile_rows_ && right.slots() >= s.batches);
  if (!streams_left_) packed_left_ = plan_side(left, tile.rows, s.rows, tile_rows_);
  if (!streams_right_) packed_right_ = plan_side(right, tile.columns, s.columns, tile_columns_);
  // Several batches at once, where all of a batch fits.
  batch_step_ = s.batches;
  auto limit = [&](const Packed& p, int64_t neighbours) {
    if (p.resident) return;
    int64_t fit = p.neighbours < neighbours ? 1 : std::max<int64_t>(1, packed_bytes_ / std::max<int64_t>(1, p.bytes));
    batch_step_ = std::min(batch_step_, fit);
  };
  if (!streams_left_) limit(packed_left_, s.rows);
  if (!streams_right_) limit(packed_right_, s.columns);
  for (Packed* p : {&packed_left_, &packed_right_})
    if (!p->resident) p->slots = batch_step_;
  size_t tile_bytes = static_cast<size_t>(tile_rows_ * tile_columns_) * sizeof(Sum);
  int64_t streamed = streams_left_ ? tile_rows_ : streams_right_ ? tile_columns_ : 0;
  worker_bytes_ = aligned(tile_bytes) + aligned(static_cast<size_t>(step_ * streamed) * sizeof(T)) + finish_scratch_;
}

template <class T>
void Product<T>::choose_tiles(const ProductOptions& o) {
  const auto& tile = tile_;
  const ProductShape& s = largest_;
  int64_t all_rows = std::max(tile.rows, round_up(s.rows, tile.rows));
  int64_t all_columns = std::max(tile.columns, round_up(s.columns, tile.columns));
  tile_rows_ = std::min(all_rows, tile.rows * tile.panels);
  tile_columns_ = std::min(all_columns, tile.columns * 8);
  // One side whole, the other as long as the tile stays in the second cache.
  auto span_columns = [&](int64_t columns) {
    tile_columns_ = columns;
    tile_rows_ = std::clamp(kLargestTile / columns / tile.rows * tile.rows, tile.rows, tile_rows_);
  };
  if (o.whole_rows)
    span_columns(all_columns);
  else if (o.stream == ProductOptions::left)
    span_columns(std::min(all_columns, tile.columns * 32));
  if (o.stream == ProductOptions::right && !o.whole_rows) {
    tile_rows_ = std::min(all_rows, tile.rows * 64);
    tile_columns_ = std::clamp(kLargestTile / tile_rows_ / tile.columns * tile.columns, tile.columns, tile_columns_);
  }
  auto tiles = [&] { return parts_ * s.batches * ceil_div(s.rows, tile_rows_) * ceil_div(s.columns, tile_columns_); };
  int64_t longest = s.depth / (kLeastSteps * step_);
  parts_ = std::clamp<int64_t>(kManyPieces / std::max<int64_t>(1, tiles()), 1, std::max<int64_t>(1, longest));
  // Smaller tiles where there would be too few for all threads.
  while (threads_ > 1 && tiles() < 2 * threads_) {
    bool rows = tile_rows_ >= 4 * tile.rows, columns = !o.whole_rows && tile_columns_ > tile.columns;
    if (columns && (!rows || tile_columns_ >= tile_rows_))
      tile_columns_ = round_up(tile_columns_ / 2, tile.columns);
    else if (rows)
      tile_rows_ = round_up(tile_rows_ / 2, tile.rows);
    else
      break;
  }
  // As many tiles of equal sizes: a short one at the end would leave its thread idle.
  auto equal = [](int64_t all, int64_t each, int64_t unit) {
    return all == 0 ? each : round_up(ceil_div(all, ceil_div(all, each)), unit);
  };
  tile_rows_ = equal(s.rows, tile_rows_, tile.rows);
  tile_columns_ = equal(s.columns, tile_columns_, tile.columns);
}

template <class T>
typename Product<T>::Packed Product<T>::plan_side(const Operand<T>& side, int64_t width, int64_t neighbours,
                                                  int64_t grain) const {
  Packed p;
  p.width = width;
  p.neighbours = round_up(neighbours, width);
  int64_t each = std::max<int64_t>(1, packed_depth(side, largest_.depth)) * static_cast<int64_t>(sizeof(T));
  p.resident = side.slots() < packed_bytes_ / std::max<int64_t>(1, each * p.neighbours);
  if (p.resident) p.slots = side.slots();
  if (!p.resident) p.neighbours = std::min(p.neighbours, std::max(grain, packed_bytes_ / each / grain * grain));
  p.bytes = p.neighbours * each;
  return p;
}

template <class T>
size_t Product<T>::workspace_bytes() const {
  size_t bytes = 0;
  for (const Packed* p : {&packed_left_, &packed_right_}) bytes += aligned(static_cast<size_t>(p->slots * p->bytes));
  bytes += worker_bytes_ * static_cast<size_t>(threads_);
  if (parts_ == 1) return bytes;
  int64_t tiles = largest_.batches * ceil_div(largest_.rows, tile_rows_) * ceil_div(largest_.columns, tile_columns_);
  return bytes + static_cast<size_t>(tiles * parts_ * tile_rows_ * tile_columns_) * sizeof(Sum);
}

template <class T>
int64_t Product<T>::packed_depth(const Operand<T>& side, int64_t depth) const {
  return &side == &left_ && tile_.left_rows ? round_up(depth, kRowWords * kGroup<T>) : padded<T>(depth);
}

template <class T>
Panels<T> Product<T>::panels(const Operand<T>& side, T* at, int64_t depth) const {
  bool left = &side == &left_;
  int64_t width = left ? tile_.rows : tile_.columns;
  return {at, width, packed_depth(side, depth) * width, 0, left ? tile_.flip : uint8_t{0}, left && tile_.left_rows};
}

// Neighbours [first, first + n) of `slot_count` slots: all of them, or those of the batches from `first_batch`.
template <class T>
void Product<T>::pack_side(const Run& r, const Operand<T>& side, const Packed& p, T* to, int64_t slot_count,
                           int64_t first_batch, int64_t first, int64_t n) const {
  int64_t depth = r.shape.depth, group = p.width * ceil_div(step_, p.width), groups = ceil_div(n, group);
  int64_t pieces = ceil_div(depth, step_);
  parallel_for(slot_count * groups * pieces, 1, threads_, [&](int64_t from, int64_t end, int) {
    for (int64_t item = from; item < end; ++item) {
      int64_t slot = item / (groups * pieces), g = item / pieces % groups, k = item % pieces * step_;
      Panels<T> all = panels(side, to + slot * (p.bytes / static_cast<int64_t>(sizeof(T))), depth);
      all.at += g * group / p.width * all.panel;
      pack_words(r, side, p.resident ? slot : side.slot(first_batch + slot), first + g * group,
                 std::min(group, n - g * group), k, std::min(step_, depth - k), all.from(k));
    }
  });
}

template <class T>
void Product<T>::pack_words(const Run& r, const Operand<T>& side, int64_t slot, int64_t first, int64_t n, int64_t from,
                            int64_t depth, const Panels<T>& to) const {
  side.pack(r.tensors, slot, first, n, from, depth, to);
  if (padded<T>(depth) > depth) pack_zeros(to, 0, n, depth, padded<T>(depth));
}

template <class T>
void Product<T>::run(const ProductShape& shape, void* const* tensors, std::byte* workspace,
                     const Result<Sum>& result) const {
  std::byte* right = workspace + aligned(static_cast<size_t>(packed_left_.slots * packed_left_.bytes));
  std::byte* workers = right + aligned(static_cast<size_t>(packed_right_.slots * packed_right_.bytes));
  Run r{shape,
        tensors,
        result,
        reinterpret_cast<T*>(workspace),
        reinterpret_cast<T*>(right),
        workers,
        workers + worker_bytes_ * static_cast<size_t>(threads_)};
  if (shape.batches == 0 || shape.rows == 0 || shape.columns == 0) return;
  bool left_now = !streams_left_ && !packed_left_.resident, right_now = !streams_right_ && !packed_right_.resident;
  int64_t row_step = left_now ? packed_left_.neighbours : shape.rows;
  int64_t column_step = right_now ? packed_right_.neighbours : shape.columns;
  if (packed_left_.resident) pack_side(r, left_, packed_left_, r.left, left_.slots(), 0, 0, shape.rows);
  if (packed_right_.resident) pack_side(r, right_, packed_right_, r.right, right_.slots(), 0, 0, shape.columns);
  Slab s;
  for (s.batch = 0; s.batch < shape.batches; s.batch += batch_step_) {
    s.batches = std::min(batch_step_, shape.batches - s.batch);
    for (s.column = 0; s.column < shape.columns; s.column += column_step) {
      s.columns = std::min(column_step, shape.columns - s.column);
      if (right_now) pack_side(r, right_, packed_right_, r.right, s.batches, s.batch, s.column, s.columns);
      for (s.row = 0; s.row < shape.rows; s.row += row_step) {
        s.rows = std::min(row_step, shape.rows - s.row);
        if (left_now) pack_side(r, left_, packed_left_, r.left, s.batches, s.batch, s.row, s.rows);
        run_slab(r, s);
      }
    }
  }
}

template <class T>
void Product<T>::run_slab(const Run& r, const Slab& s) const {
  int64_t tiles = s.batches * ceil_div(s.rows, tile_rows_) * ceil_div(s.columns, tile_columns_);
  auto each = [&](int64_t n, const auto& f) {
    parallel_for(n, 1, threads_, [&](int64_t first, int64_t last, int worker) {
      for (int64_t i = first; i < last; ++i) f(i, worker);
    });
  };
  if (parts_ == 1) return each(tiles, [&](int64_t i, int worker) { run_tile(r, s, i, worker); });
  each(tiles * parts_, [&](int64_t i, int worker) { run_part(r, s, i / parts_, i % parts_, worker); });
  int64_t strips = tile_rows_ / tile_.rows;
  each(tiles * strips, [&](int64_t i, int worker) { join_parts(r, s, i / strips, i % strips, worker); });
}

template <class T>
Panels<T> Product<T>::left_panels(const Run& r, const Slab& s, const ResultTile<Sum>& c, int64_t k, int64_t depth,
                                  T* streamed) const {
  if (streams_left_) {
    Panels<T> to = panels(left_, streamed, depth);
    pack_words(r, left_, left_.slot(c.batch), c.row, c.rows, k, depth, to);
    return to;
  }
  int64_t slot = packed_left_.resident ? left_.slot(c.batch) : c.batch - s.batch;
  Panels<T> all = panels(left_, r.left + slot * (packed_left_.bytes / static_cast<int64_t>(sizeof(T))), r.shape.depth);
  all.at += (c.row - s.row) / all.width * all.panel;
  return all.from(k);
}

template <class T>
Panels<T> Product<T>::right_panels(const Run& r, const Slab& s, const ResultTile<Sum>& c, int64_t k, int64_t depth,
                                   T* streamed) const {
  if (streams_right_) {
    Panels<T> to = panels(right_, streamed, depth);
    pack_words(r, right_, right_.slot(c.batch), c.column, c.columns, k, depth, to);
    return to;
  }
  int64_t slot = packed_right_.resident ? right_.slot(c.batch) : c.batch - s.batch;
  Panels<T> all =
      panels(right_, r.right + slot * (packed_right_.bytes / static_cast<int64_t>(sizeof(T))), r.shape.depth);
  all.at += (c.column - s.column) / all.width * all.panel;
  return all.from(k);
}

template <class T>
ResultTile<SumOf<T>> Product<T>::tile_at(const Slab& s, int64_t index) const {
  int64_t row_tiles = ceil_div(s.rows, tile_rows_), column_tiles = ceil_div(s.columns, tile_columns_);
  ResultTile<Sum> c;
  c.batch = s.batch + index / (row_tiles * column_tiles);
  c.column = s.column + index / row_tiles % column_tiles * tile_columns_;
  c.row = s.row + index % row_tiles * tile_rows_;
  c.rows = std::min(tile_rows_, s.row + s.rows - c.row);
  c.columns = std::min(tile_columns_, s.column + s.columns - c.column);
  c.at = nullptr;
  c.stride = c.columns;
  return c;
}

template <class T>
void Product<T>::multiply(const Run& r, const Slab& s, const ResultTile<Sum>& c, int64_t from, int64_t end,
                          int worker) const {
  const auto& tile = tile_;
  TileInUse<T> use(tile);
  std::byte* own = r.workers + static_cast<size_t>(worker) * worker_bytes_;
  T* streamed = reinterpret_cast<T*>(own + aligned(static_cast<size_t>(tile_rows_ * tile_columns_) * sizeof(Sum)));
  for (int64_t k = from; k == from || k < end; k += step_) {
    int64_t step = std::clamp<int64_t>(end - k, 0, step_);
    Panels<T> left = left_panels(r, s, c, k, step, streamed), right = right_panels(r, s, c, k, step, streamed);
    for (int64_t j = 0; j < c.columns; j += tile.columns)
      for (int64_t i = 0; i < c.rows; i += tile.rows)
        tile.multiply(std::min(tile.rows, c.rows - i), std::min(tile.columns, c.columns - j), ceil_div(step, kGroup<T>),
                      left.at + i / tile.rows * left.panel, tile.rows, right.at + j / tile.columns * right.panel,
                      tile.columns, c.at + i * c.stride + j, c.stride, c.add || k > from);
  }
}

template <class T>
void Product<T>::run_tile(const Run& r, const Slab& s, int64_t index, int worker) const {
  ResultTile<Sum> c = tile_at(s, index);
  std::byte* own = r.workers + static_cast<size_t>(worker) * worker_bytes_;
  if (!r.result.place(r.tensors, c)) c.at = reinterpret_cast<Sum*>(own);
  multiply(r, s, c, 0, r.result.depth(r.tensors, c.batch, r.shape.depth), worker);
  r.result.finish(r.tensors, c, own + worker_bytes_ - finish_scratch_);
}

template <class T>
SumOf<T>* Product<T>::partial(const Run& r, int64_t index, int64_t part) const {
  return reinterpret_cast<Sum*>(r.partials) + (index * parts_ + part) * tile_rows_ * tile_columns_;
}

template <class T>
void Product<T>::run_part(const Run& r, const Slab& s, int64_t index, int64_t part, int worker) const {
  ResultTile<Sum> c = tile_at(s, index);
  c.at = partial(r, index, part);
  int64_t step = round_up(ceil_div(r.shape.depth, parts_), step_);
  int64_t depth = r.result.depth(r.tensors, c.batch, r.shape.depth);
  multiply(r, s, c, std::min(part * step, depth), std::min((part + 1) * step, depth), worker);
}

template <class T>
void Product<T>::join_parts(const Run& r, const Slab& s, int64_t index, int64_t strip, int worker) const {
  ResultTile<Sum> c = tile_at(s, index);
  int64_t above = strip * tile_.rows;
  if (above >= c.rows) return;
  c.row += above;
  c.rows = std::min(tile_.rows, c.rows - above);
  Sum* sums = partial(r, index, 0) + above * c.columns;
  int64_t n = c.rows * c.columns;
  for (int64_t part = 1; part < parts_; ++part) {
    const Sum* more = partial(r, index, part) + above * c.columns;
    for (int64_t i = 0; i < n; ++i) sums[i] += more[i];
  }
  if (r.result.place(r.tensors, c))
    for (int64_t i = 0; i < c.rows; ++i, sums += c.columns) {
      Sum* to = c.at + i * c.stride;
      for (int64_t j = 0; j < c.columns; ++j) to[j] = (c.add ? to[j] : Sum(0)) + sums[j];
    }
  else
    c.at = sums;
  r.result.finish(r.tensors, c, r.workers + static_cast<size_t>(worker + 1) * worker_bytes_ - finish_scratch_);
}

template class Product<float>;
template class Product<double>;
template class Product<Bf16>;
template class Product<Byte>;

}  // namespace tsr::cpu
