// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

using namespace client;

namespace {

// Element of `t` for the element `i` of a larger tensor; sizes of 1 repeat.
double broadcast(const Tensor& t, const Tensor& target, int64_t i) {
  Sizes x = target.index(i);
  for (size_t d = 0; d < x.size(); ++d)
    if (t.dims()[d] == 1) x[d] = 0;
  return t.get(t.position(x));
}

TEST(SetTensor, every_type_and_layout) {
  Handle h;
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16,
                               CUDNN_DATA_INT8, CUDNN_DATA_INT32, CUDNN_DATA_UINT8, CUDNN_DATA_INT64})
    for (Layout layout : kLayouts) {
      Tensor y(type, {2, 3, 5, 4}, layout), value(type, {1});
      value.set(0, 7);
      ASSERT_OK(cudnnSetTensor(h, y, y.data(), value.on_host()));
      expect_values(y, Values(120, 7));
    }
  Tensor y(CUDNN_DATA_INT32, {3}), value(CUDNN_DATA_INT32, {1});
  value.set(0, 2147483647);
  ASSERT_OK(cudnnSetTensor(h, y, y.data(), value.on_host()));
  EXPECT_EQ(y.values(), Values(3, 2147483647));
}

// A value of a vectorised type has a number for each lane.
TEST(SetTensor, vectors_of_channels) {
  Handle h;
  Descriptor<cudnnTensorDescriptor_t> d(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
  ASSERT_OK(cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW_VECT_C, CUDNN_DATA_INT8x4, 2, 8, 3, 1));
  Tensor y(CUDNN_DATA_INT8, {2, 2, 3, 1, 4});
  const int8_t value[] = {1, -2, 3, 127};
  ASSERT_OK(cudnnSetTensor(h, d, y.data(), value));
  for (int64_t i = 0; i < y.count(); ++i) ASSERT_EQ(y.get(i), value[i % 4]);
}

TEST(ScaleTensor, floats_and_integers) {
  Handle h;
  for (cudnnDataType_t type : kFloats)
    for (Layout layout : kLayouts) {
      Tensor y(type, {2, 3, 5, 4}, layout);
      Values want = blended(0.75, y.random(1).values(), 0, {});
      ASSERT_OK(cudnnScaleTensor(h, y, y.data(), Factor(0.75, type)));
      expect_values(y, want);
    }
  Tensor y(CUDNN_DATA_INT8, {2, 3, 1, 1});
  y.fill(40);
  ASSERT_OK(cudnnScaleTensor(h, y, y.data(), Factor(5, y.type())));
  EXPECT_EQ(y.values(), Values(6, 127));  // saturated
}

TEST(AddTensor, broadcasts) {
  Handle h;
  for (cudnnDataType_t type : kFloats)
    for (Layout layout : kLayouts)
      for (const Sizes& dims : {Sizes{1, 3, 1, 1}, {2, 3, 5, 4}, {1, 1, 5, 4}, {1, 1, 1, 1}, {2, 1, 1, 4}})
        for (Factors f : kFactors) {
          Tensor a(type, dims, layout), c(type, {2, 3, 5, 4}, layout);
          a.random(1), c.random(2);
          Values repeated;
          for (int64_t i = 0; i < c.count(); ++i) repeated.push_back(broadcast(a, c, i));
          Values want = blended(f.alpha, repeated, f.beta, c.values());
          ASSERT_OK(cudnnAddTensor(h, Factor(f.alpha, type), a, a.data(), Factor(f.beta, type), c, c.data()));
          expect_values(c, want);
        }
}

TEST(AddTensor, five_dimensions) {
  Handle h;
  Tensor a(CUDNN_DATA_FLOAT, {1, 3, 1, 1, 1}), c(CUDNN_DATA_FLOAT, {2, 3, 2, 2, 2});
  a.random(1), c.random(2);
  Values want = c.values();
  for (size_t i = 0; i < want.size(); ++i) want[i] += broadcast(a, c, static_cast<int64_t>(i));
  float one = 1;
  ASSERT_OK(cudnnAddTensor(h, &one, a, a.data(), &one, c, c.data()));
  expect_values(c, want);
}

TEST(AddTensor, mistakes) {
  Handle h;
  Tensor a(CUDNN_DATA_FLOAT, {1, 4, 1, 1}), b(CUDNN_DATA_FLOAT, {3}), c(CUDNN_DATA_FLOAT, {2, 3, 5, 4});
  float one = 1;
  EXPECT_TRUE(is_bad_param(cudnnAddTensor(h, &one, a, a.data(), &one, c, c.data())));
  EXPECT_TRUE(is_bad_param(cudnnAddTensor(h, &one, b, b.data(), &one, c, c.data())));
  EXPECT_TRUE(is_bad_param(cudnnAddTensor(nullptr, &one, c, c.data(), &one, c, c.data())));
  EXPECT_TRUE(is_bad_param(cudnnAddTensor(h, &one, nullptr, c.data(), &one, c, c.data())));
  EXPECT_TRUE(is_bad_param(cudnnAddTensor(h, &one, c, nullptr, &one, c, c.data())));
  EXPECT_TRUE(is_bad_param(cudnnSetTensor(h, c, c.data(), nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnScaleTensor(h, c, nullptr, &one)));
}

struct OpDescriptor : Descriptor<cudnnOpTensorDescriptor_t> {
  OpDescriptor() : Descriptor(cudnnCreateOpTensorDescriptor, cudnnDestroyOpTensorDescriptor) {}
};

double apply(cudnnOpTensorOp_t op, double a, double b) {
  switch (op) {
    case CUDNN_OP_TENSOR_MUL:
      return a * b;
    case CUDNN_OP_TENSOR_MIN:
      return std::fmin(a, b);
    case CUDNN_OP_TENSOR_MAX:
      return std::fmax(a, b);
    case CUDNN_OP_TENSOR_SQRT:
      return std::sqrt(a);
    case CUDNN_OP_TENSOR_NOT:
      return 1 - a;
    default:
      return a + b;
  }
}

TEST(OpTensor, every_operation) {
  Handle h;
  for (cudnnOpTensorOp_t op : {CUDNN_OP_TENSOR_ADD, CUDNN_OP_TENSOR_MUL, CUDNN_OP_TENSOR_MIN, CUDNN_OP_TENSOR_MAX,
                               CUDNN_OP_TENSOR_SQRT, CUDNN_OP_TENSOR_NOT})
    for (cudnnDataType_t type : kFloats)
      for (const Sizes& dims : {Sizes{2, 3, 5, 4}, {1, 3, 1, 1}})
        for (double beta : {0.0, 0.5}) {
          Tensor a(type, {2, 3, 5, 4}), b(type, dims), c(type, a.dims(), Layout::nhwc);
          a.random(1), b.random(2), c.random(3);
          if (op == CUDNN_OP_TENSOR_SQRT)
            for (int64_t i = 0; i < a.count(); ++i) a.set(i, std::fabs(a.get(i)));
          Values computed;
          for (int64_t i = 0; i < c.count(); ++i)
            computed.push_back(apply(op, 0.5 * a.get(i), op == CUDNN_OP_TENSOR_SQRT ? 0 : -2 * broadcast(b, c, i)));
          Values want = blended(1, computed, beta, c.values());
          OpDescriptor d;
          cudnnDataType_t compute = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
          ASSERT_OK(cudnnSetOpTensorDescriptor(d, op, compute, CUDNN_NOT_PROPAGATE_NAN));
          bool two = op < CUDNN_OP_TENSOR_SQRT;
          ASSERT_OK(cudnnOpTensor(h, d, Factor(0.5, type), a, a.data(), Factor(-2, type),
                                  two ? b : static_cast<cudnnTensorDescriptor_t>(nullptr), two ? b.data() : nullptr,
                                  Factor(beta, type), c, c.data()));
          expect_values(c, want);
        }
}

TEST(OpTensor, nan_and_in_place) {
  Handle h;
  double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor a(CUDNN_DATA_FLOAT, {1, 1, 1, 4}), b(CUDNN_DATA_FLOAT, a.dims());
  float one = 1, zero = 0;
  OpDescriptor d;
  for (auto [option, want] : {std::pair{CUDNN_NOT_PROPAGATE_NAN, Values{2, 1, nan, 4}},
                              std::pair{CUDNN_PROPAGATE_NAN, Values{nan, nan, nan, 4}}}) {
    for (int i = 0; i < 4; ++i) a.set(i, Values{nan, 1, nan, 3}[static_cast<size_t>(i)]);
    for (int i = 0; i < 4; ++i) b.set(i, Values{2, nan, nan, 4}[static_cast<size_t>(i)]);
    ASSERT_OK(cudnnSetOpTensorDescriptor(d, CUDNN_OP_TENSOR_MAX, CUDNN_DATA_FLOAT, option));
    ASSERT_OK(cudnnOpTensor(h, d, &one, a, a.data(), &one, b, b.data(), &zero, a, a.data()));
    expect_values(a, want);
  }
  cudnnOpTensorOp_t op;
  cudnnDataType_t compute;
  cudnnNanPropagation_t option;
  ASSERT_OK(cudnnGetOpTensorDescriptor(d, &op, &compute, &option));
  EXPECT_EQ(op, CUDNN_OP_TENSOR_MAX);
  EXPECT_EQ(compute, CUDNN_DATA_FLOAT);
  EXPECT_EQ(option, CUDNN_PROPAGATE_NAN);
}

TEST(OpTensor, mistakes) {
  Handle h;
  Tensor a(CUDNN_DATA_FLOAT, {2, 3, 5, 4}), wrong(CUDNN_DATA_FLOAT, {2, 2, 5, 4});
  float one = 1, zero = 0;
  OpDescriptor d;
  EXPECT_TRUE(is_bad_param(
      cudnnSetOpTensorDescriptor(d, static_cast<cudnnOpTensorOp_t>(9), CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN)));
  EXPECT_TRUE(is_bad_param(cudnnSetOpTensorDescriptor(d, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_INT8, CUDNN_PROPAGATE_NAN)));
  EXPECT_TRUE(
      is_bad_param(cudnnSetOpTensorDescriptor(nullptr, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN)));
  EXPECT_TRUE(is_bad_param(cudnnOpTensor(h, d, &one, a, a.data(), &one, wrong, wrong.data(), &zero, a, a.data())));
  EXPECT_TRUE(is_bad_param(cudnnOpTensor(h, d, &one, a, a.data(), &one, nullptr, nullptr, &zero, a, a.data())));
  EXPECT_TRUE(is_bad_param(cudnnOpTensor(h, nullptr, &one, a, a.data(), &one, a, a.data(), &zero, a, a.data())));
}

}  // namespace
