// SPDX-License-Identifier: Apache-2.0
// What a program that calls cuDNN's interface needs: a handle, tensors with their descriptors, and numbers to compare
// with. Values are seen as double, in row-major order of the indices, whatever the type and the strides.
#pragma once

#include <cudnn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "memory.hpp"

namespace client {

using Sizes = std::vector<int>;
using Values = std::vector<double>;

#define EXPECT_OK(call) EXPECT_EQ(CUDNN_STATUS_SUCCESS, call) << client::last_error()
#define ASSERT_OK(call) ASSERT_EQ(CUDNN_STATUS_SUCCESS, call) << client::last_error()

inline std::string last_error() {
  char text[2048] = "";
  cudnnGetLastErrorString(text, sizeof text);
  return text;
}

// Whether a status says that the caller made a mistake.
inline bool is_bad_param(cudnnStatus_t s) { return s >= 2000 && s < 3000; }
inline bool is_not_supported(cudnnStatus_t s) { return s >= 3000 && s < 4000; }

class Handle {
 public:
  Handle() { EXPECT_OK(cudnnCreate(&handle_)); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { cudnnDestroy(handle_); }
  operator cudnnHandle_t() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

// A descriptor of any kind, created and destroyed by its functions.
template <class D>
class Descriptor {
 public:
  Descriptor(cudnnStatus_t (*create)(D*), cudnnStatus_t (*destroy)(D)) : destroy_(destroy) { EXPECT_OK(create(&d_)); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { EXPECT_OK(destroy_(d_)); }
  operator D() const { return d_; }

 private:
  D d_ = nullptr;
  cudnnStatus_t (*destroy_)(D);
};

// A float with fewer bits: `mantissa` bits without the leading one and exponents down to `lowest`.
inline double round_float(double v, int mantissa, int lowest, double largest) {
  if (v == 0 || !std::isfinite(v)) return v;
  int e = std::max(std::ilogb(v), lowest) - mantissa;
  double r = std::ldexp(std::nearbyint(std::ldexp(v, -e)), e);
  return std::fabs(r) > largest ? std::copysign(std::numeric_limits<double>::infinity(), v) : r;
}

inline uint16_t to_half(double v) {
  double r = round_float(v, 10, -14, 65504);
  uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isnan(v)) return 0x7e00;
  if (std::isinf(r)) return static_cast<uint16_t>(sign | 0x7c00);
  double m = std::fabs(r);
  if (m < std::ldexp(1, -14)) return static_cast<uint16_t>(sign | static_cast<int>(std::ldexp(m, 24)));
  int e = std::ilogb(m);
  return static_cast<uint16_t>(sign | ((e + 15) << 10) | (static_cast<int>(std::ldexp(m, 10 - e)) - 1024));
}

inline double from_half(uint16_t b) {
  int e = (b >> 10) & 31, m = b & 1023;
  double v = e == 31  ? (m ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity())
             : e == 0 ? std::ldexp(m, -24)
                      : std::ldexp(1024 + m, e - 25);
  return b & 0x8000 ? -v : v;
}

inline uint16_t to_bfloat(double v) {
  auto f = static_cast<float>(round_float(v, 7, -126, 3.3895313892515355e38));
  uint32_t b;
  std::memcpy(&b, &f, 4);
  return static_cast<uint16_t>(b >> 16);
}

inline double from_bfloat(uint16_t v) {
  uint32_t b = static_cast<uint32_t>(v) << 16;
  float f;
  std::memcpy(&f, &b, 4);
  return f;
}

// FP8: E4M3 has no infinity and one NaN of each sign, E5M2 is the upper half of a half. Results saturate.
inline uint8_t to_fp8(cudnnDataType_t t, double v) {
  bool wide = t == CUDNN_DATA_FP8_E5M2;
  if (std::isnan(v)) return 0x7f;
  double largest = wide ? 57344 : 448, m = std::min(std::fabs(v), largest);
  double r = std::min(round_float(m, wide ? 2 : 3, wide ? -14 : -6, 1e9), largest);
  int bits = wide ? 2 : 3, bias = wide ? 15 : 7, lowest = 1 - bias, code;
  if (r < std::ldexp(1, lowest))
    code = static_cast<int>(std::ldexp(r, bits - lowest));
  else
    code =
        ((std::ilogb(r) + bias) << bits) | (static_cast<int>(std::ldexp(r, bits - std::ilogb(r))) & ((1 << bits) - 1));
  return static_cast<uint8_t>((std::signbit(v) ? 0x80 : 0) | code);
}

inline double from_fp8(cudnnDataType_t t, uint8_t b) {
  bool wide = t == CUDNN_DATA_FP8_E5M2;
  if (wide) return from_half(static_cast<uint16_t>(b << 8));
  int e = (b >> 3) & 15, m = b & 7;
  double v = e == 15 && m == 7 ? std::numeric_limits<double>::quiet_NaN()
             : e == 0          ? std::ldexp(m, -9)
                               : std::ldexp(8 + m, e - 10);
  return b & 0x80 ? -v : v;
}

inline size_t size_of(cudnnDataType_t t) {
  switch (t) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
      return 8;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16:
      return 2;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
      return 1;
    default:
      return 4;
  }
}

template <class T>
double load(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return static_cast<double>(v);
}
template <class T>
void store(void* p, double v) {
  auto t = static_cast<T>(v);
  std::memcpy(p, &t, sizeof t);
}

inline double load(cudnnDataType_t t, const void* p) {
  switch (t) {
    case CUDNN_DATA_DOUBLE:
      return load<double>(p);
    case CUDNN_DATA_INT64:
      return load<int64_t>(p);
    case CUDNN_DATA_INT32:
      return load<int32_t>(p);
    case CUDNN_DATA_INT8:
      return load<int8_t>(p);
    case CUDNN_DATA_UINT8:
      return load<uint8_t>(p);
    case CUDNN_DATA_HALF:
      return from_half(*static_cast<const uint16_t*>(p));
    case CUDNN_DATA_BFLOAT16:
      return from_bfloat(*static_cast<const uint16_t*>(p));
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
      return from_fp8(t, *static_cast<const uint8_t*>(p));
    default:
      return load<float>(p);
  }
}

inline void store(cudnnDataType_t t, void* p, double v) {
  switch (t) {
    case CUDNN_DATA_DOUBLE:
      return store<double>(p, v);
    case CUDNN_DATA_INT64:
      return store<int64_t>(p, v);
    case CUDNN_DATA_INT32:
      return store<int32_t>(p, v);
    case CUDNN_DATA_INT8:
      return store<int8_t>(p, v);
    case CUDNN_DATA_UINT8:
      return store<uint8_t>(p, v);
    case CUDNN_DATA_HALF:
      *static_cast<uint16_t*>(p) = to_half(v);
      return;
    case CUDNN_DATA_BFLOAT16:
      *static_cast<uint16_t*>(p) = to_bfloat(v);
      return;
    case CUDNN_DATA_FP8_E4M3:
    case CUDNN_DATA_FP8_E5M2:
      *static_cast<uint8_t*>(p) = to_fp8(t, v);
      return;
    default:
      return store<float>(p, v);
  }
}

// Distance from 1 to the next number; 0 for integers.
inline double epsilon_of(cudnnDataType_t t) {
  switch (t) {
    case CUDNN_DATA_DOUBLE:
      return 0x1p-52;
    case CUDNN_DATA_FLOAT:
      return 0x1p-23;
    case CUDNN_DATA_HALF:
      return 0x1p-10;
    case CUDNN_DATA_BFLOAT16:
      return 0x1p-7;
    case CUDNN_DATA_FP8_E4M3:
      return 0x1p-3;
    case CUDNN_DATA_FP8_E5M2:
      return 0x1p-2;
    default:
      return 0;
  }
}

enum class Layout { nchw, nhwc, gaps };  // gaps: nchw with room between rows and elements

inline Sizes strides_of(const Sizes& dims, Layout layout) {
  Sizes s(dims.size(), 1);
  std::vector<size_t> order;  // from the fastest
  if (layout == Layout::nhwc && dims.size() > 1) order.push_back(1);
  for (size_t i = dims.size(); i-- > 0;)
    if (layout != Layout::nhwc || dims.size() < 2 || i != 1) order.push_back(i);
  int next = layout == Layout::gaps ? 2 : 1;
  for (size_t i : order) {
    s[i] = next;
    next = next * dims[i] + (layout == Layout::gaps ? 3 : 0);
  }
  return s;
}

class Tensor {
 public:
  Tensor(cudnnDataType_t type, Sizes dims, Layout layout = Layout::nchw)
      : Tensor(type, dims, strides_of(dims, layout)) {}
  Tensor(cudnnDataType_t type, const Sizes& dims, const Sizes& strides)
      : type_(type), dims_(dims), strides_(strides), desc_(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor) {
    EXPECT_OK(cudnnSetTensorNdDescriptor(desc_, type, static_cast<int>(dims.size()), dims.data(), strides.data()));
    size_t last = 0;
    for (size_t i = 0; i < dims.size(); ++i) last += static_cast<size_t>((dims[i] - 1) * strides[i]);
    memory_.resize((last + 1) * size_of(type) + 16, kGap);
  }
  // Random numbers between -2 and 2; whole ones between -8 and 8 for integers.
  Tensor& random(unsigned seed) {
    std::mt19937 g(seed);
    bool whole = epsilon_of(type_) == 0;
    std::uniform_real_distribution<double> d(whole ? -8 : -2, whole ? 8 : 2);
    for (int64_t i = 0; i < count(); ++i) set(i, whole ? std::nearbyint(d(g)) : d(g));
    return *this;
  }
  Tensor& fill(double v) {
    for (int64_t i = 0; i < count(); ++i) set(i, v);
    return *this;
  }

  int64_t count() const {
    int64_t n = 1;
    for (int d : dims_) n *= d;
    return n;
  }
  Sizes index(int64_t i) const {
    Sizes x(dims_.size());
    for (size_t d = dims_.size(); d-- > 0;) x[d] = static_cast<int>(i % dims_[d]), i /= dims_[d];
    return x;
  }
  int64_t position(const Sizes& index) const {
    int64_t p = 0;
    for (size_t d = 0; d < dims_.size(); ++d) p = p * dims_[d] + index[d];
    return p;
  }
  double get(int64_t i) const { return load(type_, memory_.host() + place(i)); }
  void set(int64_t i, double v) { store(type_, memory_.edit() + place(i), v); }
  Values values() const {
    Values v;
    for (int64_t i = 0; i < count(); ++i) v.push_back(get(i));
    return v;
  }
  void* data() { return memory_.data(); }  // for the calls
  const void* on_host() const { return memory_.host(); }
  cudnnDataType_t type() const { return type_; }
  const Sizes& dims() const { return dims_; }
  operator cudnnTensorDescriptor_t() const { return desc_; }
  // Memory between the elements, and behind them, is nobody's to write.
  bool gaps_untouched() const {
    std::vector<bool> used(memory_.size());
    for (int64_t i = 0; i < count(); ++i)
      for (size_t b = 0; b < size_of(type_); ++b) used[place(i) + b] = true;
    for (size_t b = 0; b < memory_.size(); ++b)
      if (!used[b] && memory_.host()[b] != kGap) return false;
    return true;
  }

 private:
  static constexpr unsigned char kGap = 0x5a;
  size_t place(int64_t i) const {
    Sizes x = index(i);
    size_t p = 0;
    for (size_t d = 0; d < x.size(); ++d) p += static_cast<size_t>(x[d]) * static_cast<size_t>(strides_[d]);
    return p * size_of(type_);
  }
  cudnnDataType_t type_;
  Sizes dims_, strides_;
  Descriptor<cudnnTensorDescriptor_t> desc_;
  Memory memory_;
};

// A factor of a call on data of this type: float, but double for double.
class Factor {
 public:
  Factor(double v, cudnnDataType_t type) : wide_(v), narrow_(static_cast<float>(v)), type_(type) {}
  operator const void*() const { return type_ == CUDNN_DATA_DOUBLE ? static_cast<const void*>(&wide_) : &narrow_; }

 private:
  double wide_;
  float narrow_;
  cudnnDataType_t type_;
};

// Within some units in the last place of the largest value; 16-bit results are rounded once more than f32.
inline void expect_values(const Tensor& got, const Values& want, double units = 16) {
  ASSERT_EQ(static_cast<size_t>(got.count()), want.size());
  double largest = 1;
  for (double w : want)
    if (std::isfinite(w)) largest = std::max(largest, std::fabs(w));
  double eps = epsilon_of(got.type()), wide = got.type() == CUDNN_DATA_DOUBLE ? 0x1p-52 : 0x1p-23;
  for (int64_t i = 0; i < got.count(); ++i) {
    double g = got.get(i), w = want[static_cast<size_t>(i)];
    if (!std::isfinite(w)) {
      EXPECT_TRUE(std::isnan(w) ? std::isnan(g) : g == w) << "element " << i << " is " << g << ", expected " << w;
      continue;
    }
    double tolerance = eps * std::fabs(w) + (eps ? units * wide * largest : 0);
    ASSERT_NEAR(g, w, tolerance) << "element " << i;
  }
  EXPECT_TRUE(got.gaps_untouched());
}

// alpha * computed + beta * before, for every element.
inline Values blended(double alpha, const Values& computed, double beta, const Values& before) {
  Values v(computed.size());
  for (size_t i = 0; i < v.size(); ++i) v[i] = alpha * computed[i] + (beta != 0 ? beta * before[i] : 0);
  return v;
}

// What is expected is computed exactly: products of f32 must not round their operands, as they may otherwise.
inline const bool kKeepsF32 = setenv("NVIDIA_TF32_OVERRIDE", "0", 0) == 0;

// What tests run through. Every combination of types and layouts is a kernel to compile where GPUs are emulated: there
// it is some of them.
template <class T>
std::vector<T> choices(std::vector<T> all, std::vector<T> emulated) {
  const char* device = std::getenv("TESSERA_DEVICE");
  return device && std::string(device) == "emulated" ? emulated : all;
}
inline const auto kFloats = choices<cudnnDataType_t>(
    {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}, {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF});
inline const auto kLayouts = choices<Layout>({Layout::nchw, Layout::nhwc, Layout::gaps}, {Layout::nchw, Layout::nhwc});
struct Factors {
  double alpha, beta;
};
inline const auto kFactors = choices<Factors>({{1, 0}, {0.5, 0}, {1, 2}, {-0.75, 0.5}}, {{1, 0}, {-0.75, 0.5}});

}  // namespace client
