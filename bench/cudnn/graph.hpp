// SPDX-License-Identifier: Apache-2.0
// An operation graph as plain data, in the terms of cuDNN's graph interface, and how it becomes descriptors.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cudnn/backend.hpp"

namespace cudnn {

using Ints = std::vector<int64_t>;

struct Tensor {
  int64_t uid = 0;
  std::string name;  // for messages only
  DataType type = DataType::float_;
  Ints dims, strides;                  // in elements, but strides of vectors in vectors
  int64_t lanes = 1, vectorized = -1;  // elements of a dimension that are kept together
  bool is_virtual = false;
  bool by_value = false;  // read from host memory
  // Contents that are known here. The caller has nothing to bind for a by-value tensor that has them; those of another
  // tensor it copies to the device memory that it binds.
  std::vector<std::byte> value;
  std::optional<int64_t> same_as;  // uid of another description of the same memory
  bool scratch = false;            // memory that only this graph needs: taken from the workspace
  int64_t alignment = 16;
  std::optional<int64_t> ragged_offset;  // uid of the tensor of offsets
  int64_t ragged_multiplier = 1;
  Reordering reordering = Reordering::none;
};

// What an attribute can be set to. Tensors are named by their uids; descriptors inside descriptors are nodes again.
struct Choice {  // an enumerator
  AttrType type;
  int value;
  template <class Enum>
  requires std::is_enum_v<Enum> Choice(Enum e)
      : type(attr_type(e)), value(static_cast<int>(e)) {}  // NOLINT(google-explicit-constructor)
  bool operator==(const Choice&) const = default;
};
struct Uids {
  Ints uids;
  bool operator==(const Uids&) const = default;
};
struct Node;
using Value = std::variant<Uids, Choice, bool, float, double, Ints, std::vector<int32_t>, std::vector<Fraction>,
                           std::vector<Node>>;

struct Field {
  Attr name;
  Value value;
};

struct Node {
  Kind kind;
  std::vector<Field> fields;

  Node& set(Attr name, Value value) {
    fields.push_back({name, std::move(value)});
    return *this;
  }
  const Value* find(Attr name) const;  // null when it is not set
};

struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Node> operations;
  const Tensor* find(int64_t uid) const;  // null when there is none
};

// The finalized descriptors of a graph. Without a handle it can be finalized, but not planned.
class OperationGraph {
 public:
  OperationGraph(const Library& library, const Graph& graph, const Handle* handle = nullptr);
  const Descriptor& descriptor() const { return parts_.back(); }
  const std::vector<Tensor>& arguments() const {
    return arguments_;
  }  // tensors that operations use and that need a pointer

 private:
  void* tensor(const Graph& g, int64_t uid);  // made on first use
  void* make(const Graph& g, const Node& n, const Handle* handle = nullptr);
  const Library& library_;
  std::map<int64_t, Descriptor> tensors_;
  std::vector<Descriptor> parts_;  // the graph itself is the last
  std::vector<Tensor> arguments_;
};

}  // namespace cudnn
