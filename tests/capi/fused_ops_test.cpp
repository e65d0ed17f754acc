// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "convolution_reference.hpp"

using namespace client;

namespace {

// A plan with its packs, as programs wrap them.
class Fused {
 public:
  explicit Fused(cudnnFusedOps_t ops) {
    EXPECT_OK(cudnnCreateFusedOpsPlan(&plan_, ops));
    EXPECT_OK(cudnnCreateFusedOpsConstParamPack(&constants_, ops));
    EXPECT_OK(cudnnCreateFusedOpsVariantParamPack(&variants_, ops));
    cudnnBatchNormMode_t mode = CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
    EXPECT_OK(cudnnSetFusedOpsConstParamPackAttribute(constants_, CUDNN_PARAM_BN_MODE, &mode));
  }
  Fused(const Fused&) = delete;
  Fused& operator=(const Fused&) = delete;
  ~Fused() {
    EXPECT_OK(cudnnDestroyFusedOpsVariantParamPack(variants_));
    EXPECT_OK(cudnnDestroyFusedOpsConstParamPack(constants_));
    EXPECT_OK(cudnnDestroyFusedOpsPlan(plan_));
  }
  template <class D>
  Fused& descriptor(cudnnFusedOpsConstParamLabel_t label, D d) {
    EXPECT_OK(cudnnSetFusedOpsConstParamPackAttribute(constants_, label, d));
    return *this;
  }
  // The label of a placeholder follows from the pointer's by no rule: both are given.
  Fused& tensor(cudnnFusedOpsConstParamLabel_t placeholder, cudnnFusedOpsVariantParamLabel_t label, void* data) {
    auto aligned = CUDNN_PTR_ELEM_ALIGNED;
    EXPECT_OK(cudnnSetFusedOpsConstParamPackAttribute(constants_, placeholder, &aligned));
    EXPECT_OK(cudnnSetFusedOpsVariantParamPackAttribute(variants_, label, data));
    return *this;
  }
  template <class T>
  Fused& number(cudnnFusedOpsVariantParamLabel_t label, T value) {
    EXPECT_OK(cudnnSetFusedOpsVariantParamPackAttribute(variants_, label, &value));
    return *this;
  }
  cudnnStatus_t run(cudnnHandle_t h, size_t* bytes = nullptr) {
    size_t needed = 0;
    cudnnStatus_t status = cudnnMakeFusedOpsPlan(h, plan_, constants_, &needed);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (bytes) *bytes = needed;
    Memory workspace(needed);
    EXPECT_OK(cudnnSetFusedOpsVariantParamPackAttribute(variants_, CUDNN_PTR_WORKSPACE, workspace.data()));
    number(CUDNN_SCALAR_SIZE_T_WORKSPACE_SIZE_IN_BYTES, needed);
    return cudnnFusedOpsExecute(h, plan_, variants_);
  }
  cudnnFusedOpsPlan_t plan() const { return plan_; }
  cudnnFusedOpsConstParamPack_t constants() const { return constants_; }
  cudnnFusedOpsVariantParamPack_t variants() const { return variants_; }

 private:
  cudnnFusedOpsPlan_t plan_ = nullptr;
  cudnnFusedOpsConstParamPack_t constants_ = nullptr;
  cudnnFusedOpsVariantParamPack_t variants_ = nullptr;
};

struct Relu : Descriptor<cudnnActivationDescriptor_t> {
  Relu() : Descriptor(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor) {
    EXPECT_OK(cudnnSetActivationDescriptor(*this, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
  }
};

const auto kTypes =
    choices<cudnnDataType_t>({CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}, {CUDNN_DATA_HALF});
const ConvSpec kSpec{{1, 1}, {1, 1}, {1, 1}};
const Sizes kX = {2, 8, 6, 5}, kW = {4, 8, 3, 3}, kY = {2, 4, 6, 5};

// relu(scale x + bias) in the type of x, where there is a scale.
void normalize(Tensor& r, const Tensor& x, const Tensor* scale, const Tensor* bias) {
  for (int64_t i = 0; i < x.count(); ++i) {
    int c = x.index(i)[1];
    r.set(i, scale ? std::max(0.0, scale->get(c) * x.get(i) + bias->get(c)) : x.get(i));
  }
}

TEST(FusedOps, scale_bias_activation_convolution_and_statistics) {
  Handle h;
  Relu relu;
  ConvDescriptor conv(kSpec);
  for (cudnnDataType_t type : kTypes)
    for (bool before : {false, true})
      for (bool statistics : {false, true}) {
        Tensor x(type, kX, Layout::nhwc), y(type, kY, Layout::nhwc), scale(type, {1, 8, 1, 1}),
            bias(type, {1, 8, 1, 1});
        Tensor sum(CUDNN_DATA_FLOAT, {1, 4, 1, 1}), squares(CUDNN_DATA_FLOAT, {1, 4, 1, 1});
        Filter w(type, kW, CUDNN_TENSOR_NHWC);
        x.random(1), w.random(2), scale.random(3), bias.random(4), sum.fill(-1), squares.fill(-1);
        Fused f(CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS);
        f.descriptor(CUDNN_PARAM_XDESC, cudnnTensorDescriptor_t(x))
            .descriptor(CUDNN_PARAM_CONV_DESC, cudnnConvolutionDescriptor_t(conv));
        f.descriptor(CUDNN_PARAM_WDESC, cudnnFilterDescriptor_t(w))
            .descriptor(CUDNN_PARAM_YDESC, cudnnTensorDescriptor_t(y));
        f.tensor(CUDNN_PARAM_XDATA_PLACEHOLDER, CUDNN_PTR_XDATA, x.data());
        f.tensor(CUDNN_PARAM_WDATA_PLACEHOLDER, CUDNN_PTR_WDATA, w.data());
        f.tensor(CUDNN_PARAM_YDATA_PLACEHOLDER, CUDNN_PTR_YDATA, y.data());
        if (before) {
          f.descriptor(CUDNN_PARAM_BN_EQSCALEBIAS_DESC, cudnnTensorDescriptor_t(scale));
          f.descriptor(CUDNN_PARAM_ACTIVATION_DESC, cudnnActivationDescriptor_t(relu));
          f.tensor(CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, CUDNN_PTR_BN_EQSCALE, scale.data());
          f.tensor(CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, CUDNN_PTR_BN_EQBIAS, bias.data());
        }
        if (statistics) {
          f.descriptor(CUDNN_PARAM_YSTATS_DESC, cudnnTensorDescriptor_t(sum));
          f.tensor(CUDNN_PARAM_YSUM_PLACEHOLDER, CUDNN_PTR_YSUM, sum.data());
          f.tensor(CUDNN_PARAM_YSQSUM_PLACEHOLDER, CUDNN_PTR_YSQSUM, squares.data());
        }
        ASSERT_OK(f.run(h));
        Tensor read(type, kX, Layout::nhwc);
        normalize(read, x, before ? &scale : nullptr, &bias);
        expect_values(y, forward_of(kSpec, read, w.values(), y), 256);
        if (!statistics) continue;
        Values sums(4), squared(4);
        for (int64_t i = 0; i < y.count(); ++i) {
          auto c = static_cast<size_t>(y.index(i)[1]);
          sums[c] += y.get(i), squared[c] += y.get(i) * y.get(i);
        }
        expect_values(sum, sums, 512);
        expect_values(squares, squared, 512);
      }
}

TEST(FusedOps, scale_bias_activation_and_filter_gradient) {
  Handle h;
  Relu relu;
  ConvDescriptor conv(kSpec);
  for (cudnnDataType_t type : kTypes) {
    Tensor x(type, kX, Layout::nhwc), dy(type, kY, Layout::nhwc), scale(type, {1, 8, 1, 1}), bias(type, {1, 8, 1, 1});
    Filter dw(type, kW, CUDNN_TENSOR_NHWC);
    x.random(1), dy.random(2), scale.random(3), bias.random(4);
    Fused f(CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD);
    f.descriptor(CUDNN_PARAM_XDESC, cudnnTensorDescriptor_t(x))
        .descriptor(CUDNN_PARAM_CONV_DESC, cudnnConvolutionDescriptor_t(conv));
    f.descriptor(CUDNN_PARAM_DWDESC, cudnnFilterDescriptor_t(dw))
        .descriptor(CUDNN_PARAM_DYDESC, cudnnTensorDescriptor_t(dy));
    f.descriptor(CUDNN_PARAM_BN_EQSCALEBIAS_DESC, cudnnTensorDescriptor_t(scale));
    f.descriptor(CUDNN_PARAM_ACTIVATION_DESC, cudnnActivationDescriptor_t(relu));
    f.tensor(CUDNN_PARAM_XDATA_PLACEHOLDER, CUDNN_PTR_XDATA, x.data());
    f.tensor(CUDNN_PARAM_DYDATA_PLACEHOLDER, CUDNN_PTR_DYDATA, dy.data());
    f.tensor(CUDNN_PARAM_DWDATA_PLACEHOLDER, CUDNN_PTR_DWDATA, dw.data());
    f.tensor(CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, CUDNN_PTR_BN_EQSCALE, scale.data());
    f.tensor(CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, CUDNN_PTR_BN_EQBIAS, bias.data());
    ASSERT_OK(f.run(h));
    Tensor read(type, kX, Layout::nhwc);
    normalize(read, x, &scale, &bias);
    expect_values(dw.values(), backward_filter_of(kSpec, read, dw.values(), dy), 512);
  }
}

TEST(FusedOps, convolution_scale_bias_add_activation) {
  Handle h;
  Relu relu;
  ConvDescriptor conv(kSpec);
  for (cudnnDataType_t type : kTypes) {
    Tensor x(type, kX, Layout::nhwc), y(type, kY, Layout::nhwc), z(type, kY, Layout::nhwc);
    Tensor scale(type, {1, 4, 1, 1}), bias(type, {1, 4, 1, 1});
    Filter w(type, kW, CUDNN_TENSOR_NHWC);
    x.random(1), w.random(2), scale.random(3), bias.random(4), z.random(5);
    Fused f(CUDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION);
    f.descriptor(CUDNN_PARAM_XDESC, cudnnTensorDescriptor_t(x))
        .descriptor(CUDNN_PARAM_CONV_DESC, cudnnConvolutionDescriptor_t(conv));
    f.descriptor(CUDNN_PARAM_WDESC, cudnnFilterDescriptor_t(w))
        .descriptor(CUDNN_PARAM_YDESC, cudnnTensorDescriptor_t(y));
    f.descriptor(CUDNN_PARAM_ZDESC, cudnnTensorDescriptor_t(z));
    f.descriptor(CUDNN_PARAM_BN_EQSCALEBIAS_DESC, cudnnTensorDescriptor_t(scale));
    f.descriptor(CUDNN_PARAM_ACTIVATION_DESC, cudnnActivationDescriptor_t(relu));
    f.tensor(CUDNN_PARAM_XDATA_PLACEHOLDER, CUDNN_PTR_XDATA, x.data());
    f.tensor(CUDNN_PARAM_WDATA_PLACEHOLDER, CUDNN_PTR_WDATA, w.data());
    f.tensor(CUDNN_PARAM_YDATA_PLACEHOLDER, CUDNN_PTR_YDATA, y.data());
    f.tensor(CUDNN_PARAM_ZDATA_PLACEHOLDER, CUDNN_PTR_ZDATA, z.data());
    f.tensor(CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, CUDNN_PTR_BN_EQSCALE, scale.data());
    f.tensor(CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, CUDNN_PTR_BN_EQBIAS, bias.data());
    ASSERT_OK(f.run(h));
    Values want = forward_of(kSpec, x, w.values(), y);
    for (int64_t i = 0; i < y.count(); ++i) {
      int c = y.index(i)[1];
      double& v = want[static_cast<size_t>(i)];
      v = std::max(0.0, scale.get(c) * v + bias.get(c) + z.get(i));
    }
    expect_values(y, want, 256);
  }
}

TEST(FusedOps, finalizes_statistics) {
  Handle h;
  const Sizes dims = {1, 6, 1, 1};
  for (cudnnDataType_t type : kTypes)
    for (double factor : {0.25, 1.0, 0.0}) {  // 0: inference
      bool training = factor > 0;
      Tensor sum(CUDNN_DATA_FLOAT, dims), squares(CUDNN_DATA_FLOAT, dims), scale(CUDNN_DATA_FLOAT, dims);
      Tensor bias(CUDNN_DATA_FLOAT, dims), mean(CUDNN_DATA_FLOAT, dims), invstd(CUDNN_DATA_FLOAT, dims);
      Tensor running_mean(CUDNN_DATA_FLOAT, dims), running_var(CUDNN_DATA_FLOAT, dims), eq_scale(type, dims),
          eq_bias(type, dims);
      sum.random(1), scale.random(2), bias.random(3), running_mean.random(4), running_var.random(5);
      constexpr double kCount = 50, kEpsilon = 1e-3;
      Values m, inv, rm, rv, es, eb;
      for (int64_t i = 0; i < 6; ++i) {
        sum.set(i, sum.get(i) * 20);
        squares.set(i, sum.get(i) * sum.get(i) / kCount + 30 + static_cast<double>(i));
        running_var.set(i, std::fabs(running_var.get(i)) + 0.5);
        double mu = sum.get(i) / kCount, var = squares.get(i) / kCount - mu * mu;
        if (training) {
          rm.push_back((1 - factor) * running_mean.get(i) + factor * mu);
          rv.push_back((1 - factor) * running_var.get(i) + factor * var * kCount / (kCount - 1));
        } else {
          mu = running_mean.get(i), var = running_var.get(i);
          rm.push_back(mu), rv.push_back(var);
        }
        m.push_back(mu), inv.push_back(1 / std::sqrt(var + kEpsilon));
        es.push_back(scale.get(i) * inv.back()), eb.push_back(bias.get(i) - mu * es.back());
      }
      if (factor == 1) running_mean.fill(std::nan("")), running_var.fill(INFINITY);  // never written yet
      Fused f(training ? CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING : CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE);
      f.descriptor(CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC, cudnnTensorDescriptor_t(scale));
      f.descriptor(CUDNN_PARAM_BN_EQSCALEBIAS_DESC, cudnnTensorDescriptor_t(eq_scale));
      f.tensor(CUDNN_PARAM_BN_SCALE_PLACEHOLDER, CUDNN_PTR_BN_SCALE, scale.data());
      f.tensor(CUDNN_PARAM_BN_BIAS_PLACEHOLDER, CUDNN_PTR_BN_BIAS, bias.data());
      f.tensor(CUDNN_PARAM_BN_RUNNING_MEAN_PLACEHOLDER, CUDNN_PTR_BN_RUNNING_MEAN, running_mean.data());
      f.tensor(CUDNN_PARAM_BN_RUNNING_VAR_PLACEHOLDER, CUDNN_PTR_BN_RUNNING_VAR, running_var.data());
      f.tensor(CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, CUDNN_PTR_BN_EQSCALE, eq_scale.data());
      f.tensor(CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, CUDNN_PTR_BN_EQBIAS, eq_bias.data());
      f.number(CUDNN_SCALAR_DOUBLE_BN_EPSILON, kEpsilon);
      if (training) {
        f.descriptor(CUDNN_PARAM_YSTATS_DESC, cudnnTensorDescriptor_t(sum));
        f.tensor(CUDNN_PARAM_YSUM_PLACEHOLDER, CUDNN_PTR_YSUM, sum.data());
        f.tensor(CUDNN_PARAM_YSQSUM_PLACEHOLDER, CUDNN_PTR_YSQSUM, squares.data());
        f.tensor(CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER, CUDNN_PTR_BN_SAVED_MEAN, mean.data());
        f.tensor(CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER, CUDNN_PTR_BN_SAVED_INVSTD, invstd.data());
        f.number(CUDNN_SCALAR_INT64_T_BN_ACCUMULATION_COUNT, static_cast<int64_t>(kCount));
        f.number(CUDNN_SCALAR_DOUBLE_BN_EXP_AVG_FACTOR, factor);
      }
      size_t bytes = 1;
      ASSERT_OK(f.run(h, &bytes));
      EXPECT_EQ(bytes, 0u);  // programs insist
      expect_values(eq_scale, es, 64);
      expect_values(eq_bias, eb, 64);
      expect_values(running_mean, rm, 64);
      expect_values(running_var, rv, 64);
      if (training) {
        expect_values(mean, m, 64);
        expect_values(invstd, inv, 64);
      }
    }
}

// The forward pass of a residual block's end leaves a mask; the backward pass reads it.
TEST(FusedOps, residual_addition_with_mask_and_its_gradient) {
  Handle h;
  Relu relu;
  const Sizes dims = {2, 10, 3, 5}, params = {1, 10, 1, 1};
  for (cudnnDataType_t type : kTypes)
    for (int kind : {0, 1, 2}) {  // no addition, z as it is, z with its own scale and bias
      Tensor x(type, dims, Layout::nhwc), z(type, dims, Layout::nhwc), y(type, dims, Layout::nhwc);
      Tensor scale(type, params), bias(type, params), z_scale(type, params), z_bias(type, params);
      Tensor mask(CUDNN_DATA_INT32, {32, 2, 1}, Layout::nchw);
      x.random(1), z.random(2), scale.random(3), bias.random(4), z_scale.random(5), z_bias.random(6);
      Values want;
      for (int64_t i = 0; i < x.count(); ++i) {
        int c = x.index(i)[1];
        double v = scale.get(c) * x.get(i) + bias.get(c);
        if (kind == 1) v += z.get(i);
        if (kind == 2) v += z_scale.get(c) * z.get(i) + z_bias.get(c);
        want.push_back(v);
      }
      Fused f(CUDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK);
      f.descriptor(CUDNN_PARAM_XDESC, cudnnTensorDescriptor_t(x))
          .descriptor(CUDNN_PARAM_YDESC, cudnnTensorDescriptor_t(y));
      f.descriptor(CUDNN_PARAM_BN_EQSCALEBIAS_DESC, cudnnTensorDescriptor_t(scale));
      f.descriptor(CUDNN_PARAM_ACTIVATION_DESC, cudnnActivationDescriptor_t(relu));
      f.descriptor(CUDNN_PARAM_ACTIVATION_BITMASK_DESC, cudnnTensorDescriptor_t(mask));
      f.tensor(CUDNN_PARAM_XDATA_PLACEHOLDER, CUDNN_PTR_XDATA, x.data());
      f.tensor(CUDNN_PARAM_YDATA_PLACEHOLDER, CUDNN_PTR_YDATA, y.data());
      f.tensor(CUDNN_PARAM_BN_EQSCALE_PLACEHOLDER, CUDNN_PTR_BN_EQSCALE, scale.data());
      f.tensor(CUDNN_PARAM_BN_EQBIAS_PLACEHOLDER, CUDNN_PTR_BN_EQBIAS, bias.data());
      f.tensor(CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER, CUDNN_PTR_ACTIVATION_BITMASK, mask.data());
      if (kind > 0) {
        f.descriptor(CUDNN_PARAM_ZDESC, cudnnTensorDescriptor_t(z));
        f.tensor(CUDNN_PARAM_ZDATA_PLACEHOLDER, CUDNN_PTR_ZDATA, z.data());
      }
      if (kind == 2) {
        f.descriptor(CUDNN_PARAM_BN_Z_EQSCALEBIAS_DESC, cudnnTensorDescriptor_t(z_scale));
        f.tensor(CUDNN_PARAM_BN_Z_EQSCALE_PLACEHOLDER, CUDNN_PTR_BN_Z_EQSCALE, z_scale.data());
        f.tensor(CUDNN_PARAM_BN_Z_EQBIAS_PLACEHOLDER, CUDNN_PTR_BN_Z_EQBIAS, z_bias.data());
      }
      ASSERT_OK(f.run(h));
      Values rectified = want;
      for (double& v : rectified) v = std::max(0.0, v);
      expect_values(y, rectified, 32);

      Tensor dy(type, dims, Layout::nhwc), dx(type, dims, Layout::nhwc), dz(type, dims, Layout::nhwc);
      Tensor gamma(CUDNN_DATA_FLOAT, params), mean(CUDNN_DATA_FLOAT, params), invstd(CUDNN_DATA_FLOAT, params);
      Tensor dscale(CUDNN_DATA_FLOAT, params), dbias(CUDNN_DATA_FLOAT, params);
      dy.random(7), gamma.random(8), mean.random(9), invstd.random(10);
      Fused b(CUDNN_FUSED_DACTIVATION_FORK_DBATCHNORM);
      b.descriptor(CUDNN_PARAM_XDESC, cudnnTensorDescriptor_t(x))
          .descriptor(CUDNN_PARAM_DYDESC, cudnnTensorDescriptor_t(dy));
      b.descriptor(CUDNN_PARAM_DXDESC, cudnnTensorDescriptor_t(dx))
          .descriptor(CUDNN_PARAM_DZDESC, cudnnTensorDescriptor_t(dz));
      b.descriptor(CUDNN_PARAM_BN_SCALEBIAS_MEANVAR_DESC, cudnnTensorDescriptor_t(gamma));
      b.descriptor(CUDNN_PARAM_ACTIVATION_DESC, cudnnActivationDescriptor_t(relu));
      b.descriptor(CUDNN_PARAM_ACTIVATION_BITMASK_DESC, cudnnTensorDescriptor_t(mask));
      b.tensor(CUDNN_PARAM_XDATA_PLACEHOLDER, CUDNN_PTR_XDATA, x.data());
      b.tensor(CUDNN_PARAM_DYDATA_PLACEHOLDER, CUDNN_PTR_DYDATA, dy.data());
      b.tensor(CUDNN_PARAM_DXDATA_PLACEHOLDER, CUDNN_PTR_DXDATA, dx.data());
      b.tensor(CUDNN_PARAM_DZDATA_PLACEHOLDER, CUDNN_PTR_DZDATA, dz.data());
      b.tensor(CUDNN_PARAM_BN_SCALE_PLACEHOLDER, CUDNN_PTR_BN_SCALE, gamma.data());
      b.tensor(CUDNN_PARAM_BN_SAVED_MEAN_PLACEHOLDER, CUDNN_PTR_BN_SAVED_MEAN, mean.data());
      b.tensor(CUDNN_PARAM_BN_SAVED_INVSTD_PLACEHOLDER, CUDNN_PTR_BN_SAVED_INVSTD, invstd.data());
      b.tensor(CUDNN_PARAM_BN_DSCALE_PLACEHOLDER, CUDNN_PTR_BN_DSCALE, dscale.data());
      b.tensor(CUDNN_PARAM_BN_DBIAS_PLACEHOLDER, CUDNN_PTR_BN_DBIAS, dbias.data());
      b.tensor(CUDNN_PARAM_ACTIVATION_BITMASK_PLACEHOLDER, CUDNN_PTR_ACTIVATION_BITMASK, mask.data());
      ASSERT_OK(b.run(h));
      Values g, ds(10), db(10), wx;
      auto centred = [&](int64_t i, int c) { return (x.get(i) - mean.get(c)) * invstd.get(c); };
      for (int64_t i = 0; i < x.count(); ++i) {
        int c = x.index(i)[1];
        g.push_back(want[static_cast<size_t>(i)] > 0 ? dy.get(i) : 0);
        ds[static_cast<size_t>(c)] += g.back() * centred(i, c), db[static_cast<size_t>(c)] += g.back();
      }
      double count = static_cast<double>(x.count()) / 10;
      for (int64_t i = 0; i < x.count(); ++i) {
        int c = x.index(i)[1];
        auto k = static_cast<size_t>(c);
        wx.push_back(gamma.get(c) * invstd.get(c) *
                     (g[static_cast<size_t>(i)] - db[k] / count - centred(i, c) * ds[k] / count));
      }
      expect_values(dz, g, 0);
      expect_values(dx, wx, 512);
      expect_values(dscale, ds, 512);
      expect_values(dbias, db, 512);
    }
}

TEST(FusedOps, packs_tell_what_they_were_told) {
  Fused f(CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS);
  Tensor x(CUDNN_DATA_HALF, kX, Layout::nhwc);
  Descriptor<cudnnTensorDescriptor_t> copy(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
  int absent = 7;
  ASSERT_OK(cudnnGetFusedOpsConstParamPackAttribute(f.constants(), CUDNN_PARAM_XDESC, copy, &absent));
  EXPECT_EQ(absent, 1);
  f.descriptor(CUDNN_PARAM_XDESC, cudnnTensorDescriptor_t(x));
  ASSERT_OK(cudnnGetFusedOpsConstParamPackAttribute(f.constants(), CUDNN_PARAM_XDESC, copy, &absent));
  EXPECT_EQ(absent, 0);
  cudnnDataType_t type;
  int n, sizes[4], strides[4];
  ASSERT_OK(cudnnGetTensorNdDescriptor(copy, 4, &type, &n, sizes, strides));
  EXPECT_EQ(type, CUDNN_DATA_HALF);
  EXPECT_EQ(Sizes(sizes, sizes + 4), kX);
  cudnnBatchNormMode_t mode;
  ASSERT_OK(cudnnGetFusedOpsConstParamPackAttribute(f.constants(), CUDNN_PARAM_BN_MODE, &mode, &absent));
  EXPECT_EQ(mode, CUDNN_BATCHNORM_SPATIAL_PERSISTENT);
  cudnnFusedOpsPointerPlaceHolder_t holder;
  ASSERT_OK(cudnnGetFusedOpsConstParamPackAttribute(f.constants(), CUDNN_PARAM_XDATA_PLACEHOLDER, &holder, &absent));
  EXPECT_EQ(holder, CUDNN_PTR_NULL);
  void* pointer = &n;
  ASSERT_OK(cudnnGetFusedOpsVariantParamPackAttribute(f.variants(), CUDNN_PTR_XDATA, &pointer));
  EXPECT_EQ(pointer, nullptr);
  f.number(CUDNN_SCALAR_DOUBLE_BN_EPSILON, 0.5);
  double epsilon = 0;
  ASSERT_OK(cudnnGetFusedOpsVariantParamPackAttribute(f.variants(), CUDNN_SCALAR_DOUBLE_BN_EPSILON, &epsilon));
  EXPECT_EQ(epsilon, 0.5);
}

TEST(FusedOps, refuse_what_is_missing) {
  Handle h;
  Fused f(CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS), other(CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD);
  size_t bytes = 0;
  cudnnFusedOpsPlan_t plan = nullptr;
  EXPECT_TRUE(is_bad_param(cudnnCreateFusedOpsPlan(&plan, static_cast<cudnnFusedOps_t>(7))));
  EXPECT_TRUE(is_bad_param(cudnnCreateFusedOpsPlan(nullptr, CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD)));
  EXPECT_TRUE(is_bad_param(cudnnMakeFusedOpsPlan(h, f.plan(), f.constants(), &bytes)));      // nothing is set
  EXPECT_TRUE(is_bad_param(cudnnMakeFusedOpsPlan(h, f.plan(), other.constants(), &bytes)));  // another sequence
  EXPECT_TRUE(is_bad_param(cudnnMakeFusedOpsPlan(h, nullptr, f.constants(), &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnMakeFusedOpsPlan(h, f.plan(), nullptr, &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnMakeFusedOpsPlan(h, f.plan(), f.constants(), nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnFusedOpsExecute(h, f.plan(), f.variants())));  // not made
  EXPECT_TRUE(is_bad_param(
      cudnnSetFusedOpsConstParamPackAttribute(f.constants(), static_cast<cudnnFusedOpsConstParamLabel_t>(99), &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnSetFusedOpsVariantParamPackAttribute(
      f.variants(), static_cast<cudnnFusedOpsVariantParamLabel_t>(99), &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnSetFusedOpsConstParamPackAttribute(f.constants(), CUDNN_PARAM_BN_MODE, nullptr)));
}

}  // namespace
