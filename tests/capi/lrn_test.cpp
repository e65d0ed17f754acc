// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

using namespace client;

namespace {

struct LrnDescriptor : Descriptor<cudnnLRNDescriptor_t> {
  LrnDescriptor() : Descriptor(cudnnCreateLRNDescriptor, cudnnDestroyLRNDescriptor) {}
};

struct Options {
  int n;
  double alpha, beta, k;
};

using Window = std::vector<std::vector<int64_t>>;  // by element

Window across_channels(const Tensor& x, int n) {
  Window w;
  for (int64_t i = 0; i < x.count(); ++i) {
    Sizes at = x.index(i);
    int c = at[1], first = c - (n - 1) / 2;
    w.emplace_back();
    for (int j = std::max(0, first); j < std::min(x.dims()[1], first + n); ++j) {
      at[1] = j;
      w.back().push_back(x.position(at));
    }
  }
  return w;
}

Window within_planes(const Tensor& x, int n) {
  Window w;
  int reach = (n - 1) / 2;
  for (int64_t i = 0; i < x.count(); ++i) {
    w.emplace_back();
    Sizes a = x.index(i);
    for (int64_t j = 0; j < x.count(); ++j) {
      Sizes b = x.index(j);
      bool near = a[0] == b[0] && a[1] == b[1];
      for (size_t d = 2; d < a.size(); ++d) near = near && std::abs(a[d] - b[d]) <= reach;
      if (near) w.back().push_back(j);
    }
  }
  return w;
}

double at(const Values& v, int64_t i) { return v[static_cast<size_t>(i)]; }

Values scales(const Values& v, const Window& w, const Options& o, double share) {
  Values s;
  for (const auto& in : w) {
    double sum = 0;
    for (int64_t e : in) sum += at(v, e) * at(v, e);
    s.push_back(o.k + o.alpha / share * sum);
  }
  return s;
}

Values normalise(const Values& v, const Window& w, const Options& o, double share) {
  Values s = scales(v, w, o, share), y;
  for (size_t i = 0; i < v.size(); ++i) y.push_back(v[i] * std::pow(s[i], -o.beta));
  return y;
}

Values gradient(const Values& v, const Values& dy, const Window& w, const Options& o, double share) {
  Values s = scales(v, w, o, share), dx(v.size());
  for (size_t i = 0; i < v.size(); ++i) {
    dx[i] += dy[i] * std::pow(s[i], -o.beta);
    double g = -2 * o.alpha * o.beta / share * dy[i] * v[i] * std::pow(s[i], -o.beta - 1);
    for (int64_t e : w[i]) dx[static_cast<size_t>(e)] += g * at(v, e);
  }
  return dx;
}

constexpr Options kOptions[] = {{5, 1e-1, 0.75, 2}, {4, 0.5, 0.5, 1}, {1, 1, 1, 1}, {16, 0.3, 0.75, 1}};

TEST(Lrn, forward_and_backward) {
  Handle h;
  LrnDescriptor d;
  for (const Options& o : kOptions) {
    ASSERT_OK(cudnnSetLRNDescriptor(d, static_cast<unsigned>(o.n), o.alpha, o.beta, o.k));
    for (cudnnDataType_t type : kFloats)
      for (Layout layout : kLayouts)
        for (Factors f : kFactors) {
          Tensor x(type, {2, 7, 3, 2}, layout), y(type, x.dims(), layout), dy(type, x.dims(), layout),
              dx(type, x.dims(), layout);
          x.random(1), y.random(2), dy.random(3), dx.random(4);
          Window w = across_channels(x, o.n);
          Factor alpha(f.alpha, type), beta(f.beta, type);
          Values want = blended(f.alpha, normalise(x.values(), w, o, o.n), f.beta, y.values());
          ASSERT_OK(
              cudnnLRNCrossChannelForward(h, d, CUDNN_LRN_CROSS_CHANNEL_DIM1, alpha, x, x.data(), beta, y, y.data()));
          expect_values(y, want, 32);
          want = blended(f.alpha, gradient(x.values(), dy.values(), w, o, o.n), f.beta, dx.values());
          ASSERT_OK(cudnnLRNCrossChannelBackward(h, d, CUDNN_LRN_CROSS_CHANNEL_DIM1, alpha, y, y.data(), dy, dy.data(),
                                                 x, x.data(), beta, dx, dx.data()));
          expect_values(dx, want, 64);
        }
  }
}

TEST(DivisiveNormalization, forward_and_backward) {
  Handle h;
  LrnDescriptor d;
  Options o{3, 0.5, 0.75, 1};
  ASSERT_OK(cudnnSetLRNDescriptor(d, static_cast<unsigned>(o.n), o.alpha, o.beta, o.k));
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF})
    for (const Sizes& dims : {Sizes{2, 3, 5, 4}, {1, 2, 3, 4, 3}})
      for (bool with_means : {false, true})
        for (Factors f : kFactors) {
          Tensor x(type, dims), means(type, dims), y(type, dims), dy(type, dims), dx(type, dims), dmeans(type, dims),
              temp(type, dims), temp2(type, dims);
          x.random(1), means.random(2), y.random(3), dy.random(4), dx.random(5), dmeans.random(6);
          Values v = x.values();
          for (size_t i = 0; with_means && i < v.size(); ++i) v[i] -= means.get(static_cast<int64_t>(i));
          Window w = within_planes(x, o.n);
          double share = std::pow(o.n, static_cast<double>(dims.size() - 2));
          Factor alpha(f.alpha, type), beta(f.beta, type);
          Values want = blended(f.alpha, normalise(v, w, o, share), f.beta, y.values());
          void* m = with_means ? means.data() : nullptr;
          ASSERT_OK(cudnnDivisiveNormalizationForward(h, d, CUDNN_DIVNORM_PRECOMPUTED_MEANS, alpha, x, x.data(), m,
                                                      temp.data(), temp2.data(), beta, y, y.data()));
          expect_values(y, want, 32);
          Values g = gradient(v, dy.values(), w, o, share), minus = g;
          for (double& e : minus) e = -e;
          want = blended(f.alpha, g, f.beta, dx.values());
          Values want_means = blended(f.alpha, minus, f.beta, dmeans.values());
          ASSERT_OK(cudnnDivisiveNormalizationBackward(h, d, CUDNN_DIVNORM_PRECOMPUTED_MEANS, alpha, x, x.data(), m,
                                                       dy.data(), temp.data(), temp2.data(), beta, dx, dx.data(),
                                                       with_means ? dmeans.data() : nullptr));
          expect_values(dx, want, 64);
          if (with_means) expect_values(dmeans, want_means, 64);
        }
}

TEST(Lrn, in_place) {
  Handle h;
  LrnDescriptor d;
  Options o = kOptions[0];
  ASSERT_OK(cudnnSetLRNDescriptor(d, static_cast<unsigned>(o.n), o.alpha, o.beta, o.k));
  float one = 1, zero = 0;
  for (Layout layout : kLayouts) {
    Tensor x(CUDNN_DATA_FLOAT, {3, 40, 5, 7}, layout), y(CUDNN_DATA_FLOAT, x.dims(), layout),
        dy(CUDNN_DATA_FLOAT, x.dims(), layout);
    x.random(1), y.random(2), dy.random(3);
    Window w = across_channels(x, o.n);
    Values v = x.values(), want = normalise(v, w, o, o.n);
    Values slope = gradient(v, dy.values(), w, o, o.n);
    ASSERT_OK(cudnnLRNCrossChannelBackward(h, d, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, y, y.data(), dy, dy.data(), x,
                                           x.data(), &zero, dy, dy.data()));
    expect_values(dy, slope, 64);
    ASSERT_OK(cudnnLRNCrossChannelForward(h, d, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, x, x.data(), &zero, x, x.data()));
    expect_values(x, want, 32);
    Tensor z(CUDNN_DATA_FLOAT, {2, 3, 5, 7}, layout);
    z.random(1);
    want = normalise(z.values(), within_planes(z, o.n), o, static_cast<double>(o.n * o.n));
    ASSERT_OK(cudnnDivisiveNormalizationForward(h, d, CUDNN_DIVNORM_PRECOMPUTED_MEANS, &one, z, z.data(), nullptr,
                                                y.data(), y.data(), &zero, z, z.data()));
    expect_values(z, want, 32);
  }
}

TEST(Lrn, descriptors_and_mistakes) {
  Handle h;
  LrnDescriptor d;
  ASSERT_OK(cudnnSetLRNDescriptor(d, 7, 0.1, 0.2, 0.3));
  unsigned n = 0;
  double alpha = 0, beta = 0, k = 0;
  ASSERT_OK(cudnnGetLRNDescriptor(d, &n, &alpha, &beta, &k));
  EXPECT_EQ(n, 7u);
  EXPECT_EQ(alpha, 0.1);
  EXPECT_EQ(beta, 0.2);
  EXPECT_EQ(k, 0.3);
  EXPECT_TRUE(is_bad_param(cudnnSetLRNDescriptor(d, 0, 1, 1, 1)));
  EXPECT_TRUE(is_bad_param(cudnnSetLRNDescriptor(d, 17, 1, 1, 1)));
  EXPECT_TRUE(is_bad_param(cudnnSetLRNDescriptor(d, 5, 1, 0.001, 1)));
  EXPECT_TRUE(is_bad_param(cudnnSetLRNDescriptor(d, 5, 1, 1, 1e-6)));
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 4, 4}), other(CUDNN_DATA_FLOAT, {2, 3, 4, 5});
  float one = 1, zero = 0;
  EXPECT_TRUE(is_bad_param(
      cudnnLRNCrossChannelForward(h, d, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, x, x.data(), &zero, other, other.data())));
  EXPECT_TRUE(is_bad_param(
      cudnnLRNCrossChannelForward(h, d, static_cast<cudnnLRNMode_t>(1), &one, x, x.data(), &zero, x, x.data())));
  EXPECT_TRUE(is_bad_param(
      cudnnLRNCrossChannelForward(h, nullptr, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, x, x.data(), &zero, x, x.data())));
}

}  // namespace
