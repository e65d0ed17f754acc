// SPDX-License-Identifier: Apache-2.0
// How an expression meets memory: its operands, the loops over its space with as few axes as their strides allow, and
// how many elements a thread moves at once.
#pragma once

#include "device/code_args.cuh"
#include "planner/expr.hpp"

namespace tsr::cuda {

// A tensor that is read or written, or a coordinate (index, position of a random number) that is counted like memory.
struct OperandPlan {
  int instr = -1;
  Instr::Kind kind = Instr::load;
  TensorId tensor = kNone;
  DType type = DType::f32;
  bool row = false;     // one value for each row
  bool staged = false;  // comes through shared memory
  int64_t columns = 0;  // of scale factors in the order f8_128x4: those of a row; strides count them row by row
  Dims strides;         // by axis of the space, in elements
  // Of a thread's elements; given: the kernel itself puts them where loads would, or takes them in place of a store;
  // placed: results that go side by side
  // to an address which the kernel names instead of a position in the tensor.
  enum Access : uint8_t { vector, same, strided, given, placed } access = strided;
};

struct Loop {
  int64_t size = 1;
  std::vector<int64_t> strides;  // by operand, in elements
};

struct Layout {
  std::vector<OperandPlan> operands;
  std::vector<int> operand_of;     // by instruction, -1 for others
  std::vector<Loop> outer, inner;  // innermost first; outer: across rows
  int64_t rows = 1, length = 1;    // elements of a row
  int vector = 1;        // elements that a thread moves at once, along inner[0]; with `columns` along outer[0]
  bool wide = false;     // offsets need 64 bits
  bool columns = false;  // neighbouring rows lie side by side in memory, elements of a row do not
  bool passes = false;   // elements are read once for each stage: estimates then look at a part of each row
  int64_t block = 0;     // elements along inner[0] that share values of a block; 0: there are none
  int together = 1;      // elements that a thread takes one after the other, because their results share a byte

  int64_t elements() const { return rows * length; }
  // Is operand k the same for every row?
  bool fixed(size_t k) const;
};

// Whether an output may lie in the memory of an input: both by tensors of the expression. Threads load their elements
// before they store the results of these, so it may where both are accessed alike; an input that is known once for a
// row is read by many threads, and may be overwritten only by what it alone is read for.
bool may_overwrite(const Expr& e, const std::vector<OperandPlan>& operands, TensorId input, TensorId output);
// Is anything computed or stored for each block of a row?
bool has_blocks(const Expr& e);
// What the expression reads and writes. `out` gets operands, operand_of and wide.
Reason find_operands(const Expr& e, const Graph& g, Layout* out);
// Bytes that are moved in vain where elements of one line of memory are not used together.
double scattered_bytes(const Expr& e, const Graph& g);
// Raises nothing: a reason says why the kernels cannot take it.
Reason make_layout(const Expr& e, const Graph& g, Layout* out);

}  // namespace tsr::cuda
