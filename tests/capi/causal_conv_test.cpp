// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

using namespace client;

namespace {

double silu(double z) { return z / (1 + std::exp(-z)); }
double silu_slope(double z) {
  double s = 1 / (1 + std::exp(-z));
  return s * (1 + z * (1 - s));
}

cudnnDataType_t gradient_type(cudnnDataType_t t) { return t == CUDNN_DATA_DOUBLE ? t : CUDNN_DATA_FLOAT; }
size_t at(int64_t i) { return static_cast<size_t>(i); }

// One direction of all convolutions here: y[t] += x[t - j] weight[tap(j)] for each batch and channel.
template <class F>
void each_term(int batch, int dim, int length, int taps, bool reversed, const F& f) {
  for (int b = 0; b < batch; ++b)
    for (int d = 0; d < dim; ++d)
      for (int t = 0; t < length; ++t)
        for (int j = 0; j < taps && j <= t; ++j) {
          int64_t row = int64_t{b} * dim + d;
          f(at(row * length + t), at(row * length + t - j), at(d * taps + (reversed ? j : taps - 1 - j)));
        }
}

struct Case {
  Case(cudnnDataType_t type, int b, int d, int l, int k, bool channels_last)
      : batch(b),
        dim(d),
        length(l),
        taps(k),
        last(channels_last),
        x(sequence(type)),
        y(sequence(type)),
        dy(sequence(type)),
        dx(sequence(type)),
        weight(type, {d, k}, last ? Sizes{1, d} : Sizes{k, 1}),
        bias(type, {d}),
        dweight(gradient_type(type), {d, k}, last ? Sizes{1, d} : Sizes{k, 1}),
        dbias(gradient_type(type), {d}) {
    x.random(1), weight.random(2), bias.random(3), dy.random(4), dweight.random(5), dbias.random(6);
  }
  Tensor sequence(cudnnDataType_t type) const {
    return {type, {batch, dim, length}, last ? Sizes{dim * length, 1, dim} : Sizes{dim * length, length, 1}};
  }
  Values before_activation() const {
    Values z(at(x.count())), xs = x.values(), ws = weight.values();
    for (size_t i = 0; i < z.size(); ++i) z[i] = bias.get(static_cast<int64_t>(i) / length % dim);
    each_term(batch, dim, length, taps, false, [&](size_t t, size_t from, size_t tap) { z[t] += xs[from] * ws[tap]; });
    return z;
  }
  int batch, dim, length, taps;
  bool last;
  Tensor x, y, dy, dx, weight, bias, dweight, dbias;
};

template <class Run>
void for_all(const Run& run) {
  for (cudnnDataType_t type : kFloats)
    for (bool last : {false, true})
      for (bool activates : {false, true})
        for (auto [l, k] : {std::pair(9, 4), std::pair(3, 7), std::pair(40, 2), std::pair(64, 17)}) {
          Case c(type, 2, 3, l, k, last);
          run(c, type, activates ? CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU : CUDNN_CAUSAL_CONV1D_ACTIVATION_IDENTITY);
        }
}

TEST(CausalConv, forward) {
  for_all([](Case& c, cudnnDataType_t type, cudnnCausalConv1dActivation_t activation) {
    Values want = c.before_activation();
    if (activation == CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU)
      for (double& v : want) v = silu(v);
    auto run = c.last ? cudnnCausalConv1dNwhForward : cudnnCausalConv1dForward;
    ASSERT_OK(run(nullptr, c.x.data(), c.weight.data(), c.bias.data(), c.y.data(), c.batch, c.dim, c.length, c.taps,
                  type, activation));
    expect_values(c.y, want, 64);
  });
}

TEST(CausalConv, backward_adds_to_gradients_of_weights) {
  for_all([](Case& c, cudnnDataType_t type, cudnnCausalConv1dActivation_t activation) {
    Values dz = c.dy.values(), z = c.before_activation(), dx(dz.size());
    if (activation == CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU)
      for (size_t i = 0; i < z.size(); ++i) dz[i] *= silu_slope(z[i]);
    Values dw = c.dweight.values(), db = c.dbias.values(), xs = c.x.values(), ws = c.weight.values();
    each_term(c.batch, c.dim, c.length, c.taps, false, [&](size_t t, size_t from, size_t tap) {
      dx[from] += dz[t] * ws[tap];
      dw[tap] += dz[t] * xs[from];
    });
    for (size_t i = 0; i < dz.size(); ++i) db[i / at(c.length) % at(c.dim)] += dz[i];
    auto run = c.last ? cudnnCausalConv1dNwhBackward : cudnnCausalConv1dBackward;
    ASSERT_OK(run(nullptr, c.x.data(), c.weight.data(), c.bias.data(), c.dy.data(), c.dx.data(), c.dweight.data(),
                  c.dbias.data(), c.batch, c.dim, c.length, c.taps, type, gradient_type(type), activation));
    expect_values(c.dx, dx, 128);
    expect_values(c.dweight, dw, 512);
    expect_values(c.dbias, db, 512);
  });
}

struct LongCase {
  LongCase(cudnnDataType_t type, int l, int k)
      : length(l),
        taps(k),
        x(type, {2, 2, l}),
        y(type, {2, 2, l}),
        dy(type, {2, 2, l}),
        dx(type, {2, 2, l}),
        weight(type, {2, k}),
        dweight(type, {2, k}) {
    x.random(1), weight.random(2), dy.random(3), dweight.random(4), dx.random(5);
  }
  void expect_forward() {
    Values want(at(x.count())), xs = x.values(), ws = weight.values();
    each_term(2, 2, length, taps, true, [&](size_t t, size_t from, size_t tap) { want[t] += xs[from] * ws[tap]; });
    expect_values(y, want, 256);
  }
  void expect_backward() {
    Values want(at(x.count())), dw(at(weight.count())), xs = x.values(), ws = weight.values(), ds = dy.values();
    each_term(2, 2, length, taps, true, [&](size_t t, size_t from, size_t tap) {
      want[from] += ds[t] * ws[tap];
      dw[tap] += ds[t] * xs[from];
    });
    expect_values(dx, want, 256);
    expect_values(dweight, dw, 512);
  }
  int length, taps;
  Tensor x, y, dy, dx, weight, dweight;
};

TEST(CausalConv, long_kernels) {
  for (cudnnDataType_t type : kFloats) {
    LongCase c(type, 384, 128);
    ASSERT_OK(cudnnFFTCausalConv1dForward(nullptr, c.x.data(), c.weight.data(), c.y.data(), 2, 2, 384, 128, type));
    c.expect_forward();
    ASSERT_OK(cudnnFFTCausalConv1dBackward(nullptr, c.x.data(), c.weight.data(), c.dy.data(), c.dx.data(),
                                           c.dweight.data(), 2, 2, 384, 128, type));
    c.expect_backward();
  }
}

TEST(CausalConv, kernels_as_long_as_the_sequence) {
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16}) {
    LongCase c(type, 4096, 4096);
    size_t workspace = 0, reserve = 0;
    ASSERT_OK(cudnnLongFFTCausalConv1dGetBufferSizes(2, 2, 4096, 4096, type, &workspace, &reserve));
    Memory work(workspace), kept(reserve);
    ASSERT_OK(cudnnLongFFTCausalConv1dForward(nullptr, c.x.data(), c.weight.data(), c.y.data(), 2, 2, 4096, 4096, type,
                                              work.data(), workspace, kept.data(), reserve));
    c.expect_forward();
    ASSERT_OK(cudnnLongFFTCausalConv1dBackward(nullptr, c.dy.data(), c.dx.data(), c.dweight.data(), 2, 2, 4096, 4096,
                                               type, work.data(), workspace, kept.data(), reserve));
    c.expect_backward();
    EXPECT_TRUE(
        is_bad_param(cudnnLongFFTCausalConv1dForward(nullptr, c.x.data(), c.weight.data(), c.y.data(), 2, 2, 4096, 4096,
                                                     type, work.data(), workspace - 1, kept.data(), reserve)));
  }
  size_t workspace = 0, reserve = 0;
  ASSERT_OK(cudnnLongFFTCausalConv1dGetBufferSizes(1, 1, 4096, 4096, CUDNN_DATA_FLOAT, &workspace, &reserve));
  EXPECT_EQ(workspace, 66560u);
  ASSERT_OK(cudnnLongFFTCausalConv1dGetBufferSizes(2, 3, 8192, 8192, CUDNN_DATA_HALF, &workspace, &reserve));
  EXPECT_EQ(reserve, 599040u);
}

TEST(CausalConv, back_to_back) {
  constexpr int kBatch = 2, kDim = 3, kLength = 24, kProjection = 4, kMixer = 7;
  for (cudnnDataType_t type : kFloats) {
    cudnnDataType_t wide = gradient_type(type);
    Tensor x(type, {kBatch, kDim, 3, kLength}), wp(type, {kDim, 3, kProjection}), wm(type, {kDim, kMixer});
    Tensor skip(type, {kDim}), y(type, {kBatch, kDim, kLength}), gated(type, y.dims()), dy(type, y.dims());
    Tensor dx(type, x.dims()), dwp(wide, wp.dims()), dwm(wide, wm.dims()), dskip(wide, skip.dims());
    x.random(1), wp.random(2), wm.random(3), skip.random(4), dy.random(5);
    dwp.random(6), dwm.random(7), dskip.random(8);
    for (Tensor* t : {&wp, &wm, &skip, &dy})  // products of five numbers stay small
      for (int64_t i = 0; i < t->count(); ++i) t->set(i, t->get(i) / 4);
    Values xs = x.values(), ps = wp.values(), ms = wm.values(), p(xs.size());
    // Projections: the three parts are channels of their own.
    each_term(kBatch, kDim * 3, kLength, kProjection, false,
              [&](size_t t, size_t from, size_t tap) { p[t] += xs[from] * ps[tap]; });
    auto part = [&](size_t i, size_t which) { return (i / kLength * 3 + which) * kLength + i % kLength; };
    Values g(at(y.count())), ys(g.size()), gs(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      g[i] = p[part(i, 1)] * p[part(i, 2)];
      ys[i] = skip.get(static_cast<int64_t>(i) / kLength % kDim) * g[i];
    }
    each_term(kBatch, kDim, kLength, kMixer, false,
              [&](size_t t, size_t from, size_t tap) { ys[t] += g[from] * ms[tap]; });
    for (size_t i = 0; i < g.size(); ++i) gs[i] = ys[i] * p[part(i, 0)];
    ASSERT_OK(cudnnB2BCausalConv1dForward(nullptr, x.data(), wp.data(), wm.data(), skip.data(), y.data(), gated.data(),
                                          kBatch, kDim, kLength, kProjection, kMixer, type));
    expect_values(y, ys, 256);
    expect_values(gated, gs, 256);

    ys = y.values();  // gradients start from what was stored
    Values dp(p.size()), e(g.size()), dg(g.size()), dxs(xs.size());
    Values dps = dwp.values(), dms = dwm.values(), dss = dskip.values();
    for (size_t i = 0; i < g.size(); ++i) {
      double d = dy.get(static_cast<int64_t>(i));
      size_t channel = i / kLength % kDim;
      dp[part(i, 0)] = d * ys[i];
      e[i] = d * p[part(i, 0)];
      dg[i] += skip.get(static_cast<int64_t>(channel)) * e[i];
      dss[channel] += e[i] * g[i];
    }
    each_term(kBatch, kDim, kLength, kMixer, false, [&](size_t t, size_t from, size_t tap) {
      dg[from] += e[t] * ms[tap];
      dms[tap] += e[t] * g[from];
    });
    for (size_t i = 0; i < g.size(); ++i) {
      dp[part(i, 1)] = dg[i] * p[part(i, 2)];
      dp[part(i, 2)] = dg[i] * p[part(i, 1)];
    }
    each_term(kBatch, kDim * 3, kLength, kProjection, false, [&](size_t t, size_t from, size_t tap) {
      dxs[from] += dp[t] * ps[tap];
      dps[tap] += dp[t] * xs[from];
    });
    ASSERT_OK(cudnnB2BCausalConv1dBackward(nullptr, x.data(), wp.data(), wm.data(), skip.data(), y.data(), dy.data(),
                                           dx.data(), dwp.data(), dwm.data(), dskip.data(), kBatch, kDim, kLength,
                                           kProjection, kMixer, type, wide));
    expect_values(dx, dxs, 512);
    expect_values(dwp, dps, 1024);
    expect_values(dwm, dms, 1024);
    expect_values(dskip, dss, 1024);
  }
}

TEST(CausalConv, refuses_what_is_not_there) {
  Case c(CUDNN_DATA_FLOAT, 2, 3, 9, 4, false);
  auto run = [&](const void* x, int batch, int length, int taps, cudnnDataType_t type, int activation) {
    return cudnnCausalConv1dForward(nullptr, x, c.weight.data(), c.bias.data(), c.y.data(), batch, 3, length, taps,
                                    type, static_cast<cudnnCausalConv1dActivation_t>(activation));
  };
  EXPECT_OK(run(c.x.data(), 2, 9, 4, CUDNN_DATA_FLOAT, 0));
  EXPECT_TRUE(is_bad_param(run(nullptr, 2, 9, 4, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(c.x.data(), 0, 9, 4, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(c.x.data(), 2, -1, 4, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(c.x.data(), 2, 9, 1, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(c.x.data(), 2, 9, 257, CUDNN_DATA_FLOAT, 0)));
  EXPECT_TRUE(is_bad_param(run(c.x.data(), 2, 9, 4, CUDNN_DATA_FLOAT, 2)));
  EXPECT_TRUE(is_not_supported(run(c.x.data(), 2, 9, 4, CUDNN_DATA_INT8, 0)));
  EXPECT_TRUE(is_not_supported(cudnnCausalConv1dBackward(
      nullptr, c.x.data(), c.weight.data(), c.bias.data(), c.dy.data(), c.dx.data(), c.dweight.data(), c.dbias.data(),
      2, 3, 9, 4, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_CAUSAL_CONV1D_ACTIVATION_IDENTITY)));
  EXPECT_TRUE(is_not_supported(
      cudnnFFTCausalConv1dForward(nullptr, c.x.data(), c.weight.data(), c.y.data(), 2, 3, 384, 100, CUDNN_DATA_FLOAT)));
  size_t a = 1, b = 2;
  EXPECT_TRUE(is_not_supported(cudnnLongFFTCausalConv1dGetBufferSizes(1, 1, 4096, 2048, CUDNN_DATA_FLOAT, &a, &b)));
  EXPECT_TRUE(is_bad_param(cudnnLongFFTCausalConv1dGetBufferSizes(0, 1, 4096, 4096, CUDNN_DATA_FLOAT, &a, &b)));
  EXPECT_TRUE(is_bad_param(cudnnLongFFTCausalConv1dGetBufferSizes(1, 1, 4096, 4096, CUDNN_DATA_FLOAT, nullptr, &b)));
  EXPECT_EQ(a, 1u);
  EXPECT_EQ(b, 2u);
}

}  // namespace
