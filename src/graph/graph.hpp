// SPDX-License-Identifier: Apache-2.0
// The one graph: tensors, nodes and how they are connected. Every front end builds this and nothing else.
//
// A tensor is an input (stored, no producer), an output (stored, produced by a node) or virtual (produced, not stored).
// Its memory is described by sizes and strides in elements; see Tensor::offset for the full rule.
#pragma once

#include <any>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/dims.hpp"
#include "base/dtype.hpp"

namespace tsr {

using TensorId = int32_t;
using NodeId = int32_t;
constexpr TensorId kNone = -1;
constexpr TensorId kNew = -2;  // as an output of a node: to be created with it

// How scale factors of block-scaled types are laid out in memory.
enum class Reordering : uint8_t { none, f8_128x4, i8x32, f16x16 };

struct Tensor {
  std::string name;
  int64_t uid = 0;
  DType dtype = DType::f32;
  Dims dims, strides;
  bool stored = false;              // lives in the caller's memory
  bool by_value = false;            // a scalar whose value arrives in host memory at execution
  std::vector<std::byte> constant;  // non-empty: the value itself, part of the graph
  int64_t alignment = 16;           // promised alignment of the pointer in bytes
  bool frozen = false;              // promise: an input whose contents stay the same for all executions of a plan
  TensorId ragged = kNone;          // tensor of element offsets, one for each batch and one past the end
  int64_t ragged_multiplier = 1;
  Reordering reordering = Reordering::none;
  // What the author wrote (as opposed to what was inferred); inference may only fill in the rest.
  bool dtype_given = false, dims_given = false, strides_given = false, uid_given = false;

  int rank() const { return dims.size(); }
  int64_t numel() const { return volume(dims); }
  bool is_constant() const { return !constant.empty(); }
  // By-value scalars and constants of one element lie in the host's memory when a step runs.
  bool on_host() const { return by_value || (is_constant() && numel() == 1); }
  // Element offset of a multi-index. Vectorised types keep groups of info(dtype).vector scalars of dimension 1 together
  // and count strides in such groups.
  int64_t offset(const Dims& index) const;
  int64_t span() const;  // elements from the first to the last touched, 0 for an empty tensor
  int64_t bytes() const { return byte_size(dtype, span()); }
};

struct OpSpec;

struct Node {
  const OpSpec* op = nullptr;
  std::vector<TensorId> in, out;   // by slot; kNone where an optional slot is empty; variadic inputs come last
  std::vector<TensorId> captures;  // outer tensors that the node's sub-graphs read, in the order of their captures
  std::any attrs;                  // the operation's options struct
  DType compute = DType::f32;
  bool compute_given = false;
};

// What a node has in a slot of `in` or `out`; kNone: nothing.
inline TensorId slot(const std::vector<TensorId>& list, size_t i) { return i < list.size() ? list[i] : kNone; }

template <class Options>
const Options& attrs(const Node& n) {
  return *std::any_cast<Options>(&n.attrs);
}

class Graph {
 public:
  TensorId add_tensor(Tensor t);  // fills in name and uid where they are missing
  // Adds a node and infers its outputs; a required output is created when it is kNone. When the node is refused, the
  // graph is as it was before.
  NodeId add_node(Node n);
  // Gives a node an optional output that it did not have so far.
  TensorId add_output(NodeId id, size_t slot);
  // Nodes from `first` on read other tensors instead (from -> to); nodes are put in order again.
  void replace_inputs(NodeId first, const std::unordered_map<TensorId, TensorId>& instead);
  // Only for front ends that list nodes in any order: adds without inference; finalize() does the rest.
  NodeId add_node_unordered(Node n);
  // Orders nodes, infers what is missing, checks everything. Idempotent.
  void finalize();
  bool finalized() const { return finalized_; }

  const Tensor& tensor(TensorId id) const { return tensors_[static_cast<size_t>(id)]; }
  Tensor& edit(TensorId id);  // invalidates finalize()
  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  int tensor_count() const { return static_cast<int>(tensors_.size()); }
  int node_count() const { return static_cast<int>(nodes_.size()); }
  NodeId producer(TensorId id) const { return producer_[static_cast<size_t>(id)]; }
  std::vector<NodeId> consumers(TensorId id) const;
  TensorId find(std::string_view name) const;  // kNone when there is none
  TensorId find_uid(int64_t uid) const;
  void mark_output(TensorId id);
  void rename(TensorId id, std::string_view name);

  std::vector<TensorId> inputs() const;  // stored tensors without a producer, by-value scalars included
  std::vector<TensorId> outputs() const;

  // A copy in which the named tensors have other sizes and strides, everything inferred anew.
  struct Shape {
    TensorId tensor;
    Dims dims, strides;
  };
  Graph with_shapes(const std::vector<Shape>& shapes) const;

  uint64_t fingerprint() const;  // of the text form; computed once by finalize()

 private:
  void infer(NodeId id);
  void take_back(size_t tensors, size_t nodes);  // what was added last, beyond these counts
  void sort_nodes();
  void check_tensor(TensorId id) const;
  int64_t free_uid(int64_t from) const;
  std::vector<Tensor> tensors_;
  std::vector<Node> nodes_;
  std::vector<NodeId> producer_;
  std::unordered_map<std::string, TensorId> by_name_;
  std::unordered_map<int64_t, TensorId> by_uid_;
  bool finalized_ = false, sorted_ = true;
  uint64_t fingerprint_ = 0;
  friend class Infer;
};

// A graph used as an argument. `params` and `results` are tensors of `graph`; `captures` are those of its tensors that
// stand for tensors of the outer graph (the node lists the outer ones in the same order).
struct Subgraph {
  Graph graph;
  std::vector<TensorId> params, results, captures;
  std::vector<TensorId> captured;  // the outer tensors, when the builder knows them; nodes copy them
};

// Every tensor that a node reads: its inputs, its captures and the ragged offsets of its inputs and outputs.
std::vector<TensorId> node_reads(const Graph& g, const Node& n);

Tensor make_scalar_constant(DType t, double value, int rank = 1);

}  // namespace tsr
