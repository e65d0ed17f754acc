// SPDX-License-Identifier: Apache-2.0
// cudnn-frontend's C++ headers as a client of the library: graphs of the kinds that its samples show, and those that
// its Python package does not have (resampling, random numbers, batch norm in pieces). Expected values are plain loops.
#include "client.hpp"

namespace {

using fe::PointwiseMode_t;
using fe::graph::Conv_fprop_attributes;
using fe::graph::Pointwise_attributes;

constexpr double kBf16 = 0x1p-8, kHalf = 0x1p-11;

Pointwise_attributes mode(PointwiseMode_t m) { return Pointwise_attributes().set_mode(m); }

Array product(const Array& a, const Array& b) {
  Array y({a.dims[0], a.dims[1], b.dims[2]});
  for (int64_t n = 0; n < y.dims[0]; ++n)
    for (int64_t i = 0; i < y.dims[1]; ++i)
      for (int64_t j = 0; j < y.dims[2]; ++j)
        for (int64_t k = 0; k < a.dims[2]; ++k) y.at({n, i, j}) += a.at({n, i, k}) * b.at({n, k, j});
  return y;
}

Array changed(Array a, const std::function<double(double)>& f) {
  for (double& x : a.v) x = f(x);
  return a;
}

TEST(Frontend, UsesThisLibrary) {
  EXPECT_EQ(cudnnGetVersion(), 92700U);
  EXPECT_EQ(fe::detail::get_backend_version(), 92700U);
}

TEST(Frontend, MatmulBiasRelu) {
  for (DataType_t type : {DataType_t::FLOAT, DataType_t::HALF, DataType_t::BFLOAT16})
    check([&](Client& c) {
      Array a = c.random({2, 17, 32}), b = c.random({2, 32, 24}), bias = c.random({1, 1, 24});
      Tensor ta = c.input(a, type), tb = c.input(b, type), tbias = c.input(bias, type);
      Tensor y = c.graph.pointwise(
          c.graph.pointwise(c.graph.matmul(ta, tb, fe::graph::Matmul_attributes()), tbias, mode(PointwiseMode_t::ADD)),
          mode(PointwiseMode_t::RELU_FWD));
      Array e = product(a, b);
      for (size_t i = 0; i < e.v.size(); ++i) e.v[i] = std::max(e.v[i] + bias.v[i % 24], 0.0);
      c.output(y, e, type, {}, 32);
    });
}

// Visits the terms of a convolution with padding 1 and stride 1: output, input and filter positions.
template <class F>
void visit(const Dims& x, const Dims& w, const F& f) {
  for (int64_t n = 0; n < x[0]; ++n)
    for (int64_t k = 0; k < w[0]; ++k)
      for (int64_t c = 0; c < x[1]; ++c)
        for (int64_t i = 0; i < x[2]; ++i)
          for (int64_t j = 0; j < x[3]; ++j)
            for (int64_t r = 0; r < 3; ++r)
              for (int64_t s = 0; s < 3; ++s)
                if (int64_t a = i + r - 1, b = j + s - 1; a >= 0 && a < x[2] && b >= 0 && b < x[3])
                  f(n, k, c, i, j, a, b, r, s);
}

const Dims kX = {2, 8, 7, 9}, kW = {16, 8, 3, 3}, kY = {2, 16, 7, 9};

TEST(Frontend, Convolution) {
  for (DataType_t type : {DataType_t::FLOAT, DataType_t::HALF})
    check([&](Client& c) {
      Array x = c.random(kX), w = c.random(kW, 0.3), e(kY);
      Tensor tx = c.input(x, type, channels_last(kX)), tw = c.input(w, type, channels_last(kW));
      auto how = Conv_fprop_attributes().set_padding({1, 1}).set_stride({1, 1}).set_dilation({1, 1});
      visit(kX, kW, [&](auto n, auto k, auto ch, auto i, auto j, auto a, auto b, auto r, auto s) {
        e.at({n, k, i, j}) += x.at({n, ch, a, b}) * w.at({k, ch, r, s});
      });
      Tensor y = c.graph.pointwise(c.graph.conv_fprop(tx, tw, how), mode(PointwiseMode_t::RELU_FWD));
      c.output(y, changed(e, [](double v) { return std::max(v, 0.0); }), type, channels_last(kY), 72);
    });
}

TEST(Frontend, ConvolutionGradients) {
  check([&](Client& c) {
    Array dy = c.random(kY), w = c.random(kW, 0.3), e(kX);
    Tensor tdy = c.input(dy, DataType_t::BFLOAT16, channels_last(kY)),
           tw = c.input(w, DataType_t::BFLOAT16, channels_last(kW));
    auto how = fe::graph::Conv_dgrad_attributes().set_padding({1, 1}).set_stride({1, 1}).set_dilation({1, 1});
    visit(kX, kW, [&](auto n, auto k, auto ch, auto i, auto j, auto a, auto b, auto r, auto s) {
      e.at({n, ch, a, b}) += dy.at({n, k, i, j}) * w.at({k, ch, r, s});
    });
    c.output(c.graph.conv_dgrad(tdy, tw, how), e, DataType_t::BFLOAT16, channels_last(kX), 144);
  });
  check([&](Client& c) {
    Array dy = c.random(kY), x = c.random(kX), e(kW);
    Tensor tdy = c.input(dy, DataType_t::BFLOAT16, channels_last(kY)),
           tx = c.input(x, DataType_t::BFLOAT16, channels_last(kX));
    auto how = fe::graph::Conv_wgrad_attributes().set_padding({1, 1}).set_stride({1, 1}).set_dilation({1, 1});
    visit(kX, kW, [&](auto n, auto k, auto ch, auto i, auto j, auto a, auto b, auto r, auto s) {
      e.at({k, ch, r, s}) += dy.at({n, k, i, j}) * x.at({n, ch, a, b});
    });
    c.output(c.graph.conv_wgrad(tdy, tx, how), e, DataType_t::BFLOAT16, channels_last(kW), 126);
  });
}

TEST(Frontend, LayerNorm) {
  check([&](Client& c) {
    Array x = c.random({10, 64, 1, 1}), scale = c.random({1, 64, 1, 1}), bias = c.random({1, 64, 1, 1});
    Tensor tx = c.input(x, DataType_t::HALF), ts = c.input(scale), tb = c.input(bias);
    auto epsilon = c.graph.tensor(1e-3F);
    auto how = fe::graph::Layernorm_attributes().set_forward_phase(fe::NormFwdPhase_t::TRAINING).set_epsilon(epsilon);
    auto [y, mean, inverse] = c.graph.layernorm(tx, ts, tb, how);
    Array e(x.dims), m({10, 1, 1, 1}), v({10, 1, 1, 1});
    for (size_t i = 0; i < 10; ++i) {
      for (size_t k = 0; k < 64; ++k) m.v[i] += x.v[i * 64 + k] / 64;
      double squares = 0;
      for (size_t k = 0; k < 64; ++k) squares += std::pow(x.v[i * 64 + k] - m.v[i], 2) / 64;
      v.v[i] = 1 / std::sqrt(squares + 1e-3);
      for (size_t k = 0; k < 64; ++k) e.v[i * 64 + k] = (x.v[i * 64 + k] - m.v[i]) * v.v[i] * scale.v[k] + bias.v[k];
    }
    c.output(y, e, DataType_t::HALF, {}, 64);
    c.output(mean, m, DataType_t::FLOAT, {}, 64, 0, 1);
    c.output(inverse, v, DataType_t::FLOAT, {}, 64);
  });
}

// Statistics of a batch as sums, what to multiply and add in its place, running statistics.
TEST(Frontend, BatchNormInPieces) {
  check([&](Client& c) {
    const Dims one = {1, 8, 1, 1};
    Array sums = c.random(one, 10), squares(one), scale = c.random(one), bias = c.random(one), mean = c.random(one),
          var = changed(c.random(one), [](double v) { return 1 + v * v; });
    constexpr double kCount = 100, kEpsilon = 1e-3, kMomentum = 0.1;
    for (size_t i = 0; i < 8; ++i) squares.v[i] = kCount + sums.v[i] * sums.v[i] / kCount;
    Tensor tsum = c.input(sums), tsq = c.input(squares), ts = c.input(scale), tb = c.input(bias), tm = c.input(mean),
           tv = c.input(var);
    Tensor epsilon = c.graph.tensor(static_cast<float>(kEpsilon)), count = c.graph.tensor(static_cast<int64_t>(kCount)),
           momentum = c.graph.tensor(static_cast<float>(kMomentum));
    auto how = fe::graph::BN_finalize_attributes().set_previous_running_stats(tm, tv, momentum);
    auto [eq_scale, eq_bias, saved, inverse, next_mean, next_var] =
        c.graph.bn_finalize(tsum, tsq, ts, tb, epsilon, count, how);
    Array es(one), eb(one), em(one), ei(one), nm(one), nv(one);
    for (size_t i = 0; i < 8; ++i) {
      em.v[i] = sums.v[i] / kCount;
      double v = squares.v[i] / kCount - em.v[i] * em.v[i];
      ei.v[i] = 1 / std::sqrt(v + kEpsilon);
      es.v[i] = scale.v[i] * ei.v[i];
      eb.v[i] = bias.v[i] - em.v[i] * es.v[i];
      nm.v[i] = (1 - kMomentum) * mean.v[i] + kMomentum * em.v[i];
      nv.v[i] = (1 - kMomentum) * var.v[i] + kMomentum * v * kCount / (kCount - 1);
    }
    for (auto& [t, e] : std::vector<std::pair<Tensor, Array>>{
             {eq_scale, es}, {eq_bias, eb}, {saved, em}, {inverse, ei}, {next_mean, nm}, {next_var, nv}})
      c.output(t, e, DataType_t::FLOAT, {}, 16, 0, 2);
  });
}

// Sums for scale and bias, and what makes dx of dy and x.
TEST(Frontend, BatchNormGradientInPieces) {
  check([&](Client& c) {
    const Dims d = {2, 8, 5, 5}, one = {1, 8, 1, 1};
    constexpr double kCount = 50;
    Array dy = c.random(d), x = c.random(d), mean = c.random(one), scale = c.random(one),
          inverse = changed(c.random(one), [](double v) { return 0.5 + v * v; });
    Tensor tdy = c.input(dy, DataType_t::HALF, channels_last(d)), tx = c.input(x, DataType_t::HALF, channels_last(d)),
           tm = c.input(mean), ti = c.input(inverse), ts = c.input(scale);
    auto results = c.graph.dbn_weight(tdy, tx, tm, ti, ts, fe::graph::DBN_weight_attributes());
    std::vector<Array> e(results.size(), Array(one));  // dscale, dbias, factors of dy and x, what is added
    for (size_t k = 0; k < x.v.size(); ++k) {
      size_t ch = k / 25 % 8;
      e[0].v[ch] += dy.v[k] * (x.v[k] - mean.v[ch]) * inverse.v[ch];
      e[1].v[ch] += dy.v[k];
    }
    for (size_t ch = 0; ch < 8; ++ch) {
      e[2].v[ch] = scale.v[ch] * inverse.v[ch];
      e[3].v[ch] = -e[2].v[ch] * inverse.v[ch] * e[0].v[ch] / kCount;
      e[4].v[ch] = -e[2].v[ch] * e[1].v[ch] / kCount - e[3].v[ch] * mean.v[ch];
    }
    for (size_t i = 0; i < e.size(); ++i) c.output(results[i], e[i], DataType_t::FLOAT, {}, kCount, 0, kCount);
  });
}

TEST(Frontend, PointwiseAndReduction) {
  check([&](Client& c) {
    Array a = c.random({4, 6, 20}), b = c.random({4, 6, 20});
    Tensor ta = c.input(a, DataType_t::BFLOAT16), tb = c.input(b, DataType_t::BFLOAT16);
    Tensor y =
        c.graph.pointwise(c.graph.pointwise(ta, tb, mode(PointwiseMode_t::MUL)), mode(PointwiseMode_t::TANH_FWD));
    Tensor sum = c.graph.reduction(y, fe::graph::Reduction_attributes().set_mode(fe::ReductionMode_t::ADD));
    Array e(a.dims), s({4, 6, 1});
    for (size_t i = 0; i < e.v.size(); ++i) s.v[i / 20] += e.v[i] = std::tanh(a.v[i] * b.v[i]);
    c.output(y, e, DataType_t::BFLOAT16, {}, 4);
    c.output(sum, s, DataType_t::FLOAT, {}, 20, kBf16, 20);
  });
}

TEST(Frontend, Pooling) {
  for (bool largest : {true, false})
    check([&](Client& c) {
      const Dims d = {2, 8, 8, 6}, to = {2, 8, 4, 3};
      Array x = c.random(d), e(to);
      Tensor tx = c.input(x, DataType_t::HALF, channels_last(d));
      auto how =
          fe::graph::Resample_attributes()
              .set_generate_index(false)
              .set_resampling_mode(largest ? fe::ResampleMode_t::MAXPOOL : fe::ResampleMode_t::AVGPOOL_INCLUDE_PADDING)
              .set_padding_mode(largest ? fe::PaddingMode_t::NEG_INF_PAD : fe::PaddingMode_t::ZERO_PAD)
              .set_window(Dims{3, 3})
              .set_stride(Dims{2, 2})
              .set_pre_padding(Dims{1, 1})
              .set_post_padding(Dims{1, 1});
      for (size_t k = 0; k < e.v.size(); ++k) {
        int64_t j = static_cast<int64_t>(k) % 3, i = static_cast<int64_t>(k) / 3 % 4,
                plane = static_cast<int64_t>(k) / 12;
        double best = largest ? -1e9 : 0;
        for (int64_t r = 2 * i - 1; r < 2 * i + 2; ++r)
          for (int64_t s = 2 * j - 1; s < 2 * j + 2; ++s)
            if (r >= 0 && r < 8 && s >= 0 && s < 6) {
              double v = x.v[static_cast<size_t>((plane * 8 + r) * 6 + s)];
              best = largest ? std::max(best, v) : best + v / 9;
            }
        e.v[k] = best;
      }
      c.output(c.graph.resample(tx, how)[0], e, DataType_t::HALF, channels_last(to), 9);
    });
}

// What lies right of the diagonal is filled with a number.
TEST(Frontend, BandMask) {
  check([&](Client& c) {
    Array x = c.random({2, 3, 12, 10}), e = x;
    Tensor tx = c.input(x), fill = c.graph.tensor(-7.0F);
    for (int64_t n = 0; n < 6; ++n)
      for (int64_t i = 0; i < 12; ++i)
        for (int64_t j = i + 1; j < 10; ++j) e.v[static_cast<size_t>((n * 12 + i) * 10 + j)] = -7;
    auto how = fe::graph::DiagonalBandMask_attributes().set_comparison_mode(PointwiseMode_t::CMP_GE);
    c.output(c.graph.diagonal_band_mask(tx, fill, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, how), e);
  });
}

TEST(Frontend, SliceTransposeAndConcatenate) {
  check([&](Client& c) {
    Array x = c.random({4, 6, 8}), z = c.random({4, 3, 3});
    Tensor tx = c.input(x, DataType_t::HALF), tz = c.input(z, DataType_t::HALF);
    Tensor part = c.graph.slice(tx, fe::graph::Slice_attributes().set_slices({{0, 4}, {1, 6}, {2, 5}}));
    part->set_data_type(DataType_t::HALF);
    Array e({4, 8, 3});
    for (int64_t n = 0; n < 4; ++n)
      for (int64_t i = 0; i < 8; ++i)
        for (int64_t j = 0; j < 3; ++j) e.at({n, i, j}) = i < 5 ? x.at({n, i + 1, j + 2}) : z.at({n, i - 5, j});
    c.output(c.graph.concatenate({part, tz}, fe::graph::Concatenate_attributes().set_axis(1)), e, DataType_t::HALF);
  });
  check([&](Client& c) {
    Array x = c.random({4, 6, 8}), e({8, 4, 6});
    Tensor tx = c.input(x);
    for (int64_t n = 0; n < 4; ++n)
      for (int64_t i = 0; i < 6; ++i)
        for (int64_t j = 0; j < 8; ++j) e.at({j, n, i}) = x.at({n, i, j});
    c.output(c.graph.transpose(tx, fe::graph::Transpose_attributes().set_permutation({2, 0, 1})), e);
  });
}

TEST(Frontend, Rope) {
  check([&](Client& c) {
    Array x = c.random({2, 3, 5, 8}), f({1, 1, 5, 8});
    for (int64_t s = 0; s < 5; ++s)
      for (int64_t k = 0; k < 8; ++k)
        f.at({0, 0, s, k}) = static_cast<double>(s) * std::pow(0.5, static_cast<double>(k % 4));
    Tensor tx = c.input(x), tf = c.input(f);
    Array e(x.dims);
    for (size_t i = 0; i < e.v.size(); ++i) {
      size_t k = i % 8, row = i - k;
      double angle = f.v[i / 8 % 5 * 8 + k], other = k < 4 ? -x.v[row + k + 4] : x.v[row + k - 4];
      e.v[i] = x.v[i] * std::cos(angle) + other * std::sin(angle);
    }
    c.output(c.graph.rope(tx, tf, fe::graph::RoPE_attributes()), e, DataType_t::FLOAT, {}, 8);
  });
}

// Softmax of scaled scores; `from` tells the first key that a query may not see.
struct Attention {
  Array p, o, stats;
  Attention(const Array& q, const Array& k, const Array& v, double scale, bool causal)
      : p({q.dims[0], q.dims[1], q.dims[2], k.dims[2]}), o(q.dims), stats({q.dims[0], q.dims[1], q.dims[2], 1}) {
    int64_t shared = q.dims[1] / k.dims[1];
    for (int64_t b = 0; b < p.dims[0]; ++b)
      for (int64_t h = 0; h < p.dims[1]; ++h)
        for (int64_t i = 0; i < p.dims[2]; ++i) {
          int64_t keys = causal ? std::min(i + 1, p.dims[3]) : p.dims[3];
          double largest = -1e30, total = 0;
          for (int64_t j = 0; j < keys; ++j) {
            double s = 0;
            for (int64_t d = 0; d < q.dims[3]; ++d) s += scale * q.at({b, h, i, d}) * k.at({b, h / shared, j, d});
            p.at({b, h, i, j}) = s;
            largest = std::max(largest, s);
          }
          for (int64_t j = 0; j < keys; ++j) total += p.at({b, h, i, j}) = std::exp(p.at({b, h, i, j}) - largest);
          stats.at({b, h, i, 0}) = largest + std::log(total);
          for (int64_t j = 0; j < keys; ++j) {
            p.at({b, h, i, j}) /= total;
            for (int64_t d = 0; d < q.dims[3]; ++d)
              o.at({b, h, i, d}) += p.at({b, h, i, j}) * v.at({b, h / shared, j, d});
          }
        }
  }
};

TEST(Frontend, AttentionForward) {
  for (bool causal : {false, true})
    check([&](Client& c) {
      Array q = c.random({2, 4, 24, 32}), k = c.random({2, 2, 40, 32}), v = c.random({2, 2, 40, 32});
      Tensor tq = c.input(q, DataType_t::BFLOAT16), tk = c.input(k, DataType_t::BFLOAT16),
             tv = c.input(v, DataType_t::BFLOAT16);
      auto how = fe::graph::SDPA_attributes().set_generate_stats(true).set_attn_scale(0.2F);
      if (causal) how.set_diagonal_band_right_bound(0);
      auto [o, stats] = c.graph.sdpa(tq, tk, tv, how);
      Attention a(q, k, v, 0.2, causal);
      c.output(o, a.o, DataType_t::BFLOAT16, {}, 40, kBf16);
      c.output(stats, a.stats, DataType_t::FLOAT, {}, 72);
    });
}

TEST(Frontend, AttentionBackward) {
  for (bool causal : {false, true})
    check([&](Client& c) {
      constexpr auto kType = DataType_t::HALF;
      constexpr double kScale = 0.2;
      Array q = c.random({1, 4, 24, 32}), k = c.random({1, 2, 40, 32}), v = c.random({1, 2, 40, 32}),
            g = c.random(q.dims);
      Tensor tq = c.input(q, kType), tk = c.input(k, kType), tv = c.input(v, kType), tg = c.input(g, kType);
      Attention a(q, k, v, kScale, causal);
      Tensor to = c.input(a.o, kType), ts = c.input(a.stats);
      auto how = fe::graph::SDPA_backward_attributes().set_attn_scale(static_cast<float>(kScale));
      if (causal) how.set_diagonal_band_right_bound(0);
      auto [dq, dk, dv] = c.graph.sdpa_backward(tq, tk, tv, to, tg, ts, how);
      Array eq(q.dims), ek(k.dims), ev(v.dims);
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t i = 0; i < 24; ++i) {
          double sum = 0;
          for (int64_t d = 0; d < 32; ++d) sum += g.at({0, h, i, d}) * a.o.at({0, h, i, d});
          for (int64_t j = 0; j < 40; ++j) {
            double dp = 0, p = a.p.at({0, h, i, j});
            for (int64_t d = 0; d < 32; ++d) dp += g.at({0, h, i, d}) * v.at({0, h / 2, j, d});
            double ds = kScale * p * (dp - sum);
            for (int64_t d = 0; d < 32; ++d) {
              eq.at({0, h, i, d}) += ds * k.at({0, h / 2, j, d});
              ek.at({0, h / 2, j, d}) += ds * q.at({0, h, i, d});
              ev.at({0, h / 2, j, d}) += p * g.at({0, h, i, d});
            }
          }
        }
      c.output(dq, eq, kType, {}, 40, 2 * kHalf);
      c.output(dk, ek, kType, {}, 48, 2 * kHalf);
      c.output(dv, ev, kType, {}, 48, 2 * kHalf);
    });
}

}  // namespace
