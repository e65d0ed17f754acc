// SPDX-License-Identifier: Apache-2.0
// Where the copy engine finds positions and taps of pictures. One thread asks for all copies: it divides once for each
// tile, and only counts from one step to the next.
#pragma once

#include "engines/cuda/wgmma/args.cuh"

namespace tsr::dev {

// A position, counted one after the other.
struct WindowPlace {
  int column, row, picture;
  WindowPlace(const WgmmaWindow& w, int index) {
    int line = index / w.positions[0];
    picture = line / w.positions[1];
    column = index - line * w.positions[0], row = line - picture * w.positions[1];
  }
  // As many positions further on as `by` is from the first.
  void move(const WgmmaWindow& w, const WindowPlace& by) {
    column += by.column, row += by.row, picture += by.picture;
    if (column >= w.positions[0]) column -= w.positions[0], ++row;
    if (row >= w.positions[1]) row -= w.positions[1], ++picture;
  }
};
// Where a patch begins.
struct PatchPlace {
  int at[4];
  PatchPlace() = default;
  PatchPlace(const WgmmaWindow& w, int index) {
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      int rest = index / w.patches[i];
      at[i] = (index - rest * w.patches[i]) * w.patch[i];
      index = rest;
    }
    at[3] = index * w.patch[3];  // behind the last patch comes none
  }
  void next(const WgmmaWindow& w) {
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      at[i] += w.patch[i];
      if (at[i] < w.patches[i] * w.patch[i]) return;
      at[i] = 0;
    }
    at[3] += w.patch[3];
  }
};
// A step along channels and taps.
struct WindowStep {
  int channel, tap, moved[3];  // elements from a position to its tap
  int tile, index[3];          // which channels, and which tap along each dimension
  WindowStep() = default;
  WindowStep(const WgmmaWindow& w, int step, int depth) {
    int number = step / w.channel_tiles;
    tile = step - number * w.channel_tiles, channel = tile * depth;
    tap = w.filter_tap;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      int rest = number / w.taps[i];
      index[i] = number - rest * w.taps[i];
      tap += index[i] * w.filter_step[i], moved[i] = index[i] * w.apart[i];
      number = rest;
    }
  }
  void next(const WgmmaWindow& w, int depth) {
    channel += depth;
    if (++tile < w.channel_tiles) return;
    tile = channel = 0;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      tap += w.filter_step[i], moved[i] += w.apart[i];
      if (++index[i] < w.taps[i]) return;
      tap -= index[i] * w.filter_step[i], moved[i] = index[i] = 0;
    }
  }
};

}  // namespace tsr::dev
