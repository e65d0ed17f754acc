// SPDX-License-Identifier: Apache-2.0
// Flat memory of some type, and derivatives by differences, for calls whose gradients have no short formula.
#pragma once

#include <algorithm>

#include "client.hpp"

namespace client {

// A flat piece of memory of some type.
struct Flat : Tensor {
  Flat(cudnnDataType_t type, int64_t n) : Tensor(type, {1, 1, static_cast<int>(n)}) {}
};

// Whole numbers where calls want them: in the device's memory.
struct Integers : Flat {
  explicit Integers(const std::vector<int>& v) : Flat(CUDNN_DATA_INT32, static_cast<int64_t>(v.size())) {
    for (size_t i = 0; i < v.size(); ++i) set(static_cast<int64_t>(i), v[i]);
  }
  const int* get() { return static_cast<const int*>(data()); }
};

// What accumulates in f32 and is compared with differences is not exact to the last place. What tensor cores multiply
// of a step before is rounded to 16 bits.
inline void expect_close(const Tensor& got, const Values& want) {
  ASSERT_EQ(static_cast<size_t>(got.count()), want.size());
  double largest = 1;
  for (double w : want) largest = std::max(largest, std::fabs(w));
  double rest = got.type() == CUDNN_DATA_DOUBLE ? 1e-7 : got.type() == CUDNN_DATA_FLOAT ? 2e-5 : epsilon_of(got.type());
  for (int64_t i = 0; i < got.count(); ++i) {
    double w = want[static_cast<size_t>(i)];
    ASSERT_NEAR(got.get(i), w, epsilon_of(got.type()) * std::fabs(w) + rest * largest) << "element " << i;
  }
  EXPECT_TRUE(got.gaps_untouched());
}

// The derivative of f at each element of v, by differences.
inline Values differences(Values& v, const std::function<double()>& f) {
  constexpr double kStep = 1e-5;
  Values d;
  for (double& e : v) {
    double before = e;
    e = before + kStep;
    double above = f();
    e = before - kStep;
    d.push_back((above - f()) / (2 * kStep));
    e = before;
  }
  return d;
}

inline double dot(const Values& a, const Values& b) {
  double s = 0;
  for (size_t i = 0; i < a.size(); ++i) s += a[i] * b[i];
  return s;
}

}  // namespace client
