// SPDX-License-Identifier: Apache-2.0
// Tools of the C++ client: arrays of doubles to compute with, tensors of the front end in memory of CUDA's run time,
// and graphs that are built, tried, tuned, saved and recorded in every way the front end has.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include <cudnn_frontend.h>

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Dims = std::vector<int64_t>;
using fe::DataType_t;

// Row-major values.
struct Array {
  Dims dims;
  std::vector<double> v;
  explicit Array(Dims d) : dims(std::move(d)), v(static_cast<size_t>(count(dims))) {}
  static int64_t count(const Dims& d) {
    int64_t n = 1;
    for (int64_t x : d) n *= x;
    return n;
  }
  size_t place(std::initializer_list<int64_t> index) const {
    int64_t at = 0;
    size_t i = 0;
    for (int64_t x : index) at = at * dims[i++] + x;
    return static_cast<size_t>(at);
  }
  double& at(std::initializer_list<int64_t> index) { return v[place(index)]; }
  double at(std::initializer_list<int64_t> index) const { return v[place(index)]; }
};

inline Dims packed(const Dims& dims) {
  Dims s(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) s[i - 1] = s[i] * dims[i];
  return s;
}
inline Dims channels_last(const Dims& d) { return {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]}; }

struct Kind {
  size_t bytes;
  double epsilon;  // half the distance of neighbours at 1
};
inline Kind kind(DataType_t t) {
  switch (t) {
    case DataType_t::HALF:
      return {2, 0x1p-11};
    case DataType_t::BFLOAT16:
      return {2, 0x1p-8};
    case DataType_t::INT8:
      return {1, 0};
    case DataType_t::INT64:
      return {8, 0};
    case DataType_t::INT32:
      return {4, 0};
    default:
      return {4, 0x1p-24};
  }
}

inline void store(DataType_t t, char* to, double value) {
  auto put = [to](auto x) { std::memcpy(to, &x, sizeof x); };
  switch (t) {
    case DataType_t::HALF:
      return put(__float2half(static_cast<float>(value)));
    case DataType_t::BFLOAT16:
      return put(__float2bfloat16(static_cast<float>(value)));
    case DataType_t::INT8:
      return put(static_cast<int8_t>(value));
    case DataType_t::INT32:
      return put(static_cast<int32_t>(value));
    case DataType_t::INT64:
      return put(static_cast<int64_t>(value));
    default:
      return put(static_cast<float>(value));
  }
}

inline double load(DataType_t t, const char* from) {
  auto get = [from](auto x) {
    std::memcpy(&x, from, sizeof x);
    return x;
  };
  switch (t) {
    case DataType_t::HALF:
      return __half2float(get(__half()));
    case DataType_t::BFLOAT16:
      return __bfloat162float(get(__nv_bfloat16()));
    case DataType_t::INT8:
      return get(int8_t());
    case DataType_t::INT32:
      return get(int32_t());
    case DataType_t::INT64:
      return static_cast<double>(get(int64_t()));
    default:
      return get(float());
  }
}

// Memory of the run time.
class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes) {
    EXPECT_EQ(cudaMalloc(&data_, std::max<size_t>(bytes, 1)), cudaSuccess);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }
  void* data() const { return data_; }
  void write(const std::vector<char>& from) { cudaMemcpy(data_, from.data(), bytes_, cudaMemcpyHostToDevice); }
  std::vector<char> read() const {
    std::vector<char> to(bytes_);
    cudaMemcpy(to.data(), data_, bytes_, cudaMemcpyDeviceToHost);
    return to;
  }
  void poison() { cudaMemset(data_, 0xFF, bytes_); }

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

struct Handle {
  cudnnHandle_t handle = nullptr;
  Handle() { EXPECT_EQ(cudnnCreate(&handle), CUDNN_STATUS_SUCCESS); }
  ~Handle() { cudnnDestroy(handle); }
};
inline cudnnHandle_t the_handle() {
  static Handle h;
  return h.handle;
}

inline void expect_good(fe::error_t e, const std::string& label) {
  EXPECT_TRUE(e.is_good()) << label << ": " << e.get_message();
}

class Client {
 public:
  fe::graph::Graph graph;

  Client() {
    graph.set_io_data_type(DataType_t::FLOAT)
        .set_intermediate_data_type(DataType_t::FLOAT)
        .set_compute_data_type(DataType_t::FLOAT);
  }

  Array random(const Dims& dims, double scale = 1) {
    Array a(dims);
    std::normal_distribution<double> normal(0, scale);
    for (double& x : a.v) x = normal(random_);
    return a;
  }

  // An input; its values become what the type holds of them.
  Tensor input(Array& values, DataType_t type = DataType_t::FLOAT, Dims strides = {}) {
    if (strides.empty()) strides = packed(values.dims);
    Held& h = hold(values.dims, strides, type);
    h.put(values);
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_uid(uid_)
                            .set_name("t" + std::to_string(uid_))
                            .set_dim(values.dims)
                            .set_stride(strides)
                            .set_data_type(type));
  }

  // A result. `terms`: the longest sum; `through`: half the distance of the coarsest numbers on the way; `size`: what
  // the numbers that were added amount to, if that is more than the results.
  void output(const Tensor& t, const Array& expected, DataType_t type = DataType_t::FLOAT, Dims strides = {},
              double terms = 1, double through = 0, double size = 0) {
    if (strides.empty()) strides = packed(expected.dims);
    Held& h = hold(expected.dims, strides, type);
    t->set_output(true).set_uid(uid_).set_dim(expected.dims).set_stride(strides).set_data_type(type);
    h.expected = expected.v;
    for (double x : expected.v) size = std::max(size, std::fabs(x));
    h.allowed = (8 * 0x1p-24 * std::sqrt(terms) + 2 * through) * size;
  }

  void build(const std::vector<fe::HeurMode_t>& modes) {
    expect_good(graph.validate(), "validate");
    expect_good(graph.build_operation_graph(the_handle()), "operation graph");
    expect_good(graph.create_execution_plans(modes), "plans");
    expect_good(graph.check_support(the_handle()), "support");
    expect_good(graph.build_plans(the_handle(), fe::BuildPlanPolicy_t::ALL), "build");
  }

  std::unordered_map<int64_t, void*> pack() {
    std::unordered_map<int64_t, void*> p;
    for (auto& h : held_) p[h->uid] = h->memory.data();
    return p;
  }

  // Poisons the results, runs, compares.
  void checked(const std::string& label, const std::function<void()>& run) {
    for (auto& h : held_)
      if (!h->expected.empty()) h->memory.poison();
    run();
    cudaDeviceSynchronize();
    for (auto& h : held_) h->check(label);
  }

  void execute(fe::graph::Graph& g, const std::string& label) {
    Memory workspace(static_cast<size_t>(g.get_workspace_size()));
    auto p = pack();
    checked(label, [&] { expect_good(g.execute(the_handle(), p, workspace.data()), label); });
  }

  void execute_all(const std::string& label) {
    ASSERT_GT(graph.get_execution_plan_count(), 0) << label;
    for (int64_t i = 0; i < graph.get_execution_plan_count(); ++i) {
      std::string at = label + ", plan " + std::to_string(i);
      Memory workspace(static_cast<size_t>(graph.get_workspace_size_plan_at_index(i)));
      auto p = pack();
      checked(at, [&] { expect_good(graph.execute_plan_at_index(the_handle(), p, workspace.data(), i), at); });
    }
  }

  void tune() {
    Memory workspace(static_cast<size_t>(graph.get_autotune_workspace_size()));
    auto p = pack();
    expect_good(graph.autotune(the_handle(), p, workspace.data()), "autotune");
    execute(graph, "the fastest");
  }

  void save_and_load() {
    std::vector<uint8_t> blob;
    expect_good(graph.serialize(blob, false), "serialize");  // the plan alone: it cannot write down every operation
    for (bool warm_up : {true, false}) {
      fe::graph::Graph loaded;
      expect_good(loaded.deserialize(the_handle(), blob, false, warm_up), "deserialize");
      execute(loaded, warm_up ? "loaded and warmed up" : "loaded");
    }
    fe::graph::Graph loaded;
    auto device = std::make_shared<fe::DeviceProperties>();
    expect_good(device->set_device_id(0).build(), "device properties");
    loaded.set_device_properties(device);
    expect_good(loaded.deserialize(blob), "deserialize without a handle");
    execute(loaded, "loaded without a handle");
  }

 private:
  struct Held {
    int64_t uid;
    Dims dims, strides;
    DataType_t type;
    Memory memory;
    std::vector<double> expected;
    double allowed = 0;

    Held(int64_t u, Dims d, Dims s, DataType_t t)
        : uid(u), dims(std::move(d)), strides(std::move(s)), type(t), memory(span() * kind(t).bytes) {}
    size_t span() const {
      int64_t n = 1;
      for (size_t i = 0; i < dims.size(); ++i) n += (dims[i] - 1) * strides[i];
      return static_cast<size_t>(n);
    }
    // The byte of each element, in row-major order.
    std::vector<size_t> places() const {
      std::vector<size_t> at(static_cast<size_t>(Array::count(dims)));
      for (size_t k = 0; k < at.size(); ++k) {
        auto rest = static_cast<int64_t>(k);
        int64_t offset = 0;
        for (size_t i = dims.size(); i-- > 0; rest /= dims[i]) offset += rest % dims[i] * strides[i];
        at[k] = static_cast<size_t>(offset) * kind(type).bytes;
      }
      return at;
    }
    void put(Array& values) {
      std::vector<char> bytes(span() * kind(type).bytes);
      std::vector<size_t> at = places();
      for (size_t k = 0; k < at.size(); ++k) {
        store(type, &bytes[at[k]], values.v[k]);
        values.v[k] = load(type, &bytes[at[k]]);
      }
      memory.write(bytes);
    }
    void check(const std::string& label) const {
      std::vector<char> bytes = memory.read();
      std::vector<size_t> at = places();
      int wrong = 0;
      for (size_t k = 0; k < expected.size(); ++k) {
        double got = load(type, &bytes[at[k]]), error = std::fabs(got - expected[k]);
        double limit = allowed + 2 * kind(type).epsilon * std::fabs(expected[k]);
        if (!(error <= limit) && ++wrong <= 3)  // NaN is wrong
          ADD_FAILURE() << label << ": tensor " << uid << " has " << got << " at " << k << " instead of " << expected[k]
                        << ", allowed " << limit;
      }
      EXPECT_EQ(wrong, 0) << label << ": of " << expected.size();
    }
  };

  Held& hold(const Dims& dims, const Dims& strides, DataType_t type) {
    held_.push_back(std::make_unique<Held>(++uid_, dims, strides, type));
    return *held_.back();
  }

  std::vector<std::unique_ptr<Held>> held_;
  int64_t uid_ = 0;
  std::mt19937 random_{17};
};

// A graph by every road: each mode of the heuristics, each plan, tuned, saved and loaded.
inline void check(const std::function<void(Client&)>& fill) {
  for (fe::HeurMode_t mode : {fe::HeurMode_t::B, fe::HeurMode_t::FALLBACK}) {
    Client c;
    fill(c);
    c.build({mode});
    c.execute(c.graph, mode == fe::HeurMode_t::B ? "B" : "FALLBACK");
  }
  Client c;
  fill(c);
  c.build({fe::HeurMode_t::A});
  c.execute_all("A");
  c.tune();
  c.save_and_load();
}
