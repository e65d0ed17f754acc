// SPDX-License-Identifier: Apache-2.0
// The description under construction: translates tensors and emits the operations that translations are made of.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cudnn/graph.hpp"
#include "graph/graph.hpp"

namespace cudnn {

// Raised where cuDNN has no words for something; from_graph turns it into its answer.
struct Refusal {
  std::string text;
};

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw Refusal{tsr::cat(parts...)};
}

constexpr int64_t kAbsent = std::numeric_limits<int64_t>::min();  // no tensor

DataType data_type(tsr::DType type);

struct Pointwise {
  PointwiseMode mode;
  int64_t x, b = kAbsent, t = kAbsent;
  DataType precision = DataType::float_;  // or what the graph computes in
  int64_t y = kAbsent;                    // absent: a new virtual tensor..
  DataType type = DataType::float_;       // ..of this type
  std::optional<int64_t> axis = {};       // gen_index
};

class Writer {
 public:
  Writer(const tsr::Graph& g, int64_t version);
  int64_t version() const { return version_; }
  // A cuDNN of at least this version has `what`, or the graph is refused.
  void need(int64_t version, std::string_view what) const;
  Graph take() { return std::move(graph_); }
  std::string caveat;  // why the description may give NaN where the graph does not

  // --- tensors of the graph that is being translated
  const tsr::Graph& source() const { return *scope_.graph; }
  int64_t uid(tsr::TensorId id);  // described on first use; kAbsent for kNone
  int64_t in(const tsr::Node& n, int slot);
  int64_t out(const tsr::Node& n, int slot);
  static bool has(const tsr::Node& n, int slot);
  // Describes a tensor with other sizes than its own. All users of a tensor that the graph writes must agree on them.
  int64_t view(tsr::TensorId id, Ints dims, Ints strides);
  // Describes all tensors by three runs of dimensions, the second one [begin, end), in the order that reductions and
  // norms are best known in: [first, second, 1, 1] with neighbours in the second, or [first, third, second, 1] with
  // neighbours in the third. Nothing changes where a tensor is not packed or cut through.
  void fold(int begin, int end);
  int64_t per_batch(tsr::TensorId id);  // lengths and offsets: a list becomes [n, 1, 1, ..]
  // Where dimension `axis` of a tensor has gone: cuDNN wants three dimensions or more, and as many everywhere.
  int64_t axis(const tsr::Tensor& t, int64_t axis) const;
  // One value for each dimension of the description, `fill` for those that the tensor does not have.
  Ints spread(const tsr::Tensor& t, const Ints& values, int64_t fill) const;
  size_t rank() const { return rank_; }  // of all descriptions
  // Dimensions of size 1 put before the places of tensors with channels, since cuDNN wants two of those.
  int inserted() const { return static_cast<int>(rank_ - base_); }

  // --- tensors of the description's own
  // In all of these FLOAT becomes DOUBLE where the graph computes in it.
  int64_t temporary(Ints dims, DataType type = DataType::float_, Ints strides = {});  // virtual, packed unless told
  int64_t scratch(Ints dims, DataType type = DataType::float_);                       // in the workspace
  int64_t scalar(DataType type, double value);                                        // by value
  int64_t contents(Ints dims, DataType type, const std::vector<double>& values);      // that the caller uploads
  const Tensor& tensor(int64_t uid) const;
  DataType real(DataType t) const { return wide_ && t == DataType::float_ ? DataType::double_ : t; }

  // --- operations
  Node& add(Kind kind);  // valid until the next operation is added
  int64_t pointwise(const Pointwise& p);
  int64_t pointwise(PointwiseMode mode, int64_t x, int64_t b = kAbsent) { return pointwise({mode, x, b}); }
  // Indices along a dimension of x.
  int64_t index(int64_t x, int64_t axis, DataType precision = DataType::int32) {
    return pointwise(
        {.mode = PointwiseMode::gen_index, .x = x, .precision = precision, .type = DataType::int32, .axis = axis});
  }
  // Writes y, which may have another type than operations that keep theirs give: `write` gets a tensor of type `from`.
  template <class Write>
  void converted(DataType from, int64_t y, Write write) {
    if (tensor(y).type == from) return write(y);
    int64_t same = temporary(tensor(y).dims, from);
    write(same);
    pointwise({.mode = PointwiseMode::identity, .x = same, .precision = exact(from, tensor(y).type), .y = y});
  }
  int64_t reduce(ReduceMode mode, int64_t x, const Ints& dims, int64_t y = kAbsent);
  // Translates the nodes of a sub-graph option that receives `params`, and gives its result.
  int64_t inline_subgraph(const tsr::Subgraph& s, const std::vector<int64_t>& params,
                          const std::vector<tsr::TensorId>& captures, void (*translate)(Writer&, const tsr::Node&));
  // Operations added while `write` runs become nodes of their own instead of operations of the graph.
  template <class Write>
  std::vector<Node> aside(Write write) {
    std::vector<Node> nodes;
    std::swap(nodes, graph_.operations);
    write();
    std::swap(nodes, graph_.operations);
    return nodes;
  }

 private:
  struct Scope {
    const tsr::Graph* graph;
    std::vector<int64_t> uids;  // by tensor id; kAbsent: not described yet
  };
  static DataType exact(DataType a, DataType b);  // what numbers of both types can be computed in
  std::optional<std::array<int64_t, 3>> runs(const tsr::Tensor& t, const tsr::Dims& all, int begin, int end) const;
  void lift(Ints& dims, Ints& strides) const;
  int64_t describe(tsr::TensorId id, Ints dims, Ints strides);
  int64_t add_tensor(Tensor t);
  Scope scope_;
  int64_t version_, next_uid_ = 1;
  size_t rank_ = 2, base_ = 2;  // dimensions of all descriptions; those that are filled up in front
  bool outermost_ = true, folded_ = false, wide_ = false;
  Graph graph_;
};

// Sets an attribute to a tensor, if there is one.
Node& set_tensor(Node& n, Attr name, int64_t uid);
Ints packed(const Ints& dims);  // row-major strides

}  // namespace cudnn
