// SPDX-License-Identifier: Apache-2.0
// The one expression form for fused work: a straight list of instructions over a space of elements, optionally cut into
// rows. The CPU engine interprets it block by block; a code generator can print each instruction as a line.
//
// A space is a set of axes. Without reductions every axis belongs to the row and there is one row. With reductions the
// reduced axes are the row axes: element values exist for every element of a row, row values once for each row, and
// reductions turn the first into the second.
//
// One axis of the tensors may be two of the space: its parts, and the elements of a part. So the groups of channels of
// a group norm are rows like any other. Where a part is a block of elements that share a scale factor, inside a row,
// there are also block values, once for each part of a row.
#pragma once

#include <array>
#include <vector>

#include "graph/op.hpp"
#include "planner/engine.hpp"

namespace tsr {

// What a value is computed in. Truth values are 0 and 1 of any lane.
enum class Lane : uint8_t { f32, f64, i64 };

struct Instr {
  enum Kind : uint8_t {
    load,      // element or row value of `tensor`
    constant,  // `value`
    index,     // coordinate along space axis `axis`
    random,    // uniform number in [0, 1) of a random tensor with seed a and offset b, see base/philox.hpp
    apply,     // pointwise `options.mode` of a, b, c
    reduce,    // `reduction` of a over the row: add, mul, min or max; over each block: max
    convert,   // a in another lane
    round,     // a as it reads back from `type`
    store,     // a into `tensor`
    across,    // the sum of element value a over all rows, into `tensor`
  };
  Kind kind = load;
  Lane lane = Lane::f32;
  bool row = false;    // a row value
  bool block = false;  // a block value
  bool rough = false;  // reduce: an estimate from a part of the row will do, the result does not depend on it
  int a = -1, b = -1, c = -1;
  TensorId tensor = kNone;
  DType type = DType::f32;
  int axis = 0;
  Dims positions;  // random: what each axis of the space adds to the position in the random tensor
  double value = 0;
  tessera::ReduceMode reduction = tessera::ReduceMode::add;
  tessera::PointwiseOptions options;
};

struct Expr {
  Dims space;                             // sizes of all axes
  std::array<bool, kMaxRank> row_axis{};  // axes that make up a row
  std::vector<Instr> code;
  bool has_reduction = false;
  int split_axis = -1;  // the first of two axes that are one of the tensors
  int block_axis = -1;  // the axis of `block` elements (the second of the two) that share block values
  int64_t block = 1;

  int tensor_rank() const { return space.size() - (split_axis >= 0 ? 1 : 0); }
  int64_t row_length() const;
  int64_t rows() const;
  // Size and stride of a tensor along each axis of the space: 1 and 0 where it repeats. Along a split axis a tensor has
  // all elements, one value for each part, or one for all.
  Dims sizes_of(const Dims& dims) const;
  Dims strides_of(const Tensor& t) const;
};

// Does it turn element values into a row value?
inline bool reduces_row(const Instr& c) { return c.kind == Instr::reduce && !c.block; }

// Expresses a region, or says why it cannot be. `out` may be null when only the answer matters. What is for kernels of
// GPUs may hold sums over all rows beside reductions of the rows themselves and results that share bytes in any way;
// blocks are short and powers of two, or rows of their own where nothing else makes rows.
Reason lower(const Region& r, Expr* out, bool gpu = false);
// Everything in a sub-graph that has one result.
Reason lower(const Subgraph& s, Expr* out);
std::string to_string(const Expr& e, const Graph& g);

}  // namespace tsr
