// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

using namespace client;

namespace {

struct TransformDescriptor : Descriptor<cudnnTensorTransformDescriptor_t> {
  TransformDescriptor() : Descriptor(cudnnCreateTensorTransformDescriptor, cudnnDestroyTensorTransformDescriptor) {}
};

TEST(TransformTensor, layouts_and_types) {
  Handle h;
  for (cudnnDataType_t from : choices<cudnnDataType_t>(
           {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_INT8}, {CUDNN_DATA_HALF, CUDNN_DATA_INT8}))
    for (cudnnDataType_t to : kFloats)
      for (Layout a : kLayouts)
        for (Layout b : kLayouts)
          for (const Sizes& dims : {Sizes{2, 3, 5, 4}, {2, 3, 4, 2, 3}, {1, 1, 1, 1}})
            for (Factors f : kFactors) {
              Tensor x(from, dims, a), y(to, dims, b);
              x.random(1), y.random(2);
              Values want = blended(f.alpha, x.values(), f.beta, y.values());
              ASSERT_OK(cudnnTransformTensor(h, Factor(f.alpha, to), x, x.data(), Factor(f.beta, to), y, y.data()));
              expect_values(y, want);
            }
}

TEST(TransformTensor, integers_are_exact) {
  Handle h;
  float one = 1, zero = 0;
  Tensor x(CUDNN_DATA_INT32, {1, 2, 2, 2}), y(CUDNN_DATA_INT32, x.dims(), Layout::nhwc);
  for (int i = 0; i < 8; ++i) x.set(i, 2147483647 - i);
  ASSERT_OK(cudnnTransformTensor(h, &one, x, x.data(), &zero, y, y.data()));
  EXPECT_EQ(x.values(), y.values());
}

// Strides of vectorised types count vectors of channels.
TEST(TransformTensor, vectors_of_channels) {
  Handle h;
  float one = 1, zero = 0;
  const int dims[] = {2, 8, 3, 2}, strides[] = {12, 6, 2, 1};  // [2, 8 / 4, 3, 2] vectors
  Descriptor<cudnnTensorDescriptor_t> vectors(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
  ASSERT_OK(cudnnSetTensorNdDescriptor(vectors, CUDNN_DATA_INT8x4, 4, dims, strides));
  Tensor x(CUDNN_DATA_INT8, {2, 8, 3, 2}, Layout::nhwc), y(CUDNN_DATA_INT8, {2, 2, 3, 2, 4}),
      back(CUDNN_DATA_FLOAT, {2, 8, 3, 2});
  x.random(1);
  ASSERT_OK(cudnnTransformTensor(h, &one, x, x.data(), &zero, vectors, y.data()));
  for (int64_t i = 0; i < x.count(); ++i) {
    Sizes at = x.index(i);
    EXPECT_EQ(y.get(y.position({at[0], at[1] / 4, at[2], at[3], at[1] % 4})), x.get(i));
  }
  ASSERT_OK(cudnnTransformTensor(h, &one, vectors, y.data(), &zero, back, back.data()));
  EXPECT_EQ(back.values(), x.values());
}

// Row-major array with sizes.
struct Array {
  Sizes dims;
  Values v;
  explicit Array(Sizes d) : dims(std::move(d)) {
    size_t n = 1;
    for (int s : dims) n *= static_cast<size_t>(s);
    v.assign(n, 0);
  }
  double& at(const Sizes& i) {
    size_t p = 0;
    for (size_t d = 0; d < dims.size(); ++d) p = p * static_cast<size_t>(dims[d]) + static_cast<size_t>(i[d]);
    return v[p];
  }
  Sizes index(size_t p) const {
    Sizes i(dims.size());
    for (size_t d = dims.size(); d-- > 0;) {
      i[d] = static_cast<int>(p % static_cast<size_t>(dims[d]));
      p /= static_cast<size_t>(dims[d]);
    }
    return i;
  }
};

Array padded(Array x, const Sizes& before, const Sizes& after) {
  Sizes dims = x.dims;
  for (size_t d = 0; d < dims.size(); ++d) dims[d] += before[d] + after[d];
  Array y(dims);
  for (size_t p = 0; p < y.v.size(); ++p) {
    Sizes i = y.index(p);
    bool inside = true;
    for (size_t d = 0; d < dims.size(); ++d) i[d] -= before[d], inside = inside && i[d] >= 0 && i[d] < x.dims[d];
    if (inside) y.v[p] = x.at(i);
  }
  return y;
}

// Folds if `dir` is FOLD, otherwise the other way round.
Array folded(Array x, const Sizes& fold, bool back) {
  int all = 1;
  for (int f : fold) all *= f;
  Sizes small = x.dims, large = x.dims;
  Sizes& result = back ? large : small;
  result[1] = back ? x.dims[1] / all : x.dims[1] * all;
  for (size_t d = 0; d < fold.size(); ++d) result[d + 2] = back ? x.dims[d + 2] * fold[d] : x.dims[d + 2] / fold[d];
  Array y(result);
  Array &unfolded = back ? y : x, &other = back ? x : y;
  for (size_t p = 0; p < unfolded.v.size(); ++p) {
    Sizes i = unfolded.index(p);
    int residue = 0;
    for (size_t d = 0; d < fold.size(); ++d) {
      residue = residue * fold[d] + i[d + 2] % fold[d];
      i[d + 2] /= fold[d];
    }
    i[1] = i[1] * all + residue;
    (back ? unfolded.v[p] : other.at(i)) = back ? other.at(i) : unfolded.v[p];
  }
  return y;
}

struct Case {
  Sizes dims, before, after, fold;
  cudnnFoldingDirection_t direction;
};

const Case kCases[] = {
    {{2, 3, 4, 6}, {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 1}, CUDNN_TRANSFORM_FOLD},
    {{2, 3, 4, 6}, {0, 1, 2, 0}, {1, 0, 1, 3}, {1, 1}, CUDNN_TRANSFORM_FOLD},
    {{2, 3, 4, 6}, {0, 0, -1, 2}, {0, -1, 0, -3}, {1, 1}, CUDNN_TRANSFORM_FOLD},
    {{2, 3, 4, 6}, {0, 0, 0, 0}, {0, 0, 0, 0}, {2, 3}, CUDNN_TRANSFORM_FOLD},
    {{2, 3, 5, 6}, {0, 1, 1, 2}, {0, 0, 2, 1}, {2, 3}, CUDNN_TRANSFORM_FOLD},
    {{1, 2, 7, 9}, {0, 0, -1, 3}, {0, 0, 0, -4}, {3, 2}, CUDNN_TRANSFORM_FOLD},
    {{1, 2, 3, 4, 5}, {0, 0, 1, 0, 1}, {0, 0, 0, 0, 0}, {2, 1, 3}, CUDNN_TRANSFORM_FOLD},
    {{2, 12, 2, 3}, {0, 0, 0, 0}, {0, 0, 0, 0}, {2, 3}, CUDNN_TRANSFORM_UNFOLD},
    {{2, 12, 2, 3}, {0, 1, 1, 2}, {1, 0, 3, 0}, {2, 3}, CUDNN_TRANSFORM_UNFOLD},
    {{2, 12, 2, 3}, {0, 0, -1, -4}, {0, 0, -2, 1}, {2, 3}, CUDNN_TRANSFORM_UNFOLD},
};

void set(cudnnTensorTransformDescriptor_t d, const Case& c, cudnnTensorFormat_t format) {
  std::vector<uint32_t> fold(c.fold.begin(), c.fold.end());
  ASSERT_OK(cudnnSetTensorTransformDescriptor(d, static_cast<uint32_t>(c.dims.size()), format, c.before.data(),
                                              c.after.data(), fold.data(), c.direction));
}

TEST(TransformTensorEx, pads_and_folds) {
  Handle h;
  for (const Case& c : kCases)
    for (cudnnDataType_t type : kFloats)
      for (Layout layout : kLayouts)
        for (cudnnTensorFormat_t format : {CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC})
          for (Factors f : kFactors) {
            TransformDescriptor d;
            set(d, c, format);
            Tensor x(type, c.dims, layout), probe(type, {1});
            x.random(1);
            Array a(c.dims);
            a.v = x.values();
            bool back = c.direction == CUDNN_TRANSFORM_UNFOLD;
            Array want = back ? padded(folded(a, c.fold, true), c.before, c.after)
                              : folded(padded(a, c.before, c.after), c.fold, false);
            size_t bytes = 0;
            ASSERT_OK(cudnnInitTransformDest(d, x, probe, &bytes));
            EXPECT_EQ(bytes, want.v.size() * size_of(type));
            Tensor y(type, want.dims, format == CUDNN_TENSOR_NHWC ? Layout::nhwc : Layout::nchw);
            y.random(2);
            Values expected = blended(f.alpha, want.v, f.beta, y.values());
            ASSERT_OK(cudnnTransformTensorEx(h, d, Factor(f.alpha, type), x, x.data(), Factor(f.beta, type), probe,
                                             y.data()));
            expect_values(y, expected);
          }
}

// Padding makes channels a multiple of the vectors; folding and unfolding meet vectors on either side.
TEST(TransformTensorEx, vectors_of_channels) {
  struct Vectors {
    Case c;
    cudnnDataType_t from, to;
  };
  const Vectors kVectors[] = {
      {{{2, 3, 4, 6}, {0, 1, 0, 0}, {0, 4, 1, 0}, {1, 1}, CUDNN_TRANSFORM_FOLD}, CUDNN_DATA_INT8, CUDNN_DATA_INT8x4},
      {{{2, 8, 4, 6}, {0, -1, 0, 2}, {0, -2, 0, 0}, {1, 1}, CUDNN_TRANSFORM_FOLD},
       CUDNN_DATA_UINT8x4,
       CUDNN_DATA_UINT8},
      {{{2, 4, 4, 6}, {0, 0, 0, 0}, {0, 0, 0, 0}, {2, 3}, CUDNN_TRANSFORM_FOLD}, CUDNN_DATA_INT8x4, CUDNN_DATA_INT8x4},
      {{{1, 24, 2, 3}, {0, 1, 1, 0}, {0, 3, 0, 0}, {2, 3}, CUDNN_TRANSFORM_UNFOLD},
       CUDNN_DATA_INT8x4,
       CUDNN_DATA_INT8x4},
      {{{1, 32, 2, 3}, {0, 0, 0, 0}, {0, 0, 0, 0}, {1, 1}, CUDNN_TRANSFORM_FOLD},
       CUDNN_DATA_INT8x4,
       CUDNN_DATA_INT8x32}};
  Handle h;
  auto lanes = [](cudnnDataType_t t) {
    return t == CUDNN_DATA_INT8x32 ? 32 : t == CUDNN_DATA_INT8x4 || t == CUDNN_DATA_UINT8x4 ? 4 : 1;
  };
  auto place = [](const Sizes& dims, const Sizes& i, int v) {
    return (((i[0] * (dims[1] / v) + i[1] / v) * dims[2] + i[2]) * dims[3] + i[3]) * v + i[1] % v;
  };
  using Tensors = Descriptor<cudnnTensorDescriptor_t>;
  for (const auto& [c, from, to] : kVectors)
    for (Factors f : kFactors) {
      TransformDescriptor d;
      set(d, c, lanes(to) > 1 ? CUDNN_TENSOR_NCHW_VECT_C : CUDNN_TENSOR_NCHW);
      Array a(c.dims);
      for (size_t p = 0; p < a.v.size(); ++p) a.v[p] = static_cast<double>(p * 7 % 12);
      bool back = c.direction == CUDNN_TRANSFORM_UNFOLD;
      Array want = back ? padded(folded(a, c.fold, true), c.before, c.after)
                        : folded(padded(a, c.before, c.after), c.fold, false);
      Tensors x_desc(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor),
          y_desc(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
      auto describe = [&](cudnnTensorDescriptor_t t, cudnnDataType_t type, const Sizes& dims) {
        return cudnnSetTensorNdDescriptorEx(t, lanes(type) > 1 ? CUDNN_TENSOR_NCHW_VECT_C : CUDNN_TENSOR_NCHW, type, 4,
                                            dims.data());
      };
      ASSERT_OK(describe(x_desc, from, c.dims));
      ASSERT_OK(describe(y_desc, to, want.dims));
      Tensor x(CUDNN_DATA_INT8, {static_cast<int>(a.v.size())}), y(CUDNN_DATA_INT8, {static_cast<int>(want.v.size())});
      for (size_t p = 0; p < a.v.size(); ++p) x.set(place(c.dims, a.index(p), lanes(from)), a.v[p]);
      y.fill(4);
      float alpha = f.alpha > 0 ? 1 : 2, beta = static_cast<float>(f.beta);
      ASSERT_OK(cudnnTransformTensorEx(h, d, &alpha, x_desc, x.data(), &beta, y_desc, y.data()));
      for (size_t p = 0; p < want.v.size(); ++p)
        ASSERT_EQ(y.get(place(want.dims, want.index(p), lanes(to))), alpha * want.v[p] + beta * 4) << p;
    }
}

TEST(TransformFilter, folds) {
  Handle h;
  const Case& c = kCases[3];
  TransformDescriptor d;
  set(d, c, CUDNN_TENSOR_NCHW);
  Tensor x(CUDNN_DATA_FLOAT, c.dims);
  Array a(c.dims);
  a.v = x.random(1).values();
  Array want = folded(a, c.fold, false);
  Tensor y(CUDNN_DATA_FLOAT, want.dims);
  Descriptor<cudnnFilterDescriptor_t> from(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor),
      to(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor);
  ASSERT_OK(cudnnSetFilterNdDescriptor(from, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, c.dims.data()));
  ASSERT_OK(cudnnSetFilterNdDescriptor(to, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, want.dims.data()));
  float one = 1, zero = 0;
  ASSERT_OK(cudnnTransformFilter(h, d, &one, from, x.data(), &zero, to, y.data()));
  expect_values(y, want.v);
}

TEST(TransformTensor, descriptors_and_mistakes) {
  Handle h;
  TransformDescriptor d;
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 4, 4}), y(CUDNN_DATA_FLOAT, {2, 3, 4, 5});
  float one = 1, zero = 0;
  size_t bytes = 0;
  EXPECT_TRUE(is_bad_param(cudnnTransformTensor(h, &one, x, x.data(), &zero, y, y.data())));
  EXPECT_TRUE(is_bad_param(cudnnTransformTensor(h, &one, x, nullptr, &zero, x, x.data())));
  EXPECT_TRUE(is_bad_param(cudnnTransformTensor(nullptr, &one, x, x.data(), &zero, x, x.data())));
  EXPECT_TRUE(is_bad_param(cudnnInitTransformDest(d, x, y, &bytes)));  // not set
  uint32_t fold[] = {2, 3}, none[] = {0, 1};
  EXPECT_TRUE(is_bad_param(
      cudnnSetTensorTransformDescriptor(d, 4, CUDNN_TENSOR_NCHW, nullptr, nullptr, none, CUDNN_TRANSFORM_FOLD)));
  EXPECT_TRUE(is_bad_param(
      cudnnSetTensorTransformDescriptor(d, 9, CUDNN_TENSOR_NCHW, nullptr, nullptr, fold, CUDNN_TRANSFORM_FOLD)));
  int32_t before[] = {1, 2, 3, 4};
  ASSERT_OK(cudnnSetTensorTransformDescriptor(d, 4, CUDNN_TENSOR_NHWC, before, nullptr, fold, CUDNN_TRANSFORM_UNFOLD));
  cudnnTensorFormat_t format;
  cudnnFoldingDirection_t direction;
  int32_t b[4], a[4];
  uint32_t f[2];
  ASSERT_OK(cudnnGetTensorTransformDescriptor(d, 4, &format, b, a, f, &direction));
  EXPECT_EQ(format, CUDNN_TENSOR_NHWC);
  EXPECT_EQ(direction, CUDNN_TRANSFORM_UNFOLD);
  EXPECT_EQ(b[3], 4);
  EXPECT_EQ(a[0], 0);
  EXPECT_EQ(f[1], 3u);
  EXPECT_TRUE(is_bad_param(cudnnInitTransformDest(d, x, y, &bytes)));  // 3 channels do not unfold by 6
}

}  // namespace
