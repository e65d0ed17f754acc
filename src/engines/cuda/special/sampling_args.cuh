// SPDX-License-Identifier: Apache-2.0
// Arguments of spatial transformers. Images and grids have three spatial dimensions, the first of them of size 1 in the
// plane; grids have their coordinates at stride index 4.
#pragma once

#include "device/divide.cuh"
#include "device/operand.cuh"

namespace tsr::dev {

// Of the block that gathers dx: a piece of the image for a few channels stays in shared memory.
constexpr int kPieceChannels = 32, kPieceThreads = 128, kPiecePixels = 128;

struct SamplingArgs {
  Operand x, grid, y, dx, dgrid;  // y: also dy
  Operand theta;                  // also dtheta
  i64 batch, channels, image[3];
  Divisor places[3], pixels[3];  // of the grid; of the image
  Divisor channel_count, place_count;
  i64 all_places, all_pixels;  // of one batch
  i64 pieces, channel_pieces;
  bool channels_last;
  int spatial;
  void* workspace;
};

}  // namespace tsr::dev
