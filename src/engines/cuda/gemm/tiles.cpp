// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/gemm/tiles.hpp"

#include <algorithm>

#include "engines/cuda/gemm/args.cuh"

namespace tsr::cuda {
namespace {

constexpr TileShape kTiles[] = {
    {128, 128, 8, 8, 8, 2, 0.7},
    {64, 64, 8, 4, 8, 4, 0.5},
    {16, 128, 4, 4, 16, 4, 0.25},
};
constexpr TileShape kWideTiles[] = {
    {64, 64, 4, 4, 8, 2, 0.5},
    {16, 128, 4, 4, 8, 4, 0.3},
};

// How fast a type is multiplied and added, f32 being 1.
double speed(DType sum) { return sum == DType::f32 ? 1 : sum == DType::i64 ? 0.1 : 0.5; }

double seconds(const Problem& p, const TileShape& t, int64_t blocks, int64_t splits, DType sum, const Device& d) {
  // Taps are shared out among residues; experts share the rows.
  double depth = static_cast<double>(p.depth());
  if (p.moe && p.moe->mode == dev::kExpertGradient) depth /= static_cast<double>(std::max<int64_t>(1, p.batches()));
  double rate = d.rates.f32 / d.units * t.efficiency * speed(sum);
  double rounds = static_cast<double>(ceil_div(blocks * splits, d.units));
  if (blocks * splits <= d.units) rounds *= 1.5;  // a block alone leaves gaps
  double each = 2.0 * t.height * t.width * (depth / static_cast<double>(splits) + 4 * t.depth);
  double time = rounds * each / rate;
  if (splits > 1) {
    double bytes = 2.0 * static_cast<double>(splits * blocks) * t.height * t.width * (speed(sum) < 1 ? 8 : 4);
    time += bytes / d.bytes_per_second + d.step_seconds;
  }
  return time;
}

}  // namespace

std::span<const TileShape> tile_shapes(DType sum) {
  if (sum == DType::f64 || sum == DType::i64) return kWideTiles;
  return kTiles;
}

DType sum_type(const Graph& g, const Node& n, const Problem& p) {
  if (n.compute == DType::f64) return DType::f64;
  if (!is_integer(n.compute)) return DType::f32;
  constexpr int64_t kDeepest = 1 << 15;  // sums of products of bytes then fit
  auto small = [&](TensorId t) { return is_integer(g.tensor(t).dtype) && info(g.tensor(t).dtype).bits <= 8; };
  return small(p.a) && small(p.b) && p.depth() <= kDeepest ? DType::i32 : DType::i64;
}

RowTiles row_tiles(const Problem& p, const TileShape& t) {
  int64_t plain = ceil_div(p.row_count(), t.height);
  if (!p.moe || p.moe->mode == dev::kExpertGradient) return {plain, 0, plain};
  int64_t items = plain + p.moe->ranges;
  return {plain, items, items + (p.moe->mode == dev::kScatter ? plain : 0)};
}

std::vector<Choice> choices(const Problem& p, DType sum, bool direct, const Region& r, const Device& d) {
  constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1, kMostSplits = 64, kLeastDepth = 64;
  double memory = region_bytes(r) / d.bytes_per_second;
  std::vector<Choice> all;
  for (const TileShape& t : tile_shapes(sum)) {
    double tiles = static_cast<double>(row_tiles(p, t).all) * static_cast<double>(ceil_div(p.column_count(), t.width)) *
                   static_cast<double>(p.batches()) * static_cast<double>(p.residues);
    if (tiles * t.rows > static_cast<double>(kMostBlocks)) continue;
    auto blocks = static_cast<int64_t>(tiles);
    for (int64_t splits = 1; splits <= kMostSplits; splits *= 2) {
      if (splits > 1 && (blocks * splits > int64_t{4} * d.units || p.depth() / splits < kLeastDepth)) break;
      double time = std::max(memory, seconds(p, t, blocks, splits, sum, d)) + d.step_seconds;
      all.push_back({&t, splits, time + (p.moe ? 2 * d.step_seconds : 0)});
    }
  }
  if (direct) {
    constexpr double kDirectEfficiency = 0.06, kLatency = 40e-9;  // a thread waits for every term
    int64_t splits = std::max<int64_t>(1, ceil_div(p.depth(), dev::kDirectDepth));
    double outputs = static_cast<double>(p.row_count() * p.column_count()) * static_cast<double>(p.batches());
    double parts = splits > 1 ? 2 * static_cast<double>(splits) * outputs * 8 / d.bytes_per_second : 0;
    double time = region_flops(r) / (d.rates.f32 * kDirectEfficiency * speed(sum)) + parts +
                  static_cast<double>(std::min<int64_t>(p.depth(), dev::kDirectDepth) + splits) * kLatency;
    if (static_cast<double>(splits) * (outputs / 256 + 1) < static_cast<double>(kMostBlocks))
      all.push_back({nullptr, splits, std::max(memory, time) + (splits > 1 ? 2 : 1) * d.step_seconds});
  }
  std::stable_sort(all.begin(), all.end(), [](const Choice& x, const Choice& y) { return x.seconds < y.seconds; });
  return all;
}

}  // namespace tsr::cuda
