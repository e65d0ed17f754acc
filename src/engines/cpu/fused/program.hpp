// SPDX-License-Identifier: Apache-2.0
// An Expr made ready to run: axes collapsed, instructions sorted into phases, values given registers.
//
// A phase is one pass over the elements of a row. A reduction ends its phase: what depends on its result runs in a
// later one. Element values that later phases need are kept for the whole row; loads are repeated instead.
//
// Where the elements of a row lie far apart but neighbouring rows side by side (a reduction over columns), the roles
// change: a block is then a run of neighbouring rows, the program walks along them one element at a time, and later
// phases compute everything again.
#pragma once

#include "engines/cpu/fused/kernels.hpp"

namespace tsr::cpu {

class Program {
 public:
  // `order` lists the axes of the space from slowest to fastest, for callers that run parts of the space; without it
  // axes are walked in the order of memory. Rows, and elements of a row, are counted in this order.
  Program(const Expr& e, const Graph& g, const std::vector<int>& order = {});

  int64_t rows() const { return rows_; }
  int64_t row_length() const { return row_length_; }
  bool has_reduction() const { return has_reduction_; }
  size_t scratch_bytes() const;  // for each worker

  // Rows that side by side make a block, or 1 when rows run one after the other.
  int64_t columns() const { return columns_; }

  // Whole rows [first, last).
  void run_rows(void* const* tensors, int64_t first, int64_t last, std::byte* scratch) const;
  // Elements [first, last) of the only row; for programs without reductions.
  void run_elements(void* const* tensors, int64_t first, int64_t last, std::byte* scratch) const;

 private:
  struct Op {
    Instr instr;
    int reg = -1;       // block register of the result
    int64_t kept = -1;  // byte offset of a whole row of results instead
    int access = -1;    // load, store: row in accesses_
    int axis = -1;      // index: collapsed axis of the row, or of the rows when instr.row
  };
  struct Access {
    TensorId tensor;
    DType type;
    Dims outer, inner;    // strides along the collapsed axes of the rows and within a row
    bool stream = false;  // an output too large to stay in the caches
  };
  struct Phase {
    std::vector<int> row_ops;  // once for each row, before the elements
    std::vector<int> ops;      // for each block
    std::vector<int> reductions;
  };
  struct State;

  void fold_factors();
  void collapse(const Expr& e, const Graph& g, const std::vector<int>& order);
  void choose_columns();
  void schedule();
  void allocate();
  State make_state(void* const* tensors, std::byte* scratch) const;
  void start_row(State& s, int64_t row) const;
  void run_row_ops(State& s, const std::vector<int>& ops) const;
  void run_phase(State& s, const Phase& p, int64_t first, int64_t last) const;
  void run_op(State& s, int i, int64_t first, int64_t n) const;
  void load_block(State& s, const Op& op, int i, int64_t first, int64_t n) const;
  void store_block(State& s, const Op& op, int64_t first, int64_t n) const;
  void finish_reductions(State& s, const Phase& p) const;
  void run_columns(State& s, int64_t row, int64_t n) const;
  void run_column_op(State& s, int i, int64_t row, int64_t element, int64_t n) const;

  std::vector<Op> ops_;
  std::vector<Access> accesses_;
  Dims outer_, inner_;  // collapsed sizes
  std::vector<Phase> phases_;
  std::vector<int> last_row_ops_;
  int registers_ = 0;
  int64_t kept_bytes_ = 0;
  int64_t rows_ = 1, row_length_ = 1;
  int64_t columns_ = 1;
  bool has_reduction_ = false;
};

}  // namespace tsr::cpu
