// SPDX-License-Identifier: Apache-2.0
// What a client of the graph interface needs: descriptors, and a few graphs to make of them.
#pragma once

#include <memory>

#include "client.hpp"

namespace client {

using Ints = std::vector<int64_t>;

// The attribute type of a C++ type; enumerations are told by hand.
template <class T>
struct TypeOf;
template <>
struct TypeOf<int64_t> {
  static constexpr auto value = CUDNN_TYPE_INT64;
};
template <>
struct TypeOf<int32_t> {
  static constexpr auto value = CUDNN_TYPE_INT32;
};
template <>
struct TypeOf<float> {
  static constexpr auto value = CUDNN_TYPE_FLOAT;
};
template <>
struct TypeOf<double> {
  static constexpr auto value = CUDNN_TYPE_DOUBLE;
};
template <>
struct TypeOf<bool> {
  static constexpr auto value = CUDNN_TYPE_BOOLEAN;
};
template <>
struct TypeOf<void*> {
  static constexpr auto value = CUDNN_TYPE_VOID_PTR;
};
template <>
struct TypeOf<cudnnHandle_t> {
  static constexpr auto value = CUDNN_TYPE_HANDLE;
};
template <>
struct TypeOf<cudnnDataType_t> {
  static constexpr auto value = CUDNN_TYPE_DATA_TYPE;
};

// A descriptor of the graph interface, destroyed with the last copy of it. Setters give the status of the call.
class Part {
 public:
  explicit Part(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t d = nullptr;
    EXPECT_OK(cudnnBackendCreateDescriptor(type, &d));
    d_.reset(d, [](void* p) { cudnnBackendDestroyDescriptor(p); });
  }
  operator cudnnBackendDescriptor_t() const { return d_.get(); }

  cudnnStatus_t set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, const void* v) {
    return cudnnBackendSetAttribute(d_.get(), name, type, n, v);
  }
  template <class T>
  cudnnStatus_t set(cudnnBackendAttributeName_t name, T v) {
    return set(name, TypeOf<T>::value, 1, &v);
  }
  template <class T>
  cudnnStatus_t set(cudnnBackendAttributeName_t name, const std::vector<T>& v) {
    return set(name, TypeOf<T>::value, static_cast<int64_t>(v.size()), v.data());
  }
  template <class Enum>
  cudnnStatus_t set_enum(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Enum v) {
    return set(name, type, 1, &v);
  }
  cudnnStatus_t set_part(cudnnBackendAttributeName_t name, const Part& p) { return set_parts(name, {p}); }
  cudnnStatus_t set_parts(cudnnBackendAttributeName_t name, const std::vector<Part>& parts) {
    std::vector<cudnnBackendDescriptor_t> raw(parts.begin(), parts.end());
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
  }
  cudnnStatus_t set_text(cudnnBackendAttributeName_t name, const std::string& s) {
    return set(name, CUDNN_TYPE_CHAR, static_cast<int64_t>(s.size()), s.data());
  }
  cudnnStatus_t finalize() { return cudnnBackendFinalize(d_.get()); }

  cudnnStatus_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n, int64_t* count,
                    void* v) const {
    return cudnnBackendGetAttribute(d_.get(), name, type, n, count, v);
  }
  int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    int64_t n = -1;
    EXPECT_OK(get(name, type, 0, &n, nullptr));
    return n;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name) const {
    T v{};
    EXPECT_OK(get(name, TypeOf<T>::value, 1, nullptr, &v));
    return v;
  }
  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    std::vector<T> v(static_cast<size_t>(count(name, type)));
    int64_t n = 0;
    EXPECT_OK(get(name, type, static_cast<int64_t>(v.size()), &n, v.data()));
    EXPECT_EQ(n, static_cast<int64_t>(v.size()));
    return v;
  }
  std::string text(cudnnBackendAttributeName_t name) const {
    std::vector<char> v = list<char>(name, CUDNN_TYPE_CHAR);
    return {v.begin(), v.end()};
  }
  // Descriptors are read into empty ones.
  std::vector<Part> parts(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
    std::vector<Part> found;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = count(name, CUDNN_TYPE_BACKEND_DESCRIPTOR); i > 0; --i) {
      found.emplace_back(type);
      raw.push_back(found.back());
    }
    EXPECT_OK(get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), nullptr, raw.data()));
    return found;
  }

 private:
  std::shared_ptr<void> d_;
};

inline Ints packed(const Ints& dims) {
  Ints s(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) s[i - 1] = s[i] * dims[i];
  return s;
}

enum class Storage { stored, none, by_value };

inline Part tensor(int64_t uid, cudnnDataType_t type, const Ints& dims, Ints strides = {},
                   Storage storage = Storage::stored) {
  if (strides.empty()) strides = packed(dims);
  Part t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  EXPECT_OK(t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type));
  EXPECT_OK(t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims));
  EXPECT_OK(t.set(CUDNN_ATTR_TENSOR_STRIDES, strides));
  EXPECT_OK(t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid));
  EXPECT_OK(t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16}));
  EXPECT_OK(t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, storage == Storage::none));
  EXPECT_OK(t.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, storage == Storage::by_value));
  EXPECT_OK(t.finalize());
  return t;
}
inline Part virtual_tensor(int64_t uid, cudnnDataType_t type, const Ints& dims) {
  return tensor(uid, type, dims, {}, Storage::none);
}

inline cudnnDataType_t compute_of(cudnnDataType_t t) {
  return t == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

inline Part pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute, const Part& x, const Part* b, const Part& y) {
  Part desc(CUDNN_BACKEND_POINTWISE_DESCRIPTOR), op(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  EXPECT_OK(desc.set_enum(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode));
  EXPECT_OK(desc.set(CUDNN_ATTR_POINTWISE_MATH_PREC, compute));
  EXPECT_OK(desc.finalize());
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, desc));
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x));
  if (b) {
    EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b));
  }
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y));
  EXPECT_OK(op.finalize());
  return op;
}

inline Part matmul(cudnnDataType_t compute, const Part& a, const Part& b, const Part& c) {
  Part desc(CUDNN_BACKEND_MATMUL_DESCRIPTOR), op(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  EXPECT_OK(desc.set(CUDNN_ATTR_MATMUL_COMP_TYPE, compute));
  EXPECT_OK(desc.finalize());
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_MATMUL_DESC, desc));
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a));
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b));
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c));
  EXPECT_OK(op.finalize());
  return op;
}

inline Part reduction(cudnnReduceTensorOp_t mode, cudnnDataType_t compute, const Part& x, const Part& y) {
  Part desc(CUDNN_BACKEND_REDUCTION_DESCRIPTOR), op(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  EXPECT_OK(desc.set_enum(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, mode));
  EXPECT_OK(desc.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, compute));
  EXPECT_OK(desc.finalize());
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_REDUCTION_DESC, desc));
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x));
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y));
  EXPECT_OK(op.finalize());
  return op;
}

// Unit strides and dilations, the same padding on all sides.
inline Part convolution(cudnnDataType_t compute, int64_t pad, const Part& x, const Part& w, const Part& y) {
  Part desc(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), op(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  EXPECT_OK(desc.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute));
  EXPECT_OK(desc.set_enum(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION));
  EXPECT_OK(desc.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2}));
  EXPECT_OK(desc.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, Ints{pad, pad}));
  EXPECT_OK(desc.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, Ints{pad, pad}));
  EXPECT_OK(desc.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, Ints{1, 1}));
  EXPECT_OK(desc.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, Ints{1, 1}));
  EXPECT_OK(desc.finalize());
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, desc));
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x));
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w));
  EXPECT_OK(op.set_part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y));
  EXPECT_OK(op.finalize());
  return op;
}

// Without a handle where that is null.
inline Part operation_graph(cudnnHandle_t handle, const std::vector<Part>& ops) {
  Part g(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  EXPECT_OK(g.set_parts(CUDNN_ATTR_OPERATIONGRAPH_OPS, ops));
  if (handle) {
    EXPECT_OK(g.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle));
  }
  EXPECT_OK(g.finalize());
  return g;
}

inline std::vector<Part> configs(const Part& graph, cudnnBackendHeurMode_t mode, const Part* device = nullptr) {
  Part h(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  EXPECT_OK(h.set_part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
  EXPECT_OK(h.set_enum(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode));
  if (device) {
    EXPECT_OK(h.set_part(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *device));
  }
  EXPECT_OK(h.finalize());
  return h.parts(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

inline Part plan_of(const Part& config) {
  Part p(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_OK(p.set_part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config));
  EXPECT_OK(p.finalize());
  return p;
}
inline Part best_plan(const Part& graph) { return plan_of(configs(graph, CUDNN_HEUR_MODE_A).at(0)); }

inline Part engine_of(const Part& config) {
  return config.parts(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR).at(0);
}

struct Bound {
  int64_t uid;
  void* data;
};

inline Part pack(const std::vector<Bound>& pointers, void* workspace) {
  Part p(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  Ints uids;
  std::vector<void*> data;
  for (const Bound& b : pointers) uids.push_back(b.uid), data.push_back(b.data);
  EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids));
  EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, data));
  EXPECT_OK(p.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace));
  EXPECT_OK(p.finalize());
  return p;
}

// Memory for a plan's workspace, aligned as an allocator's.
class Workspace {
 public:
  explicit Workspace(int64_t bytes) : memory_(static_cast<size_t>(bytes) + 256) {}
  void* data() { return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory_.data()) + 255) / 256 * 256); }

 private:
  Memory memory_;
};

inline cudnnStatus_t execute(cudnnHandle_t handle, const Part& plan, const std::vector<Bound>& pointers) {
  Workspace w(plan.one<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  return cudnnBackendExecute(handle, plan, pack(pointers, w.data()));
}

}  // namespace client
