// SPDX-License-Identifier: Apache-2.0
// Arguments of scatter_add. A key is a place of the result that has a list of updates: a row, or an element where every
// element has an index. Edges are the indices.
#pragma once

#include "device/divide.cuh"
#include "device/operand.cuh"

namespace tsr::dev {

struct ScatterAddArgs {
  Operand updates, index, x, y;
  int index_bytes;  // of an element
  // Loops over the result: what each adds to the places in updates, x and y, and to the key.
  int axes;
  Divisor sizes[kMaxAxes];
  i64 at_updates[kMaxAxes], at_x[kMaxAxes], at_y[kMaxAxes], at_key[kMaxAxes];
  // Loops over the indices.
  int edge_axes;
  Divisor edge_sizes[kMaxAxes];
  i64 edge_updates[kMaxAxes], edge_index[kMaxAxes], edge_key[kMaxAxes];
  i64 size, row_key;  // of the axis: its size, and what a step adds to the key
  i64 elements;       // of the result
  // Of sorting (sort.cuh).
  i64 edges, rows, chunks, chunk_edges;
  void* workspace;  // i32: edges sorted, counts
};

}  // namespace tsr::dev
