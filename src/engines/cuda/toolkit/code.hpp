// SPDX-License-Identifier: Apache-2.0
// Prints an expression as straight-line device code: a struct template that kernels call, several in one kernel under
// names of their own. The text depends on types, operations and the shape of memory access, never on sizes: numbers
// travel with the launch.
#pragma once

#include "engines/cuda/toolkit/layout.hpp"

namespace tsr::cuda {

// A number of the arguments: a constant, or a scalar that the caller gives at execution.
struct NumberPlan {
  Lane lane = Lane::f32;
  double value = 0;
  TensorId tensor = kNone;
};

// A number as a launch carries it; of a scalar, from where its value lies.
dev::Number to_number(Lane lane, double v);
dev::Number read_number(Lane lane, DType type, const void* data);

struct Code {
  std::string text;
  std::string args;  // the type of the arguments
  std::vector<NumberPlan> numbers;
  int stages = 0;           // of reductions; each needs the results of the one before
  int estimates = 0;        // stages that look at a part of each row only
  int reductions = 0;       // partial results of a thread in one stage at most, for each of its rows
  int partial_bytes = 0;    // of these, for all rows of a thread
  int row_values = 0;       // what is known of a row at most
  int across = 0;           // sums over all rows
  int sum_bytes = 0;        // that they take for an element
  int live_bytes = 0;       // of registers, for partial results and values of rows in a pass
  bool stores = false;      // does any element go to memory?
  bool row_stores = false;  // does any row value go to memory?
};

// `keep`: a thread keeps its elements from stage to stage, so costly values need not be computed again, and what only
// the last stage reads and the cache holds is loaded late.
// `args`: the type that holds operands and numbers, where it is not that of fused kernels.
Code print_code(const Expr& e, const Graph& g, const Layout& l, bool keep, const std::string& args = "",
                const std::string& name = "Code");
// Why the expression cannot be printed, if it cannot.
Reason check_code(const Expr& e, const Graph& g);

}  // namespace tsr::cuda
