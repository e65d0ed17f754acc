// SPDX-License-Identifier: Apache-2.0
// Plans: a graph made ready to run. Immutable; execute from any number of threads, each call with its own workspace.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "tessera/graph.hpp"

namespace tessera {

struct PlanState;
class Plan;

struct PlanOptions {
  size_t workspace_limit = static_cast<size_t>(-1);
  bool deterministic = false;
  bool fuse = true;
  std::vector<std::string> engines;  // only these (and the reference engine); empty: all
  std::vector<std::string> without;
};

struct Binding {
  Tensor tensor;
  void* data;
};

// Other sizes (and strides) for an input at execution; results follow.
struct ShapeOverride {
  Tensor tensor;
  Ints dims, strides;
};

// Scratch memory for one call at a time of the plan it was made for.
class Workspace {
 public:
  explicit Workspace(const Plan& plan);
  void* data() { return memory_.get(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Free> memory_;
  size_t bytes_;
};

class Plan {
 public:
  static Plan load(std::string_view saved);
  std::string save() const;
  std::string explain() const;

  size_t workspace_bytes() const;
  size_t workspace_bytes(std::span<const ShapeOverride> overrides) const;
  int steps() const;
  // Launches and returns; allocates nothing. `stream` is for GPU devices.
  void execute(std::span<const Binding> bindings, void* workspace, size_t workspace_bytes,
               void* stream = nullptr) const;
  void execute(std::span<const Binding> bindings, std::span<const ShapeOverride> overrides, void* workspace,
               size_t workspace_bytes, void* stream = nullptr) const;
  void execute(std::span<const Binding> bindings, Workspace& workspace) const {
    execute(bindings, workspace.data(), workspace.bytes());
  }
  // Convenience: brings its own workspace.
  void run(std::initializer_list<Binding> bindings) const;
  void run(std::span<const Binding> bindings) const;

 private:
  friend class Graph;
  explicit Plan(std::shared_ptr<const PlanState> s) : state_(std::move(s)) {}
  std::shared_ptr<const PlanState> state_;
};

// Memory for a tensor, owned; elements are converted to and from double.
class Buffer {
 public:
  explicit Buffer(const Tensor& t);
  void* data() { return storage_.get(); }
  const void* data() const { return storage_.get(); }
  size_t bytes() const { return bytes_; }
  int64_t size() const { return count_; }
  double get(int64_t i) const;  // the i-th element in row-major order of the sizes
  void set(int64_t i, double value);
  void fill(double value);
  void fill_random(uint64_t seed);  // normal distribution
  std::vector<double> values() const;

 private:
  int64_t offset(int64_t i) const;
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Free> storage_;
  size_t bytes_ = 0;
  int64_t count_ = 0;
  DType type_;
  Ints dims_, strides_;
};

// Threads that the CPU engines use together, the caller's included; at first TESSERA_THREADS, or one for each core that
// the process may use. Plans made before keep to the smaller of both numbers.
int thread_count();
void set_thread_count(int n);

inline Binding bind(const Tensor& t, Buffer& b) { return {t, b.data()}; }

}  // namespace tessera
