// SPDX-License-Identifier: Apache-2.0
// Small graphs whose tensors hold numbers, and the way from a graph to its execution, as a program takes it.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <utility>

#include "backend_client.hpp"
#include "cuda_graph.hpp"
#include "memory.hpp"

namespace client {

struct Failure {
  cudnnStatus_t status;
  std::string text;
};

inline void must(cudnnStatus_t s) {
  if (s != CUDNN_STATUS_SUCCESS) throw Failure{s, last_error()};
}

// A descriptor that is told several things in one expression; what is refused is thrown.
class Piece : public Part {
 public:
  explicit Piece(int type) : Part(static_cast<cudnnBackendDescriptorType_t>(type)), type_(type) {}
  int type() const { return type_; }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  template <class T>
  Piece& set(int name, cudnnBackendAttributeType_t type, const std::vector<T>& v) {
    must(Part::set(static_cast<cudnnBackendAttributeName_t>(name), type, static_cast<int64_t>(v.size()), v.data()));
    return *this;
  }
  Piece& set(int name, const std::vector<cudnnBackendDescriptor_t>& v) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, v);
  }
  Piece& ints(int name, const Ints& v) { return set(name, CUDNN_TYPE_INT64, v); }
  Piece& flag(int name, bool v) { return set(name, CUDNN_TYPE_BOOLEAN, std::vector<char>{static_cast<char>(v)}); }
  Piece& type(int name, cudnnDataType_t v) { return set(name, CUDNN_TYPE_DATA_TYPE, std::vector{v}); }
  Piece& finalize() {
    must(Part::finalize());
    return *this;
  }

 private:
  int type_;
};

// The first plan that the heuristics propose.
inline std::unique_ptr<Piece> first_plan(const Piece& graph, cudnnHandle_t handle) {
  Piece heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, {graph});
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, std::vector{CUDNN_HEUR_MODE_A});
  heuristics.finalize();
  cudnnBackendDescriptor_t result = config;
  int64_t count = 0;
  must(heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &result));
  if (count != 1) throw Failure{CUDNN_STATUS_NOT_SUPPORTED, "the heuristics propose nothing"};
  auto plan = std::make_unique<Piece>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle});
  plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {config}).finalize();
  return plan;
}

// Where a tensor's values lie in the test's own memory.
struct Place {
  int64_t uid;
  void* data;
  size_t bytes;
  bool by_value = false;
};

// On a GPU, a copy of the test's memory that comes back in the end; elsewhere that memory itself.
class Copy {
 public:
  Copy(void* host, size_t bytes, bool by_value) : host_(host), bytes_(bytes) {
    if (by_value || bytes == 0 || !Gpu::get()) return;
    device_ = Gpu::get()->allocate(bytes);
    Gpu::get()->copy_in(device_, host, bytes);
  }
  Copy(Copy&& o) noexcept : host_(o.host_), device_(std::exchange(o.device_, nullptr)), bytes_(o.bytes_) {}
  Copy& operator=(Copy&&) = delete;
  ~Copy() {
    if (!device_) return;
    Gpu::get()->copy_out(host_, device_, bytes_);
    Gpu::get()->release(device_);
  }
  void* data() const { return device_ ? device_ : host_; }

 private:
  void* host_;
  void* device_ = nullptr;
  size_t bytes_;
};

// Sizes of a tensor that differ from the described ones.
struct Resized {
  int64_t uid;
  Ints dims, strides;
};

// How a program runs a plan.
struct Manner {
  std::vector<Resized> sizes;
  bool in_child_graph = false;
};

// Fills a CUDA graph for other memory, makes it a child of another graph, then changes it to the memory that is meant.
inline void run_as_child(cudnnHandle_t handle, const Piece& plan, const Piece& other, const Piece& pack) {
  CudaGraph inner, parent;
  must(cudnnBackendPopulateCudaGraph(handle, plan, other, inner));
  void* node = parent.add_child(inner);
  parent.instantiate();
  must(cudnnBackendUpdateCudaGraph(handle, plan, pack, inner));
  Gpu::check(parent.set_child(node, inner));
  parent.launch();
}

// Runs a plan in a workspace that begins at an odd address. Bytes around it must stay as they are.
inline void run_plan(const Piece& plan, cudnnHandle_t handle, const std::vector<Place>& places,
                     const Manner& how = {}) {
  int64_t bytes = 0;
  must(plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, nullptr, &bytes));
  constexpr size_t kBand = 256;
  std::vector<unsigned char> memory(static_cast<size_t>(bytes) + 3 * kBand, 0xff);
  {
    std::vector<Copy> copies;
    std::vector<int64_t> uids;
    std::vector<void*> pointers;
    copies.reserve(places.size());
    std::map<void*, void*> seen;  // tensors may share memory
    for (const Place& p : places) {
      if (!seen.count(p.data)) {
        copies.emplace_back(p.data, p.bytes, p.by_value);
        seen[p.data] = copies.back().data();
      }
      uids.push_back(p.uid), pointers.push_back(seen[p.data]);
    }
    size_t skew = (kBand - reinterpret_cast<uintptr_t>(memory.data()) % kBand) % kBand;
    Copy room(memory.data() + skew, memory.size() - skew, false);
    void* workspace = bytes > 0 ? static_cast<unsigned char*>(room.data()) + kBand + 1 : nullptr;
    auto pack_of = [&](const std::vector<void*>& data) {
      auto pack = std::make_unique<Piece>(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
      pack->ints(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
      pack->set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, data);
      pack->set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector<void*>{workspace});
      if (!how.sizes.empty()) {
        Ints changed;
        std::vector<Ints> dims, strides;
        for (const Resized& r : how.sizes)
          changed.push_back(r.uid), dims.push_back(r.dims), strides.push_back(r.strides);
        pack->ints(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, changed);
        must(pack->Part::set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, CUDNN_TYPE_VOID_PTR, 1, &dims));
        must(pack->Part::set(CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, CUDNN_TYPE_VOID_PTR, 1, &strides));
      }
      pack->finalize();
      return pack;
    };
    std::unique_ptr<Piece> pack = pack_of(pointers);
    if (how.in_child_graph) {
      std::vector<std::unique_ptr<Memory>> elsewhere;
      std::vector<void*> other = pointers;
      for (size_t i = 0; i < places.size(); ++i) {
        if (places[i].by_value) continue;
        elsewhere.push_back(std::make_unique<Memory>(places[i].bytes));
        other[i] = elsewhere.back()->data();
      }
      run_as_child(handle, plan, *pack_of(other), *pack);
    } else {
      must(cudnnBackendExecute(handle, plan, *pack));
    }
  }
  size_t first = (kBand - reinterpret_cast<uintptr_t>(memory.data()) % kBand) % kBand + kBand + 1;
  for (size_t i = 0; i < memory.size(); ++i)
    if ((i < first || i >= first + static_cast<size_t>(bytes)) && memory[i] != 0xff)
      throw Failure{CUDNN_STATUS_EXECUTION_FAILED, "memory around the workspace was overwritten"};
}

using Dims = Ints;

inline int64_t count_of(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

// A tensor of a graph: its descriptor and, unless it is virtual, its memory.
struct GraphTensor {
  GraphTensor(int64_t uid, cudnnDataType_t type, Dims dims, Dims strides, bool hidden, bool by_value)
      : uid(uid),
        type(type),
        dims(std::move(dims)),
        strides(std::move(strides)),
        hidden(hidden),
        by_value(by_value),
        desc(CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
    desc.type(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
        .ints(CUDNN_ATTR_TENSOR_DIMENSIONS, this->dims)
        .ints(CUDNN_ATTR_TENSOR_STRIDES, this->strides)
        .ints(CUDNN_ATTR_TENSOR_UNIQUE_ID, {uid})
        .ints(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {16});
    if (hidden) desc.flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    if (by_value) desc.flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    if (hidden) return;
    int64_t last = 0;
    for (size_t i = 0; i < this->dims.size(); ++i) last += (this->dims[i] - 1) * this->strides[i];
    memory.assign((static_cast<size_t>(last) + 1) * size_of(type) + 64, 0xff);
  }

  unsigned char* data() {
    if (same_memory) return same_memory->data();
    return memory.data() + (16 - reinterpret_cast<uintptr_t>(memory.data()) % 16) % 16;
  }
  size_t bytes() {
    if (same_memory) return same_memory->bytes();
    return static_cast<size_t>(memory.data() + memory.size() - data());
  }
  // Elements in row-major order of the indices.
  int64_t offset(int64_t i) const {
    int64_t o = 0;
    for (size_t d = dims.size(); d-- > 0; i /= dims[d]) o += i % dims[d] * strides[d];
    return o;
  }
  void fill(const Values& v) {
    for (int64_t i = 0; i < count_of(dims); ++i)
      store(type, data() + static_cast<size_t>(offset(i)) * size_of(type), v[static_cast<size_t>(i) % v.size()]);
  }
  Values values() {
    Values v;
    for (int64_t i = 0; i < count_of(dims); ++i)
      v.push_back(load(type, data() + static_cast<size_t>(offset(i)) * size_of(type)));
    return v;
  }

  int64_t uid;
  cudnnDataType_t type;
  Dims dims, strides;
  bool hidden, by_value;
  Piece desc;
  std::vector<unsigned char> memory;
  GraphTensor* same_memory = nullptr;  // of another tensor
  void* elsewhere = nullptr;           // memory of the device that serves instead, which other graphs use, too
};

using Roles = std::vector<std::pair<int, GraphTensor*>>;

// A graph under construction. Ids count from 0, which is an id like any other.
class Net {
 public:
  GraphTensor* add(cudnnDataType_t type, const Dims& dims, const Dims& strides, bool hidden, bool by_value,
                   bool finalize = true) {
    tensors_.push_back(std::make_unique<GraphTensor>(next_++, type, dims, strides, hidden, by_value));
    if (finalize) tensors_.back()->desc.finalize();
    return tensors_.back().get();
  }
  GraphTensor* input(const Dims& dims, const Values& v, cudnnDataType_t type = CUDNN_DATA_FLOAT, Dims strides = {}) {
    GraphTensor* t = add(type, dims, strides.empty() ? packed(dims) : strides, false, false);
    t->fill(v);
    return t;
  }
  GraphTensor* random(const Dims& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT, Dims strides = {}) {
    std::uniform_real_distribution<double> between(-1, 1);
    Values v;
    for (int64_t i = 0; i < count_of(dims); ++i) v.push_back(between(engine_));
    return input(dims, v, type, std::move(strides));
  }
  GraphTensor* output(const Dims& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT, Dims strides = {}) {
    return add(type, dims, strides.empty() ? packed(dims) : strides, false, false);
  }
  GraphTensor* hidden(const Dims& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return add(type, dims, packed(dims), true, false);
  }
  GraphTensor* scalar(double value, cudnnDataType_t type = CUDNN_DATA_FLOAT, const Dims& dims = {1, 1, 1, 1}) {
    GraphTensor* t = add(type, dims, packed(dims), false, true);
    t->fill({value});
    return t;
  }

  // A descriptor that operations refer to, and an operation. Both are finalized by the caller.
  Piece& part(int type) {
    parts_.push_back(std::make_unique<Piece>(type));
    return *parts_.back();
  }
  Piece& operation(int type, const Roles& roles) {
    Piece& p = part(type);
    for (auto [name, t] : roles)
      if (t) p.set(name, {t->desc});
    operations_.push_back(p);
    return p;
  }
  // The operations so far become a graph that another operation takes.
  Piece& body() {
    Piece& g = part(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    g.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_).finalize();
    operations_.clear();
    return g;
  }
  void forget_last_operation() { operations_.pop_back(); }

  std::unique_ptr<Piece> graph(cudnnHandle_t handle) const {
    auto g = std::make_unique<Piece>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    g->set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
    g->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector<cudnnHandle_t>{handle});
    g->finalize();
    return g;
  }
  void run() {
    Handle handle;
    std::unique_ptr<Piece> g = graph(handle);
    std::vector<Place> places;
    for (const auto& t : tensors_)
      if (t->elsewhere)
        places.push_back({t->uid, t->elsewhere, 0, true});
      else if (!t->hidden)
        places.push_back({t->uid, t->data(), t->bytes(), t->by_value});
    run_plan(*first_plan(*g, handle), handle, places);
  }

  void matmul(GraphTensor* a, GraphTensor* b, GraphTensor* c, GraphTensor* m = nullptr, GraphTensor* n = nullptr,
              GraphTensor* k = nullptr, double padding = 0) {
    Piece& p = part(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    p.type(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    if (padding != 0) p.set(CUDNN_ATTR_MATMUL_PADDING_VALUE, CUDNN_TYPE_DOUBLE, std::vector{padding});
    p.finalize();
    operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                                                          {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                                                          {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c},
                                                          {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, m},
                                                          {CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, n},
                                                          {CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, k}})
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, {p})
        .finalize();
  }
  void reduce(cudnnReduceTensorOp_t mode, GraphTensor* x, GraphTensor* y) {
    Piece& p = part(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    p.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, std::vector{mode});
    p.type(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
    operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
              {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y}})
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, {p})
        .finalize();
  }
  // The same memory seen with other sizes and strides.
  void reshape(GraphTensor* x, GraphTensor* y) {
    operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
              {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}})
        .finalize();
  }

  // One pointwise operation; a null pointer for operands that it does not have.
  void pointwise(cudnnPointwiseMode_t mode, GraphTensor* x, GraphTensor* b, GraphTensor* y, GraphTensor* t = nullptr,
                 cudnnDataType_t compute = CUDNN_DATA_FLOAT) {
    Piece& p = part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    p.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector{mode});
    p.type(CUDNN_ATTR_POINTWISE_MATH_PREC, compute).finalize();
    operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                                                             {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                                                             {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t},
                                                             {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}})
        .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, {p})
        .finalize();
  }

 private:
  std::vector<std::unique_ptr<GraphTensor>> tensors_;
  std::vector<std::unique_ptr<Piece>> parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  int64_t next_ = 0;
  std::mt19937 engine_{1};
};

// Largest error relative to the largest value.
inline void expect_near(const Values& wanted, const Values& got, double tolerance = 1e-5) {
  ASSERT_EQ(wanted.size(), got.size());
  double most = 1;
  for (double w : wanted)
    if (std::isfinite(w)) most = std::max(most, std::fabs(w));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isfinite(wanted[i]))
      ASSERT_NEAR(wanted[i], got[i], tolerance * most) << "element " << i;
    else
      ASSERT_TRUE(wanted[i] == got[i] || (std::isnan(wanted[i]) && std::isnan(got[i])))
          << "element " << i << ": wanted " << wanted[i] << ", got " << got[i];
  }
}

// The status of what a function does.
template <class F>
cudnnStatus_t status_of(const F& f) {
  try {
    f();
  } catch (const Failure& e) {
    EXPECT_FALSE(e.text.empty());
    return e.status;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace client
