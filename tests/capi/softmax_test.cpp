// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

using namespace client;

namespace {

// Calls `body` with the positions that are normalised together.
void for_groups(const Tensor& t, cudnnSoftmaxMode_t mode, const std::function<void(const std::vector<size_t>&)>& body) {
  std::vector<std::vector<size_t>> groups;
  int inner = 1;
  for (size_t d = 2; d < t.dims().size(); ++d) inner *= t.dims()[d];
  int n = t.dims()[0], c = t.dims()[1];
  groups.resize(static_cast<size_t>(mode == CUDNN_SOFTMAX_MODE_INSTANCE ? n : n * inner));
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < c; ++j)
      for (int k = 0; k < inner; ++k)
        groups[static_cast<size_t>(mode == CUDNN_SOFTMAX_MODE_INSTANCE ? i : i * inner + k)].push_back(
            static_cast<size_t>((i * c + j) * inner + k));
  for (const auto& g : groups) body(g);
}

Values softmax(const Tensor& x, cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode) {
  Values v = x.values(), y(v.size());
  for_groups(x, mode, [&](const std::vector<size_t>& g) {
    double most = -INFINITY, sum = 0;
    for (size_t i : g) most = std::max(most, v[i]);
    for (size_t i : g) sum += std::exp(v[i] - most);
    for (size_t i : g) y[i] = algo == CUDNN_SOFTMAX_LOG ? v[i] - most - std::log(sum) : std::exp(v[i] - most) / sum;
  });
  return y;
}

Values gradient(const Tensor& y, const Tensor& dy, cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode) {
  Values v = y.values(), d = dy.values(), dx(v.size());
  for_groups(y, mode, [&](const std::vector<size_t>& g) {
    double sum = 0;
    for (size_t i : g) sum += algo == CUDNN_SOFTMAX_LOG ? d[i] : d[i] * v[i];
    for (size_t i : g) dx[i] = algo == CUDNN_SOFTMAX_LOG ? d[i] - std::exp(v[i]) * sum : v[i] * (d[i] - sum);
  });
  return dx;
}

TEST(Softmax, every_algorithm_mode_type_and_layout) {
  Handle h;
  for (cudnnSoftmaxAlgorithm_t algo : {CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_LOG})
    for (cudnnSoftmaxMode_t mode : {CUDNN_SOFTMAX_MODE_INSTANCE, CUDNN_SOFTMAX_MODE_CHANNEL})
      for (cudnnDataType_t type : kFloats)
        for (Layout layout : kLayouts)
          for (Factors f : kFactors) {
            Tensor x(type, {2, 5, 3, 4}, layout), y(type, x.dims(), layout), dy(type, x.dims(), layout),
                dx(type, x.dims(), layout);
            x.random(1), y.random(2), dy.random(3), dx.random(4);
            Values want = blended(f.alpha, softmax(x, algo, mode), f.beta, y.values());
            Factor alpha(f.alpha, type), beta(f.beta, type);
            ASSERT_OK(cudnnSoftmaxForward(h, algo, mode, alpha, x, x.data(), beta, y, y.data()));
            expect_values(y, want);
            want = blended(f.alpha, gradient(y, dy, algo, mode), f.beta, dx.values());
            ASSERT_OK(cudnnSoftmaxBackward(h, algo, mode, alpha, y, y.data(), dy, dy.data(), beta, dx, dx.data()));
            expect_values(dx, want, 64);
          }
}

TEST(Softmax, in_place_and_large_numbers) {
  Handle h;
  Tensor x(CUDNN_DATA_FLOAT, {3, 1000, 1, 1}), dy(CUDNN_DATA_FLOAT, x.dims());
  x.random(1), dy.random(2);
  x.set(5, 1000), x.set(6, 1001);
  float one = 1, zero = 0;
  Values want = softmax(x, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL);
  ASSERT_OK(cudnnSoftmaxForward(h, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x, x.data(), &zero, x,
                                x.data()));
  expect_values(x, want);
  want = gradient(x, dy, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL);
  ASSERT_OK(cudnnSoftmaxBackward(h, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x, x.data(), dy,
                                 dy.data(), &zero, dy, dy.data()));
  expect_values(dy, want);
}

TEST(Softmax, mistakes) {
  Handle h;
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 1, 1}), other(CUDNN_DATA_FLOAT, {2, 4, 1, 1});
  float one = 1, zero = 0;
  auto forward = [&](cudnnHandle_t handle, int algo, int mode, cudnnTensorDescriptor_t yd, void* y) {
    return cudnnSoftmaxForward(handle, static_cast<cudnnSoftmaxAlgorithm_t>(algo),
                               static_cast<cudnnSoftmaxMode_t>(mode), &one, x, x.data(), &zero, yd, y);
  };
  EXPECT_TRUE(is_bad_param(forward(nullptr, 0, 0, x, x.data())));
  EXPECT_TRUE(is_bad_param(forward(h, 3, 0, x, x.data())));
  EXPECT_TRUE(is_bad_param(forward(h, 0, 2, x, x.data())));
  EXPECT_TRUE(is_bad_param(forward(h, 0, 0, nullptr, x.data())));
  EXPECT_TRUE(is_bad_param(forward(h, 0, 0, x, nullptr)));
  EXPECT_TRUE(is_bad_param(forward(h, 0, 0, other, other.data())));
}

}  // namespace
