// SPDX-License-Identifier: Apache-2.0
// What host and device share of convolutions in groups of few channels.
#pragma once

#include "device/code_args.cuh"

namespace tsr::dev {

// What follows the convolution: operands and numbers of the generated code. Strides are in elements, by the axes of the
// result: images, channels, rows, columns; for the gradient of a filter: filters, channels, rows, columns of taps.
struct GroupsEpilogue {
  static constexpr int kOperands = 8;
  struct Operand {
    void* data;
    i64 step;
    i64 strides[4];
  };
  Operand operands[kOperands];
  Number numbers[kMaxNumbers];
};

// Pictures whose channels lie side by side. Strides are in elements.
struct GroupsPictures {
  const void* data;
  i64 image, row, column;
  i32 rows, columns;
};

// Position (r, c) of the result and tap (i, j) meet the pictures at (r STRIDE + first_row + i, c STRIDE + first_column
// + j), where the filter has its tap (i, j), counted from its end where it is turned.
struct GroupsArgs {
  GroupsPictures pictures;
  GroupsPictures gradient;  // of the result, for the gradient of the filter; else only its sizes count
  const void* filter;
  i64 filter_group, filter_out, filter_in;  // from group to group; along the channels of results, and of pictures
  i64 filter_row, filter_column;
  i32 images, channels;
  i32 first_row, first_column;
  i32 turned_row, turned_column;
  i32 tiles, down, across;  // of channels; patches of an image
  i32 shares;               // of the patches, for the gradient of the filter
  float* parts;             // [share][filter][tap][channel of its group]
  GroupsEpilogue epilogue;
};

}  // namespace tsr::dev
