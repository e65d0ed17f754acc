// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling of the graph interface against plain loops.
#include <algorithm>

#include "graph_client.hpp"

namespace {

using namespace client;

// --- convolution: [2,4,6,5] with 6 filters [2,3,2] in 2 groups, strides 2 and 1, padding 1,0 before and 0,1 after

struct Geometry {
  size_t n = 2, c = 4, h = 6, w = 5, k = 6, r = 3, s = 2, groups = 2;
  size_t stride[2] = {2, 1}, pad[2] = {1, 0}, post[2] = {0, 1}, dilation[2] = {1, 2};
  size_t out(int d) const {
    size_t size = d == 0 ? h : w, taps = d == 0 ? r : s;
    return (size + pad[d] + post[d] - (taps - 1) * dilation[d] - 1) / stride[d] + 1;
  }
  // Calls f(x, filter, y) with the indices of every product.
  template <class F>
  void each(bool flipped, const F& f) const {
    size_t oh = out(0), ow = out(1), per = c / groups;
    for (size_t b = 0; b < n; ++b)
      for (size_t o = 0; o < k; ++o)
        for (size_t i = 0; i < oh; ++i)
          for (size_t j = 0; j < ow; ++j)
            for (size_t ch = 0; ch < per; ++ch)
              for (size_t y = 0; y < r; ++y)
                for (size_t x = 0; x < s; ++x) {
                  size_t row = i * stride[0] + y * dilation[0] - pad[0], col = j * stride[1] + x * dilation[1] - pad[1];
                  if (row >= h || col >= w) continue;
                  size_t from = o / (k / groups) * per + ch;
                  size_t tap = flipped ? (r - 1 - y) * s + s - 1 - x : y * s + x;
                  f(((b * c + from) * h + row) * w + col, (o * per + ch) * r * s + tap,
                    ((b * k + o) * oh + i) * ow + j);
                }
  }
};

Piece& conv_part(Net& net, const Geometry& g, bool flipped, cudnnDataType_t compute = CUDNN_DATA_FLOAT) {
  auto list = [](const size_t* v) { return Dims{static_cast<int64_t>(v[0]), static_cast<int64_t>(v[1])}; };
  Piece& p = net.part(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  p.type(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute).ints(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2});
  p.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
        std::vector{flipped ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION});
  p.ints(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, list(g.pad)).ints(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, list(g.post));
  p.ints(CUDNN_ATTR_CONVOLUTION_DILATIONS, list(g.dilation));
  return p.ints(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, list(g.stride)).finalize();
}

Dims channels_last(const Dims& d) { return {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]}; }

// What the result becomes with alpha and beta.
void blend(Values& v, double alpha, double beta, const Values& before) {
  for (size_t i = 0; i < v.size(); ++i) v[i] = alpha * v[i] + beta * before[i];
}

struct Factors {
  double alpha, beta;
};
const Factors kFactors[] = {{1, 0}, {-0.5, 0}, {2, 0.25}};

TEST(Windows, ConvolutionForward) {
  for (auto [alpha, beta] : kFactors)
    for (bool flipped : {false, true}) {
      Geometry g;
      Net net;
      Dims xd = {2, 4, 6, 5}, yd = {2, 6, static_cast<int64_t>(g.out(0)), static_cast<int64_t>(g.out(1))};
      GraphTensor *x = net.random(xd, CUDNN_DATA_FLOAT, channels_last(xd)), *w = net.random({6, 2, 3, 2}),
                  *y = net.random(yd, CUDNN_DATA_FLOAT, flipped ? channels_last(yd) : packed(yd));
      Values before = y->values();
      net.operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                    {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x},
                     {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w},
                     {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y}})
          .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, {conv_part(net, g, flipped)})
          .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, std::vector<float>{float(alpha)})
          .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, std::vector<float>{float(beta)})
          .finalize();
      net.run();
      Values wanted(before.size(), 0), xv = x->values(), wv = w->values();
      g.each(flipped, [&](size_t i, size_t f, size_t o) { wanted[o] += xv[i] * wv[f]; });
      blend(wanted, alpha, beta, before);
      expect_near(wanted, y->values());
    }
}

TEST(Windows, ConvolutionBackwardData) {
  for (auto [alpha, beta] : kFactors) {
    Geometry g;
    Net net;
    Dims yd = {2, 6, static_cast<int64_t>(g.out(0)), static_cast<int64_t>(g.out(1))};
    GraphTensor *dx = net.random({2, 4, 6, 5}), *w = net.random({6, 2, 3, 2}), *dy = net.random(yd);
    Values before = dx->values();
    net.operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, dx},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, dy}})
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, {conv_part(net, g, false)})
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT, std::vector<float>{float(alpha)})
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT, std::vector<float>{float(beta)})
        .finalize();
    net.run();
    Values wanted(before.size(), 0), wv = w->values(), dyv = dy->values();
    g.each(false, [&](size_t i, size_t f, size_t o) { wanted[i] += wv[f] * dyv[o]; });
    blend(wanted, alpha, beta, before);
    expect_near(wanted, dx->values());
  }
}

TEST(Windows, ConvolutionBackwardFilter) {
  for (auto [alpha, beta] : kFactors) {
    Geometry g;
    Net net;
    Dims yd = {2, 6, static_cast<int64_t>(g.out(0)), static_cast<int64_t>(g.out(1))};
    GraphTensor *x = net.random({2, 4, 6, 5}), *dw = net.random({6, 2, 3, 2}), *dy = net.random(yd);
    Values before = dw->values();
    net.operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, dw},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, dy}})
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, {conv_part(net, g, false)})
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT, std::vector<float>{float(alpha)})
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT, std::vector<float>{float(beta)})
        .finalize();
    net.run();
    Values wanted(before.size(), 0), xv = x->values(), dyv = dy->values();
    g.each(false, [&](size_t i, size_t f, size_t o) { wanted[f] += xv[i] * dyv[o]; });
    blend(wanted, alpha, beta, before);
    expect_near(wanted, dw->values());
  }
}

// Sums of whole numbers times factors that are none.
TEST(Windows, ConvolutionOfIntegersWithFactors) {
  for (auto [alpha, beta] : {Factors{0.25, 0}, Factors{-0.5, 0.25}}) {
    Geometry g;
    Net net;
    Values whole;
    for (int i = 0; i < 97; ++i) whole.push_back(i % 11 - 5);
    Dims yd = {2, 6, static_cast<int64_t>(g.out(0)), static_cast<int64_t>(g.out(1))};
    GraphTensor *x = net.input({2, 4, 6, 5}, whole, CUDNN_DATA_INT8),
                *w = net.input({6, 2, 3, 2}, whole, CUDNN_DATA_INT8), *y = net.input(yd, whole);
    Values before = y->values();
    net.operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w},
                   {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y}})
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, {conv_part(net, g, false, CUDNN_DATA_INT32)})
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, std::vector<float>{float(alpha)})
        .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, std::vector<float>{float(beta)})
        .finalize();
    net.run();
    Values wanted(before.size(), 0), xv = x->values(), wv = w->values();
    g.each(false, [&](size_t i, size_t f, size_t o) { wanted[o] += xv[i] * wv[f]; });
    blend(wanted, alpha, beta, before);
    expect_near(wanted, y->values(), 0);
  }
}

// Vectors of four channels: sizes and strides count vectors.
TEST(Windows, ConvolutionOfVectors) {
  Net net;
  auto vectors = [&](const Dims& scalars) {
    Dims d = scalars;
    d[1] /= 4;
    GraphTensor* t = net.add(CUDNN_DATA_INT8, d, packed(d), false, false, false);
    t->desc.ints(CUDNN_ATTR_TENSOR_VECTOR_COUNT, {4}).ints(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, {1}).finalize();
    t->memory.resize(static_cast<size_t>(count_of(scalars)) + 64);
    for (int64_t i = 0; i < count_of(scalars); ++i) t->data()[i] = static_cast<unsigned char>((i * 37 + 11) % 15 - 7);
    return t;
  };
  GraphTensor *x = vectors({1, 8, 4, 4}), *w = vectors({4, 8, 1, 1}), *y = net.output({1, 4, 4, 4}, CUDNN_DATA_INT32);
  Geometry g;
  for (int i = 0; i < 2; ++i) g.stride[i] = g.dilation[i] = 1, g.pad[i] = g.post[i] = 0;
  net.operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x},
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w},
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y}})
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, {conv_part(net, g, false, CUDNN_DATA_INT32)})
      .finalize();
  net.run();
  Values wanted;
  auto at = [](GraphTensor* t, size_t c, size_t place, size_t places) {
    return static_cast<double>(static_cast<signed char>(t->data()[(c / 4 * places + place) * 4 + c % 4]));
  };
  for (size_t k = 0; k < 4; ++k)
    for (size_t p = 0; p < 16; ++p) {
      double sum = 0;
      for (size_t c = 0; c < 8; ++c)
        sum += at(x, c, p, 16) * static_cast<double>(static_cast<signed char>(w->data()[k * 8 + c]));
      wanted.push_back(sum);
    }
  expect_near(wanted, y->values(), 0);
}

// --- pooling: windows of 3 by 2 with stride 2, one row of padding before and after

Piece& pool_part(Net& net, cudnnResampleMode_t mode, cudnnPaddingMode_t padding,
                 cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN) {
  using F = cudnnFraction_t;
  Piece& p = net.part(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  p.set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, std::vector{mode});
  p.set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, std::vector{padding});
  p.set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, std::vector{nan});
  p.type(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT).ints(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, {2});
  p.set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_FRACTION, std::vector<F>{{3, 1}, {2, 1}});
  p.set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_FRACTION, std::vector<F>{{1, 1}, {0, 1}});
  p.set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_FRACTION, std::vector<F>{{1, 1}, {0, 1}});
  p.set(CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, std::vector<F>{{2, 1}, {2, 1}});
  return p.finalize();
}

// Calls f(x, y, tap) for elements inside: [2,3,6,6] gives [2,3,3,3].
template <class F>
void each_window(const F& f) {
  for (size_t plane = 0; plane < 6; ++plane)
    for (size_t o = 0; o < 9; ++o)
      for (size_t tap = 0; tap < 6; ++tap) {
        size_t row = o / 3 * 2 + tap / 2 - 1, col = o % 3 * 2 + tap % 2;
        if (row < 6 && col < 6) f(plane * 36 + row * 6 + col, plane * 9 + o, tap);
      }
}

TEST(Windows, MaxPoolingAndItsGradient) {
  for (auto [alpha, beta] : kFactors) {
    Net net;
    GraphTensor *x = net.random({2, 3, 6, 6}), *y = net.random({2, 3, 3, 3}),
                *index = net.output({2, 3, 3, 3}, CUDNN_DATA_INT8), *dy = net.random({2, 3, 3, 3}),
                *dx = net.random({2, 3, 6, 6});
    Values before = y->values(), dx_before = dx->values();
    Piece& p = pool_part(net, CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD);
    net.operation(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x},
                                                                    {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y},
                                                                    {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, index}})
        .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, {p})
        .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA, CUDNN_TYPE_DOUBLE, std::vector{alpha})
        .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA, CUDNN_TYPE_DOUBLE, std::vector{beta})
        .finalize();
    net.operation(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, dx},
                                                                    {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, dy},
                                                                    {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, index}})
        .set(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, {p})
        .set(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_ALPHA, CUDNN_TYPE_DOUBLE, std::vector{alpha})
        .set(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_BETA, CUDNN_TYPE_DOUBLE, std::vector{beta})
        .finalize();
    net.run();
    Values wanted(54, -9), places(54, 0), grad(216, 0), v = x->values(), g = dy->values();
    std::vector<size_t> winner(54, 0);
    each_window([&](size_t i, size_t o, size_t tap) {
      if (v[i] > wanted[o]) wanted[o] = v[i], places[o] = static_cast<double>(tap), winner[o] = i;
    });
    for (size_t o = 0; o < 54; ++o) grad[winner[o]] += g[o];
    blend(wanted, alpha, beta, before);
    blend(grad, alpha, beta, dx_before);
    expect_near(wanted, y->values());
    expect_near(places, index->values(), 0);
    expect_near(grad, dx->values());
  }
}

TEST(Windows, MaximaOfNan) {
  for (auto nan : {CUDNN_PROPAGATE_NAN, CUDNN_NOT_PROPAGATE_NAN}) {
    Net net;
    GraphTensor *x = net.random({2, 3, 6, 6}), *y = net.output({2, 3, 3, 3}), *dy = net.random({2, 3, 3, 3}),
                *dx = net.output({2, 3, 6, 6});
    Values v = x->values(), wanted(54, -INFINITY), grad(216, 0), g = dy->values();
    for (size_t i = 0; i < v.size(); i += 7) v[i] = NAN;
    x->fill(v);
    Piece& p = pool_part(net, CUDNN_RESAMPLE_MAXPOOL, CUDNN_NEG_INF_PAD, nan);
    net.operation(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x}, {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y}})
        .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, {p})
        .finalize();
    net.operation(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, dx},
                                                                    {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, dy},
                                                                    {CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC, x}})
        .set(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, {p})
        .finalize();
    net.run();
    bool skipped = nan == CUDNN_NOT_PROPAGATE_NAN;
    std::vector<size_t> winner(54, 0);
    each_window([&](size_t i, size_t o, size_t) {
      if (std::isnan(v[i]) ? skipped || std::isnan(wanted[o]) : !(v[i] > wanted[o])) return;
      wanted[o] = v[i], winner[o] = i;
    });
    for (size_t o = 0; o < 54; ++o) grad[winner[o]] += g[o];
    expect_near(wanted, y->values());
    expect_near(grad, dx->values());
  }
}

TEST(Windows, MeanPooling) {
  for (cudnnResampleMode_t mode : {CUDNN_RESAMPLE_AVGPOOL, CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING}) {
    Net net;
    GraphTensor *x = net.random({2, 3, 6, 6}, CUDNN_DATA_HALF), *y = net.output({2, 3, 3, 3});
    net.operation(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x}, {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y}})
        .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, {pool_part(net, mode, CUDNN_ZERO_PAD)})
        .finalize();
    net.run();
    Values wanted(54, 0), count(54, 0), v = x->values();
    each_window([&](size_t i, size_t o, size_t) { wanted[o] += v[i], count[o] += 1; });
    for (size_t o = 0; o < 54; ++o) wanted[o] /= mode == CUDNN_RESAMPLE_AVGPOOL ? 6 : count[o];
    expect_near(wanted, y->values());
  }
}

TEST(Windows, InterpolationByFractions) {
  Net net;
  GraphTensor *x = net.random({1, 2, 5, 4}), *y = net.output({1, 2, 10, 8});
  Piece& p = net.part(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  using F = cudnnFraction_t;
  p.set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, std::vector{CUDNN_RESAMPLE_BILINEAR});
  p.set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE, std::vector{CUDNN_EDGE_VAL_PAD});
  p.type(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT).ints(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, {2});
  p.set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, CUDNN_TYPE_FRACTION, std::vector<F>{{2, 1}, {2, 1}});
  p.set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_TYPE_FRACTION, std::vector<F>{{1, 4}, {1, 4}});
  p.set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, CUDNN_TYPE_FRACTION, std::vector<F>{{1, 4}, {1, 4}});
  p.set(CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_TYPE_FRACTION, std::vector<F>{{1, 2}, {1, 2}}).finalize();
  net.operation(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x}, {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y}})
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, {p})
      .finalize();
  net.run();
  Values wanted, v = x->values();
  auto at = [&](size_t plane, double row, double col) {
    auto i = static_cast<size_t>(std::clamp(row, 0.0, 4.0)), j = static_cast<size_t>(std::clamp(col, 0.0, 3.0));
    return v[(plane * 5 + i) * 4 + j];
  };
  for (size_t e = 0; e < 160; ++e) {
    double row = static_cast<double>(e / 8 % 10) / 2 - 0.25, col = static_cast<double>(e % 8) / 2 - 0.25;
    double i = std::floor(row), j = std::floor(col), a = row - i, b = col - j;
    size_t plane = e / 80;
    wanted.push_back((1 - a) * ((1 - b) * at(plane, i, j) + b * at(plane, i, j + 1)) +
                     a * ((1 - b) * at(plane, i + 1, j) + b * at(plane, i + 1, j + 1)));
  }
  expect_near(wanted, y->values());
}

}  // namespace
