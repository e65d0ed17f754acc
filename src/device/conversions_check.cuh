// SPDX-License-Identifier: Apache-2.0
// Converts whatever it is given, one by one and in vectors: harness/conversions compares the results with the host's.
#pragma once

#include "device/conversions_args.cuh"
#include "device/memory.cuh"

namespace tsr::dev {

// Types of a byte and more.
template <class T>
void check_conversions(const ConversionArgs& a) {
  constexpr int N = 8;
  i64 first = (i64(blockIdx.x) * blockDim.x + threadIdx.x) * N, step = i64(gridDim.x) * blockDim.x * N;
  for (i64 i = first; i < a.pattern_count; i += step) {
    Vec<T, N> in;
    float out[N];
    for (int k = 0; k < N; ++k) {
      in.v[k] = static_cast<const T*>(a.patterns)[i + k];
      a.wide[i + k] = to_lane<float>(in.v[k]);
    }
    unpack(in, out);
    for (int k = 0; k < N; ++k) a.wide_vector[i + k] = out[k];
  }
  for (i64 i = first; i < a.value_count; i += step) {
    float in[N];
    Vec<T, N> out;
    for (int k = 0; k < N; ++k) {
      in[k] = a.values[i + k];
      static_cast<T*>(a.narrow)[i + k] = from_lane<T>(in[k]);
    }
    pack(in, out);
    for (int k = 0; k < N; ++k) static_cast<T*>(a.narrow_vector)[i + k] = out.v[k];
  }
}

// Types of less than a byte; whole bytes are written, in vectors and one element after the other.
template <class T>
void check_packed(const ConversionArgs& a) {
  constexpr int N = 8;
  i64 first = (i64(blockIdx.x) * blockDim.x + threadIdx.x) * N, step = i64(gridDim.x) * blockDim.x * N;
  for (i64 i = first; i < a.pattern_count; i += step) {
    Vec<float, N> out;
    load_packed_each<float, T>(a.patterns, i, 1, out);
    for (int k = 0; k < N; ++k) {
      a.wide[i + k] = load_packed<float, T>(a.patterns, i + k);
      a.wide_vector[i + k] = out.v[k];
    }
  }
  for (i64 i = first; i < a.value_count; i += step) {
    float in[N];
    for (int k = 0; k < N; ++k) {
      in[k] = a.values[i + k];
      float one[1] = {in[k]};
      store_packed<T>(a.narrow, i + k, one);
    }
    store_packed<T>(a.narrow_vector, i, in);
  }
}

}  // namespace tsr::dev
