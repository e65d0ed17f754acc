// SPDX-License-Identifier: Apache-2.0
// Operations of the graph interface, one small graph each, against plain loops: pointwise, reductions, products,
// convolutions, pooling.
#include <algorithm>
#include <array>

#include "graph_client.hpp"

namespace {

using namespace client;

// --- pointwise

struct Unary {
  cudnnPointwiseMode_t mode;
  double (*f)(double);
};

double gelu(double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2)); }
double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Unary kUnary[] = {
    {CUDNN_POINTWISE_SQRT, [](double x) { return std::sqrt(x); }},
    {CUDNN_POINTWISE_ABS, [](double x) { return std::fabs(x); }},
    {CUDNN_POINTWISE_CEIL, [](double x) { return std::ceil(x); }},
    {CUDNN_POINTWISE_COS, [](double x) { return std::cos(x); }},
    {CUDNN_POINTWISE_EXP, [](double x) { return std::exp(x); }},
    {CUDNN_POINTWISE_FLOOR, [](double x) { return std::floor(x); }},
    {CUDNN_POINTWISE_LOG, [](double x) { return std::log(x); }},
    {CUDNN_POINTWISE_NEG, [](double x) { return -x; }},
    {CUDNN_POINTWISE_RSQRT, [](double x) { return 1 / std::sqrt(x); }},
    {CUDNN_POINTWISE_SIN, [](double x) { return std::sin(x); }},
    {CUDNN_POINTWISE_TAN, [](double x) { return std::tan(x); }},
    {CUDNN_POINTWISE_ERF, [](double x) { return std::erf(x); }},
    {CUDNN_POINTWISE_IDENTITY, [](double x) { return x; }},
    {CUDNN_POINTWISE_RECIPROCAL, [](double x) { return 1 / x; }},
    {CUDNN_POINTWISE_RELU_FWD, [](double x) { return std::max(x, 0.0); }},
    {CUDNN_POINTWISE_TANH_FWD, [](double x) { return std::tanh(x); }},
    {CUDNN_POINTWISE_SIGMOID_FWD, sigmoid},
    {CUDNN_POINTWISE_ELU_FWD, [](double x) { return x > 0 ? x : std::expm1(x); }},
    {CUDNN_POINTWISE_GELU_FWD, gelu},
    {CUDNN_POINTWISE_SOFTPLUS_FWD, [](double x) { return std::log1p(std::exp(x)); }},
    {CUDNN_POINTWISE_SWISH_FWD, [](double x) { return x * sigmoid(x); }},
    {CUDNN_POINTWISE_GELU_APPROX_TANH_FWD, gelu_tanh},
};

struct Binary {
  cudnnPointwiseMode_t mode;
  double (*f)(double, double);
};

const Binary kBinary[] = {
    {CUDNN_POINTWISE_ADD, [](double x, double b) { return x + b; }},
    {CUDNN_POINTWISE_MUL, [](double x, double b) { return x * b; }},
    {CUDNN_POINTWISE_MIN, [](double x, double b) { return std::min(x, b); }},
    {CUDNN_POINTWISE_MAX, [](double x, double b) { return std::max(x, b); }},
    {CUDNN_POINTWISE_ADD_SQUARE, [](double x, double b) { return x + b * b; }},
    {CUDNN_POINTWISE_DIV, [](double x, double b) { return x / b; }},
    {CUDNN_POINTWISE_MOD, [](double x, double b) { return std::fmod(x, b); }},
    {CUDNN_POINTWISE_POW, [](double x, double b) { return std::pow(x, b); }},
    {CUDNN_POINTWISE_SUB, [](double x, double b) { return x - b; }},
    {CUDNN_POINTWISE_ATAN2, [](double x, double b) { return std::atan2(x, b); }},
    {CUDNN_POINTWISE_FLOOR_MOD, [](double x, double b) { return x - std::floor(x / b) * b; }},
};

const Binary kComparisons[] = {
    {CUDNN_POINTWISE_CMP_EQ, [](double x, double b) { return x == b ? 1.0 : 0; }},
    {CUDNN_POINTWISE_CMP_NEQ, [](double x, double b) { return x != b ? 1.0 : 0; }},
    {CUDNN_POINTWISE_CMP_GT, [](double x, double b) { return x > b ? 1.0 : 0; }},
    {CUDNN_POINTWISE_CMP_GE, [](double x, double b) { return x >= b ? 1.0 : 0; }},
    {CUDNN_POINTWISE_CMP_LT, [](double x, double b) { return x < b ? 1.0 : 0; }},
    {CUDNN_POINTWISE_CMP_LE, [](double x, double b) { return x <= b ? 1.0 : 0; }},
    {CUDNN_POINTWISE_LOGICAL_AND, [](double x, double b) { return x != 0 && b != 0 ? 1.0 : 0; }},
    {CUDNN_POINTWISE_LOGICAL_OR, [](double x, double b) { return x != 0 || b != 0 ? 1.0 : 0; }},
};

// The values -2 to 2 in steps of a quarter, or positive ones.
Values ramp(bool positive) {
  Values v;
  for (int i = 0; i < 17; ++i) v.push_back((i - 8) * 0.25 + (positive ? 2.25 : 0));
  return v;
}

TEST(Operations, PointwiseOfOne) {
  for (const Unary& u : kUnary) {
    SCOPED_TRACE(static_cast<int>(u.mode));
    for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
      bool positive = u.mode == CUDNN_POINTWISE_SQRT || u.mode == CUDNN_POINTWISE_LOG ||
                      u.mode == CUDNN_POINTWISE_RSQRT || u.mode == CUDNN_POINTWISE_RECIPROCAL;
      Net net;
      GraphTensor *x = net.input({1, 17, 1}, ramp(positive), type), *y = net.output({1, 17, 1}, type);
      net.pointwise(u.mode, x, nullptr, y, nullptr, type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT);
      net.run();
      Values wanted;
      for (double v : x->values()) wanted.push_back(u.f(v));
      expect_near(wanted, y->values(), std::max(2e-6, 2 * epsilon_of(type)));
    }
  }
}

TEST(Operations, PointwiseOfTwoBroadcasts) {
  for (const Binary& o : kBinary) {
    SCOPED_TRACE(static_cast<int>(o.mode));
    Net net;
    GraphTensor *x = net.input({2, 17}, ramp(o.mode == CUDNN_POINTWISE_POW)),
                *b = net.input({1, 17}, {0.5, 1.25, -1.5, 2, 0.75}), *y = net.output({2, 17}, CUDNN_DATA_FLOAT, {1, 2});
    net.pointwise(o.mode, x, b, y);
    net.run();
    Values wanted, left = x->values(), right = b->values();
    for (size_t i = 0; i < left.size(); ++i) wanted.push_back(o.f(left[i], right[i % 17]));
    expect_near(wanted, y->values());
  }
}

TEST(Operations, ComparisonsFeedASelection) {
  for (const Binary& o : kComparisons) {
    SCOPED_TRACE(static_cast<int>(o.mode));
    Net net;
    GraphTensor *x = net.input({17}, ramp(false)), *b = net.input({17}, {0, 0.25, -1}),
                *t = net.hidden({17}, CUDNN_DATA_BOOLEAN), *y = net.output({17});
    net.pointwise(o.mode, x, b, t, nullptr, CUDNN_DATA_BOOLEAN);
    net.pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, b, y, t);
    net.run();
    Values wanted, left = x->values(), right = b->values();
    for (size_t i = 0; i < 17; ++i) wanted.push_back(o.f(left[i], right[i]) != 0 ? left[i] : right[i]);
    expect_near(wanted, y->values());
  }
}

TEST(Operations, PointwiseGradients) {
  for (int i = 0; i < 8; ++i) {
    const Unary& forward = kUnary[14 + i];
    auto mode = static_cast<cudnnPointwiseMode_t>(forward.mode + 100);
    SCOPED_TRACE(static_cast<int>(mode));
    Net net;
    Values at = ramp(false);
    at[8] = 0.125;  // not where relu has a corner
    GraphTensor *x = net.input({17}, at), *dy = net.input({17}, {1, -2, 0.5}), *dx = net.output({17});
    Piece& p = net.part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    p.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector{mode});
    p.type(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT).finalize();
    net.operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                                                                 {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy},
                                                                 {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx}})
        .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, {p})
        .finalize();
    net.run();
    Values wanted, grad = dy->values();
    for (size_t k = 0; k < 17; ++k)
      wanted.push_back(grad[k] * (forward.f(at[k] + 1e-5) - forward.f(at[k] - 1e-5)) / 2e-5);
    expect_near(wanted, dx->values());
  }
}

TEST(Operations, PointwiseOptions) {
  Net net;
  GraphTensor *x = net.input({4, 5}, ramp(false)), *b = net.scalar(3, CUDNN_DATA_FLOAT, {1, 1}),
              *sum = net.hidden({4, 5}), *clipped = net.output({4, 5}), *index = net.output({4, 5}, CUDNN_DATA_INT32);
  Piece& add = net.part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector{CUDNN_POINTWISE_ADD});
  add.type(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT).finalize();
  net.operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                                                               {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b},
                                                               {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, sum}})
      .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, {add})
      .set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, std::vector{2.0f})
      .set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_DOUBLE, std::vector{-0.5})
      .finalize();
  Piece& relu = net.part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  relu.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector{CUDNN_POINTWISE_RELU_FWD});
  relu.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, CUDNN_TYPE_DOUBLE, std::vector{-1.0});
  relu.set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, CUDNN_TYPE_DOUBLE, std::vector{1.5});
  relu.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, CUDNN_TYPE_DOUBLE, std::vector{0.1});
  relu.type(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT).finalize();
  net.operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sum}, {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, clipped}})
      .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, {relu})
      .finalize();
  Piece& gen = net.part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  gen.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector{CUDNN_POINTWISE_GEN_INDEX});
  gen.ints(CUDNN_ATTR_POINTWISE_AXIS, {0}).type(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_INT32).finalize();
  net.operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x}, {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, index}})
      .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, {gen})
      .finalize();
  net.run();
  Values wanted, rows;
  for (double v : x->values()) {
    double s = 2 * v - 1.5;
    wanted.push_back(s < -1 ? -1 + 0.1 * (s + 1) : std::min(s, 1.5));
    rows.push_back(static_cast<double>(rows.size() / 5));
  }
  expect_near(wanted, clipped->values());
  expect_near(rows, index->values());
}

TEST(Operations, ConstantsNeedNoPointer) {
  Net net;
  GraphTensor *x = net.random({3, 4}), *y = net.output({3, 4});
  float half = 0.5f;
  GraphTensor* c = net.add(CUDNN_DATA_FLOAT, {1, 1}, {1, 1}, false, true, false);
  c->desc.set(CUDNN_ATTR_TENSOR_CONSTANT_VALUE, CUDNN_TYPE_VOID_PTR, std::vector<void*>{&half}).finalize();
  half = 7;          // copied when it was set
  c->hidden = true;  // stays out of the variant pack
  net.pointwise(CUDNN_POINTWISE_MUL, x, c, y);
  net.run();
  Values wanted = x->values();
  for (double& v : wanted) v *= 0.5;
  expect_near(wanted, y->values());
}

// --- reductions

void reduce(Net& net, cudnnReduceTensorOp_t mode, const Roles& roles, bool deterministic = false) {
  Piece& p = net.part(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  p.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, std::vector{mode});
  p.type(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  p.flag(CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC, deterministic).finalize();
  net.operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, roles)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, {p})
      .finalize();
}

TEST(Operations, Reductions) {
  struct Mode {
    cudnnReduceTensorOp_t mode;
    double start;
    double (*step)(double, double);
    double (*end)(double);
  };
  auto same = [](double v) { return v; };
  const Mode kModes[] = {
      {CUDNN_REDUCE_TENSOR_ADD, 0, [](double a, double v) { return a + v; }, same},
      {CUDNN_REDUCE_TENSOR_MUL, 1, [](double a, double v) { return a * v; }, same},
      {CUDNN_REDUCE_TENSOR_MIN, 9, [](double a, double v) { return std::min(a, v); }, same},
      {CUDNN_REDUCE_TENSOR_MAX, -9, [](double a, double v) { return std::max(a, v); }, same},
      {CUDNN_REDUCE_TENSOR_AMAX, 0, [](double a, double v) { return std::max(a, std::fabs(v)); }, same},
      {CUDNN_REDUCE_TENSOR_AVG, 0, [](double a, double v) { return a + v; }, [](double v) { return v / 12; }},
      {CUDNN_REDUCE_TENSOR_NORM1, 0, [](double a, double v) { return a + std::fabs(v); }, same},
      {CUDNN_REDUCE_TENSOR_NORM2, 0, [](double a, double v) { return a + v * v; },
       [](double v) { return std::sqrt(v); }},
      {CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS, 1, [](double a, double v) { return v == 0 ? a : a * v; }, same},
  };
  for (const Mode& m : kModes) {
    SCOPED_TRACE(static_cast<int>(m.mode));
    Net net;
    GraphTensor *x = net.input({3, 5, 4}, ramp(false)), *y = net.output({1, 5, 1});
    reduce(net, m.mode, {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y}}, true);
    net.run();
    Values wanted(5, m.start), v = x->values();
    for (size_t i = 0; i < v.size(); ++i) wanted[i / 4 % 5] = m.step(wanted[i / 4 % 5], v[i]);
    for (double& w : wanted) w = m.end(w);
    expect_near(wanted, y->values());
  }
}

TEST(Operations, ReductionByGroups) {
  Net net;
  GraphTensor *x = net.random({1, 9, 3}), *offsets = net.input({4, 1, 1}, {0, 2, 2, 7}, CUDNN_DATA_INT32),
              *y = net.output({4, 1, 3});
  reduce(net, CUDNN_REDUCE_TENSOR_ADD,
         {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x},
          {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y},
          {CUDNN_ATTR_OPERATION_REDUCTION_GROUP_OFFSET_DESC, offsets}});
  net.run();
  Values wanted(12, 0), v = x->values();
  const int kGroup[] = {0, 0, 2, 2, 2, 2, 2, 3, 3};
  for (size_t i = 0; i < 27; ++i) wanted[static_cast<size_t>(kGroup[i / 3]) * 3 + i % 3] += v[i];
  expect_near(wanted, y->values());
}

// Clients describe the maximum before a sink like its input.
TEST(Operations, ReductionWhoseReaderTellsItsSizes) {
  Net net;
  GraphTensor *x = net.random({2, 3, 4, 5}), *max = net.hidden({2, 3, 4, 5}), *sink = net.random({1, 3, 1, 1}),
              *y = net.output({2, 3, 4, 1});
  reduce(net, CUDNN_REDUCE_TENSOR_MAX,
         {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x}, {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, max}});
  net.pointwise(CUDNN_POINTWISE_MAX, max, sink, y);
  net.run();
  Values wanted, v = x->values(), s = sink->values();
  for (size_t i = 0; i < 24; ++i) wanted.push_back(std::max(*std::max_element(&v[i * 5], &v[i * 5] + 5), s[i / 4 % 3]));
  expect_near(wanted, y->values());
}

// --- products

Piece& matmul(Net& net, const Roles& roles, double padding = 0) {
  Piece& p = net.part(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  p.type(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  if (padding != 0) p.set(CUDNN_ATTR_MATMUL_PADDING_VALUE, CUDNN_TYPE_DOUBLE, std::vector{padding});
  p.finalize();
  return net.operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, roles)
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, {p})
      .finalize();
}

TEST(Operations, MatmulSharesHeads) {
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    Net net;
    GraphTensor *a = net.random({2, 4, 3, 5}, type), *b = net.random({1, 2, 5, 6}, type, {60, 30, 1, 5}),
                *c = net.output({2, 4, 3, 6});
    matmul(net, {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                 {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
                 {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c}});
    net.run();
    Values wanted, x = a->values(), y = b->values();
    for (size_t i = 0; i < 2 * 4 * 3 * 6; ++i) {
      size_t n = i % 6, m = i / 6 % 3, h = i / 18 % 4, batch = i / 72;
      double sum = 0;
      for (size_t k = 0; k < 5; ++k) sum += x[((batch * 4 + h) * 3 + m) * 5 + k] * y[(h / 2 * 5 + k) * 6 + n];
      wanted.push_back(sum);
    }
    expect_near(wanted, c->values());
  }
}

TEST(Operations, MatmulWithSizesOfItsOwn) {
  Net net;
  GraphTensor *a = net.random({2, 4, 3}), *b = net.random({2, 3, 5}), *c = net.output({2, 4, 5}),
              *m = net.input({2, 1, 1}, {4, 2}, CUDNN_DATA_INT32), *n = net.input({2, 1, 1}, {3, 5}, CUDNN_DATA_INT32),
              *k = net.input({2, 1, 1}, {1, 3}, CUDNN_DATA_INT32);
  matmul(net,
         {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
          {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
          {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c},
          {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, m},
          {CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, n},
          {CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, k}},
         -3);
  net.run();
  Values wanted, x = a->values(), y = b->values();
  const size_t kM[] = {4, 2}, kN[] = {3, 5}, kK[] = {1, 3};
  for (size_t i = 0; i < 40; ++i) {
    size_t col = i % 5, row = i / 5 % 4, batch = i / 20;
    double sum = 0;
    for (size_t t = 0; t < kK[batch]; ++t) sum += x[(batch * 4 + row) * 3 + t] * y[(batch * 3 + t) * 5 + col];
    wanted.push_back(row < kM[batch] && col < kN[batch] ? sum : -3);
  }
  expect_near(wanted, c->values());
}

TEST(Operations, ProductsOfExperts) {
  Net net;
  GraphTensor *token = net.random({1, 6, 3}), *weight = net.random({2, 3, 4}),
              *offset = net.input({2, 1, 1}, {0, 4}, CUDNN_DATA_INT32), *y = net.output({1, 6, 4}),
              *dy = net.random({1, 6, 4}), *dweight = net.output({2, 3, 4}, CUDNN_DATA_FLOAT, {12, 1, 3});
  net.operation(CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC, token},
                 {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC, weight},
                 {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC, offset},
                 {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC, y}})
      .set(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE, CUDNN_TYPE_MOE_GROUPED_MATMUL_MODE,
           std::vector{CUDNN_MOE_GROUPED_MATMUL_MODE_NONE})
      .type(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MATH_PREC, CUDNN_DATA_FLOAT)
      .finalize();
  net.operation(CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_BWD_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_TOKEN_DESC, token},
                 {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_DWEIGHT_DESC, dweight},
                 {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_FIRST_TOKEN_OFFSET_DESC, offset},
                 {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_DOUTPUT_DESC, dy}})
      .finalize();
  net.run();
  Values t = token->values(), w = weight->values(), g = dy->values(), wanted(24, 0), dw(24, 0);
  for (size_t row = 0; row < 6; ++row)
    for (size_t k = 0; k < 3; ++k)
      for (size_t n = 0; n < 4; ++n) {
        size_t expert = row < 4 ? 0 : 1;
        wanted[row * 4 + n] += t[row * 3 + k] * w[(expert * 3 + k) * 4 + n];
        dw[(expert * 3 + k) * 4 + n] += t[row * 3 + k] * g[row * 4 + n];
      }
  expect_near(wanted, y->values());
  expect_near(dw, dweight->values());
}

}  // namespace
