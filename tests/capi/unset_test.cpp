// SPDX-License-Identifier: Apache-2.0
// Descriptors that were created and never set, and calls with nothing at all: mistakes, not crashes.
#include "client.hpp"

using namespace client;

namespace {

struct Unset : testing::Test {
  Handle h;
  Descriptor<cudnnTensorDescriptor_t> t{cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor};
  Descriptor<cudnnActivationDescriptor_t> act{cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor};
  Descriptor<cudnnPoolingDescriptor_t> pool{cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor};
  Descriptor<cudnnLRNDescriptor_t> lrn{cudnnCreateLRNDescriptor, cudnnDestroyLRNDescriptor};
  Descriptor<cudnnReduceTensorDescriptor_t> reduce{cudnnCreateReduceTensorDescriptor,
                                                   cudnnDestroyReduceTensorDescriptor};
  Descriptor<cudnnOpTensorDescriptor_t> op{cudnnCreateOpTensorDescriptor, cudnnDestroyOpTensorDescriptor};
  Descriptor<cudnnDropoutDescriptor_t> drop{cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor};
  Descriptor<cudnnSpatialTransformerDescriptor_t> st{cudnnCreateSpatialTransformerDescriptor,
                                                     cudnnDestroySpatialTransformerDescriptor};
  Descriptor<cudnnTensorTransformDescriptor_t> move{cudnnCreateTensorTransformDescriptor,
                                                    cudnnDestroyTensorTransformDescriptor};
  Memory memory{1024};
  void* p = memory.data();
  float one = 1, zero = 0;
  size_t bytes = 0;
};

TEST_F(Unset, tensors) {
  EXPECT_TRUE(is_bad_param(cudnnSetTensor(h, t, p, &one)));
  EXPECT_TRUE(is_bad_param(cudnnScaleTensor(h, t, p, &one)));
  EXPECT_TRUE(is_bad_param(cudnnAddTensor(h, &one, t, p, &one, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnOpTensor(h, op, &one, t, p, &one, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnReduceTensor(h, reduce, nullptr, 0, nullptr, 0, &one, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnGetReductionWorkspaceSize(h, reduce, t, t, &bytes)));
  EXPECT_TRUE(
      is_bad_param(cudnnSoftmaxForward(h, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, &one, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(
      cudnnSoftmaxBackward(h, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, &one, t, p, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnPoolingForward(h, pool, &one, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnPoolingBackward(h, pool, &one, t, p, t, p, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnActivationForward(h, act, &one, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnLRNCrossChannelForward(h, lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(
      cudnnLRNCrossChannelBackward(h, lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1, &one, t, p, t, p, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(
      cudnnDivisiveNormalizationForward(h, lrn, CUDNN_DIVNORM_PRECOMPUTED_MEANS, &one, t, p, p, p, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnDeriveBNTensorDescriptor(t, t, CUDNN_BATCHNORM_SPATIAL)));
  EXPECT_TRUE(is_bad_param(cudnnBatchNormalizationForwardInference(h, CUDNN_BATCHNORM_SPATIAL, &one, &zero, t, p, t, p,
                                                                   t, p, p, p, p, 1e-3)));
  EXPECT_TRUE(is_bad_param(cudnnBatchNormalizationForwardTraining(h, CUDNN_BATCHNORM_SPATIAL, &one, &zero, t, p, t, p,
                                                                  t, p, p, 1, p, p, 1e-3, p, p)));
  EXPECT_TRUE(is_bad_param(cudnnBatchNormalizationBackward(h, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, t, p,
                                                           t, p, t, p, t, p, p, p, 1e-3, p, p)));
  EXPECT_TRUE(is_bad_param(cudnnDropoutForward(h, drop, t, p, t, p, p, 1024)));
  EXPECT_TRUE(is_bad_param(cudnnDropoutBackward(h, drop, t, p, t, p, p, 1024)));
  EXPECT_TRUE(is_bad_param(cudnnDropoutGetReserveSpaceSize(t, &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnSpatialTfSamplerForward(h, st, &one, t, p, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnSpatialTfSamplerBackward(h, st, &one, t, p, &zero, t, p, &one, t, p, p, &zero, p)));
  EXPECT_TRUE(is_bad_param(cudnnTransformTensor(h, &one, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnTransformTensorEx(h, move, &one, t, p, &zero, t, p)));
  EXPECT_TRUE(is_bad_param(cudnnInitTransformDest(move, t, t, &bytes)));
}

TEST_F(Unset, nothing_at_all) {
  EXPECT_TRUE(is_bad_param(cudnnSetTensor(nullptr, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnOpTensor(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                         nullptr, nullptr, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnReduceTensor(nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr,
                                             nullptr, nullptr, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnPoolingBackward(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                nullptr, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnBatchNormalizationForwardTrainingEx(
      nullptr, CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_OPS_BN, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
      nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr, 0,
      nullptr, 0)));
  EXPECT_TRUE(is_bad_param(cudnnNormalizationBackward(
      nullptr, CUDNN_NORM_PER_CHANNEL, CUDNN_NORM_OPS_NORM, CUDNN_NORM_ALGO_STANDARD, nullptr, nullptr, nullptr,
      nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
      nullptr, nullptr, nullptr, nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0, 1)));
  EXPECT_TRUE(
      is_bad_param(cudnnSpatialTfSamplerBackward(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                 nullptr, nullptr, nullptr, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(
      is_bad_param(cudnnTransformFilter(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnSetDropoutDescriptor(nullptr, nullptr, 0, nullptr, 0, 0)));
  EXPECT_TRUE(is_bad_param(cudnnGetPoolingNdForwardOutputDim(nullptr, nullptr, 4, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnCreatePoolingDescriptor(nullptr)));
  EXPECT_OK(cudnnDestroyPoolingDescriptor(nullptr));
}

}  // namespace
