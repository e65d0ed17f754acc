// SPDX-License-Identifier: Apache-2.0
// What the tests of the stand-in share: its interface, and cuDNN's on top of it.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "cudart/cudart.hpp"

// cuDNN's headers take CUDA's where they are found; here CUDA's interface is the stand-in's.
#define __CUDA_RUNTIME_API_H__
#include "cudnn.h"

#define ASSERT_CUDA(call) ASSERT_EQ(call, cudaSuccess)
#define EXPECT_CUDA(call) EXPECT_EQ(call, cudaSuccess)

namespace cudart_test {

// Device memory with values.
template <class T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()));
    EXPECT_CUDA(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { EXPECT_CUDA(cudaFree(data_)); }
  T* get() const { return data_; }
  size_t bytes() const { return count_ * sizeof(T); }
  std::vector<T> values() const {
    std::vector<T> v(count_);
    EXPECT_CUDA(cudaMemcpy(v.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return v;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

// The lines that calls wrote to standard error.
template <class F>
std::string said(const F& calls) {
  testing::internal::CaptureStderr();
  calls();
  return testing::internal::GetCapturedStderr();
}

inline cudaStream_t new_stream() {
  cudaStream_t s = nullptr;
  EXPECT_CUDA(cudaStreamCreate(&s));
  return s;
}

}  // namespace cudart_test
