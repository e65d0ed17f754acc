// SPDX-License-Identifier: Apache-2.0
// How lower() works, for the files that define it: lowering.cpp spans the space and makes instructions, the others say
// how each operation reads as instructions.
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
// The blocks of block_scale_quantize and block_scale_dequantize.
Split blocks_of(const Graph& g, const Node& n);

class Lowering {
 public:
  Lowering(const Region& r, Expr& e, bool gpu) : r_(r), g_(*r.graph), e_(e), gpu_(gpu) {}
  void run();

 private:
  // --- the space
  void find_split();
  void find_space();
  std::vector<TensorId> main_tensors(const Node& n) const;
  void set_row_axes(const Node& n, const Dims& x, const Dims& kept);
  Dims softmax_kept(const Node& n) const;
  void reduced_axes(const Node& n);
  void place_blocks();
  int space_axis(const Node& n, int axis, int rank) const;
  bool constant_along_rows(const Dims& d) const;
  bool broadcast_fits(const Dims& d) const;
  Dims read_sizes(const Tensor& x) const;
  bool full_row(const Dims& d) const;
  bool one_per_block(const Dims& d) const;
  bool whole_bytes(const Tensor& x) const;
  bool is_reordered(const Tensor& x) const;
  void check_outputs() const;

  // --- instructions
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
  bool sums_rows(const Dims& d) const;

  // --- operations
  void node(const Node& n);
  Lane compute_lane(const Node& n) const;
  void pointwise(const Node& n);
  void check_integer_mode(const Node& n, PointwiseMode m) const;
  void reduction(const Node& n);
  void softmax(const Node& n);
  void softmax_backward(const Node& n);
  int position(const Node& n, int64_t axis, int rank, Lane lane);
  void check_positions(const Node& n, int64_t size, Lane lane) const;
  int is_class(int target, int64_t classes, Lane lane);
  void cross_entropy(const Node& n);
  void cross_entropy_backward(const Node& n);
  void argmax(const Node& n);
  int effective_scale(TensorId t, bool zero_centered, Lane lane);
  int centre(bool centred, int x, int& d, int& average);
  void norm(const Node& n);
  void norm_backward(const Node& n);
  void channel_sums(const Node& n);
  void finalize_batch_norm(const Node& n);
  void batch_norm_weights(const Node& n);
  int random(const Node& n, size_t seed, size_t offset, int64_t seed_value, int64_t offset_value);
  void random_numbers(const Node& n);
  void dropout(const Node& n);
  void dropout_backward(const Node& n);
  void band_mask(const Node& n);
  void block_quantize(const Node& n);
  void block_dequantize(const Node& n);

  const Region& r_;
  const Graph& g_;
  Expr& e_;
  bool gpu_;
  std::unordered_map<TensorId, int> values_;
  std::optional<Split> split_;
};

inline bool is(const Node& n, std::string_view op) { return n.op->name == op; }

}  // namespace tsr
