// SPDX-License-Identifier: Apache-2.0
// An Expr made ready to run: axes collapsed, instructions sorted into phases and joined into chains, values given
// registers. program.cpp and chain.cpp make it, run.cpp runs it.
//
// A phase is one pass over the elements of a row. A reduction ends its phase: what depends on its result runs in a
// later one. Element values that later phases need are kept for the whole row, or computed again where rows are long;
// loads are repeated.
//
// Where the elements of a row lie far apart but neighbouring rows side by side (a reduction over columns), the roles
// change: a block is then a run of neighbouring rows, the program walks along them one element (or one tile of
// neighbouring elements) at a time, and later phases compute everything again. Rows that interleave in memory (groups
// of channels that lie side by side) become several columns each.
//
// Rows that are short, but not as short as that, are taken in groups: each phase runs over the rows of a group one
// after the other, and what is computed once for a row is computed for all of them at once.
//
// Where there are block values, pieces of a row hold whole blocks. Block values are computed once for each block; those
// that elements read are spread over their registers.
//
// Threads share the rows. Where there are too few rows, they share the elements of each phase instead.
#pragma once

#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {

class Program {
 public:
  // For run().
  Program(const Expr& e, const Graph& g, int threads);
  // For callers that run parts of the space: `order` lists its axes from slowest to fastest; rows, and elements of a
  // row, are counted in this order.
  Program(const Expr& e, const Graph& g, const std::vector<int>& order);

  size_t workspace_bytes() const;
  void run(void* const* tensors, std::byte* workspace) const;

  // As of a Step, by tensors of the graph.
  bool may_overwrite(TensorId input, TensorId output) const;

  int64_t row_length() const { return row_length_; }
  bool has_reduction() const { return has_reduction_; }
  size_t scratch_bytes() const;  // for a row or block at work
  // Whole rows [first, last).
  void run_rows(void* const* tensors, int64_t first, int64_t last, std::byte* scratch) const;
  // Elements [first, last) of the only row; for programs without reductions.
  void run_elements(void* const* tensors, int64_t first, int64_t last, std::byte* scratch) const;

 private:
  struct Op {
    Instr instr;
    int reg = -1;       // block register of the result
    int64_t kept = -1;  // byte offset of a whole row of results instead
    int access = -1;    // load, store, random: row in accesses_
    int spread = -1;    // register of a block value for each element
    int axis = -1;      // index: collapsed axis of the row, or of the rows when instr.row
  };
  struct Access {
    TensorId tensor;  // kNone: positions in a random tensor
    DType type;
    Dims outer, inner;    // strides along the collapsed axes of the rows and within a row
    bool stream = false;  // an output too large to stay in the caches
    bool packed = false;  // the elements of a row follow each other
    int64_t lanes = 1;    // columns that one value is for
    int64_t bytes = 0;    // of an element, 0 where it has fewer bits
  };
  // What a slot of a chain points to, all by op: its value, that of a block for each element, its memory now or later,
  // its partial results.
  struct Source {
    enum Kind : uint8_t { value, spread, memory, ahead, partials } kind;
    int index;
    bool operator==(const Source&) const = default;
  };
  struct Chain {
    std::vector<ChainStep> steps;
    std::vector<Source> slots;
    std::vector<int64_t> row_steps;  // bytes from a row of a group to the next, by slot
    bool per_block = false;
  };
  // One instruction on its own (or the spreading of its result), or a chain where op is negative.
  struct Piece {
    int op = -1;
    Chain chain;
    bool spread = false;
  };
  struct Phase {
    std::vector<int> row_ops;  // once for each row, before the elements
    std::vector<int> ops;      // for each block
    std::vector<int> reductions;
    std::vector<Piece> row_code, code;  // the same as chains
    int streamed = -1;                  // a store past the caches
    int64_t block = kBlock;             // elements that run_code takes at once
  };
  struct State;
  class ChainBuilder;

  // Computed for each block; a reduction reads the elements.
  static bool per_block(const Instr& c) { return c.block && c.kind != Instr::reduce; }

  // --- making
  void simplify(const Graph& g);
  void make(const Expr& e, const Graph& g, const std::vector<int>& order);
  void collapse(const Expr& e, const Graph& g, const std::vector<int>& order);
  void collapse_axes(const Expr& e, const std::vector<int>& order, const std::vector<Dims>& strides, bool row,
                     std::vector<int>& where);
  void choose_lanes();
  void choose_columns();
  void choose_tile();
  void choose_split();
  void choose_group();
  bool fits_chain(const Op& op) const;
  int64_t row_step(const Source& s) const;
  void schedule();
  void allocate();
  void make_chains();
  int64_t block_of(const Phase& p) const;
  int64_t part_start(int64_t part) const { return row_length_ / unit_ * part / parts_ * unit_; }
  bool prefetch_rows() const;
  bool direct(const Op& op) const;  // a chain can reach this memory itself
  bool repeats(const Op& op) const;
  Format format_of(const Op& op) const;  // of memory, `none` where chains cannot convert it

  template <class Visit>
  void each_access(const Visit& visit) const;

  // --- running
  bool side_by_side() const { return columns_ > 1; }
  bool in_groups() const { return group_ > 1; }
  // What a row has once lies side by side for the rows of a block.
  bool rows_at_once() const { return side_by_side() || in_groups(); }
  // Whether an op runs over rows, rather than over the elements of one.
  bool along_rows(const Op& op) const { return side_by_side() || (in_groups() && op.instr.row); }
  bool in_chain(const Op& op) const;  // the reduction is a step of a chain
  int64_t block_rows() const { return side_by_side() ? columns_ : group_; }
  int64_t row_register_bytes() const;
  int64_t kept_row_bytes(const Op& op) const { return (row_length_ * lane_bytes(op.instr.lane) + 63) / 64 * 64; }
  int64_t blocks() const;  // independent pieces of work: rows, or blocks of neighbouring rows
  size_t result_bytes() const;
  int64_t sum_count() const;
  int64_t partial_count() const;
  int64_t sum_width(const State& s) const;
  State make_state(void* const* tensors, std::byte* scratch) const;
  void set_constants(State& s) const;
  void run_split(void* const* tensors, std::byte* workspace) const;
  void start_block(State& s, int64_t block) const;
  void run_row_code(State& s, const std::vector<Piece>& code) const;
  void start_reductions(State& s, const Phase& p) const;
  void start_partials(State& s, int i) const;
  void run_phase(State& s, const Phase& p, int64_t first, int64_t last) const;
  void run_group(State& s, const Phase& p) const;
  void walk_columns(State& s, const Phase& p, int64_t first, int64_t last) const;
  void drain(State& s, const Phase& p) const;
  void finish_reductions(State& s, const Phase& p) const;
  void join_lanes(const Instr& c, double* sums, int64_t width) const;
  int64_t first_block(const State& s, const Phase& p) const;
  void run_code(State& s, const std::vector<Piece>& code) const;
  void run_chain(State& s, const Chain& c) const;
  void run_op(State& s, int i) const;
  void load(State& s, int i) const;
  void store(State& s, int i, const void* values) const;
  void write_index(const State& s, const Op& op, int64_t* y) const;
  void spread_blocks(State& s, int i) const;
  std::byte* place(const State& s, int i) const;
  std::byte* spread_place(const State& s, int i) const;
  int64_t element_offset(const State& s, const Op& op) const;
  char* memory(const State& s, const Op& op) const;
  int64_t ahead(const Op& op) const;
  template <class F>
  void each_run(const State& s, const Op& op, const F& f) const;

  std::vector<Op> ops_;
  std::vector<Access> accesses_;
  Dims outer_, inner_;  // collapsed sizes
  std::vector<Phase> phases_;
  std::vector<int> last_row_ops_;
  std::vector<Piece> last_row_code_;
  int registers_ = 0, row_registers_ = 0;
  int64_t kept_bytes_ = 0;
  int64_t rows_ = 1, row_length_ = 1;
  int64_t columns_ = 1;     // neighbouring rows in a block
  int64_t group_ = 1;       // the same, where they are computed one after the other
  int64_t lanes_ = 1;       // columns that belong to one row
  int64_t tile_ = 1;        // neighbouring elements of each of them
  std::vector<int> tiled_;  // row values that elements read, repeated for the tile
  bool whole_runs_ = true;  // blocks end where the innermost axis of a row does
  bool has_reduction_ = false;
  int64_t unit_ = 1;   // elements that share block values
  int64_t parts_ = 1;  // pieces that threads share of each phase, 1 where they share the rows
  int threads_ = 1;
};

}  // namespace tsr::cpu
