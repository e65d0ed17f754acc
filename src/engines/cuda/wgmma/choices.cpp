// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/wgmma/choices.hpp"

#include <algorithm>
#include <cmath>

#include "engines/cuda/wgmma/args.cuh"

namespace tsr::cuda {
namespace {

// Of tiles that are modelled to take as long, the first.
constexpr WgmmaTiling kTiles[] = {{128, 256, 1, 1},      {128, 256, 2, 1}, {128, 192, 1, 1}, {128, 192, 2, 1},
                                  {192, 128, 1, 1},      {192, 128, 2, 1}, {128, 128, 1, 1}, {128, 128, 2, 1},
                                  {64, 128, 1, 1},       {64, 128, 1, 2},  {192, 64, 1, 1},  {128, 64, 1, 1},
                                  {128, 64, 1, 2},       {64, 64, 1, 2},   {64, 64, 1, 4},   {128, 160, 2, 1, true},
                                  {128, 128, 2, 1, true}};

// --- cost, in clocks of a multiprocessor
// Bytes that shared memory gives to products, and the second cache to one multiprocessor when all ask, in a clock.
constexpr double kSharedBytes = 128 * 0.7, kCacheBytes = 70;
// Large tiles that ask for more than this, without clusters or of 128 columns, lost a third when they were measured.
// Those that take turns have not been measured, and are counted so.
constexpr double kSafeCacheBytes = 32;
constexpr double kFlops = 4096 * 0.93;  // 16-bit operations
constexpr double kFill = 1500;          // until the first operands come
constexpr double kChunk = 350;          // for 64 columns of results, of 64 rows for each warpgroup
constexpr double kChunkElements = 32;   // of a thread, there

// Of a row of 128 bytes of positions, measured.
constexpr double kPosition = 4;

double step_clocks(const WgmmaProblem& m, const WgmmaTiling& t) {
  double warpgroups = t.rows / 64.0, row = 128;  // bytes
  // Operands are fetched more often for each product.
  double narrow = t.columns <= 64 ? 1.12 : t.columns < 192 ? 1.03 : 1;
  double products = 2.0 * t.rows * t.columns * 64 / kFlops * narrow;
  double shared = warpgroups * (64 + t.columns) * row / kSharedBytes;
  double cache =
      (t.rows + static_cast<double>(t.columns) / t.cluster) * row / (t.turns ? kSafeCacheBytes : kCacheBytes);
  double positions = m.windows.empty() ? 0 : m.filter_gradient ? t.columns + (m.in_patches ? t.rows : 0) : t.rows;
  // What is computed passes through a warpgroup's registers, which waits for what else it loads; measured, for each of
  // a thread's elements.
  constexpr double kComputed = 50;
  double computed = (m.computed[0] ? t.rows : 0) + (m.computed[1] ? t.columns : 0);
  return std::max({products, shared, cache, positions * kPosition, computed * depth_of(m) / 128 * kComputed});
}

// A multiprocessor's time for its tiles, and that of the last results, which nothing hides. Blocks share it, and
// results of one leave while others multiply; what is computed of them is not known to be hidden. A warpgroup that
// takes turns has twice the rows, issues somewhat slower than two would, and waits for what it cannot load early
// enough.
struct TileClocks {
  double each, last = 0;
};
TileClocks tile_clocks(const WgmmaProblem& m, const WgmmaTiling& t, double steps) {
  double products = steps * step_clocks(m, t), chunks = own_columns(m, t) / 64.0, strips = t.rows / 64.0;
  double issued = kChunkElements * m.epilogue.instructions(), waits = 0;
  constexpr double kShared = 1.15;  // blocks are in each other's way
  if (!t.turns)
    return {std::max(t.blocks * products * (t.blocks > 1 ? kShared : 1), products + kChunk * chunks) +
            t.blocks * strips * chunks * issued};
  constexpr double kTurn = 100, kAlone = 1.3, kWait = 900;
  for (size_t k = 1; k < m.strides.size(); ++k)
    if (m.epilogue.operands()[k].kind == Instr::load && !m.strides[k].is_fixed()) waits += kWait;
  double results = strips * chunks * (kChunk + kAlone * issued + waits);
  return {std::max(products + kTurn, (products + results) / 2), results};
}

// What memory gives again because the cache did not keep it.
double bytes_again(const WgmmaProblem& m, const WgmmaTiling& t, double row_tiles, const Graph& g, const Device& d) {
  auto bytes = [&](const WgmmaOperand& o) {
    const Tensor& x = g.tensor(o.tensor);
    return static_cast<double>(byte_size(x.dtype, x.numel()));
  };
  // The rows of a group of tiles stay; columns are read again for each group, unless all of them stay too.
  double room = static_cast<double>(d.cache_bytes) / 2, groups = std::ceil(row_tiles / kWgmmaGroup);
  double right = bytes(m.b) * (m.is_paired() ? 2 : 1);
  double again = right < room ? 0 : right * (groups - 1);
  if (bytes(m.a) / groups > room) again += bytes(m.a) * static_cast<double>(column_tiles_of(m, t) - 1);
  return again;
}

double modelled_seconds(const WgmmaProblem& m, const WgmmaChoice& c, const Region& r, const Device& d) {
  const WgmmaTiling& t = c.tile;
  constexpr double kMemory = 0.85;  // of the bandwidth
  int splits = std::max(1, c.splits);
  double rows = 0, steps = 0;
  for (const WgmmaKind& k : kinds_of(m)) {
    auto n = static_cast<double>(row_tiles_of(k, t));
    steps += n * static_cast<double>(ceil_div(k.steps, splits)), rows += n;
  }
  double waves = static_cast<double>(ceil_div(tiles_of(m, t) * splits, room_for(t, d)));
  double clock = d.rates.bits16 / d.units / 4096;
  TileClocks tile = tile_clocks(m, t, steps / rows);
  // Measured turns were never faster by as much as modelled.
  constexpr double kDoubt = 1.1;
  // Blocks of a cluster begin together and wait for each other.
  constexpr double kTogether = 3000, kMeeting = 1.02;
  double clocks = (kFill + waves * tile.each + tile.last) * (t.turns ? kDoubt : 1);
  if (t.cluster > 1) clocks = clocks * kMeeting + kTogether;
  double seconds = clocks / clock;
  // What takes less time hides behind the other, but not all of it.
  constexpr double kHidden = 0.8;
  double memory = region_limits(r, d).memory;
  // Tiles of columns read the same rows again, those of rows the same columns.
  if (!m.filter_gradient) memory += bytes_again(m, t, rows, *r.graph, d) / d.bytes_per_second;
  // Short pieces of the result's rows are slow to write.
  constexpr double kPieces = 1.25, kSharedMemory = 1.05;
  constexpr int kShort = 128;
  if (c.splits == 0 && m.columns > own_columns(m, t) && own_columns(m, t) < kShort) memory *= kPieces;
  if (t.blocks > 1) memory *= kSharedMemory;
  memory /= kMemory;
  seconds = std::max(seconds, memory) + (1 - kHidden) * std::min(seconds, memory) + d.step_seconds;
  if (m.reduction.over != dev::Reduced::nothing) {
    LeftParts p = parts_of(m, t, d, 1);
    double parts = 4.0 * static_cast<double>(p.groups * p.slots * p.pieces * m.epilogue.reductions());
    seconds += 2 * parts / d.bytes_per_second + d.step_seconds;
  }
  if (c.splits == 0) return seconds;
  // Parts mostly stay in the cache.
  double bytes = 4.0 * static_cast<double>(part_lines_of(m) * pitch_of(m)) * splits;
  constexpr double kPart = 25e-9;  // they are added one after the other
  return seconds + bytes / d.bytes_per_second + kPart * splits + d.step_seconds;
}

bool fits(const WgmmaProblem& m, const WgmmaTiling& t) {
  if (m.has_prologue() && (t.cluster > 1 || t.blocks > 1 || t.rows > 128)) return false;  // a warpgroup computes them
  if (m.rows <= t.rows - 64) return false;                                                // a warpgroup for nothing
  if (m.filter_gradient && t.cluster > 1) return false;                                   // blocks do not share patches
  if (t.turns && (m.promotes || m.is_paired())) return false;  // sums of a step and of all do not fit
  // Nor does what long code takes beside sums, or that with more than one operand or reductions beside 160 of them.
  constexpr size_t kOperands = 3;  // the product and the result among them
  bool much = m.epilogue.operands().size() > kOperands || m.reduction.over != dev::Reduced::nothing;
  if (t.turns && (is_long(m) || (t.columns > 128 && much))) return false;
  if (m.b.across() && own_columns(m, t) / t.cluster % 64 != 0) return false;  // which come in pieces of 64
  // Twice the registers for sums.
  return !m.promotes || (t.columns <= (t.rows > 128 ? 64 : 192) && (t.blocks == 1 || t.columns <= 64));
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> WgmmaChoice::knobs() const {
  return {{"rows", tile.rows},     {"columns", tile.columns}, {"cluster", tile.cluster},
          {"blocks", tile.blocks}, {"turns", tile.turns},     {"splits", splits}};
}

bool is_long(const WgmmaProblem& m) {
  constexpr int kLong = 24;
  return m.epilogue.instructions() > kLong;
}
int depth_of(const WgmmaProblem& m) { return 128 / m.element_bytes(); }
int64_t patches_of(const WgmmaProblem& m, const WgmmaWindow& w) {
  int64_t n = 1;
  for (size_t i = 0; i < 4; ++i) n *= ceil_div(w.positions[i], m.patch[i]);
  return n;
}
std::vector<WgmmaKind> kinds_of(const WgmmaProblem& m) {
  int64_t steps = ceil_div(m.depth, depth_of(m));
  if (m.filter_gradient) return {{m.rows, m.in_patches ? patches_of(m, m.windows[0]) : steps}};
  if (m.windows.empty()) return {{m.rows, steps}};
  std::vector<WgmmaKind> list;
  for (const WgmmaWindow& w : m.windows)
    list.push_back({m.in_patches ? patches_of(m, w) * 64 : m.rows, w.empty ? 1 : steps * w.all_taps()});
  return list;
}
int64_t channel_tiles_of(const WgmmaProblem& m) {
  return ceil_div(m.filter_gradient ? m.columns : m.depth, depth_of(m));
}
int64_t row_tiles_of(const WgmmaKind& k, const WgmmaTiling& t) { return ceil_div(k.rows, t.rows * t.cluster); }
int64_t column_tiles_of(const WgmmaProblem& m, const WgmmaTiling& t) {
  if (!m.filter_gradient) return ceil_div(m.columns, own_columns(m, t));
  return ceil_div(m.taps() * channel_tiles_of(m), t.columns / 64);
}
int64_t tiles_of(const WgmmaProblem& m, const WgmmaTiling& t) {
  int64_t rows = 0;
  for (const WgmmaKind& k : kinds_of(m)) rows += row_tiles_of(k, t);
  return rows * column_tiles_of(m, t) * m.batches;
}
int64_t room_for(const WgmmaTiling& t, const Device& d) { return d.units / t.cluster * t.blocks; }
int64_t pitch_of(const WgmmaProblem& m) { return ceil_div(m.columns, 4) * 4; }
int64_t part_lines_of(const WgmmaProblem& m) {
  return kinds_of(m)[0].rows * m.batches * (m.filter_gradient ? m.taps() : 1);
}

int64_t warps_of(const WgmmaTiling& t) { return t.cluster * (t.rows / 64) * 4; }
int64_t clusters_of(const WgmmaProblem& m, const WgmmaChoice& c, const Device& d) {
  return std::min(tiles_of(m, c.tile) * std::max(1, c.splits), room_for(c.tile, d));
}
LeftParts parts_of(const WgmmaProblem& m, const WgmmaTiling& t, const Device& d, int vector) {
  LeftParts p;
  switch (m.reduction.over) {
    case dev::Reduced::rows:
      p.slots = 0;
      for (const WgmmaKind& k : kinds_of(m)) p.slots += row_tiles_of(k, t) * warps_of(t);
      (m.reduction.batches ? p.slots : p.groups) *= m.batches;
      p.pieces = m.columns / vector;
      break;
    case dev::Reduced::columns:
      p.slots = column_tiles_of(m, t), p.pieces = m.batches * m.rows;
      break;
    case dev::Reduced::all:
      p.slots = clusters_of(m, {t}, d) * warps_of(t);
      break;
    case dev::Reduced::nothing:
      break;
  }
  return p;
}

int64_t out_bytes(const WgmmaProblem& m, const WgmmaChoice& c) {
  return c.splits || m.filter_gradient ? 0 : c.tile.rows / 64 * 2 * 64 * 128;
}
int64_t stage_bytes(const WgmmaTiling& t) { return (t.rows + t.columns) * 128; }
int own_columns(const WgmmaProblem& m, const WgmmaTiling& t) { return m.is_paired() ? t.columns / 2 : t.columns; }
int64_t raw_bytes(const WgmmaProblem& m, const WgmmaTiling& t) {
  int64_t bits = 0;
  for (size_t side : {size_t{0}, size_t{1}})
    if (m.computed[side]) bits += int64_t{side == 0 ? t.rows : t.columns} * depth_of(m) * m.computed[side]->bits();
  return dev::kWgmmaRawStages * bits / 8;
}
int stages_of(const WgmmaProblem& m, const WgmmaChoice& c, const Device& d) {
  constexpr int64_t kMost = 8, kBarriers = 256, kReserved = 1024;  // of each block, by the system
  int64_t each = d.shared_bytes / c.tile.blocks - (c.tile.blocks - 1) * kReserved;
  return static_cast<int>(
      std::min(kMost, (each - out_bytes(m, c) - raw_bytes(m, c.tile) - kBarriers) / stage_bytes(c.tile)));
}
// Consumers, and those that ask for copies: a warpgroup that gives its registers away, or, where blocks share the
// multiprocessor's, a warp.
int threads_of(const WgmmaTiling& t) { return t.rows / 64 * 128 + (t.blocks == 1 ? 128 : 32); }

// Where tiles are fewer than find room, the inner dimension is split.
std::vector<WgmmaChoice> choices_of(const WgmmaProblem& m, const Region& r, const Device& d) {
  std::vector<WgmmaChoice> list;
  int64_t part_elements = part_lines_of(m) * pitch_of(m),
          room = most_parts(r, 4.0 * static_cast<double>(part_elements));
  for (const WgmmaTiling& t : kTiles) {
    if (!fits(m, t)) continue;
    auto add = [&](int64_t splits) {
      constexpr int64_t kMostElements = int64_t{1} << 31;
      if (splits > 0 && part_elements * splits >= kMostElements) return;
      WgmmaChoice c{t, static_cast<int>(splits)};
      constexpr int kFewest = 2;
      if (stages_of(m, c, d) < kFewest) return;
      c.seconds = modelled_seconds(m, c, r, d);
      list.push_back(c);
    };
    add(0);
    if (t.turns || m.is_paired() || m.windows.size() > 1 || m.reduction.over != dev::Reduced::nothing) continue;
    constexpr int64_t kLeastSteps = 4;
    int64_t most = std::min({room_for(t, d) / tiles_of(m, t), kinds_of(m)[0].steps / kLeastSteps, room});
    for (int64_t splits : {most, most / 2})
      if (splits > 1) add(splits);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const WgmmaChoice& x, const WgmmaChoice& y) { return x.seconds < y.seconds; });
  return list;
}

}  // namespace tsr::cuda
