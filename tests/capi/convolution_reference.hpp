// SPDX-License-Identifier: Apache-2.0
// Convolutions by their definition, and what tests of them need: filters and descriptors.
#pragma once

#include "client.hpp"

namespace client {

class Filter {
 public:
  Filter(cudnnDataType_t type, const Sizes& dims, cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW)
      : values_(type, dims, format == CUDNN_TENSOR_NHWC ? Layout::nhwc : Layout::nchw),
        desc_(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor) {
    EXPECT_OK(cudnnSetFilterNdDescriptor(desc_, type, format, static_cast<int>(dims.size()), dims.data()));
  }
  Filter& random(unsigned seed) {
    values_.random(seed);
    return *this;
  }
  Tensor& values() { return values_; }
  void* data() { return values_.data(); }
  operator cudnnFilterDescriptor_t() const { return desc_; }

 private:
  Tensor values_;
  Descriptor<cudnnFilterDescriptor_t> desc_;
};

struct ConvSpec {
  Sizes pad, stride, dilation;
  int groups = 1;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
};

struct ConvDescriptor : Descriptor<cudnnConvolutionDescriptor_t> {
  explicit ConvDescriptor(const ConvSpec& s, cudnnDataType_t compute = CUDNN_DATA_FLOAT)
      : Descriptor(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor) {
    EXPECT_OK(cudnnSetConvolutionNdDescriptor(*this, static_cast<int>(s.pad.size()), s.pad.data(), s.stride.data(),
                                              s.dilation.data(), s.mode, compute));
    EXPECT_OK(cudnnSetConvolutionGroupCount(*this, s.groups));
  }
};

inline Sizes output_sizes(const ConvSpec& s, const Sizes& x, const Sizes& w) {
  Sizes y = {x[0], w[0]};
  for (size_t i = 0; i < s.pad.size(); ++i)
    y.push_back((x[2 + i] + 2 * s.pad[i] - (w[2 + i] - 1) * s.dilation[i] - 1) / s.stride[i] + 1);
  return y;
}

// Calls f(position in x, in w, in y) for every product of the convolution.
inline void each_product(const ConvSpec& s, const Tensor& x, const Tensor& w, const Tensor& y,
                         const std::function<void(size_t, size_t, size_t)>& f) {
  int per_group = y.dims()[1] / s.groups;
  int64_t per_filter = w.count() / w.dims()[0];
  for (int64_t iy = 0; iy < y.count(); ++iy) {
    Sizes at = y.index(iy);
    for (int64_t iw = at[1] * per_filter; iw < (at[1] + 1) * per_filter; ++iw) {
      Sizes tap = w.index(iw), from = {at[0], at[1] / per_group * w.dims()[1] + tap[1]};
      bool inside = true;
      for (size_t i = 0; i < s.pad.size(); ++i) {
        int t = s.mode == CUDNN_CONVOLUTION ? w.dims()[2 + i] - 1 - tap[2 + i] : tap[2 + i];
        from.push_back(at[2 + i] * s.stride[i] - s.pad[i] + t * s.dilation[i]);
        inside &= from.back() >= 0 && from.back() < x.dims()[2 + i];
      }
      if (inside) f(static_cast<size_t>(x.position(from)), static_cast<size_t>(iw), static_cast<size_t>(iy));
    }
  }
}

inline Values forward_of(const ConvSpec& s, const Tensor& x, const Tensor& w, const Tensor& y) {
  Values a = x.values(), b = w.values(), r(static_cast<size_t>(y.count()));
  each_product(s, x, w, y, [&](size_t ix, size_t iw, size_t iy) { r[iy] += a[ix] * b[iw]; });
  return r;
}

inline Values backward_data_of(const ConvSpec& s, const Tensor& dx, const Tensor& w, const Tensor& dy) {
  Values a = dy.values(), b = w.values(), r(static_cast<size_t>(dx.count()));
  each_product(s, dx, w, dy, [&](size_t ix, size_t iw, size_t iy) { r[ix] += a[iy] * b[iw]; });
  return r;
}

inline Values backward_filter_of(const ConvSpec& s, const Tensor& x, const Tensor& dw, const Tensor& dy) {
  Values a = x.values(), b = dy.values(), r(static_cast<size_t>(dw.count()));
  each_product(s, x, dw, dy, [&](size_t ix, size_t iw, size_t iy) { r[iw] += a[ix] * b[iy]; });
  return r;
}

}  // namespace client
