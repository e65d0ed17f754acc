// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

using namespace client;

namespace {

struct PoolingDescriptor : Descriptor<cudnnPoolingDescriptor_t> {
  PoolingDescriptor() : Descriptor(cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor) {}
};

struct Window {
  Sizes size, padding, stride;
};

// The elements of x under the window of the element `i` of y, in row-major order.
std::vector<int64_t> elements(const Tensor& x, const Tensor& y, int64_t i, const Window& w) {
  Sizes at = y.index(i), from = at;
  std::vector<int64_t> found;
  Sizes step(w.size.size());
  int count = 1;
  for (int s : w.size) count *= s;
  for (int k = 0; k < count; ++k) {
    int rest = k;
    for (size_t d = step.size(); d-- > 0;) step[d] = rest % w.size[d], rest /= w.size[d];
    bool inside = true;
    for (size_t d = 0; d < step.size(); ++d) {
      from[d + 2] = at[d + 2] * w.stride[d] - w.padding[d] + step[d];
      inside = inside && from[d + 2] >= 0 && from[d + 2] < x.dims()[d + 2];
    }
    if (inside) found.push_back(x.position(from));
  }
  return found;
}

double weight(cudnnPoolingMode_t mode, const Window& w, size_t inside) {
  double all = 1;
  for (int s : w.size) all *= s;
  return 1 / (mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? all : static_cast<double>(inside));
}

bool is_max(cudnnPoolingMode_t mode) { return mode == CUDNN_POOLING_MAX || mode == CUDNN_POOLING_MAX_DETERMINISTIC; }

int64_t first_maximum(const Tensor& x, const std::vector<int64_t>& among) {
  int64_t best = -1;
  for (int64_t e : among)
    if (best < 0 || x.get(e) > x.get(best)) best = e;
  return best;
}

Values pool(const Tensor& x, const Tensor& y, cudnnPoolingMode_t mode, const Window& w) {
  Values v;
  for (int64_t i = 0; i < y.count(); ++i) {
    auto in = elements(x, y, i, w);
    double sum = 0;
    for (int64_t e : in) sum += x.get(e);
    v.push_back(is_max(mode) ? x.get(first_maximum(x, in)) : sum * weight(mode, w, in.size()));
  }
  return v;
}

Values gradient(const Tensor& x, const Tensor& dy, cudnnPoolingMode_t mode, const Window& w) {
  Values v(static_cast<size_t>(x.count()));
  for (int64_t i = 0; i < dy.count(); ++i) {
    auto in = elements(x, dy, i, w);
    if (is_max(mode))
      v[static_cast<size_t>(first_maximum(x, in))] += dy.get(i);
    else
      for (int64_t e : in) v[static_cast<size_t>(e)] += dy.get(i) * weight(mode, w, in.size());
  }
  return v;
}

constexpr cudnnPoolingMode_t kModes[] = {CUDNN_POOLING_MAX, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
                                         CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, CUDNN_POOLING_MAX_DETERMINISTIC};

void check(cudnnHandle_t h, cudnnPoolingMode_t mode, cudnnNanPropagation_t nan, cudnnDataType_t type, Layout layout,
           const Sizes& dims, const Window& w, Factors f) {
  PoolingDescriptor d;
  ASSERT_OK(cudnnSetPoolingNdDescriptor(d, mode, nan, static_cast<int>(w.size.size()), w.size.data(), w.padding.data(),
                                        w.stride.data()));
  Tensor x(type, dims, layout);
  Sizes out(dims.size());
  ASSERT_OK(cudnnGetPoolingNdForwardOutputDim(d, x, static_cast<int>(dims.size()), out.data()));
  for (size_t i = 0; i < w.size.size(); ++i)
    ASSERT_EQ(out[i + 2], 1 + (dims[i + 2] + 2 * w.padding[i] - w.size[i]) / w.stride[i]);
  Tensor y(type, out, layout), dy(type, out, layout), dx(type, dims, layout);
  x.random(1), y.random(2), dy.random(3), dx.random(4);
  Values want = blended(f.alpha, pool(x, y, mode, w), f.beta, y.values());
  Factor alpha(f.alpha, type), beta(f.beta, type);
  ASSERT_OK(cudnnPoolingForward(h, d, alpha, x, x.data(), beta, y, y.data()));
  expect_values(y, want);
  want = blended(f.alpha, gradient(x, dy, mode, w), f.beta, dx.values());
  ASSERT_OK(cudnnPoolingBackward(h, d, alpha, y, y.data(), dy, dy.data(), x, x.data(), beta, dx, dx.data()));
  expect_values(dx, want);
}

TEST(Pooling, every_mode_type_and_layout) {
  Handle h;
  for (cudnnPoolingMode_t mode : kModes)
    for (cudnnDataType_t type : kFloats)
      for (Layout layout : kLayouts)
        for (Factors f : kFactors)
          for (cudnnNanPropagation_t nan : {CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN})
            check(h, mode, nan, type, layout, {2, 3, 7, 6}, {{3, 2}, {1, 1}, {2, 1}}, f);
}

TEST(Pooling, shapes) {
  Handle h;
  for (cudnnPoolingMode_t mode : kModes)
    for (Layout layout : {Layout::nchw, Layout::nhwc}) {
      check(h, mode, CUDNN_PROPAGATE_NAN, CUDNN_DATA_FLOAT, layout, {1, 2, 5, 6, 7}, {{2, 3, 2}, {0, 1, 1}, {1, 2, 2}},
            {1, 0});
      check(h, mode, CUDNN_PROPAGATE_NAN, CUDNN_DATA_FLOAT, layout, {1, 1, 1, 1}, {{1, 1}, {0, 0}, {1, 1}}, {1, 0});
      check(h, mode, CUDNN_PROPAGATE_NAN, CUDNN_DATA_FLOAT, layout, {2, 33, 8, 8}, {{8, 8}, {0, 0}, {8, 8}}, {1, 0});
      check(h, mode, CUDNN_PROPAGATE_NAN, CUDNN_DATA_FLOAT, layout, {2, 4, 9, 9}, {{2, 2}, {0, 0}, {3, 3}}, {1, 0});
    }
}

TEST(Pooling, integers_and_nan) {
  Handle h;
  PoolingDescriptor d;
  Window w{{2, 2}, {0, 0}, {2, 2}};
  float one = 1, zero = 0;
  ASSERT_OK(cudnnSetPooling2dDescriptor(d, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
  Tensor x(CUDNN_DATA_INT8, {1, 8, 4, 4}, Layout::nhwc), y(CUDNN_DATA_INT8, {1, 8, 2, 2}, Layout::nhwc);
  x.random(1);
  ASSERT_OK(cudnnPoolingForward(h, d, &one, x, x.data(), &zero, y, y.data()));
  expect_values(y, pool(x, y, CUDNN_POOLING_MAX, w));

  double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor xf(CUDNN_DATA_FLOAT, {1, 1, 2, 4}), yf(CUDNN_DATA_FLOAT, {1, 1, 1, 2});
  xf.fill(-3), xf.set(0, nan);
  ASSERT_OK(cudnnPoolingForward(h, d, &one, xf, xf.data(), &zero, yf, yf.data()));
  expect_values(yf, {-3, -3});
  ASSERT_OK(cudnnSetPooling2dDescriptor(d, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
  ASSERT_OK(cudnnPoolingForward(h, d, &one, xf, xf.data(), &zero, yf, yf.data()));
  expect_values(yf, {nan, -3});
}

// Strides of vectorised types count vectors of channels.
TEST(Pooling, vectors_of_channels) {
  Handle h;
  PoolingDescriptor d;
  float one = 1, zero = 0;
  const int xdims[] = {2, 8, 4, 4}, xstrides[] = {32, 16, 4, 1}, ydims[] = {2, 8, 2, 2}, ystrides[] = {8, 4, 2, 1};
  Descriptor<cudnnTensorDescriptor_t> xd(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor),
      yd(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
  for (cudnnPoolingMode_t mode : {CUDNN_POOLING_MAX, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING}) {
    bool has_sign = mode == CUDNN_POOLING_MAX;
    cudnnDataType_t vectors = has_sign ? CUDNN_DATA_INT8x4 : CUDNN_DATA_UINT8x4,
                    element = has_sign ? CUDNN_DATA_INT8 : CUDNN_DATA_UINT8;
    ASSERT_OK(cudnnSetTensorNdDescriptor(xd, vectors, 4, xdims, xstrides));
    ASSERT_OK(cudnnSetTensorNdDescriptor(yd, vectors, 4, ydims, ystrides));
    ASSERT_OK(cudnnSetPooling2dDescriptor(d, mode, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
    // Vectors beside the positions, and the same numbers as channels.
    Tensor x(element, {2, 2, 4, 4, 4}), y(element, {2, 2, 2, 2, 4}), plain(element, {2, 8, 4, 4}),
        shape(element, {2, 8, 2, 2});
    for (int64_t i = 0; i < x.count(); ++i) x.set(i, static_cast<double>(i * 37 % 61) + (has_sign ? -30 : 190));
    for (int64_t i = 0; i < plain.count(); ++i) {
      Sizes at = plain.index(i);
      plain.set(i, x.get(x.position({at[0], at[1] / 4, at[2], at[3], at[1] % 4})));
    }
    ASSERT_OK(cudnnPoolingForward(h, d, &one, xd, x.data(), &zero, yd, y.data()));
    Values want = pool(plain, shape, mode, {{2, 2}, {0, 0}, {2, 2}});
    for (int64_t i = 0; i < shape.count(); ++i) {
      Sizes at = shape.index(i);
      EXPECT_EQ(y.get(y.position({at[0], at[1] / 4, at[2], at[3], at[1] % 4})),
                std::nearbyint(want[static_cast<size_t>(i)]));
    }
  }
}

TEST(Pooling, descriptors) {
  PoolingDescriptor d;
  ASSERT_OK(cudnnSetPooling2dDescriptor(d, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 3, 4, 1, 2, 5, 6));
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
  int v[6], n = 0, window[3], padding[3], stride[3];
  ASSERT_OK(cudnnGetPooling2dDescriptor(d, &mode, &nan, v, v + 1, v + 2, v + 3, v + 4, v + 5));
  EXPECT_EQ(Sizes(v, v + 6), (Sizes{3, 4, 1, 2, 5, 6}));
  ASSERT_OK(cudnnGetPoolingNdDescriptor(d, 3, &mode, &nan, &n, window, padding, stride));
  EXPECT_EQ(n, 2);
  EXPECT_EQ(window[1], 4);
  EXPECT_EQ(padding[0], 1);
  EXPECT_EQ(stride[1], 6);
  EXPECT_EQ(nan, CUDNN_PROPAGATE_NAN);
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 20, 20});
  ASSERT_OK(cudnnGetPooling2dForwardOutputDim(d, x, v, v + 1, v + 2, v + 3));
  EXPECT_EQ(Sizes(v, v + 4), (Sizes{2, 3, 4, 4}));
}

TEST(Pooling, mistakes) {
  Handle h;
  PoolingDescriptor d;
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 4, 4}), y(CUDNN_DATA_FLOAT, {2, 3, 2, 2}), other(CUDNN_DATA_FLOAT, {2, 2, 2, 2});
  float one = 1, zero = 0;
  EXPECT_TRUE(is_bad_param(cudnnPoolingForward(h, d, &one, x, x.data(), &zero, y, y.data())));  // not set
  auto set = [&](int mode, int window, int padding, int stride) {
    return cudnnSetPooling2dDescriptor(d, static_cast<cudnnPoolingMode_t>(mode), CUDNN_PROPAGATE_NAN, window, 2,
                                       padding, 0, stride, 2);
  };
  EXPECT_TRUE(is_bad_param(set(4, 2, 0, 2)));
  EXPECT_TRUE(is_bad_param(set(0, 0, 0, 2)));
  EXPECT_TRUE(is_bad_param(set(0, 2, -1, 2)));
  EXPECT_TRUE(is_bad_param(set(0, 2, 0, 0)));
  ASSERT_OK(set(0, 2, 0, 2));
  EXPECT_TRUE(is_bad_param(cudnnPoolingForward(h, d, &one, x, x.data(), &zero, other, other.data())));
  EXPECT_TRUE(is_bad_param(cudnnPoolingForward(h, d, &one, x, nullptr, &zero, y, y.data())));
  EXPECT_TRUE(is_bad_param(cudnnPoolingForward(h, nullptr, &one, x, x.data(), &zero, y, y.data())));
  int out[5];
  EXPECT_TRUE(is_bad_param(cudnnGetPoolingNdForwardOutputDim(d, x, 5, out)));
}

}  // namespace
