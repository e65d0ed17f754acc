// SPDX-License-Identifier: Apache-2.0
#include "convolution_reference.hpp"

using namespace client;

namespace {

struct Problem {
  Sizes x, w;
  ConvSpec spec;
};

const Problem kProblems[] = {
    {{2, 4, 7, 6}, {6, 4, 3, 3}, {{1, 1}, {1, 1}, {1, 1}}},
    {{1, 4, 9, 8}, {4, 2, 3, 2}, {{0, 2}, {2, 3}, {2, 1}, 2, CUDNN_CONVOLUTION}},
    {{2, 3, 5, 5}, {3, 1, 3, 3}, {{1, 1}, {2, 2}, {1, 1}, 3}},
    {{2, 5, 11}, {3, 5, 4}, {{2}, {2}, {1}, 1, CUDNN_CONVOLUTION}},
    {{1, 2, 4, 5, 6}, {3, 2, 2, 3, 1}, {{1, 0, 0}, {1, 2, 1}, {1, 1, 1}}},
    {{3, 8, 1, 1}, {5, 8, 1, 1}, {{0, 0}, {1, 1}, {1, 1}}},
};
constexpr cudnnTensorFormat_t kFormats[] = {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC};

cudnnDataType_t compute_of(cudnnDataType_t t) { return t == CUDNN_DATA_DOUBLE ? t : CUDNN_DATA_FLOAT; }

// Sums have many terms: more units than a single operation.
constexpr double kUnits = 64;

template <class Run>
void for_all(const Run& run) {
  for (const Problem& p : kProblems)
    for (cudnnDataType_t type : kFloats)
      for (size_t i = 0; i < kFactors.size(); ++i)
        run(p, type, kLayouts[i % kLayouts.size()], kFormats[i % 2], kFactors[i]);
}

TEST(Convolution, forward) {
  Handle h;
  for_all([&](const Problem& p, cudnnDataType_t type, Layout layout, cudnnTensorFormat_t format, Factors f) {
    Tensor x(type, p.x, layout), y(type, output_sizes(p.spec, p.x, p.w), layout);
    Filter w(type, p.w, format);
    x.random(1), w.random(2), y.random(3);
    ConvDescriptor conv(p.spec, compute_of(type));
    Values want = blended(f.alpha, forward_of(p.spec, x, w.values(), y), f.beta, y.values());
    size_t bytes = 0;
    cudnnConvolutionFwdAlgo_t algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    ASSERT_OK(cudnnGetConvolutionForwardWorkspaceSize(h, x, w, conv, y, algo, &bytes));
    Memory workspace(bytes);
    ASSERT_OK(cudnnConvolutionForward(h, Factor(f.alpha, type), x, x.data(), w, w.data(), conv, algo, workspace.data(),
                                      bytes, Factor(f.beta, type), y, y.data()));
    expect_values(y, want, kUnits);
  });
}

TEST(Convolution, backward_data) {
  Handle h;
  for_all([&](const Problem& p, cudnnDataType_t type, Layout layout, cudnnTensorFormat_t format, Factors f) {
    Tensor dx(type, p.x, layout), dy(type, output_sizes(p.spec, p.x, p.w), layout);
    Filter w(type, p.w, format);
    dy.random(1), w.random(2), dx.random(3);
    ConvDescriptor conv(p.spec, compute_of(type));
    Values want = blended(f.alpha, backward_data_of(p.spec, dx, w.values(), dy), f.beta, dx.values());
    for (auto algo : {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1}) {
      Tensor result(type, p.x, layout);
      for (int64_t i = 0; i < dx.count(); ++i) result.set(i, dx.get(i));
      size_t bytes = 0;
      ASSERT_OK(cudnnGetConvolutionBackwardDataWorkspaceSize(h, w, dy, conv, dx, algo, &bytes));
      Memory workspace(bytes);
      ASSERT_OK(cudnnConvolutionBackwardData(h, Factor(f.alpha, type), w, w.data(), dy, dy.data(), conv, algo,
                                             workspace.data(), bytes, Factor(f.beta, type), result, result.data()));
      expect_values(result, want, kUnits);
    }
  });
}

TEST(Convolution, backward_filter) {
  Handle h;
  for_all([&](const Problem& p, cudnnDataType_t type, Layout layout, cudnnTensorFormat_t format, Factors f) {
    Tensor x(type, p.x, layout), dy(type, output_sizes(p.spec, p.x, p.w), layout);
    Filter dw(type, p.w, format);
    dy.random(1), x.random(2), dw.random(3);
    ConvDescriptor conv(p.spec, compute_of(type));
    Values want = blended(f.alpha, backward_filter_of(p.spec, x, dw.values(), dy), f.beta, dw.values().values());
    size_t bytes = 0;
    auto algo = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
    ASSERT_OK(cudnnGetConvolutionBackwardFilterWorkspaceSize(h, x, dy, conv, dw, algo, &bytes));
    Memory workspace(bytes);
    ASSERT_OK(cudnnConvolutionBackwardFilter(h, Factor(f.alpha, type), x, x.data(), dy, dy.data(), conv, algo,
                                             workspace.data(), bytes, Factor(f.beta, type), dw, dw.data()));
    expect_values(dw.values(), want, kUnits);
  });
}

TEST(Convolution, backward_bias) {
  Handle h;
  for (cudnnDataType_t type : kFloats)
    for (Layout layout : kLayouts)
      for (Factors f : kFactors)
        for (Sizes dims : {Sizes{3, 5, 4, 6}, Sizes{2, 3, 2, 4, 3}}) {
          Tensor dy(type, dims, layout);
          Sizes sizes(dims.size(), 1);
          sizes[1] = dims[1];
          Tensor db(type, sizes);
          dy.random(1), db.random(2);
          Values sums(static_cast<size_t>(dims[1]));
          for (int64_t i = 0; i < dy.count(); ++i) sums[static_cast<size_t>(dy.index(i)[1])] += dy.get(i);
          Values want = blended(f.alpha, sums, f.beta, db.values());
          ASSERT_OK(cudnnConvolutionBackwardBias(h, Factor(f.alpha, type), dy, dy.data(), Factor(f.beta, type), db,
                                                 db.data()));
          expect_values(db, want, kUnits);
        }
}

double activated(cudnnActivationMode_t mode, double v) {
  switch (mode) {
    case CUDNN_ACTIVATION_SIGMOID:
      return 1 / (1 + std::exp(-v));
    case CUDNN_ACTIVATION_RELU:
      return std::max(v, 0.0);
    case CUDNN_ACTIVATION_TANH:
      return std::tanh(v);
    case CUDNN_ACTIVATION_CLIPPED_RELU:
      return std::min(std::max(v, 0.0), 1.5);
    case CUDNN_ACTIVATION_ELU:
      return v > 0 ? v : 1.5 * std::expm1(v);
    case CUDNN_ACTIVATION_SWISH:
      return v / (1 + std::exp(-v));
    default:
      return v;
  }
}

TEST(Convolution, bias_and_activation) {
  Handle h;
  Descriptor<cudnnActivationDescriptor_t> act(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor);
  ConvSpec spec{{1, 1}, {1, 1}, {1, 1}};
  for (cudnnDataType_t type : kFloats)
    for (int mode = CUDNN_ACTIVATION_SIGMOID; mode <= CUDNN_ACTIVATION_SWISH; ++mode)
      for (bool in_place : {false, true})
        for (double alpha2 : {0.0, 0.5}) {
          auto m = static_cast<cudnnActivationMode_t>(mode);
          ASSERT_OK(cudnnSetActivationDescriptor(act, m, CUDNN_PROPAGATE_NAN, 1.5));
          Layout layout = mode % 2 ? Layout::nhwc : Layout::nchw;
          Tensor x(type, {2, 3, 6, 5}, layout), y(type, {2, 4, 6, 5}, layout), z(type, y.dims(), layout);
          Tensor bias(type, {1, 4, 1, 1});
          Filter w(type, {4, 3, 3, 3});
          x.random(1), w.random(2), z.random(3), bias.random(4);
          ConvDescriptor conv(spec, compute_of(type));
          Values want = forward_of(spec, x, w.values(), y);
          for (int64_t i = 0; i < y.count(); ++i) {
            double& v = want[static_cast<size_t>(i)];
            v = activated(m, 0.75 * v + alpha2 * z.get(i) + bias.get(y.index(i)[1]));
          }
          Tensor& result = in_place ? z : y;
          // Programs that name the first need no workspace; the second is any engine's.
          auto algo =
              alpha2 == 0 ? CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM : CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
          size_t bytes = 0;
          ASSERT_OK(cudnnGetConvolutionForwardWorkspaceSize(h, x, w, conv, y, algo, &bytes));
          Memory workspace(bytes);
          ASSERT_OK(cudnnConvolutionBiasActivationForward(h, Factor(0.75, type), x, x.data(), w, w.data(), conv, algo,
                                                          workspace.data(), bytes, Factor(alpha2, type), z, z.data(),
                                                          bias, bias.data(), act, result, result.data()))
              << "mode " << mode;
          expect_values(result, want, kUnits);
        }
}

double rounded_to_int8(double v) { return std::min(127.0, std::max(-128.0, std::nearbyint(v))); }

TEST(Convolution, int8) {
  Handle h;
  ConvSpec spec{{1, 1}, {1, 1}, {1, 1}};
  for (cudnnDataType_t type : {CUDNN_DATA_INT8, CUDNN_DATA_FLOAT, CUDNN_DATA_INT32})
    for (double alpha : {1.0, 0.25}) {
      Tensor x(CUDNN_DATA_INT8, {2, 8, 5, 4}, Layout::nhwc), y(type, {2, 4, 5, 4}, Layout::nhwc);
      Filter w(CUDNN_DATA_INT8, {4, 8, 3, 3}, CUDNN_TENSOR_NHWC);
      x.random(1), w.random(2);
      ConvDescriptor conv(spec, CUDNN_DATA_INT32);
      Values want = forward_of(spec, x, w.values(), y);
      for (double& v : want) {
        v *= alpha;
        if (type == CUDNN_DATA_INT8) v = rounded_to_int8(v);
        if (type == CUDNN_DATA_INT32) v = std::nearbyint(v);
      }
      float beta = 0;
      Memory workspace(1 << 19);
      ASSERT_OK(cudnnConvolutionForward(h, Factor(alpha, CUDNN_DATA_FLOAT), x, x.data(), w, w.data(), conv,
                                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace.data(),
                                        workspace.size(), &beta, y, y.data()));
      expect_values(y, want);
    }
}

// Channels in vectors: position of a logical index in memory.
size_t vector_place(const Sizes& dims, const Sizes& i, int lanes) {
  int groups = dims[1] / lanes;
  return static_cast<size_t>((((i[0] * groups + i[1] / lanes) * dims[2] + i[2]) * dims[3] + i[3]) * lanes +
                             i[1] % lanes);
}

void to_vectors(Memory& v, const Tensor& t, int lanes) {
  v.resize(static_cast<size_t>(t.count()), 0);
  for (int64_t i = 0; i < t.count(); ++i)
    store(CUDNN_DATA_INT8, v.edit() + vector_place(t.dims(), t.index(i), lanes), t.get(i));
}

double int8_at(const Memory& m, size_t place) { return load(CUDNN_DATA_INT8, m.host() + place); }

struct VectorProblem {
  VectorProblem(cudnnDataType_t type, int lanes)
      : x(CUDNN_DATA_INT8, {2, 64, 4, 5}),
        w(CUDNN_DATA_INT8, {32, 64, 3, 3}),
        y(CUDNN_DATA_INT8, {2, 32, 4, 5}),
        x_desc(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor),
        y_desc(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor),
        w_desc(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor),
        conv(spec, CUDNN_DATA_INT32) {
    x.random(1), w.random(2);
    EXPECT_OK(cudnnSetTensor4dDescriptor(x_desc, CUDNN_TENSOR_NCHW_VECT_C, type, 2, 64, 4, 5));
    EXPECT_OK(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NCHW_VECT_C, type, 2, 32, 4, 5));
    EXPECT_OK(cudnnSetFilter4dDescriptor(w_desc, type, CUDNN_TENSOR_NCHW_VECT_C, 32, 64, 3, 3));
    to_vectors(xv, x, lanes), to_vectors(wv, w, lanes), yv.resize(static_cast<size_t>(y.count()), 0);
    want = forward_of(spec, x, w, y);
  }
  ConvSpec spec{{1, 1}, {1, 1}, {1, 1}};
  Tensor x, w, y;
  Descriptor<cudnnTensorDescriptor_t> x_desc, y_desc;
  Descriptor<cudnnFilterDescriptor_t> w_desc;
  ConvDescriptor conv;
  Memory xv, wv, yv;
  Values want;
};

TEST(Convolution, int8_vectors) {
  Handle h;
  for (auto [type, lanes] : {std::pair(CUDNN_DATA_INT8x4, 4), std::pair(CUDNN_DATA_INT8x32, 32)}) {
    VectorProblem p(type, lanes);
    size_t bytes = 0;
    ASSERT_OK(cudnnGetTensorSizeInBytes(p.x_desc, &bytes));
    EXPECT_EQ(bytes, p.xv.size());
    float alpha = 0.125f, beta = 0;
    ASSERT_OK(cudnnConvolutionForward(h, &alpha, p.x_desc, p.xv.data(), p.w_desc, p.wv.data(), p.conv,
                                      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &beta, p.y_desc,
                                      p.yv.data()));
    for (int64_t i = 0; i < p.y.count(); ++i)
      ASSERT_EQ(int8_at(p.yv, vector_place(p.y.dims(), p.y.index(i), lanes)),
                rounded_to_int8(0.125 * p.want[static_cast<size_t>(i)]))
          << i;
  }
}

// Bytes without a sign, with filters that have one.
TEST(Convolution, uint8_vectors) {
  Handle h;
  VectorProblem p(CUDNN_DATA_INT8x4, 4);
  for (int64_t i = 0; i < p.x.count(); ++i) {
    double v = static_cast<double>(i * 41 % 256);
    p.x.set(i, v < 128 ? v : v - 256);  // the same bits
    p.xv.edit()[vector_place(p.x.dims(), p.x.index(i), 4)] = static_cast<unsigned char>(v);
  }
  Tensor wide(CUDNN_DATA_FLOAT, p.x.dims()), y(CUDNN_DATA_FLOAT, p.y.dims());
  for (int64_t i = 0; i < wide.count(); ++i) wide.set(i, static_cast<double>(i * 41 % 256));
  ASSERT_OK(cudnnSetTensor4dDescriptor(p.x_desc, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_UINT8x4, 2, 64, 4, 5));
  float one = 1, zero = 0;
  ASSERT_OK(cudnnConvolutionForward(h, &one, p.x_desc, p.xv.data(), p.w_desc, p.wv.data(), p.conv,
                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, nullptr, 1 << 30, &zero, y,
                                    y.data()));
  EXPECT_EQ(y.values(), forward_of(p.spec, wide, p.w, y));
}

// Filters and biases in the order of tensor cores, as programs that reorder them on their own expect it.
TEST(Convolution, reordered_filters_and_biases) {
  Handle h;
  VectorProblem p(CUDNN_DATA_INT8x32, 32);
  Tensor bias(CUDNN_DATA_FLOAT, {1, 32, 1, 1});
  bias.random(5);
  Memory filter(p.wv.size());
  Tensor order(CUDNN_DATA_FLOAT, {32});
  ASSERT_OK(cudnnReorderFilterAndBias(h, p.w_desc, CUDNN_DEFAULT_REORDER, p.wv.data(), filter.data(), 1, bias.data(),
                                      order.data()));
  for (int64_t i = 0; i < p.w.count(); ++i) {
    Sizes at = p.w.index(i);
    int o = at[0], c = at[1], tap = at[2] * 3 + at[3];
    int place = (((((c / 32) * 9 + tap) * 4 + o / 8) * 2 + o % 2) * 8 + c % 32 / 4) * 16 + o % 8 / 2 * 4 + c % 4;
    ASSERT_EQ(int8_at(filter, static_cast<size_t>(place)), p.w.get(i));
  }
  for (int o = 0; o < 32; ++o) ASSERT_EQ(order.get((o / 4 % 2) * 16 + o / 8 * 4 + o % 4), bias.get(o));

  Descriptor<cudnnActivationDescriptor_t> act(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor);
  ASSERT_OK(cudnnSetActivationDescriptor(act, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  ASSERT_OK(cudnnSetConvolutionReorderType(p.conv, CUDNN_NO_REORDER));
  float alpha1 = 0.125f, alpha2 = 0;
  ASSERT_OK(cudnnConvolutionBiasActivationForward(
      h, &alpha1, p.x_desc, p.xv.data(), p.w_desc, filter.data(), p.conv, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
      nullptr, 0, &alpha2, p.y_desc, p.yv.data(), bias, order.data(), act, p.y_desc, p.yv.data()));
  for (int64_t i = 0; i < p.y.count(); ++i) {
    Sizes at = p.y.index(i);
    double want = std::max(0.0, 0.125 * p.want[static_cast<size_t>(i)] + bias.get(at[1]));
    ASSERT_EQ(int8_at(p.yv, vector_place(p.y.dims(), at, 32)), rounded_to_int8(want)) << i;
  }
}

TEST(Convolution, patches_as_a_matrix) {
  Handle h;
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_INT8})
    for (const Problem& p : kProblems) {
      Tensor x(type, p.x, Layout::gaps);
      Filter w(type, p.w);
      x.random(1);
      if (type == CUDNN_DATA_FLOAT) x.set(3, std::nan("")), x.set(5, INFINITY);  // reach their own places only
      ConvDescriptor conv(p.spec);
      Sizes y = output_sizes(p.spec, p.x, p.w), taps(p.w.begin() + 2, p.w.end());
      int64_t rows = 1, columns = p.x[1], count = 1;
      for (size_t i = 0; i < y.size(); ++i) rows *= i == 1 ? 1 : y[i];
      for (int t : taps) columns *= t, count *= t;
      Tensor a(type, {static_cast<int>(rows), static_cast<int>(columns)});
      Values want;
      y[1] = 1;
      Tensor positions(type, y), tap(type, taps);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < columns; ++k) {
          Sizes at = positions.index(r), t = tap.index(k % count), from = {at[0], static_cast<int>(k / count)};
          bool inside = true;
          for (size_t i = 0; i < t.size(); ++i) {
            from.push_back(at[2 + i] * p.spec.stride[i] - p.spec.pad[i] + t[i] * p.spec.dilation[i]);
            inside &= from.back() >= 0 && from.back() < p.x[2 + i];
          }
          want.push_back(inside ? x.get(x.position(from)) : 0);
        }
      ASSERT_OK(cudnnIm2Col(h, x, x.data(), w, conv, a.data()));
      expect_values(a, want, 0);
    }
}

// The gradient of a strided convolution, computed without strides as the descriptors say.
TEST(Convolution, folded_gradient_of_the_input) {
  Handle h;
  using Transform = Descriptor<cudnnTensorTransformDescriptor_t>;
  struct Folding {
    int size, taps;
    ConvSpec spec;
  };
  const Folding foldings[] = {{9, 3, {{1, 1}, {2, 2}, {1, 1}}},
                              {8, 5, {{2, 2}, {3, 3}, {1, 1}}},
                              {12, 2, {{0, 0}, {4, 4}, {1, 1}}},
                              {9, 3, {{1, 0}, {2, 3}, {1, 1}, 2}},  // groups
                              {11, 3, {{2, 1}, {2, 2}, {2, 1}}},    // of which one dimension is folded
                              {9, 3, {{1, 1}, {2, 1}, {1, 1}, 1, CUDNN_CONVOLUTION}}};
  for (const auto& [size, taps, spec] : foldings) {
    Sizes xs = {2, 4, size, size + 1}, ws = {4, 4 / spec.groups, taps, taps};
    Tensor dx(CUDNN_DATA_FLOAT, xs), dy(CUDNN_DATA_FLOAT, output_sizes(spec, xs, ws));
    Filter w(CUDNN_DATA_FLOAT, ws);
    dy.random(1), w.random(2);
    ConvDescriptor conv(spec), folded_conv(ConvSpec{{0, 0}, {1, 1}, {1, 1}});
    Descriptor<cudnnFilterDescriptor_t> fw(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor);
    Descriptor<cudnnTensorDescriptor_t> pdy(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor),
        fdx(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
    auto create = cudnnCreateTensorTransformDescriptor;
    auto destroy = cudnnDestroyTensorTransformDescriptor;
    Transform fold_w(create, destroy), pad_dy(create, destroy), fold_dx(create, destroy), unfold_dx(create, destroy);
    ASSERT_OK(cudnnGetFoldedConvBackwardDataDescriptors(h, w, dy, conv, dx, CUDNN_TENSOR_NCHW, fw, pdy, folded_conv,
                                                        fdx, fold_w, pad_dy, fold_dx, unfold_dx));
    auto room = [](auto desc, auto query) {
      size_t bytes = 0;
      EXPECT_OK(query(desc, &bytes));
      return bytes;
    };
    Memory filter(room(cudnnFilterDescriptor_t(fw), cudnnGetFilterSizeInBytes));
    Memory gradient(room(cudnnTensorDescriptor_t(pdy), cudnnGetTensorSizeInBytes));
    Memory result(room(cudnnTensorDescriptor_t(fdx), cudnnGetTensorSizeInBytes));
    float one = 1, zero = 0;
    ASSERT_OK(cudnnTransformFilter(h, fold_w, &one, w, w.data(), &zero, fw, filter.data()));
    ASSERT_OK(cudnnTransformTensorEx(h, pad_dy, &one, dy, dy.data(), &zero, pdy, gradient.data()));
    // The folded gradient may be given: with beta it is added to.
    dx.fill(2);
    ASSERT_OK(cudnnTransformTensorEx(h, fold_dx, &one, dx, dx.data(), &zero, fdx, result.data()));
    ASSERT_OK(cudnnConvolutionBackwardData(h, &one, fw, filter.data(), pdy, gradient.data(), folded_conv,
                                           CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, nullptr, 0, &one, fdx, result.data()));
    dx.fill(9);
    ASSERT_OK(cudnnTransformTensorEx(h, unfold_dx, &one, fdx, result.data(), &zero, dx, dx.data()));
    Values want = backward_data_of(spec, dx, w.values(), dy);
    for (double& v : want) v += 2;
    expect_values(dx, want, kUnits);
  }
}

}  // namespace
