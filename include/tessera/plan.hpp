// SPDX-License-Identifier: Apache-2.0
// Plans: a graph made ready to run. Immutable; execute from any number of threads, each call with its own workspace.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "tessera/graph.hpp"

namespace tsr {
class DeviceMemory;
struct Tensor;
}  // namespace tsr

namespace tessera {

struct PlanState;
class Plan;

// Devices have names: "cpu"; "cuda" or "cuda:1" for a GPU of this machine; "emulated" for device code run slowly by the
// processor; and, for planning and explaining alone, a GPU that need not be there, such as "h200".

struct PlanOptions {
  std::string device = "cpu";
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

// Memory of a device, owned; `device` is null for the host's.
struct ReleaseMemory {
  const tsr::DeviceMemory* device = nullptr;
  void operator()(void* p) const;
};
using OwnedMemory = std::unique_ptr<void, ReleaseMemory>;

// Scratch memory for one call at a time of the plan it was made for, on the plan's device.
class Workspace {
 public:
  explicit Workspace(const Plan& plan);
  Workspace(const Plan& plan, std::span<const ShapeOverride> overrides);
  void* data() { return memory_.get(); }
  size_t bytes() const { return bytes_; }

 private:
  Workspace(const Plan& plan, size_t bytes);
  size_t bytes_;
  OwnedMemory memory_;
};

class Plan {
 public:
  static Plan load(std::string_view saved, std::string_view device = "cpu");
  std::string save() const;
  std::string explain() const;
  std::string device() const;  // the name it was planned for

  size_t workspace_bytes() const;
  size_t workspace_bytes(std::span<const ShapeOverride> overrides) const;
  int steps() const;
  // Launches and returns; allocates nothing. On a GPU, pointers are of the GPU's memory (scalars: of the host's), the
  // work is done in the order of `stream` (a CUstream or cudaStream_t; null: the default stream), and a CUDA graph may
  // capture it.
  void execute(std::span<const Binding> bindings, void* workspace, size_t workspace_bytes,
               void* stream = nullptr) const;
  void execute(std::span<const Binding> bindings, std::span<const ShapeOverride> overrides, void* workspace,
               size_t workspace_bytes, void* stream = nullptr) const;
  void execute(std::span<const Binding> bindings, Workspace& workspace) const {
    execute(bindings, workspace.data(), workspace.bytes());
  }
  // Convenience: brings its own workspace and waits for the end.
  void run(std::initializer_list<Binding> bindings) const;
  void run(std::span<const Binding> bindings) const;

 private:
  friend class Graph;
  friend class Workspace;
  explicit Plan(std::shared_ptr<const PlanState> s) : state_(std::move(s)) {}
  std::shared_ptr<const PlanState> state_;
};

// Memory for a tensor on a device, owned, zeros at first. Elements are converted to and from double; on a GPU every
// call copies, after the work of the default stream, so that values(), fill() and set() of all elements are the fast
// ways.
class Buffer {
 public:
  // A scalar that is given by value lies in the host's memory whatever the device.
  explicit Buffer(const Tensor& t, std::string_view device = "cpu");
  void* data() { return storage_.get(); }  // of the device
  const void* data() const { return storage_.get(); }
  size_t bytes() const { return bytes_; }
  int64_t size() const { return count_; }
  double get(int64_t i) const;  // the i-th element in row-major order of the sizes
  void set(int64_t i, double value);
  std::vector<double> values() const;        // all, in the same order
  void set(std::span<const double> values);  // all, in the same order
  void fill(double value);
  void fill_random(uint64_t seed);  // normal distribution

 private:
  int64_t offset(int64_t i) const;
  std::shared_ptr<const tsr::Tensor> tensor_;
  OwnedMemory storage_;
  size_t bytes_ = 0;
  int64_t count_ = 0;
};

// Threads that the CPU engines use together, the caller's included; at first TESSERA_THREADS, or one for each core that
// the process may use. Plans made before keep to the smaller of both numbers.
int thread_count();
void set_thread_count(int n);

inline Binding bind(const Tensor& t, Buffer& b) { return {t, b.data()}; }

}  // namespace tessera
