// SPDX-License-Identifier: Apache-2.0
// From operation descriptors to the one graph. Operations come in any order; tensors are known by their unique id.
//
//   GraphBuilder g;
//   for (const auto& op : operations) translate(*op, g);
//   if (g.is_body()) ..      // a sub-graph for another operation: nothing to plan
//   Graph graph = g.finish();
//   plan->execute(bindings(graph, uids, pointers), ..);
#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>

#include "capi/backend/client_quirks.hpp"
#include "capi/backend/descriptor.hpp"
#include "capi/backend/peer_statistics.hpp"
#include "graph/ops/list.hpp"
#include "planner/plan.hpp"

namespace tsr::capi {

// The graph's unique id for a program's: the same, except that graphs hold 0 for "none was given".
int64_t graph_uid(int64_t uid);
// What a result held before it was written (operations with beta != 0) is an input of its own, under this id and bound
// to the same pointer.
int64_t before_uid(int64_t uid);
// Bytes that are read as bits have this id in the graph, and sizes and strides that count bits.
int64_t bits_uid(int64_t uid);
void count_bits(Dims& dims, Dims& strides);
// A variant pack as the graph (Plan::source) wants it: its ids, what results held before, without tensors that the
// graph does not read or write (constants, placeholders).
std::vector<Binding> bindings(const Graph& g, std::span<const int64_t> uids, std::span<void* const> pointers);

class GraphBuilder : public Builder {
 public:
  // The graph's tensor for a tensor descriptor, made when it is first met. Refuses an id that stands for two tensors.
  TensorId tensor(const Descriptor& tensor);
  // The tensor of an attribute; kNone when it is not set.
  TensorId optional(const Descriptor& op, cudnnBackendAttributeName_t name);
  TensorId required(const Descriptor& op, cudnnBackendAttributeName_t name);
  // A virtual tensor between two nodes of one operation, with the sizes of another.
  TensorId like(TensorId sizes, DType type);
  // The two statistics of a norm that counts the elements of peers, of these sizes. What computes them from this
  // device's elements becomes a graph of its own; what reads them gets those of all devices.
  std::array<TensorId, kStatistics> peer_statistics(const PeerStatistics& what, const Dims& sizes);
  // Reads an input of bytes as eight bits each, the lowest first, in its last dimension.
  void read_as_bits(TensorId bytes);
  // The result `to` becomes alpha * value + beta * what it held before.
  void blend(TensorId to, TensorId value, double alpha, double beta, DType compute);
  const Tensor& operator[](TensorId id) const { return draft_.tensors[static_cast<size_t>(id)]; }

  // The tensor that the program gave this id; refuses one that no operation named so far.
  TensorId find(int64_t uid, const char* role) const;
  // The node that a tensor comes from, null for inputs; takes it out, so that its readers read `instead`.
  const Node* producer(TensorId t) const;
  void replace(TensorId t, TensorId instead);
  const Descriptor& descriptor(TensorId t) const { return *seen_.at(t); }

  // Whether a virtual tensor is read that no operation produces: the body of another operation (SDPA_FWD_SUBGRAPH).
  bool is_body() const;
  // Takes out what computes the statistics that are exchanged with peers; null where there are none. Before finish.
  std::shared_ptr<const PeerStatistics> split_statistics();
  // Orders, infers, checks.
  Graph finish();
  // As the sub-graph of an operation of `outer`: from the virtual tensor `param`, which has values of `type`, to
  // `result`. What it reads beside is captured: the outer tensors are appended to `captured`.
  tessera::Subgraph finish_body(TensorId param, DType type, TensorId result, GraphBuilder& outer,
                                std::vector<TensorId>& captured);

 private:
  // How a tensor lies in memory that graphs have no words for.
  struct MemoryOrder {
    int along = -1;  // dimension whose elements are kept together in vectors; strides count vectors
    int64_t lanes = 1;
    Dims strides;
    cudnnBackendTensorReordering_t reordering = CUDNN_TENSOR_REORDERING_NONE;
    bool is_unsigned = false;  // UINT32, whose values are i64 in the graph

    bool moves() const { return lanes > 1 || reordering == CUDNN_TENSOR_REORDERING_INT8x32; }
    bool differs() const { return moves() || is_unsigned; }
    bool operator==(const MemoryOrder&) const = default;
  };
  static MemoryOrder order_of(const Descriptor& d);

  TensorId keep(Tensor t) override;
  std::vector<TensorId> keep(Node n) override;
  Tensor read(const Descriptor& d);
  int64_t natural_size(const Node& n, int along) const;
  bool narrow_vectors(const Node& n);
  void separate_memory();
  void connect(TensorId plain, const MemoryOrder& order, Tensor memory, bool result);
  TensorId transposed(TensorId memory, const std::vector<int64_t>& order, bool result);
  void convert_unsigned(TensorId bits, TensorId values, bool result);
  std::vector<bool> produced() const;
  int readers(TensorId t) const;
  void drop_unread();
  void keep_nodes_for(std::vector<TensorId> results, const std::vector<TensorId>& given);
  void make_virtual(TensorId t);
  std::vector<TensorId> enter(Graph& g);

  Draft draft_;                                   // what is used of it enters the graph when it is finished
  std::unordered_map<int64_t, TensorId> by_uid_;  // the program's ids
  std::unordered_map<TensorId, const Descriptor*> seen_;
  std::map<TensorId, MemoryOrder> ordered_;  // tensors that are not what their memory is
  std::optional<PeerStatistics> peers_;
  std::vector<TensorId> statistics_;  // that are exchanged with them
};

// Adds the nodes of one operation descriptor; one function for each type, found by a table in translate.cpp.
void translate(const Descriptor& op, GraphBuilder& to);
bool is_operation(cudnnBackendDescriptorType_t type);
// What finalizing an operation checks, and the defaults that it fills in.
void check_operation(Descriptor& op);

// The computation type of an attribute: FLOAT where it is absent; halves and FAST_FLOAT_FOR_FP8 as FLOAT.
DType compute_type(const Descriptor& d, cudnnBackendAttributeName_t name);

}  // namespace tsr::capi
