// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/block_scale.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

constexpr int64_t kTileRows = 128, kTileColumns = 4;

int64_t divide_up(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// The other one of the last two dimensions.
int row_axis(const Dims& dims, int cut) { return cut == dims.size() - 1 ? dims.size() - 2 : dims.size() - 1; }

}  // namespace

int block_axis(const Dims& lengths) {
  for (int i = lengths.size() - 1; i >= 0; --i)
    if (lengths[i] != 1) return i;
  return lengths.size() - 1;
}

Dims scale_sizes(const Dims& x, const Dims& lengths, Reordering reordering) {
  Dims dims = x;
  for (int i = 0; i < x.size(); ++i) dims[i] = divide_up(x[i], lengths[i]);
  int cut = block_axis(lengths), rows = row_axis(dims, cut);
  if (reordering != Reordering::f8_128x4 || rows < 0) return dims;
  dims[cut] = divide_up(dims[cut], kTileColumns) * kTileColumns;
  dims[rows] = divide_up(dims[rows], kTileRows) * kTileRows;
  return dims;
}

std::optional<Dims> block_lengths(const Dims& x, const Tensor& scale, const Dims& wanted) {
  if (scale.dims.size() != x.size()) return std::nullopt;
  auto fits = [&](const Dims& lengths) {
    return scale.dims == scale_sizes(x, lengths, Reordering::none) ||
           scale.dims == scale_sizes(x, lengths, scale.reordering);
  };
  if (fits(wanted)) return wanted;
  Dims moved = wanted;
  int from = block_axis(wanted);
  moved[from] = 1;
  if (block_axis(moved) != moved.size() - 1 || moved.back() != 1) return std::nullopt;  // cut in two dimensions
  for (int axis = x.size() - 1; axis >= 0; --axis) {
    Dims lengths = moved;
    lengths[axis] = wanted[from];
    if (fits(lengths)) return lengths;
  }
  return std::nullopt;
}

std::optional<Dims> dequantize_lengths(const tessera::BlockScaleOptions& o, const Dims& x, const Tensor& scale) {
  Dims lengths = Dims::filled(x.size(), 1);
  auto first = x.size() - static_cast<int>(o.block.size());
  for (size_t i = 0; i < o.block.size(); ++i) lengths[first + static_cast<int>(i)] = o.block[i];
  return block_lengths(x, scale, lengths);
}

Dims scale_lengths(const Graph& g, const Node& n) {
  const auto& o = attrs<tessera::BlockScaleOptions>(n);
  const Tensor& x = g.tensor(n.in[0]);
  if (n.op == &ops::block_scale_dequantize) return *dequantize_lengths(o, x.dims, g.tensor(n.in[1]));
  Dims lengths = Dims::filled(x.rank(), 1);
  lengths[static_cast<int>(normalize_axis(o.axis, x.rank()))] = o.block[0];
  return lengths;
}

int64_t scale_offset(const Tensor& scale, const Dims& index, int cut) {
  if (scale.reordering != Reordering::f8_128x4) return scale.offset(index);
  int rows = row_axis(scale.dims, cut);
  int64_t row = index[rows], column = index[cut];
  Dims batch = index;
  batch[rows] = batch[cut] = 0;
  int64_t tile = row / kTileRows * (scale.dims[cut] / kTileColumns) + column / kTileColumns;
  int64_t within = row % 32 * 16 + row % kTileRows / 32 * kTileColumns + column % kTileColumns;
  return scale.offset(batch) + tile * kTileRows * kTileColumns + within;
}

int scale_axes(const Tensor& scale, int cut, Dims& sizes, Dims& strides) {
  int rows = row_axis(scale.dims, cut), quarters = 0;
  auto add = [&](int64_t size, int64_t stride) { sizes.push_back(size), strides.push_back(stride); };
  for (int i = 0; i < scale.rank(); ++i) {
    if (i == rows) {
      int64_t tiles = scale.dims[cut] / kTileColumns;
      add(scale.dims[i] / kTileRows, tiles * kTileRows * kTileColumns);
      quarters = sizes.size();
      add(kTileRows / 32, kTileColumns);
      add(32, 16);
    } else if (i == cut) {
      add(scale.dims[i] / kTileColumns, kTileRows * kTileColumns);
      add(kTileColumns, 1);
    } else {
      add(scale.dims[i], scale.strides[i]);
    }
  }
  return quarters;
}

void check_scale(const Infer& ctx, const Tensor& scale, const Dims& lengths) {
  ctx.check(scale.reordering == Reordering::none || scale.reordering == Reordering::f8_128x4, "scale ", describe(scale),
            " may be reordered as f8_128x4 only");
  if (scale.reordering == Reordering::none) return;
  int cut = block_axis(lengths), rows = row_axis(lengths, cut);
  ctx.check(lengths.size() >= 2 && cut >= lengths.size() - 2, "scale ", describe(scale),
            ": with reorder=f8_128x4 one of the last two dimensions must be cut into blocks");
  ctx.check(scale.dims[cut] % kTileColumns == 0 && scale.dims[rows] % kTileRows == 0, "scale ", describe(scale),
            ": with reorder=f8_128x4 dimension ", cut, " must be a multiple of 4 and dimension ", rows, " of 128");
}

}  // namespace tsr
