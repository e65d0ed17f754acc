// SPDX-License-Identifier: Apache-2.0
// Weights of few bits, integers with a scale factor for each block, in front of products and of experts' products.
#include <algorithm>

#include "graph_client.hpp"

namespace {

using namespace client;

bool four_bits(cudnnDataType_t t) { return t == CUDNN_DATA_INT4 || t == CUDNN_DATA_UINT4; }

// Weights [experts, k, n] whose blocks of `block` elements lie along k.
struct Case {
  cudnnDataType_t weight, scale, token;
  int64_t experts, k, n, block;
  bool transposed;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (cudnnDataType_t weight : {CUDNN_DATA_INT4, CUDNN_DATA_UINT4, CUDNN_DATA_INT8, CUDNN_DATA_UINT8})
    for (cudnnDataType_t scale : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16})
      for (bool transposed : {false, true})
        all.push_back({weight, scale, scale == CUDNN_DATA_HALF ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16, 1, 64, 24, 16,
                       transposed});
  for (bool transposed : {false, true}) {
    all.push_back({CUDNN_DATA_INT4, CUDNN_DATA_HALF, CUDNN_DATA_HALF, 1, 70, 24, 32, transposed});  // the last is short
    all.push_back({CUDNN_DATA_UINT4, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, 1, 20, 6, 128, transposed});  // the only one
    all.push_back({CUDNN_DATA_INT4, CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16, 1, 128, 130, 64, transposed});
  }
  return choices(all, {all[0], all[9], all[all.size() - 6], all.back()});
}

struct Weights {
  Weights(Net& net, const Case& c)
      : c(c),
        blocks((c.k + c.block - 1) / c.block),
        narrow(net.add(c.weight, {c.experts, c.k, c.n}, strides(c.k), false, false)),
        scale(net.random({c.experts, blocks, c.n}, c.scale, strides(blocks))),
        wide(net.add(c.token, {c.experts, c.k, c.n}, strides(c.k), true, false)),
        scales(scale->values()) {
    for (int64_t i = 0; i < c.experts * c.k * c.n; ++i) put(narrow->offset(i), number(i));
    net.operation(CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC, narrow},
                   {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC, scale},
                   {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC, wide}})
        .type(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE, CUDNN_TYPE_INT32,
             std::vector{static_cast<int32_t>(c.block), 1})
        .finalize();
  }

  double at(int64_t expert, int64_t k, int64_t n) const {
    return number((expert * c.k + k) * c.n + n) *
           scales[static_cast<size_t>((expert * blocks + k / c.block) * c.n + n)];
  }
  Ints strides(int64_t rows) const { return c.transposed ? Ints{rows * c.n, 1, rows} : Ints{rows * c.n, c.n, 1}; }
  // Every value of the type appears.
  int number(int64_t i) const {
    auto v = static_cast<int>(i * 7 % 256);
    switch (c.weight) {
      case CUDNN_DATA_INT4:
        return v % 16 - 8;
      case CUDNN_DATA_UINT4:
        return v % 16;
      case CUDNN_DATA_INT8:
        return v - 128;
      default:
        return v;
    }
  }
  void put(int64_t offset, int value) {
    auto bits = static_cast<unsigned>(value);
    if (!four_bits(c.weight)) {
      narrow->data()[offset] = static_cast<unsigned char>(bits);
      return;
    }
    unsigned char& byte = narrow->data()[offset / 2];
    unsigned shift = offset % 2 * 4;  // low half first
    byte = static_cast<unsigned char>((byte & ~(15U << shift)) | (bits & 15U) << shift);
  }

  Case c;
  int64_t blocks;  // along k
  GraphTensor *narrow, *scale, *wide;
  Values scales;
};

// Weights are rounded to the tokens' type on the way, results on the way out.
double tolerance_of(cudnnDataType_t t) { return t == CUDNN_DATA_FLOAT ? 1e-5 : t == CUDNN_DATA_HALF ? 0x1p-9 : 0x1p-6; }

TEST(IntegerWeights, InFrontOfProducts) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::Message() << "weight " << c.weight << " scale " << c.scale << " k " << c.k << " block "
                                    << c.block << " transposed " << c.transposed);
    constexpr int64_t kRows = 5;
    Net net;
    GraphTensor *a = net.random({1, kRows, c.k}, c.token), *y = net.output({1, kRows, c.n}, c.token);
    Weights w(net, c);
    Piece& how = net.part(CUDNN_BACKEND_MATMUL_DESCRIPTOR).type(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finalize();
    net.operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
                                                              {CUDNN_ATTR_OPERATION_MATMUL_BDESC, w.wide},
                                                              {CUDNN_ATTR_OPERATION_MATMUL_CDESC, y}})
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, {how})
        .finalize();
    net.run();
    Values wanted, tokens = a->values();
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t n = 0; n < c.n; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < c.k; ++k) sum += tokens[static_cast<size_t>(r * c.k + k)] * w.at(0, k, n);
        wanted.push_back(sum);
      }
    expect_near(wanted, y->values(), tolerance_of(c.token));
  }
}

TEST(IntegerWeights, InFrontOfExperts) {
  for (Case c : cases()) {
    c.experts = 3;
    SCOPED_TRACE(testing::Message() << "weight " << c.weight << " scale " << c.scale << " k " << c.k << " block "
                                    << c.block << " transposed " << c.transposed);
    constexpr int64_t kTokens = 9;
    Net net;
    GraphTensor *token = net.random({1, kTokens, c.k}, c.token), *y = net.output({1, kTokens, c.n}, c.token),
                *offset = net.input({3, 1, 1}, {0, 4, 4}, CUDNN_DATA_INT32);
    Weights w(net, c);
    net.operation(CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC, token},
                   {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC, w.wide},
                   {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC, offset},
                   {CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC, y}})
        .set(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE, CUDNN_TYPE_MOE_GROUPED_MATMUL_MODE,
             std::vector{CUDNN_MOE_GROUPED_MATMUL_MODE_NONE})
        .type(CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MATH_PREC, CUDNN_DATA_FLOAT)
        .finalize();
    net.run();
    Values wanted, tokens = token->values();
    for (int64_t t = 0; t < kTokens; ++t)
      for (int64_t n = 0; n < c.n; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < c.k; ++k) sum += tokens[static_cast<size_t>(t * c.k + k)] * w.at(t < 4 ? 0 : 2, k, n);
        wanted.push_back(sum);
      }
    expect_near(wanted, y->values(), tolerance_of(c.token));
  }
}

}  // namespace
