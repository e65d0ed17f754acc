// SPDX-License-Identifier: Apache-2.0
// How lower() works, for the files that define it: lowering.cpp spans the space and makes instructions,
// lowering_operations.cpp has the table of operations, the others say how larger ones read as instructions.
#pragma once

#include <optional>
#include <unordered_map>

#include "graph/pointwise_modes.hpp"
#include "planner/expr.hpp"

namespace tsr {

// How operations cut an axis of their tensors into parts.
struct Split {
  int from_end;  // 1 is the last axis
  int64_t parts, length;
  bool operator==(const Split&) const = default;
};
class Lowering {
 public:
  Lowering(const Region& r, Expr& e, bool gpu) : r_(r), g_(*r.graph), e_(e), gpu_(gpu) {}
  void run();
  const Graph& graph() const { return g_; }
  const Expr& expr() const { return e_; }
  bool gpu() const { return gpu_; }

  // --- the space
  int space_axis(const Node& n, int axis, int rank) const;
  bool constant_along_rows(const Dims& d) const;

  // --- instructions
  Lane compute_lane(const Node& n) const;
  int emit(const Instr& i);
  const Instr& at(int i) const { return e_.code[static_cast<size_t>(i)]; }
  int to_lane(int v, Lane lane);
  int value(TensorId t, Lane lane);
  int scalar(double v, Lane lane);
  int apply(const tessera::PointwiseOptions& o, int a, int b = -1, int c = -1);
  int apply(PointwiseMode mode, int a, int b = -1, int c = -1);
  int reduce(tessera::ReduceMode mode, int a);
  int largest_of_block(int a);
  int mean(int a, bool rough = false);
  int over_length(int sum);  // of a row: its mean
  void define(TensorId t, int v);
  void define_across(TensorId t, int v);

 private:
  void find_split();
  void find_space();
  void set_row_axes(const Node& n, const Dims& kept);
  void place_blocks();
  bool broadcast_fits(const Dims& d) const;
  Dims read_sizes(const Tensor& x) const;
  bool full_row(const Dims& d) const;
  bool one_per_block(const Dims& d) const;
  bool whole_bytes(const Tensor& x) const;
  bool is_reordered(const Tensor& x) const;
  void check_outputs() const;
  bool sums_rows(const Dims& d) const;
  void write(const Node& n);

  const Region& r_;
  const Graph& g_;
  Expr& e_;
  bool gpu_;
  std::unordered_map<TensorId, int> values_;
  std::optional<Split> split_;
};

// What fused engines know of an operation.
struct LoweredOp {
  enum Blocks : uint8_t { none, read, reduced };
  static TensorId first_input(const Node& n) { return n.in[0]; }

  const OpSpec* op;
  void (*write)(Lowering& l, const Node& n);  // its instructions
  // Sizes of what is left of its first input when every row is reduced to one value; null: it makes no rows.
  Dims (*kept)(const Graph& g, const Node& n) = nullptr;
  TensorId (*spans)(const Node& n) = first_input;                          // the tensor whose sizes span the space
  std::optional<Split> (*split)(const Graph& g, const Node& n) = nullptr;  // how it cuts an axis, if it does
  Blocks blocks = none;                                                    // the parts of the split share a value
  bool any_compute = false;                                                // not in floating-point numbers alone
};
// Declines an operation that no fused engine knows.
const LoweredOp& lowered_op(const Node& n);

namespace lowered {
void pointwise(Lowering& l, const Node& n);
void reduce(Lowering& l, const Node& n);
void softmax(Lowering& l, const Node& n);
void softmax_bwd(Lowering& l, const Node& n);
void cross_entropy(Lowering& l, const Node& n);
void cross_entropy_bwd(Lowering& l, const Node& n);
void argmax(Lowering& l, const Node& n);
void norm_fwd(Lowering& l, const Node& n);
void norm_bwd(Lowering& l, const Node& n);
void gen_stats(Lowering& l, const Node& n);
void bn_finalize(Lowering& l, const Node& n);
void bn_bwd_weights(Lowering& l, const Node& n);
void rng(Lowering& l, const Node& n);
void dropout(Lowering& l, const Node& n);
void dropout_bwd(Lowering& l, const Node& n);
void band_mask(Lowering& l, const Node& n);
void block_scale_quantize(Lowering& l, const Node& n);
void block_scale_dequantize(Lowering& l, const Node& n);
}  // namespace lowered

}  // namespace tsr
