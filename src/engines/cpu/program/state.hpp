// SPDX-License-Identifier: Apache-2.0
// What run.cpp and run_code.cpp share: a worker's state, and steps through the elements of a row.
#pragma once

#include "engines/cpu/program/program.hpp"

namespace tsr::cpu {

constexpr int64_t kRegisterBytes = kBlock * 8;

// What one worker carries along. Arrays by op or by access.
struct Program::State {
  void* const* tensors = nullptr;
  std::byte *registers = nullptr, *row_registers = nullptr, *kept = nullptr;
  double* row_values = nullptr;  // 8 bytes of any lane
  int64_t* bases = nullptr;      // element offset of the row
  double* sums = nullptr;        // running reductions (int64_t in the integer lane), sum_count() for each op
  float* partials = nullptr;     // what chains collected of them, partial_count() for each op
  void** slots = nullptr;
  size_t bytes = 0;  // of all these arrays

  int64_t row = 0, width = 1;  // first row of the block, and how many
  bool in_row_code = false;
  int64_t first = 0, n = 0;  // elements (or columns) at work
  Dims outer, index;         // of the row, and of element `first` in it
};

inline int64_t offset_of(const Dims& index, const Dims& strides) {
  int64_t o = 0;
  for (int i = 0; i < index.size(); ++i) o += index[i] * strides[i];
  return o;
}

// Moves on by n within axis `last`, into the next run where it ends.
inline void advance(Dims& index, const Dims& dims, int last, int64_t n) {
  index[last] += n;
  for (int d = last; d > 0 && index[d] == dims[d]; --d) index[d] = 0, ++index[d - 1];
}

}  // namespace tsr::cpu
