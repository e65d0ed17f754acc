// SPDX-License-Identifier: Apache-2.0
// What host and device share of convolutions in groups of few channels.
#pragma once

#include "device/code_args.cuh"

namespace tsr::dev {

// What follows the convolution: operands and numbers of the generated code. Strides are in elements, by the axes of the
// result: images, channels, rows, columns, planes; for the gradient of a filter: filters, channels, rows, columns,
// planes of taps.
struct GroupsEpilogue {
  static constexpr int kOperands = 8;
  struct Operand {
    void* data;
    i64 step;
    i64 strides[5];
  };
  Operand operands[kOperands];
  Number numbers[kMaxNumbers];
};

// Pictures whose channels lie side by side. Strides are in elements.
struct GroupsPictures {
  const void* data;
  i64 image, plane, row, column;
  i32 planes, rows, columns;
};

// How windows walk along an axis. Result p and tap i meet the pictures at p stride + first + i. In gradients of the
// data of strided convolutions they meet them at first + (p + phase + i) / spread, where that is whole: results with
// the same residue, p modulo `spread`, have taps of their own, every `spread`-th.
struct GroupsWindow {
  i32 taps = 1, stride = 1, spread = 1;
  i32 phase = 0;  // 0 to spread - 1

  // Pictures that `count` neighbours of one residue meet, or of all residues.
  constexpr i32 met(i32 count) const { return (count - 1) * stride + 1 + (taps + phase + spread - 2) / spread; }
  // Of the results with a residue: the first tap, how many there are, and where the first one meets the pictures.
  constexpr i32 first_tap(i32 residue) const { return (2 * spread - phase - residue) % spread; }
  constexpr i32 taps_of(i32 residue) const { return (taps - first_tap(residue) + spread - 1) / spread; }
  constexpr i32 skipped(i32 residue) const { return (residue + phase + first_tap(residue)) / spread; }
};

// The filter has its tap (i, j) there, counted from its end where it is turned.
struct GroupsArgs {
  GroupsPictures pictures;
  GroupsPictures gradient;  // of the result, for the gradient of the filter; else only its sizes count
  const void* filter;
  i64 filter_group, filter_out, filter_in;  // from group to group; along the channels of results, and of pictures
  i64 filter_plane, filter_row, filter_column;
  i32 images, channels;
  i32 first_plane, first_row, first_column;
  i32 turned_plane, turned_row, turned_column;
  i32 tiles, down, across;  // of channels; patches of an image
  i32 shares;               // of the patches, for the gradient of the filter
  float* parts;             // [share][filter][plane][tap][channel of its group]
  Parts reduced;            // of what follows, by patches and channels
  GroupsEpilogue epilogue;
};

}  // namespace tsr::dev
