// SPDX-License-Identifier: Apache-2.0
// The arguments of the kernel of rotary embeddings, shared by host and device.
#pragma once

#include "device/divide.cuh"
#include "device/ragged.cuh"

namespace tsr::dev {

struct RopeArgs {
  const void* x;
  const void* angles;
  void* y;
  i64 x_steps[4], y_steps[4];  // by batch, head, position, element
  i64 angle_steps[2];          // by position, pair
  Ragged x_ragged, y_ragged;
  i64 count;      // threads
  i64 sequences;  // batches times heads
  Divisor heads, positions;
  Divisor pieces;        // of a head's elements: first those that pass, then those that turn with their partners
  i64 passing, turning;  // elements that pass; pairs that turn
  double scale, sign;
};

}  // namespace tsr::dev
