// SPDX-License-Identifier: Apache-2.0
// A libcublasLt.so that multiplies in the host's memory, one element after the other, and refuses what NVIDIA's would:
// what the client of tests/unit/cublaslt_test.cpp describes can be compared with the oracle. Its second algorithm is
// the fast one by the client's clock: it counts as chosen when it runs last.
#include <cmath>
#include <cstring>
#include <memory>

#include "cublaslt/names.hpp"

namespace {

using cublaslt::Compute;
using cublaslt::Type;

constexpr int kOk = 0, kInvalid = 7, kNotSupported = 15;

struct Matmul {
  int compute, scale_type;
  int32_t turned_a = 0, turned_b = 0;
  uint32_t epilogue = cublaslt::kPlain;
  const void* bias = nullptr;
  int bias_type = 0;
};
struct Layout {
  int type;
  int64_t rows, columns, leading;
  int32_t batches = 1;
  int64_t batch_stride = 0;
};
struct Preference {
  size_t workspace_bytes = 0;
};

double load(int type, const void* data, int64_t i) {
  switch (static_cast<Type>(type)) {
    case Type::f32:
      return static_cast<const float*>(data)[i];
    case Type::f64:
      return static_cast<const double*>(data)[i];
    case Type::i8:
      return static_cast<const int8_t*>(data)[i];
    default:
      return NAN;
  }
}
void store(int type, void* data, int64_t i, double v) {
  if (type == static_cast<int>(Type::f32)) static_cast<float*>(data)[i] = static_cast<float>(v);
  if (type == static_cast<int>(Type::f64)) static_cast<double*>(data)[i] = v;
  if (type == static_cast<int>(Type::i32)) static_cast<int32_t*>(data)[i] = static_cast<int32_t>(v);
}

double scale(const Matmul& m, const void* value) {
  if (m.scale_type == static_cast<int>(Type::i32)) return *static_cast<const int32_t*>(value);
  if (m.scale_type == static_cast<int>(Type::f64)) return *static_cast<const double*>(value);
  return *static_cast<const float*>(value);
}

template <class T>
int set(T& field, const void* value, size_t bytes) {
  if (bytes != sizeof field) return kInvalid;
  std::memcpy(&field, value, bytes);
  return kOk;
}

template <class T>
int destroy(void* p) {
  delete static_cast<T*>(p);
  return kOk;
}

double finish(const Matmul& m, double v) {
  if (m.epilogue & cublaslt::kRelu) return v > 0 ? v : 0;
  if (m.epilogue & cublaslt::kGelu) return v * 0.5 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  return v;
}

}  // namespace

extern "C" {

int fake_last_algorithm = -1;

size_t cublasLtGetVersion() { return 130100; }
const char* cublasLtGetStatusString(int status) { return status == kNotSupported ? "not supported" : "invalid value"; }
int cublasLtCreate(void** handle) { return *handle = new int(0), kOk; }
int cublasLtDestroy(void* handle) { return destroy<int>(handle); }

int cublasLtMatmulDescCreate(void** matmul, int compute, int scale_type) {
  return *matmul = new Matmul{compute, scale_type}, kOk;
}
int cublasLtMatmulDescDestroy(void* matmul) { return destroy<Matmul>(matmul); }
int cublasLtMatmulDescSetAttribute(void* matmul, int attribute, const void* value, size_t bytes) {
  auto& m = *static_cast<Matmul*>(matmul);
  switch (static_cast<cublaslt::MatmulAttr>(attribute)) {
    case cublaslt::MatmulAttr::turned_a:
      return set(m.turned_a, value, bytes);
    case cublaslt::MatmulAttr::turned_b:
      return set(m.turned_b, value, bytes);
    case cublaslt::MatmulAttr::epilogue:
      return set(m.epilogue, value, bytes);
    case cublaslt::MatmulAttr::bias_pointer:
      return set(m.bias, value, bytes);
    case cublaslt::MatmulAttr::bias_type:
      return set(m.bias_type, value, bytes);
    default:
      return kInvalid;
  }
}

int cublasLtMatrixLayoutCreate(void** layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  if (leading < static_cast<int64_t>(rows)) return kInvalid;
  return *layout = new Layout{type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading}, kOk;
}
int cublasLtMatrixLayoutDestroy(void* layout) { return destroy<Layout>(layout); }
int cublasLtMatrixLayoutSetAttribute(void* layout, int attribute, const void* value, size_t bytes) {
  auto& l = *static_cast<Layout*>(layout);
  if (attribute == static_cast<int>(cublaslt::LayoutAttr::batches)) return set(l.batches, value, bytes);
  if (attribute == static_cast<int>(cublaslt::LayoutAttr::batch_stride)) return set(l.batch_stride, value, bytes);
  return kInvalid;
}

int cublasLtMatmulPreferenceCreate(void** preference) { return *preference = new Preference, kOk; }
int cublasLtMatmulPreferenceDestroy(void* preference) { return destroy<Preference>(preference); }
int cublasLtMatmulPreferenceSetAttribute(void* preference, int, const void* value, size_t bytes) {
  return set(static_cast<Preference*>(preference)->workspace_bytes, value, bytes);
}

int cublasLtMatmulAlgoGetHeuristic(void*, void* matmul, void* a, void* b, void* c, void* d, void*, int wanted,
                                   cublaslt::Suggestion* found, int* count) {
  const auto& m = *static_cast<const Matmul*>(matmul);
  const auto &la = *static_cast<const Layout*>(a), &lb = *static_cast<const Layout*>(b),
             &lc = *static_cast<const Layout*>(c), &ld = *static_cast<const Layout*>(d);
  int64_t inner = m.turned_a ? la.rows : la.columns, rows = m.turned_a ? la.columns : la.rows;
  int64_t inner_b = m.turned_b ? lb.columns : lb.rows, columns = m.turned_b ? lb.rows : lb.columns;
  if (inner != inner_b || ld.rows != rows || ld.columns != columns || lc.rows != rows || lc.columns != columns)
    return kInvalid;
  if (la.type != lb.type) return kNotSupported;
  *count = 0;
  for (; *count < 3 && *count < wanted; ++*count) {
    found[*count] = {};
    found[*count].algorithm.data[0] = static_cast<uint64_t>(*count);
    found[*count].status = *count == 0 ? kNotSupported : kOk;
  }
  return kOk;
}

int cublasLtMatmul(void*, void* matmul, const void* alpha, const void* a, void* a_layout, const void* b, void* b_layout,
                   const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                   const cublaslt::Algorithm* algorithm, void*, size_t, void*) {
  const auto& m = *static_cast<const Matmul*>(matmul);
  const auto &la = *static_cast<const Layout*>(a_layout), &lb = *static_cast<const Layout*>(b_layout),
             &lc = *static_cast<const Layout*>(c_layout), &ld = *static_cast<const Layout*>(d_layout);
  int64_t inner = m.turned_a ? la.rows : la.columns;
  double one = scale(m, alpha), rest = scale(m, beta);
  for (int64_t n = 0; n < ld.batches; ++n)
    for (int64_t j = 0; j < ld.columns; ++j)
      for (int64_t i = 0; i < ld.rows; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += load(la.type, a, n * la.batch_stride + (m.turned_a ? k + i * la.leading : i + k * la.leading)) *
                 load(lb.type, b, n * lb.batch_stride + (m.turned_b ? j + k * lb.leading : k + j * lb.leading));
        double v = one * sum;
        if (rest != 0) v += rest * load(lc.type, c, n * lc.batch_stride + i + j * lc.leading);
        if (m.epilogue & cublaslt::kBias) v += load(m.bias_type, m.bias, i);
        store(ld.type, d, n * ld.batch_stride + i + j * ld.leading, finish(m, v));
      }
  fake_last_algorithm = static_cast<int>(algorithm->data[0]);
  return kOk;
}

}  // extern "C"
