// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/gemm/tiles.hpp"

#include <algorithm>
#include <array>

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

// Of tensor cores; rows of 64 bytes along the inner dimension.
constexpr std::array<TileShape, 5> tensor_tiles(int depth) {
  return {{{256, 128, 8, 16, depth, 1, 0.26},
           {128, 128, 8, 8, depth, 2, 0.28},
           {128, 64, 4, 8, depth, 2, 0.185},
           {64, 64, 4, 8, depth, 3, 0.155},
           {16, 128, 2, 8, depth, 4, 0.075}}};
}
constexpr std::array kTiles8 = tensor_tiles(64), kTiles16 = tensor_tiles(32), kTiles32 = tensor_tiles(16);

std::span<const TileShape> tile_shapes(const TileKind& k) {
  if (k.tensor) {
    int bits = info(k.tensor->a).bits;
    return bits == 8 ? kTiles8 : bits == 16 ? kTiles16 : kTiles32;
  }
  if (k.sum == DType::f64 || k.sum == DType::i64) return kWideTiles;
  return kTiles;
}

// Operations in a second.
double rate_of(const TileKind& k, const Device& d) {
  if (k.tensor) {
    constexpr double kSingle = 0.35, kComputed = 0.6;  // of operands that come one by one; that pass through registers
    int bits = info(k.tensor->a).bits;
    return (bits == 8    ? d.rates.bits8
            : bits == 16 ? d.rates.bits16
                         : d.rates.tf32) *
           (k.vectors ? 1 : kSingle) * (k.computed ? kComputed : 1);
  }
  return d.rates.f32 * (k.sum == DType::f32 ? 1 : k.sum == DType::i64 ? 0.1 : 0.5);
}

double seconds(const Problem& p, const TileShape& t, int64_t blocks, int64_t splits, const TileKind& k,
               const Device& d) {
  // Taps are shared out among residues; experts share the rows.
  double depth = static_cast<double>(p.depth());
  if (p.moe && p.moe->mode == dev::kExpertGradient) depth /= static_cast<double>(std::max<int64_t>(1, p.batches()));
  double rate = rate_of(k, d) / d.units * t.efficiency;
  double rounds = static_cast<double>(ceil_div(blocks * splits, d.units));
  if (blocks * splits <= d.units) rounds *= 1.5;  // a block alone leaves gaps
  double each = 2.0 * t.height * t.width * (depth / static_cast<double>(splits) + 4 * t.depth);
  constexpr double kComputed = 2.3;  // operands that are computed on their way, measured
  double time = rounds * each / rate * (k.computed ? kComputed : 1);
  if (splits > 1) {
    double bytes = 2.0 * static_cast<double>(splits * blocks) * t.height * t.width * info(k.sum).bits / 8;
    time += bytes / d.bytes_per_second + d.step_seconds;
  }
  return time;
}

// Types whose values bf16 or f16 has.
bool fits(DType t, DType into) {
  bool small = is_minifloat(t) && info(t).format.sign && largest(t) <= largest(into);
  return t == into || small || t == DType::i8 || t == DType::u8 || t == DType::i4 || t == DType::u4;
}

}  // namespace

DType sum_type(const Graph& g, const Node& n, const Problem& p) {
  if (n.compute == DType::f64) return DType::f64;
  if (!is_integer(n.compute)) return DType::f32;
  constexpr int64_t kDeepest = 1 << 15;  // sums of products of bytes then fit
  auto small = [&](TensorId t) { return is_integer(g.tensor(t).dtype) && info(g.tensor(t).dtype).bits <= 8; };
  return small(p.a) && small(p.b) && p.depth() <= kDeepest ? DType::i32 : DType::i64;
}

std::optional<TensorTypes> tensor_types(const Graph& g, const Problem& p, DType sum) {
  DType a = g.tensor(p.a).dtype, b = g.tensor(p.b).dtype;
  auto is_byte = [](DType t) { return t == DType::i8 || t == DType::u8; };
  if (sum == DType::i32 && is_byte(a) && is_byte(b)) return TensorTypes{a, b};
  if (sum != DType::f32) return std::nullopt;
  for (DType t : {DType::bf16, DType::f16})
    if (fits(a, t) && fits(b, t)) return TensorTypes{t, t};
  auto is_short = [](DType t) { return fits(t, DType::bf16) || fits(t, DType::f16); };
  auto may_be_cut = [&](DType t) { return is_short(t) || (p.tf32 && t == DType::f32); };
  if (may_be_cut(a) && may_be_cut(b)) return TensorTypes{DType::f32, DType::f32};
  return std::nullopt;
}

RowTiles row_tiles(const Problem& p, const TileShape& t) {
  int64_t plain = ceil_div(p.row_count(), t.height);
  if (!p.moe || p.moe->mode == dev::kExpertGradient) return {plain, 0, plain};
  int64_t items = plain + p.moe->ranges;
  return {plain, items, items + (p.moe->mode == dev::kScatter ? plain : 0)};
}

std::vector<Choice> choices(const Problem& p, const TileKind& k, bool direct, const Region& r, const Device& d) {
  constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1, kMostSplits = 64, kLeastDepth = 64;
  constexpr double kTensorMemory = 0.6;  // of the bandwidth, while tensor cores are fed
  double memory = region_bytes(r) / (d.bytes_per_second * (k.tensor ? kTensorMemory : 1));
  std::vector<Choice> all;
  for (const TileShape& t : tile_shapes(k)) {
    constexpr int kMostBytes = 32;  // sums of a thread that also holds single bytes on their way
    if (k.tensor && !k.vectors && info(k.tensor->a).bits == 8 && t.rows * t.columns > kMostBytes) continue;
    double tiles = static_cast<double>(row_tiles(p, t).all) * static_cast<double>(ceil_div(p.column_count(), t.width)) *
                   static_cast<double>(p.batches()) * static_cast<double>(p.residues);
    if (tiles * t.rows > static_cast<double>(kMostBlocks)) continue;
    auto blocks = static_cast<int64_t>(tiles);
    int64_t most = std::min(kMostSplits, most_parts(r, tiles * t.height * t.width * info(k.sum).bits / 8));
    for (int64_t splits = 1; splits <= most; splits *= 2) {
      if (splits > 1 && (blocks * splits > int64_t{4} * d.units || p.depth() / splits < kLeastDepth)) break;
      double time = std::max(memory, seconds(p, t, blocks, splits, k, d)) + d.step_seconds;
      all.push_back({&t, splits, time + (p.moe ? 2 : k.reduced ? 1 : 0) * d.step_seconds});
    }
  }
  if (direct) {
    constexpr double kDirectEfficiency = 0.06, kLatency = 40e-9;  // a thread waits for every term
    double outputs = static_cast<double>(p.row_count() * p.column_count()) * static_cast<double>(p.batches());
    int64_t splits =
        std::clamp<int64_t>(ceil_div(p.depth(), dev::kDirectDepth), 1, most_parts(r, outputs * info(k.sum).bits / 8));
    double parts = splits > 1 ? 2 * static_cast<double>(splits) * outputs * 8 / d.bytes_per_second : 0;
    double time = region_flops(r) / (rate_of(k, d) * kDirectEfficiency) + parts +
                  static_cast<double>(ceil_div(p.depth(), splits) + splits) * kLatency;
    if (static_cast<double>(splits) * (outputs / 256 + 1) < static_cast<double>(kMostBlocks))
      all.push_back({nullptr, splits, std::max(memory, time) + (splits > 1 ? 2 : 1) * d.step_seconds});
  }
  std::stable_sort(all.begin(), all.end(), [](const Choice& x, const Choice& y) { return x.seconds < y.seconds; });
  return all;
}

}  // namespace tsr::cuda
