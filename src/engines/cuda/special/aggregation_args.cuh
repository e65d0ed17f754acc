// SPDX-License-Identifier: Apache-2.0
// Arguments of aggregation over the edges of a graph. A launch treats one part of the columns: the features of nodes or
// of edges, or those that are only copied.
#pragma once

#include "device/divide.cuh"
#include "device/operand.cuh"

namespace tsr::dev {

enum AggregateMode : int { kAggregateSum, kAggregateMean, kAggregateMax, kAggregateMin };

struct AggregationArgs {
  Operand offsets, keys;                           // keys: the row of features that an edge reads
  Operand part, whole;                             // features (their gradient) and y (dy)
  Operand positions;                               // absent without bytes
  int offsets_bytes, keys_bytes, positions_bytes;  // of an element; keys without bytes are the edges' own numbers
  i64 destinations, edges, rows;                   // rows of the part
  Divisor columns;                                 // of the part
  i64 first_column;                                // of the part in y
  int mode;
  // Backward: edges are sorted by key (sort.cuh).
  i64 chunks, chunk_edges;
  void* workspace;  // i32: destination of each edge, edges that count at each destination, edges sorted, counts
};

}  // namespace tsr::dev
