// SPDX-License-Identifier: Apache-2.0
// Block scaling: how a tensor is cut into blocks that share a scale factor, and where the factors lie in memory.
#pragma once

#include <optional>

#include "graph/op.hpp"

namespace tsr {

// Length of a block in each dimension of x, given the sizes of its scale tensor. `wanted` is what the options say; when
// the sizes contradict it and it has one length other than 1, that length is tried along the other dimensions (front
// ends transpose tensors without telling). nullopt when nothing fits.
std::optional<Dims> block_lengths(const Dims& x, const Tensor& scale, const Dims& wanted);

// The same for the options of block_scale_dequantize.
std::optional<Dims> dequantize_lengths(const tessera::BlockScaleOptions& o, const Dims& x, const Tensor& scale);

// The same for a node of either operation, as it was found to be when the graph was made.
Dims scale_lengths(const Graph& g, const Node& n);

// Sizes of the scale tensor for blocks of these lengths; padded to whole tiles of 128 by 4 where it is reordered so.
Dims scale_sizes(const Dims& x, const Dims& lengths, Reordering reordering);

// The dimension that is cut: the one with a length other than 1, or the last.
int block_axis(const Dims& lengths);

// Element offset of a scale factor. f8_128x4 keeps, for each index of the leading dimensions, tiles of 128 rows by 4
// columns (columns run along the cut dimension, rows along the other of the last two) one after the other in row-major
// order; inside a tile the offset is (row % 32) * 16 + (row / 32) * 4 + column.
int64_t scale_offset(const Tensor& scale, const Dims& index, int cut);

// The same as a strided array: sizes and strides of the axes that dimensions of whole tiles are cut into, in the order
// of the dimensions. Rows become three axes, columns two. Gives the axis of the quarters of a tile's rows.
int scale_axes(const Tensor& scale, int cut, Dims& sizes, Dims& strides);

// Raises unless the reordering of a scale tensor can be honoured.
void check_scale(const Infer& ctx, const Tensor& scale, const Dims& lengths);

}  // namespace tsr
