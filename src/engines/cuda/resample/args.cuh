// SPDX-License-Identifier: Apache-2.0
// The arguments of the kernels of resample, shared by host and device. Tensors have the dimensions n, c and three
// spatial ones, the first of them of size 1 where there are fewer.
#pragma once

#include "device/divide.cuh"
#include "device/operand.cuh"

namespace tsr::dev {

enum ResampleKind : int { kNearest, kBilinear, kMeanInclude, kMeanExclude, kMaximum };
enum ResamplePad : int { kPadZero, kPadInfinity, kPadEdge };

// A position of x that grows with the output element o: floor((o scale + shift) / unit) - base, nothing negative
// inside.
struct Line {
  i64 shift, base;
  Divisor scale, unit;
};

struct ResampleAxis {
  i64 x, y;         // sizes
  Line first, end;  // of the window
  i64 extent;       // positions that it has at most
};

struct ResampleArgs {
  Operand x, y, index;  // backward: dx and dy
  ResampleAxis axes[3];
  // Threads: channels (some at once), rows of a tile, columns, tiles, depth, batch where channels lie side by side;
  // columns, rows, depth, channels (some at once), batch otherwise. pool.cuh says what it does with them.
  Divisor channels, tile, columns, rows, depth;
  i64 threads;
  i32 tile_columns, vectors;  // pool_channels: columns of a block's tile, vectors of all channels
  bool channels_last;
  int kind, pad;
  double alpha;
  void* workspace;
  bool index_in_workspace;
};

}  // namespace tsr::dev
