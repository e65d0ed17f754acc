// SPDX-License-Identifier: Apache-2.0
// Plans: a graph made ready to run. Immutable; execute from any number of threads, each call with its own workspace.
#pragma once

#include <complex>
#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
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
  std::string stages;  // of this name where a graph can run so, such as "winograd"; empty: where stages are cheapest
};

// Memory for an input or an output of one execution. What is known of the memory is compared with what the plan needs;
// of a bare pointer nothing is known.
struct Binding {
  static constexpr size_t kUnknown = static_cast<size_t>(-1);
  Tensor tensor;
  void* data = nullptr;
  size_t bytes = kUnknown;
  std::optional<DType> type = {};  // of the elements
  bool writable = true;
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

// A plan takes tensors of the graph that it was made of: handles of that Graph object or of a copy of it, also when the
// graph has grown since. A plan that was loaded belongs to no object: it takes tensors of any graph which has one of
// that name, unique id, type, sizes and strides, such as what Graph::load makes of the same graph.
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
  // capture it. Every input and output has one binding; raises Error for tensors of other graphs, tensors that are no
  // input or output, and memory that is too small or of another type.
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
  DType type() const;
  double get(int64_t i) const;  // the i-th element in row-major order of the sizes
  void set(int64_t i, double value);
  std::vector<double> values() const;        // all, in the same order
  void set(std::span<const double> values);  // all, in the same order
  void fill(double value);
  void fill_random(uint64_t seed, double scale = 1);  // normal distribution of this standard deviation
  // The elements as they lie in memory, of the host: T is float for f32, int32_t for i32 and so on; elements of types
  // that C++ lacks are read as unsigned integers of their width.
  template <class T>
  std::span<T> span();
  template <class T>
  std::span<const T> span() const;

 private:
  void check_span(std::optional<DType> type, size_t element) const;
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

inline Binding bind(const Tensor& t, Buffer& b) { return {t, b.data(), b.bytes(), b.type()}; }

// The data type whose elements are these, where C++ has it.
template <class T>
constexpr std::optional<DType> element_type() {
  using E = std::remove_const_t<T>;
  if constexpr (std::is_same_v<E, double>) return DType::f64;
  if constexpr (std::is_same_v<E, float>) return DType::f32;
  if constexpr (std::is_same_v<E, int64_t>) return DType::i64;
  if constexpr (std::is_same_v<E, int32_t>) return DType::i32;
  if constexpr (std::is_same_v<E, int8_t>) return DType::i8;
  if constexpr (std::is_same_v<E, bool>) return DType::boolean;
  if constexpr (std::is_same_v<E, std::complex<float>>) return DType::c64;
  if constexpr (std::is_same_v<E, std::complex<double>>) return DType::c128;
  return std::nullopt;
}

template <class T>
std::span<T> Buffer::span() {
  check_span(element_type<T>(), sizeof(T));
  return {static_cast<T*>(data()), bytes_ / sizeof(T)};
}
template <class T>
std::span<const T> Buffer::span() const {
  check_span(element_type<T>(), sizeof(T));
  return {static_cast<const T*>(data()), bytes_ / sizeof(T)};
}

// The caller's memory with its size. Elements of a type that C++ shares with Tessera must be of the tensor's type;
// others (std::byte, uint8_t, uint16_t, a class for f16) are taken as bytes. Constant memory serves inputs alone. (The
// tensor comes by value: a reference would lose against std::bind, which a span brings into the choice.)
template <class T, size_t N>
Binding bind(Tensor t, std::span<T, N> memory) {
  void* data = const_cast<std::remove_const_t<T>*>(memory.data());
  return {std::move(t), data, memory.size_bytes(), element_type<T>(), !std::is_const_v<T>};
}

// The same for a vector or an array, which must outlive the execution.
template <std::ranges::contiguous_range R>
Binding bind(Tensor t, R& memory) {
  return bind(std::move(t), std::span(memory));
}

}  // namespace tessera
