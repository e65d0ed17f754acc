// SPDX-License-Identifier: Apache-2.0
// Batch normalisation by both families of names.
#include <memory>

#include "client.hpp"

using namespace client;

namespace {

struct ActivationDescriptor : Descriptor<cudnnActivationDescriptor_t> {
  explicit ActivationDescriptor(cudnnActivationMode_t mode = CUDNN_ACTIVATION_RELU, double coef = 0)
      : Descriptor(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor) {
    EXPECT_OK(cudnnSetActivationDescriptor(*this, mode, CUDNN_NOT_PROPAGATE_NAN, coef));
  }
};

cudnnDataType_t param_type(cudnnDataType_t t) { return t == CUDNN_DATA_DOUBLE ? t : CUDNN_DATA_FLOAT; }

Sizes param_dims(const Sizes& x, cudnnBatchNormMode_t mode) {
  Sizes d = x;
  for (size_t i = 0; i < d.size(); ++i)
    if (i == 0 || (i > 1 && mode != CUDNN_BATCHNORM_PER_ACTIVATION)) d[i] = 1;
  return d;
}

// Which parameter each element of x has.
std::vector<size_t> groups(const Tensor& x, const Tensor& param) {
  std::vector<size_t> g;
  for (int64_t i = 0; i < x.count(); ++i) {
    Sizes at = x.index(i);
    for (size_t d = 0; d < at.size(); ++d)
      if (param.dims()[d] == 1) at[d] = 0;
    g.push_back(static_cast<size_t>(param.position(at)));
  }
  return g;
}

// Everything of one layer, by definition in double.
struct Layer {
  std::vector<size_t> group;
  Values mean, variance, inv;
  double count = 0;

  Layer(const Tensor& x, const Tensor& param, double eps) : group(groups(x, param)) {
    auto n = static_cast<size_t>(param.count());
    mean.assign(n, 0), variance.assign(n, 0);
    count = static_cast<double>(x.count()) / static_cast<double>(n);
    for (size_t i = 0; i < group.size(); ++i) mean[group[i]] += x.get(static_cast<int64_t>(i)) / count;
    for (size_t i = 0; i < group.size(); ++i)
      variance[group[i]] += std::pow(x.get(static_cast<int64_t>(i)) - mean[group[i]], 2) / count;
    for (double v : variance) inv.push_back(1 / std::sqrt(v + eps));
  }
  Values normalised(const Tensor& x) const {
    Values z;
    for (size_t i = 0; i < group.size(); ++i)
      z.push_back((x.get(static_cast<int64_t>(i)) - mean[group[i]]) * inv[group[i]]);
    return z;
  }
  Values forward(const Tensor& x, const Tensor& scale, const Tensor& bias) const {
    Values y = normalised(x);
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = y[i] * scale.get(static_cast<int64_t>(group[i])) + bias.get(static_cast<int64_t>(group[i]));
    return y;
  }
  void backward(const Tensor& x, const Values& dy, const Tensor& scale, Values& dx, Values& dscale,
                Values& dbias) const {
    Values z = normalised(x);
    dscale.assign(mean.size(), 0), dbias.assign(mean.size(), 0), dx.assign(z.size(), 0);
    for (size_t i = 0; i < z.size(); ++i) dscale[group[i]] += dy[i] * z[i], dbias[group[i]] += dy[i];
    for (size_t i = 0; i < z.size(); ++i) {
      size_t g = group[i];
      dx[i] = scale.get(static_cast<int64_t>(g)) * inv[g] * (dy[i] - dbias[g] / count - z[i] * dscale[g] / count);
    }
  }
};

struct Case {
  cudnnBatchNormMode_t mode;
  cudnnDataType_t type;
  Layout layout;
  Sizes dims;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (cudnnBatchNormMode_t mode : choices<cudnnBatchNormMode_t>(
           {CUDNN_BATCHNORM_PER_ACTIVATION, CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_SPATIAL_PERSISTENT},
           {CUDNN_BATCHNORM_PER_ACTIVATION, CUDNN_BATCHNORM_SPATIAL}))
    for (cudnnDataType_t type : kFloats)
      for (Layout layout : kLayouts)
        for (const Sizes& dims : choices<Sizes>({{4, 5, 3, 2}, {3, 2, 2, 3, 2}, {8, 6, 1, 1}}, {{4, 5, 3, 2}}))
          all.push_back({mode, type, layout, dims});
  return all;
}

struct Tensors {
  Tensor x, y, z, scale, bias, mean, variance, saved_mean, saved_inv;
  explicit Tensors(const Case& c)
      : x(c.type, c.dims, c.layout),
        y(c.type, c.dims, c.layout),
        z(c.type, c.dims, c.layout),
        scale(param_type(c.type), param_dims(c.dims, c.mode)),
        bias(scale.type(), scale.dims()),
        mean(scale.type(), scale.dims()),
        variance(scale.type(), scale.dims()),
        saved_mean(scale.type(), scale.dims()),
        saved_inv(scale.type(), scale.dims()) {
    x.random(1), y.random(2), z.random(3), scale.random(4), bias.random(5), mean.random(6), variance.random(7);
    for (int64_t i = 0; i < variance.count(); ++i) variance.set(i, std::fabs(variance.get(i)));
    saved_mean.random(8), saved_inv.random(9);
  }
};

constexpr double kEps = 1e-3;

TEST(BatchNorm, derived_descriptors) {
  for (const Case& c : cases()) {
    Tensor x(c.type, c.dims, c.layout), derived(CUDNN_DATA_INT8, {1});
    ASSERT_OK(cudnnDeriveBNTensorDescriptor(derived, x, c.mode));
    int dims[8], strides[8], n = 0;
    cudnnDataType_t type;
    ASSERT_OK(cudnnGetTensorNdDescriptor(derived, 8, &type, &n, dims, strides));
    EXPECT_EQ(Sizes(dims, dims + n), param_dims(c.dims, c.mode));
    EXPECT_EQ(type, param_type(c.type));
  }
}

TEST(BatchNorm, training_forward) {
  Handle h;
  for (const Case& c : cases())
    for (Factors f : kFactors)
      for (double factor : {1.0, 0.25}) {
        Tensors t(c);
        Layer layer(t.x, t.scale, kEps);
        if (factor == 1)  // the old values may be anything
          t.mean.fill(NAN), t.variance.fill(NAN);
        Values want = blended(f.alpha, layer.forward(t.x, t.scale, t.bias), f.beta, t.y.values());
        double unbiased = layer.count > 1 ? layer.count / (layer.count - 1) : 0;
        Values mean, variance;
        for (size_t i = 0; i < layer.mean.size(); ++i) {
          auto at = static_cast<int64_t>(i);
          auto mix = [&](double old, double now) { return factor == 1 ? now : (1 - factor) * old + factor * now; };
          mean.push_back(mix(t.mean.get(at), layer.mean[i]));
          variance.push_back(mix(t.variance.get(at), layer.variance[i] * unbiased));
        }
        ASSERT_OK(cudnnBatchNormalizationForwardTraining(h, c.mode, Factor(f.alpha, c.type), Factor(f.beta, c.type),
                                                         t.x, t.x.data(), t.y, t.y.data(), t.scale, t.scale.data(),
                                                         t.bias.data(), factor, t.mean.data(), t.variance.data(), kEps,
                                                         t.saved_mean.data(), t.saved_inv.data()));
        expect_values(t.y, want, 64);
        expect_values(t.mean, mean);
        expect_values(t.variance, variance);
        expect_values(t.saved_mean, layer.mean);
        expect_values(t.saved_inv, layer.inv, 64);
      }
}

TEST(BatchNorm, training_without_statistics_and_in_place) {
  Handle h;
  for (const Case& c : cases()) {
    Tensors t(c);
    Values want = Layer(t.x, t.scale, kEps).forward(t.x, t.scale, t.bias);
    ASSERT_OK(cudnnBatchNormalizationForwardTraining(h, c.mode, Factor(1, c.type), Factor(0, c.type), t.x, t.x.data(),
                                                     t.x, t.x.data(), t.scale, t.scale.data(), t.bias.data(), 0.1,
                                                     nullptr, nullptr, kEps, nullptr, nullptr));
    expect_values(t.x, want, 64);
  }
}

// Large enough to be shared by threads, or by blocks of a GPU.
TEST(BatchNorm, large_in_place) {
  Handle h;
  for (Layout layout : {Layout::nchw, Layout::nhwc})
    for (const Sizes& dims : choices<Sizes>({{16, 24, 40, 40}, {2, 3, 200, 200}}, {{4, 8, 20, 20}})) {
      Case c{CUDNN_BATCHNORM_SPATIAL, CUDNN_DATA_FLOAT, layout, dims};
      Tensors t(c);
      Tensor dy(c.type, dims, layout), dscale(c.type, t.scale.dims()), dbias(c.type, t.scale.dims());
      dy.random(11);
      Layer layer(t.x, t.scale, kEps);
      Values want = layer.forward(t.x, t.scale, t.bias), slope, want_scale, want_bias;
      layer.backward(t.x, dy.values(), t.scale, slope, want_scale, want_bias);
      Factor one(1, c.type), zero(0, c.type);
      ASSERT_OK(cudnnBatchNormalizationBackward(h, c.mode, one, zero, one, zero, t.x, t.x.data(), dy, dy.data(), dy,
                                                dy.data(), t.scale, t.scale.data(), dscale.data(), dbias.data(), kEps,
                                                nullptr, nullptr));
      expect_values(dy, slope, 512);
      expect_values(dscale, want_scale, 512);
      ASSERT_OK(cudnnBatchNormalizationForwardTraining(h, c.mode, one, zero, t.x, t.x.data(), t.x, t.x.data(), t.scale,
                                                       t.scale.data(), t.bias.data(), 1, t.mean.data(),
                                                       t.variance.data(), kEps, nullptr, nullptr));
      expect_values(t.x, want, 64);
      expect_values(t.mean, layer.mean);
    }
}

TEST(BatchNorm, inference) {
  Handle h;
  for (const Case& c : cases())
    for (Factors f : kFactors) {
      Tensors t(c);
      Layer layer(t.x, t.scale, kEps);
      for (size_t i = 0; i < layer.mean.size(); ++i) {
        layer.mean[i] = t.mean.get(static_cast<int64_t>(i));
        layer.inv[i] = 1 / std::sqrt(t.variance.get(static_cast<int64_t>(i)) + kEps);
      }
      Values want = blended(f.alpha, layer.forward(t.x, t.scale, t.bias), f.beta, t.y.values());
      ASSERT_OK(cudnnBatchNormalizationForwardInference(h, c.mode, Factor(f.alpha, c.type), Factor(f.beta, c.type), t.x,
                                                        t.x.data(), t.y, t.y.data(), t.scale, t.scale.data(),
                                                        t.bias.data(), t.mean.data(), t.variance.data(), kEps));
      expect_values(t.y, want, 64);
    }
}

void set(Tensor& t, const Values& v) {
  for (int64_t i = 0; i < t.count(); ++i) t.set(i, v[static_cast<size_t>(i)]);
}

TEST(BatchNorm, backward) {
  Handle h;
  for (const Case& c : cases())
    for (Factors f : kFactors)
      for (bool saved : {true, false}) {
        Tensors t(c);
        Tensor dy(c.type, c.dims, c.layout), dx(c.type, c.dims, c.layout), dscale(t.scale.type(), t.scale.dims()),
            dbias(t.scale.type(), t.scale.dims());
        dy.random(11), dx.random(12), dscale.random(13), dbias.random(14);
        Layer layer(t.x, t.scale, kEps);
        set(t.saved_mean, layer.mean), set(t.saved_inv, layer.inv);
        Values want, want_scale, want_bias;
        layer.backward(t.x, dy.values(), t.scale, want, want_scale, want_bias);
        want = blended(f.alpha, want, f.beta, dx.values());
        want_scale = blended(1, want_scale, 0.5, dscale.values());
        want_bias = blended(1, want_bias, 0.5, dbias.values());
        ASSERT_OK(cudnnBatchNormalizationBackward(
            h, c.mode, Factor(f.alpha, c.type), Factor(f.beta, c.type), Factor(1, c.type), Factor(0.5, c.type), t.x,
            t.x.data(), dy, dy.data(), dx, dx.data(), t.scale, t.scale.data(), dscale.data(), dbias.data(), kEps,
            saved ? t.saved_mean.data() : nullptr, saved ? t.saved_inv.data() : nullptr));
        expect_values(dx, want, 512);
        expect_values(dscale, want_scale, 256);
        expect_values(dbias, want_bias, 64);
      }
}

// With an addition and an activation, by the names of version 7 or 8.
struct Family {
  bool old;
  cudnnHandle_t h;
  int after;  // nothing, activation, addition and activation
  cudnnActivationDescriptor_t activation;

  cudnnBatchNormOps_t ops7() const { return static_cast<cudnnBatchNormOps_t>(after); }
  cudnnNormOps_t ops8() const { return static_cast<cudnnNormOps_t>(after); }
  static cudnnNormMode_t mode8(cudnnBatchNormMode_t m) {
    return m == CUDNN_BATCHNORM_PER_ACTIVATION ? CUDNN_NORM_PER_ACTIVATION : CUDNN_NORM_PER_CHANNEL;
  }
  static cudnnNormAlgo_t algo8(cudnnBatchNormMode_t m) {
    return m == CUDNN_BATCHNORM_SPATIAL_PERSISTENT ? CUDNN_NORM_ALGO_PERSIST : CUDNN_NORM_ALGO_STANDARD;
  }
  cudnnStatus_t forward(cudnnBatchNormMode_t mode, Tensors& t) const {
    size_t bytes = 0, reserve = 1;
    bool adds = after == 2;
    cudnnTensorDescriptor_t z = adds ? t.z : static_cast<cudnnTensorDescriptor_t>(nullptr);
    void* zd = adds ? t.z.data() : nullptr;
    Factor one(1, t.x.type()), zero(0, t.x.type());
    if (old) {
      EXPECT_OK(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(h, mode, ops7(), t.x, z, t.y, t.scale,
                                                                         activation, &bytes));
      EXPECT_OK(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(h, mode, ops7(), activation, t.x, &reserve));
      Memory work(bytes), kept(reserve);
      return cudnnBatchNormalizationForwardTrainingEx(
          h, mode, ops7(), one, zero, t.x, t.x.data(), z, zd, t.y, t.y.data(), t.scale, t.scale.data(), t.bias.data(),
          1, t.mean.data(), t.variance.data(), kEps, t.saved_mean.data(), t.saved_inv.data(), activation, work.data(),
          bytes, kept.data(), reserve);
    }
    EXPECT_OK(cudnnGetNormalizationForwardTrainingWorkspaceSize(h, mode8(mode), ops8(), algo8(mode), t.x, z, t.y,
                                                                t.scale, activation, t.mean, &bytes, 1));
    EXPECT_OK(cudnnGetNormalizationTrainingReserveSpaceSize(h, mode8(mode), ops8(), algo8(mode), activation, t.x,
                                                            &reserve, 1));
    Memory work(bytes), kept(reserve);
    return cudnnNormalizationForwardTraining(h, mode8(mode), ops8(), algo8(mode), one, zero, t.x, t.x.data(), t.scale,
                                             t.scale.data(), t.bias.data(), 1, t.mean, t.mean.data(), t.variance.data(),
                                             kEps, t.saved_mean.data(), t.saved_inv.data(), activation, z, zd, t.y,
                                             t.y.data(), work.data(), bytes, kept.data(), reserve, 1);
  }
  cudnnStatus_t backward(cudnnBatchNormMode_t mode, Tensors& t, bool give_y, Tensor& dy, Tensor& dz, Tensor& dx,
                         Tensor& dscale, Tensor& dbias) const {
    size_t bytes = 0;
    bool adds = after == 2;
    cudnnTensorDescriptor_t dzd = adds ? dz : static_cast<cudnnTensorDescriptor_t>(nullptr);
    void* dzp = adds ? dz.data() : nullptr;
    void* y = give_y ? t.y.data() : nullptr;
    Factor one(1, t.x.type()), zero(0, t.x.type());
    if (old) {
      EXPECT_OK(cudnnGetBatchNormalizationBackwardExWorkspaceSize(h, mode, ops7(), t.x, t.y, dy, dzd, dx, t.scale,
                                                                  activation, &bytes));
      Memory work(bytes);
      return cudnnBatchNormalizationBackwardEx(h, mode, ops7(), one, zero, one, zero, t.x, t.x.data(), t.y, y, dy,
                                               dy.data(), dzd, dzp, dx, dx.data(), t.scale, t.scale.data(),
                                               t.bias.data(), dscale.data(), dbias.data(), kEps, t.saved_mean.data(),
                                               t.saved_inv.data(), activation, work.data(), bytes, nullptr, 0);
    }
    EXPECT_OK(cudnnGetNormalizationBackwardWorkspaceSize(h, mode8(mode), ops8(), algo8(mode), t.x, t.y, dy, dzd, dx,
                                                         t.scale, activation, t.mean, &bytes, 1));
    Memory work(bytes);
    return cudnnNormalizationBackward(h, mode8(mode), ops8(), algo8(mode), one, zero, one, zero, t.x, t.x.data(), t.y,
                                      y, dy, dy.data(), dzd, dzp, dx, dx.data(), t.scale, t.scale.data(), t.bias.data(),
                                      dscale.data(), dbias.data(), kEps, t.mean, t.saved_mean.data(),
                                      t.saved_inv.data(), activation, work.data(), bytes, nullptr, 0, 1);
  }
};

TEST(BatchNorm, with_addition_and_activation) {
  Handle h;
  ActivationDescriptor relu;
  for (const Case& c : cases())
    for (bool old : {true, false})
      for (int after : {0, 1, 2})
        for (bool give_y : {true, false}) {
          Family family{old, h, after, after ? relu : static_cast<cudnnActivationDescriptor_t>(nullptr)};
          Tensors t(c);
          Layer layer(t.x, t.scale, kEps);
          Values want = layer.forward(t.x, t.scale, t.bias);
          for (size_t i = 0; i < want.size(); ++i) {
            if (after == 2) want[i] += t.z.get(static_cast<int64_t>(i));
            if (after) want[i] = std::max(want[i], 0.0);
          }
          ASSERT_OK(family.forward(c.mode, t));
          expect_values(t.y, want, 64);
          expect_values(t.saved_mean, layer.mean);

          Tensor dy(c.type, c.dims, c.layout), dz(c.type, c.dims, c.layout), dx(c.type, c.dims, c.layout),
              dscale(t.scale.type(), t.scale.dims()), dbias(t.scale.type(), t.scale.dims());
          dy.random(11), dz.fill(0), dx.fill(0), dscale.fill(0), dbias.fill(0);
          if (after == 2 && !give_y) {
            EXPECT_TRUE(is_bad_param(family.backward(c.mode, t, give_y, dy, dz, dx, dscale, dbias)));
            continue;
          }
          Values behind = dy.values(), want_scale, want_bias;
          for (size_t i = 0; after && i < behind.size(); ++i)
            if (want[i] <= 0) behind[i] = 0;
          if (c.type == CUDNN_DATA_HALF || c.type == CUDNN_DATA_BFLOAT16)  // what was stored as 0 counts as 0
            for (size_t i = 0; after && i < behind.size(); ++i)
              if (t.y.get(static_cast<int64_t>(i)) == 0) behind[i] = 0;
          layer.backward(t.x, behind, t.scale, want, want_scale, want_bias);
          ASSERT_OK(family.backward(c.mode, t, give_y, dy, dz, dx, dscale, dbias));
          expect_values(dx, want, 512);
          expect_values(dscale, want_scale, 256);
          expect_values(dbias, want_bias, 64);
          if (after == 2) expect_values(dz, behind);
        }
}

TEST(BatchNorm, swish_behind_it) {
  Handle h;
  ActivationDescriptor swish(CUDNN_ACTIVATION_SWISH);
  Case c{CUDNN_BATCHNORM_SPATIAL, CUDNN_DATA_FLOAT, Layout::nchw, {4, 3, 2, 2}};
  Family family{true, h, 1, swish};
  Tensors t(c);
  Tensor dy(c.type, c.dims), dx(c.type, c.dims), dscale(c.type, t.scale.dims()), dbias(c.type, t.scale.dims());
  dy.random(1);
  ASSERT_OK(family.forward(c.mode, t));
  ASSERT_OK(family.backward(c.mode, t, true, dy, dx, dx, dscale, dbias));
  Layer layer(t.x, t.scale, kEps);
  Values pre = layer.forward(t.x, t.scale, t.bias), behind = dy.values(), want, want_scale, want_bias;
  for (size_t i = 0; i < pre.size(); ++i) {
    double s = 1 / (1 + std::exp(-pre[i]));
    behind[i] *= s * (1 + pre[i] * (1 - s));
  }
  layer.backward(t.x, behind, t.scale, want, want_scale, want_bias);
  expect_values(dx, want, 512);
  expect_values(dscale, want_scale, 256);
  family.after = 2;
  float one = 1, zero = 0;
  EXPECT_TRUE(is_not_supported(cudnnBatchNormalizationBackwardEx(
      h, c.mode, family.ops7(), &one, &zero, &one, &zero, t.x, t.x.data(), t.y, t.y.data(), dy, dy.data(), dx,
      dx.data(), dx, dx.data(), t.scale, t.scale.data(), t.bias.data(), dscale.data(), dbias.data(), kEps,
      t.saved_mean.data(), t.saved_inv.data(), swish, nullptr, 0, nullptr, 0)));
}

TEST(Normalization, inference_with_addition_and_activation) {
  Handle h;
  ActivationDescriptor relu;
  for (const Case& c : cases()) {
    Tensors t(c);
    Tensor derived(CUDNN_DATA_INT8, {1}), stats(CUDNN_DATA_INT8, {1});
    ASSERT_OK(cudnnDeriveNormTensorDescriptor(derived, stats, t.x, Family::mode8(c.mode), 1));
    Layer layer(t.x, t.scale, kEps);
    for (size_t i = 0; i < layer.mean.size(); ++i) {
      layer.mean[i] = t.mean.get(static_cast<int64_t>(i));
      layer.inv[i] = 1 / std::sqrt(t.variance.get(static_cast<int64_t>(i)) + kEps);
    }
    Values want = layer.forward(t.x, t.scale, t.bias);
    for (size_t i = 0; i < want.size(); ++i) want[i] = std::max(0.0, want[i] + t.z.get(static_cast<int64_t>(i)));
    ASSERT_OK(cudnnNormalizationForwardInference(
        h, Family::mode8(c.mode), CUDNN_NORM_OPS_NORM_ADD_ACTIVATION, CUDNN_NORM_ALGO_STANDARD, Factor(1, c.type),
        Factor(0, c.type), t.x, t.x.data(), derived, t.scale.data(), t.bias.data(), stats, t.mean.data(),
        t.variance.data(), t.z, t.z.data(), relu, t.y, t.y.data(), kEps, 1));
    expect_values(t.y, want, 64);
  }
}

TEST(BatchNorm, mistakes) {
  Handle h;
  Case c{CUDNN_BATCHNORM_SPATIAL, CUDNN_DATA_HALF, Layout::nchw, {4, 3, 2, 2}};
  Tensors t(c);
  Tensor half_params(CUDNN_DATA_HALF, {1, 3, 1, 1}), wrong(CUDNN_DATA_FLOAT, {1, 4, 1, 1});
  float one = 1, zero = 0;
  auto inference = [&](cudnnHandle_t handle, int mode, cudnnTensorDescriptor_t params, void* scale, double eps) {
    return cudnnBatchNormalizationForwardInference(handle, static_cast<cudnnBatchNormMode_t>(mode), &one, &zero, t.x,
                                                   t.x.data(), t.y, t.y.data(), params, scale, t.bias.data(),
                                                   t.mean.data(), t.variance.data(), eps);
  };
  EXPECT_TRUE(is_bad_param(inference(nullptr, 1, t.scale, t.scale.data(), kEps)));
  EXPECT_TRUE(is_bad_param(inference(h, 3, t.scale, t.scale.data(), kEps)));
  EXPECT_TRUE(is_bad_param(inference(h, 0, t.scale, t.scale.data(), kEps)));
  EXPECT_TRUE(is_bad_param(inference(h, 1, half_params, t.scale.data(), kEps)));
  EXPECT_TRUE(is_bad_param(inference(h, 1, wrong, t.scale.data(), kEps)));
  EXPECT_TRUE(is_bad_param(inference(h, 1, nullptr, t.scale.data(), kEps)));
  EXPECT_TRUE(is_bad_param(inference(h, 1, t.scale, nullptr, kEps)));
  EXPECT_TRUE(is_bad_param(inference(h, 1, t.scale, t.scale.data(), -1)));
  EXPECT_TRUE(is_bad_param(cudnnBatchNormalizationForwardTraining(
      h, c.mode, &one, &zero, t.x, t.x.data(), t.y, t.y.data(), t.scale, t.scale.data(), t.bias.data(), 0.1,
      t.mean.data(), nullptr, kEps, nullptr, nullptr)));
  size_t bytes = 0;
  EXPECT_TRUE(is_bad_param(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
      h, c.mode, CUDNN_BATCHNORM_OPS_BN_ACTIVATION, nullptr, t.x, &bytes)));
  EXPECT_TRUE(is_not_supported(cudnnDeriveNormTensorDescriptor(half_params, nullptr, t.x, CUDNN_NORM_PER_CHANNEL, 2)));
}

}  // namespace
