// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/rnn/shape.hpp"

#include <algorithm>

#include "base/dims.hpp"
#include "engines/cuda/rnn/args.cuh"

namespace tsr::cuda {
namespace {

// Rates of a multiprocessor, in bytes or multiply-adds of a cycle, and of the cache that all share; cycles that states
// take from block to block, that a cell takes, and until the first states of a tile have come.
constexpr double kClock = 1.7e9, kSharedRate = 128, kLoadRate = 48, kProductRate = 1200, kCacheRate = 4500;
constexpr double kHandover = 2500, kCell = 120, kBegin = 800;

RnnShape shape_of(const RnnSteps& s, const Device& d, int tiles, int columns, bool resident) {
  RnnShape r;
  r.tiles = tiles, r.columns = columns, r.resident = resident;
  r.units_each = 16 * tiles / s.sums;
  r.unit_blocks = ceil_div(s.units, r.units_each);
  r.batch_tiles = ceil_div(s.batch, int64_t{8} * columns);
  r.groups = resident ? std::min(r.batch_tiles, d.units / r.unit_blocks) : r.batch_tiles;
  r.chunks = ceil_div(s.depth, dev::kRnnChunk);
  int64_t pitch = 8 * std::min(columns, 4) + 2, weights = r.chunks * tiles * 1024;
  r.shared_bytes = int64_t{dev::kRnnWarps} * 16 * tiles * pitch * 4 + (resident ? weights : 0);
  if (r.groups == 0) return r;

  auto real = [](int64_t v) { return static_cast<double>(v); };
  double rows = 16 * tiles, sequences = 8 * columns, depth = real(r.chunks * dev::kRnnChunk);
  double states = sequences * depth * 2;
  double product = std::max({real(weights) / (resident ? kSharedRate : kLoadRate), states / kLoadRate,
                             rows * sequences * depth / kProductRate});
  double parts = 2 * dev::kRnnWarps * rows * sequences * 4 / kSharedRate;
  double cells = real(ceil_div(r.units_each * 8 * columns, dev::kRnnThreads)) * kCell;
  double turns = real(resident ? ceil_div(r.batch_tiles, r.groups) : ceil_div(r.blocks(), d.units));
  double cache = real(r.unit_blocks * r.batch_tiles) * (states + (resident ? 0 : real(weights))) / kCacheRate;
  double cycles =
      std::max(turns * (kBegin + product + parts + cells), cache) + (resident ? kHandover : kRnnLaunchSeconds * kClock);
  r.seconds = cycles / kClock;
  return r;
}

// That a thread has for sums, operands under way and cells, with the addresses that each cell needs. Compilers were
// seen to fit 224 into a thread, or 200 where the kernel holds both directions.
int64_t registers(const RnnShape& r) {
  int64_t ahead = r.columns >= 8 || (!r.resident && r.tiles * r.columns >= 8) ? 2 : 4;
  int64_t rounds = ceil_div(r.columns, 4);
  int64_t cells = rounds * ceil_div(r.units_each * 8 * std::min(r.columns, 4), dev::kRnnThreads);
  int64_t operands = ahead * (4 * r.columns + (r.resident ? 0 : 8 * r.tiles));
  return 4 * r.tiles * r.columns + operands + 16 * cells;
}

}  // namespace

std::vector<RnnShape> rnn_shapes(const RnnSteps& s, const Device& d, bool resident, bool paired) {
  constexpr int kHopper = 90;
  std::vector<RnnShape> list;
  for (int tiles = 1; tiles <= 4; ++tiles)
    for (int columns : {1, 2, 4, 8}) {
      if (16 * tiles < s.sums) continue;
      RnnShape r = shape_of(s, d, tiles, columns, resident);
      bool fits = r.groups > 0 && r.shared_bytes <= d.shared_bytes;
      if (fits && registers(r) <= (paired || !resident || d.arch < kHopper ? 200 : 224)) list.push_back(r);
    }
  std::stable_sort(list.begin(), list.end(),
                   [](const RnnShape& a, const RnnShape& b) { return a.seconds < b.seconds; });
  return list;
}

RnnShape choose_rnn_shape(const RnnSteps& s, const Device& d, bool resident, bool paired, const RnnTile& wanted) {
  std::vector<RnnShape> list = rnn_shapes(s, d, resident, paired);
  if (list.empty()) return choose_rnn_shape(s, d, false, paired, wanted);
  for (const RnnShape& r : list)
    if (16 * r.tiles == wanted.rows && 8 * r.columns == wanted.columns) return r;
  return list[0];
}

}  // namespace tsr::cuda
