// SPDX-License-Identifier: Apache-2.0
// Rows by index, running sums and the largest elements, on all threads: gather, scatter_add, cumsum, top_k. One file
// for each kind; index.cpp is the engine.
#pragma once

#include "engines/cpu/vector/kernels.hpp"
#include "planner/engine.hpp"

namespace tsr::cpu {

const Engine& index_engine();

// --- for index.cpp: the steps
std::unique_ptr<Step> make_gather(const Graph& g, const Node& n);
std::unique_ptr<Step> make_scatter_add(const Graph& g, const Node& n);
std::unique_ptr<Step> make_cumsum(const Graph& g, const Node& n);
std::unique_ptr<Step> make_top_k(const Graph& g, const Region& r, const Node& n);

// --- what they share
constexpr int64_t kLeastElements = 4096;  // that are worth a thread

// Calls f(position, offsets) for positions first..last - 1 of the row-major loops over `dims`; offsets[k] is the sum of
// index times strides[k] in each dimension.
template <size_t N, class F>
void walk(const Dims& dims, const std::array<Dims, N>& strides, int64_t first, int64_t last, const F& f) {
  if (first >= last) return;
  Dims index = dims;
  std::array<int64_t, N> at{};
  int64_t rest = first;
  for (int d = dims.size() - 1; d >= 0; --d) {
    index[d] = rest % dims[d], rest /= dims[d];
    for (size_t k = 0; k < N; ++k) at[k] += index[d] * strides[k][d];
  }
  for (int64_t i = first; i < last; ++i) {
    f(i, at);
    for (int d = dims.size() - 1; d >= 0; --d) {
      for (size_t k = 0; k < N; ++k) at[k] += strides[k][d];
      if (++index[d] < dims[d]) break;
      for (size_t k = 0; k < N; ++k) at[k] -= dims[d] * strides[k][d];
      index[d] = 0;
    }
  }
}

// What the elements of a type are computed in without loss.
inline Lane exact_lane(DType t) {
  if (t == DType::f64) return Lane::f64;
  return is_real(t) ? Lane::f32 : Lane::i64;
}

}  // namespace tsr::cpu
