// SPDX-License-Identifier: Apache-2.0
// The client of cuBLASLt against a library that multiplies on the host (tests/fake_cublaslt), by the oracle's values.
#include <dlfcn.h>
#include <gtest/gtest.h>
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

#include "cublaslt/plan.hpp"
#include "graph/text.hpp"
#include "harness/compare.hpp"

namespace {

using namespace tsr;

cublaslt::Description described(const std::string& text) { return cublaslt::from_graph(parse_graph(text)); }

class CublasLt : public testing::Test {
 protected:
  CublasLt() : library(TESSERA_FAKE_CUBLASLT), handle(library) {}

  // How the result differs from the oracle's.
  std::string difference(const std::string& text) {
    Graph g = parse_graph(text);
    GraphBuffers buffers(g, {});
    Oracle oracle(g, buffers);
    cublaslt::Description d = cublaslt::from_graph(g);
    if (!d.reason.empty()) return d.reason;
    std::vector<cublaslt::Binding> pointers;
    for (TensorId t = 0; t < g.tensor_count(); ++t)
      if (g.tensor(t).stored) pointers.push_back({g.tensor(t).uid, buffers.buffer(t).data()});
    double seconds = 3;  // each algorithm is faster than the one before
    cublaslt::Plan plan(handle, d.product, [&](const cublaslt::Plan&) { return seconds -= 1; });
    plan.run(pointers, nullptr, nullptr);
    EXPECT_EQ(*static_cast<int*>(dlsym(dlopen(TESSERA_FAKE_CUBLASLT, RTLD_NOW), "fake_last_algorithm")), 2);
    return compare(g, oracle, buffers);
  }

  cublaslt::Library library;
  cublaslt::Handle handle;
};

TEST_F(CublasLt, MultipliesWhatGraphsSay) {
  for (const char* a : {"f32[5,7]", "f32[5,7]:col", "f32[5,7]:[9,1]", "f32[1,7]"})
    for (const char* b : {"f32[7,3]", "f32[7,3]:col", "f32[7,3]:[1,8]", "f32[7,1]"})
      EXPECT_EQ(difference(cat("a = input ", a, "; b = input ", b, "; c = matmul a b; output c")), "") << a << " " << b;
  EXPECT_EQ(difference("a = input f64[5,7]; b = input f64[7,3]; c = matmul a b; output c f64"), "");
  EXPECT_EQ(difference("a = input i8[5,7]; b = input i8[7,3]:col; c = matmul a b; output c i32"), "");
}

TEST_F(CublasLt, Batches) {
  EXPECT_EQ(difference("a = input f32[4,5,7]; b = input f32[4,7,3]; c = matmul a b; output c"), "");
  EXPECT_EQ(difference("a = input f32[4,5,7]; b = input f32[1,7,3]:bcol; c = matmul a b; output c"), "");
  EXPECT_EQ(difference("a = input f32[2,3,5,7]; b = input f32[2,3,7,2]; c = matmul a b; output c"), "");
  EXPECT_EQ(difference("a = input f32[2,3,5,7]; b = input f32[1,3,7,2]; c = matmul a b; output c"),
            "cuBLASLt: batches of 'b' are not equally far apart");
}

TEST_F(CublasLt, WhatFollows) {
  const std::string product = "a = input f32[5,7]; b = input f32[7,3]; d = input f32[1,3]; r = input f32[5,3]; ";
  for (const char* rest :
       {"c = add (matmul a b) d", "c = relu (add (matmul a b) d)", "c = relu (matmul a b)",
        "c = gelu_tanh (add d (matmul a b))", "c = add (add (matmul a b) d) r", "c = relu (add r (matmul a b))"})
    EXPECT_EQ(difference(product + rest + "; output c"), "") << rest;
}

TEST_F(CublasLt, SaysWhatItCannot) {
  auto reason = [](const std::string& text) { return described(text).reason; };
  EXPECT_EQ(reason("x = input f32[5,7]; y = relu x; output y"), "cuBLASLt: no product of matrices");
  EXPECT_EQ(reason("a = input f32[5,7]; b = input f32[7,3]; c = gelu (matmul a b); output c"),
            "cuBLASLt: gelu behind the product");
  EXPECT_EQ(reason("a = input f32[5,7]; b = input f32[7,3]; c = matmul (relu a) b; output c"),
            "cuBLASLt: '%2' is not in the GPU's memory beforehand");
  EXPECT_EQ(reason("a = input bf16[5,7]; b = input bf16[7,3]; s = input f32[1,1]; c = mul (matmul a b) s; output c"),
            "cuBLASLt: a factor, 's'");
  EXPECT_EQ(reason("a = input f32[5,7]; b = input f32[7,3]; d = input f32[5,1]; c = add (matmul a b) d; output c"),
            "cuBLASLt: a sum with 'd', which is neither a row nor of the result's sizes");
  EXPECT_THROW(cublaslt::Library("libcublasLt.so"), opened::Error);
}

TEST_F(CublasLt, TypesAndScales) {
  auto fp8 = described(
      "a = input e4m3[5,16]; b = input e5m2[16,3]:col; s = input f32[1,1]; c = mul (matmul a b) s; output c bf16");
  ASSERT_EQ(fp8.reason, "");
  EXPECT_EQ(fp8.product.a.type, cublaslt::Type::e5m2);
  EXPECT_EQ(fp8.product.a.turned, cublaslt::Turned::yes);
  EXPECT_EQ(fp8.product.b.type, cublaslt::Type::e4m3);
  EXPECT_EQ(fp8.product.d.type, cublaslt::Type::bf16);
  EXPECT_TRUE(fp8.product.a_scale);
  EXPECT_FALSE(fp8.product.fast_sums);
  EXPECT_TRUE(described("a = input e4m3[5,16]; b = input e4m3[16,3]:col; c = matmul a b fast_sums=true; output c bf16")
                  .product.fast_sums);
  EXPECT_EQ(described("a = input f32[5,7]; b = input f32[7,3]; c = matmul a b tf32=true; output c").product.compute,
            cublaslt::Compute::tf32);
}

#ifdef CUBLAS_VERSION
TEST(CublasLtNames, AreThoseOfTheHeader) {
  auto same = [](auto ours, auto theirs) { EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs)); };
  same(cublaslt::Type::f32, CUDA_R_32F), same(cublaslt::Type::f64, CUDA_R_64F), same(cublaslt::Type::f16, CUDA_R_16F);
  same(cublaslt::Type::i8, CUDA_R_8I), same(cublaslt::Type::i32, CUDA_R_32I), same(cublaslt::Type::bf16, CUDA_R_16BF);
  same(cublaslt::Type::e4m3, CUDA_R_8F_E4M3), same(cublaslt::Type::e5m2, CUDA_R_8F_E5M2);
  same(cublaslt::Compute::f32, CUBLAS_COMPUTE_32F), same(cublaslt::Compute::f64, CUBLAS_COMPUTE_64F);
  same(cublaslt::Compute::i32, CUBLAS_COMPUTE_32I), same(cublaslt::Compute::tf32, CUBLAS_COMPUTE_32F_FAST_TF32);
  same(cublaslt::Turned::no, CUBLAS_OP_N), same(cublaslt::Turned::yes, CUBLAS_OP_T);
  same(cublaslt::kPlain, CUBLASLT_EPILOGUE_DEFAULT), same(cublaslt::kBias, CUBLASLT_EPILOGUE_BIAS);
  same(cublaslt::kRelu | cublaslt::kBias, CUBLASLT_EPILOGUE_RELU_BIAS);
  same(cublaslt::kGelu | cublaslt::kBias, CUBLASLT_EPILOGUE_GELU_BIAS);
  same(cublaslt::MatmulAttr::turned_a, CUBLASLT_MATMUL_DESC_TRANSA);
  same(cublaslt::MatmulAttr::turned_b, CUBLASLT_MATMUL_DESC_TRANSB);
  same(cublaslt::MatmulAttr::epilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  same(cublaslt::MatmulAttr::bias_pointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  same(cublaslt::MatmulAttr::bias_type, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  same(cublaslt::MatmulAttr::a_scale_pointer, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
  same(cublaslt::MatmulAttr::fast_sums, CUBLASLT_MATMUL_DESC_FAST_ACCUM);
  same(cublaslt::LayoutAttr::batches, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  same(cublaslt::LayoutAttr::batch_stride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  same(cublaslt::PreferenceAttr::workspace_bytes, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(sizeof(cublaslt::Suggestion), sizeof(cublasLtMatmulHeuristicResult_t));
}
#endif

}  // namespace
