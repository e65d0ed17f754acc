// SPDX-License-Identifier: Apache-2.0
#include "convolution_reference.hpp"

using namespace client;

namespace {

TEST(ConvolutionDescriptor, keeps_what_it_is_told) {
  ConvDescriptor d(ConvSpec{{1, 2}, {3, 4}, {5, 6}, 7, CUDNN_CONVOLUTION}, CUDNN_DATA_DOUBLE);
  int ph, pw, u, v, dh, dw, groups, length, pad[3] = {-1, -1, -1}, stride[3], dilation[3];
  cudnnConvolutionMode_t mode;
  cudnnDataType_t type;
  ASSERT_OK(cudnnGetConvolution2dDescriptor(d, &ph, &pw, &u, &v, &dh, &dw, &mode, &type));
  EXPECT_EQ(Sizes({ph, pw, u, v, dh, dw}), Sizes({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(mode, CUDNN_CONVOLUTION);
  EXPECT_EQ(type, CUDNN_DATA_DOUBLE);
  ASSERT_OK(cudnnGetConvolutionNdDescriptor(d, 3, &length, pad, stride, dilation, &mode, &type));
  EXPECT_EQ(Sizes({length, pad[0], pad[1], pad[2], stride[0], dilation[1]}), Sizes({2, 1, 2, -1, 3, 6}));
  ASSERT_OK(cudnnGetConvolutionGroupCount(d, &groups));
  EXPECT_EQ(groups, 7);
  cudnnMathType_t math;
  ASSERT_OK(cudnnGetConvolutionMathType(d, &math));
  EXPECT_EQ(math, CUDNN_DEFAULT_MATH);
  ASSERT_OK(cudnnSetConvolutionMathType(d, CUDNN_TENSOR_OP_MATH));
  ASSERT_OK(cudnnGetConvolutionMathType(d, &math));
  EXPECT_EQ(math, CUDNN_TENSOR_OP_MATH);
  cudnnReorderType_t reorder;
  ASSERT_OK(cudnnGetConvolutionReorderType(d, &reorder));
  EXPECT_EQ(reorder, CUDNN_DEFAULT_REORDER);
  ASSERT_OK(cudnnSetConvolutionReorderType(d, CUDNN_NO_REORDER));
  ASSERT_OK(cudnnGetConvolutionReorderType(d, &reorder));
  EXPECT_EQ(reorder, CUDNN_NO_REORDER);
}

TEST(ConvolutionDescriptor, tells_output_sizes) {
  Tensor x(CUDNN_DATA_FLOAT, {3, 4, 20, 17});
  Filter w(CUDNN_DATA_FLOAT, {6, 2, 3, 5});
  ConvSpec spec{{1, 2}, {2, 3}, {2, 1}, 2};
  ConvDescriptor d(spec);
  Sizes want = output_sizes(spec, x.dims(), {6, 2, 3, 5}), got(4);
  ASSERT_OK(cudnnGetConvolution2dForwardOutputDim(d, x, w, &got[0], &got[1], &got[2], &got[3]));
  EXPECT_EQ(got, want);
  ASSERT_OK(cudnnGetConvolutionNdForwardOutputDim(d, x, w, 4, got.data()));
  EXPECT_EQ(got, want);
  EXPECT_TRUE(is_bad_param(cudnnGetConvolutionNdForwardOutputDim(d, x, w, 3, got.data())));
  EXPECT_TRUE(is_bad_param(cudnnGetConvolution2dForwardOutputDim(d, x, w, nullptr, &got[1], &got[2], &got[3])));
  Filter large(CUDNN_DATA_FLOAT, {6, 2, 30, 5}), channels(CUDNN_DATA_FLOAT, {6, 3, 3, 5}),
      odd(CUDNN_DATA_FLOAT, {5, 2, 3, 5});
  for (cudnnFilterDescriptor_t bad : {cudnnFilterDescriptor_t(large), cudnnFilterDescriptor_t(channels),
                                      cudnnFilterDescriptor_t(odd), cudnnFilterDescriptor_t(nullptr)})
    EXPECT_TRUE(is_bad_param(cudnnGetConvolutionNdForwardOutputDim(d, x, bad, 4, got.data())));
}

TEST(ConvolutionDescriptor, refuses_nonsense) {
  ConvDescriptor d(ConvSpec{{0, 0}, {1, 1}, {1, 1}});
  auto set = [&](int pad, int stride, int dilation, int mode, int type) {
    return cudnnSetConvolution2dDescriptor(d, pad, 0, stride, 1, dilation, 1, static_cast<cudnnConvolutionMode_t>(mode),
                                           static_cast<cudnnDataType_t>(type));
  };
  EXPECT_OK(set(0, 1, 1, 0, 0));
  EXPECT_TRUE(is_bad_param(set(-1, 1, 1, 0, 0)));
  EXPECT_TRUE(is_bad_param(set(0, 0, 1, 0, 0)));
  EXPECT_TRUE(is_bad_param(set(0, 1, 0, 0, 0)));
  EXPECT_TRUE(is_bad_param(set(0, 1, 1, 2, 0)));
  EXPECT_TRUE(is_bad_param(set(0, 1, 1, 0, 1000)));
  int one[] = {1, 1, 1, 1};
  EXPECT_TRUE(is_bad_param(cudnnSetConvolutionNdDescriptor(d, 0, one, one, one, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(
      is_not_supported(cudnnSetConvolutionNdDescriptor(d, 4, one, one, one, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(
      is_bad_param(cudnnSetConvolutionNdDescriptor(d, 2, nullptr, one, one, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(is_bad_param(cudnnSetConvolutionGroupCount(d, 0)));
  EXPECT_TRUE(is_bad_param(cudnnSetConvolutionGroupCount(nullptr, 1)));
  EXPECT_TRUE(is_bad_param(cudnnSetConvolutionMathType(d, static_cast<cudnnMathType_t>(9))));
  EXPECT_TRUE(is_bad_param(cudnnSetConvolutionReorderType(d, static_cast<cudnnReorderType_t>(9))));
  EXPECT_TRUE(is_bad_param(cudnnCreateConvolutionDescriptor(nullptr)));
  EXPECT_OK(cudnnDestroyConvolutionDescriptor(nullptr));
}

TEST(ConvolutionDescriptor, calls_refuse_what_does_not_fit) {
  Handle h;
  Tensor x(CUDNN_DATA_FLOAT, {1, 2, 5, 5}), y(CUDNN_DATA_FLOAT, {1, 3, 3, 3}), small(CUDNN_DATA_FLOAT, {1, 3, 2, 3}),
      half(CUDNN_DATA_HALF, {1, 2, 5, 5}), line(CUDNN_DATA_FLOAT, {1, 2, 5});
  Filter w(CUDNN_DATA_FLOAT, {3, 2, 3, 3});
  ConvDescriptor d(ConvSpec{{0, 0}, {1, 1}, {1, 1}}), wide(ConvSpec{{0, 0}, {1, 1}, {1, 1}}, CUDNN_DATA_DOUBLE);
  Descriptor<cudnnConvolutionDescriptor_t> unset(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor);
  float one = 1, zero = 0;
  auto run = [&](cudnnHandle_t handle, cudnnTensorDescriptor_t xd, const void* xp, cudnnFilterDescriptor_t wd,
                 cudnnConvolutionDescriptor_t cd, cudnnTensorDescriptor_t yd, void* yp) {
    return cudnnConvolutionForward(handle, &one, xd, xp, wd, w.data(), cd, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                   nullptr, 0, &zero, yd, yp);
  };
  EXPECT_OK(run(h, x, x.data(), w, d, y, y.data()));
  EXPECT_TRUE(is_bad_param(run(nullptr, x, x.data(), w, d, y, y.data())));
  EXPECT_TRUE(is_bad_param(run(h, nullptr, x.data(), w, d, y, y.data())));
  EXPECT_TRUE(is_bad_param(run(h, x, nullptr, w, d, y, y.data())));
  EXPECT_TRUE(is_bad_param(run(h, x, x.data(), nullptr, d, y, y.data())));
  EXPECT_TRUE(is_bad_param(run(h, x, x.data(), w, nullptr, y, y.data())));
  EXPECT_TRUE(is_bad_param(run(h, x, x.data(), w, unset, y, y.data())));
  EXPECT_TRUE(is_bad_param(run(h, x, x.data(), w, d, nullptr, y.data())));
  EXPECT_TRUE(is_bad_param(run(h, x, x.data(), w, d, y, nullptr)));
  EXPECT_TRUE(is_bad_param(run(h, x, x.data(), w, d, small, y.data())));
  EXPECT_TRUE(is_bad_param(run(h, line, x.data(), w, d, y, y.data())));
  EXPECT_TRUE(is_not_supported(run(h, half, half.data(), w, d, y, y.data())));
  EXPECT_TRUE(is_not_supported(run(h, x, x.data(), w, wide, y, y.data())));
  EXPECT_NE(run(h, x, x.data(), w, d, small, y.data()), CUDNN_STATUS_SUCCESS);
  EXPECT_NE(last_error().find("y has sizes [1,3,2,3]"), std::string::npos);
}

}  // namespace
