// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/resample/pool.hpp"

#include <algorithm>
#include <cstdlib>

#include "engines/cuda/toolkit/launches.hpp"

namespace tsr::cuda {
namespace {

constexpr const char *kForward = "engines/cuda/resample/pool.cuh", *kBackward = "engines/cuda/resample/pool_bwd.cuh";
constexpr int kThreads = 256;
constexpr int64_t kGroup = 8;     // vectors of channels of a block: 128 bytes side by side
constexpr int64_t kTileRows = 4;  // rows of results of a block
constexpr int64_t kMost = (int64_t{1} << 31) - 1;

bool is_float_of_16_or_32_bits(const Graph& g, TensorId t) {
  if (t == kNone) return true;
  DType type = g.tensor(t).dtype;
  return type == DType::f16 || type == DType::bf16 || type == DType::f32;
}

// Windows of k positions, whole steps from each other, of which each holds an element.
bool has_windows(const dev::ResampleAxis& a, int64_t k) {
  const dev::Line &first = a.first, &end = a.end;
  if (a.extent != k || first.unit.value != 1 || end.unit.value != 1 || end.shift - end.base + first.base != k)
    return false;
  int64_t last = (a.y - 1) * first.scale.value - first.base;
  return first.base < k && last < a.x && a.x + k < kMost;
}

// Do 31 bits hold all offsets within an image?
bool is_small(const dev::Operand& o, const Dims& size) {
  double most = 0;
  for (int i = 1; i < 5; ++i) most += static_cast<double>(size[i] - 1) * static_cast<double>(std::abs(o.strides[i]));
  return most < static_cast<double>(kMost);
}

Dims size_of_x(const dev::ResampleArgs& a, const PoolTensors& t) {
  Dims x = t.size;
  for (int i = 0; i < 3; ++i) x[2 + i] = a.axes[i].x;
  return x;
}

// Can v neighbours of a row be moved at once?
bool rows_move(const Graph& g, TensorId id, const dev::Operand& o, const Dims& size, int64_t v) {
  if (o.strides[4] != 1 || size[4] % v != 0) return false;
  for (int i = 0; i < 4; ++i)
    if (size[i] > 1 && o.strides[i] % v != 0) return false;
  if (id == kNone || !g.tensor(id).stored) return true;
  const Tensor& t = g.tensor(id);
  return t.alignment % std::min<int64_t>(16, info(t.dtype).bits / 8 * v) == 0;
}

// Windows of 2 x 2 or 3 x 3, in images whose offsets are small.
bool has_small_windows(const PoolTensors& t, const dev::ResampleArgs& a) {
  if (std::any_of(t.size.begin(), t.size.end(), [](int64_t n) { return n == 0; })) return false;
  int64_t k = a.axes[1].extent;
  return k >= 2 && k <= 3 && has_windows(a.axes[1], k) && has_windows(a.axes[2], k) && a.axes[0].x == 1 &&
         a.axes[0].y == 1 && a.axes[0].extent == 1 && is_small(a.x, size_of_x(a, t)) && is_small(a.y, t.size) &&
         is_small(a.index, t.size);
}

std::string types_of(const Graph& g, const PoolTensors& t) {
  return cat(device_type_of(g, t.x), ", ", device_type_of(g, t.y), ", ", t.index_type);
}

std::string types_of_bwd(const Graph& g, const PoolTensors& t) {
  return cat(device_type_of(g, t.y), ", ", device_type_of(g, t.x), ", ", t.index_type);
}

// Blocks over tiles of so many rows and columns, each place of them with all channels.
Grid share_tiles(const PoolTensors& t, int64_t all_rows, int64_t all_columns, dev::ResampleArgs& a) {
  int64_t vectors = t.size[1] / t.channels.count, group = std::min(kGroup, vectors);
  int64_t rows = std::min(kTileRows, all_rows), columns = std::min(kThreads / (group * rows), all_columns);
  int64_t down = ceil_div(all_rows, rows), across = ceil_div(all_columns, columns), groups = ceil_div(vectors, group);
  a.channels = dev::make_divisor(group), a.tile = dev::make_divisor(rows);
  a.columns = dev::make_divisor(across), a.rows = dev::make_divisor(down), a.depth = dev::make_divisor(groups);
  a.tile_columns = static_cast<int>(columns), a.vectors = static_cast<int>(vectors);
  return {t.size[0] * groups * down * across, kThreads, 0};
}

PoolKernel use_channels(const Graph& g, const PoolTensors& t, dev::ResampleArgs& a) {
  return {kForward,
          instance("pool_channels", types_of(g, t), t.channels.count, a.axes[1].extent, a.kind == dev::kMaximum),
          share_tiles(t, t.size[3], t.size[4], a)};
}

// The most elements of x that a thread can take of a row, with the results that belong to them; 0: none.
int64_t choose_piece(const Graph& g, const PoolTensors& t, const dev::ResampleArgs& a) {
  const dev::ResampleAxis& row = a.axes[2];
  int64_t stride = row.first.scale.value, pad = row.first.base, behind = row.extent - stride - pad;
  if (stride > 2 || pad > 1 || behind < 0 || behind > 1 || row.y * stride != row.x) return 0;
  for (int64_t v = 16 / (info(g.tensor(t.x).dtype).bits / 8); v >= 2 * stride; v /= 2) {
    int64_t out = v / stride;
    if (rows_move(g, t.x, a.x, size_of_x(a, t), v) && (t.y == kNone || rows_move(g, t.y, a.y, t.size, out)) &&
        (t.index_type == "none" || rows_move(g, t.index, a.index, t.size, out)))
      return v;
  }
  return 0;
}

// Threads over pieces of so many rows.
std::optional<Grid> share_pieces(const PoolTensors& t, int64_t pieces, int64_t rows, dev::ResampleArgs& a) {
  a.columns = dev::make_divisor(pieces), a.rows = dev::make_divisor(rows), a.channels = dev::make_divisor(t.size[1]);
  a.threads = t.size[0] * t.size[1] * rows * pieces;
  if (a.threads > kMost - kThreads) return {};
  return Grid{ceil_div(a.threads, kThreads), kThreads, 0};
}

std::optional<PoolKernel> use_rows(const Graph& g, const PoolTensors& t, dev::ResampleArgs& a) {
  int64_t v = choose_piece(g, t, a), stride = a.axes[2].first.scale.value, pad = a.axes[2].first.base;
  if (!v) return {};
  std::optional<Grid> grid = share_pieces(t, a.axes[2].x / v, t.size[3], a);
  if (!grid) return {};
  return PoolKernel{kForward,
                    instance("pool_rows", types_of(g, t), v, a.axes[1].extent, stride, pad, a.kind == dev::kMaximum),
                    *grid};
}

// Squares of elements with which windows begin.
int64_t starts(const dev::ResampleAxis& a) { return ceil_div(a.x + a.first.base, a.first.scale.value); }

std::optional<PoolKernel> use_rows_bwd(const Graph& g, const PoolTensors& t, dev::ResampleArgs& a) {
  int64_t v = choose_piece(g, t, a);
  if (!v) return {};
  std::optional<Grid> grid = share_pieces(t, a.axes[2].x / v, starts(a.axes[1]), a);
  if (!grid) return {};
  return PoolKernel{kBackward,
                    instance("pool_rows_bwd", types_of_bwd(g, t), v, a.axes[1].extent, a.axes[2].first.scale.value,
                             a.axes[2].first.base),
                    *grid};
}

}  // namespace

std::optional<PoolKernel> choose_pool(const Graph& g, const PoolTensors& t, dev::ResampleArgs& a) {
  bool max = a.kind == dev::kMaximum && a.pad == dev::kPadInfinity;
  bool mean = a.kind == dev::kMeanExclude || (a.kind == dev::kMeanInclude && a.pad == dev::kPadZero);
  if ((!max && !mean) || !is_float_of_16_or_32_bits(g, t.x) || !is_float_of_16_or_32_bits(g, t.y)) return {};
  if (!has_small_windows(t, a)) return {};
  if (t.channels.together && t.channels.count > 1) return use_channels(g, t, a);
  return use_rows(g, t, a);
}

std::optional<PoolKernel> choose_pool_bwd(const Graph& g, const PoolTensors& t, dev::ResampleArgs& a) {
  bool max = a.kind == dev::kMaximum && a.pad != dev::kPadEdge;
  bool mean = a.kind == dev::kMeanExclude || (a.kind == dev::kMeanInclude && a.pad != dev::kPadEdge);
  if ((!max && !mean) || !is_float_of_16_or_32_bits(g, t.x) || !is_float_of_16_or_32_bits(g, t.y)) return {};
  int64_t stride = a.axes[1].first.scale.value;
  if (!has_small_windows(t, a) || stride > 2 || a.axes[2].first.scale.value != stride) return {};
  if (!t.channels.together || t.channels.count == 1) return use_rows_bwd(g, t, a);
  return PoolKernel{kBackward,
                    instance("pool_channels_bwd", types_of_bwd(g, t), t.channels.count, a.axes[1].extent, stride),
                    share_tiles(t, starts(a.axes[1]), starts(a.axes[2]), a)};
}

}  // namespace tsr::cuda
