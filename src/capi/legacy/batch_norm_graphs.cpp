// SPDX-License-Identifier: Apache-2.0
#include "capi/legacy/batch_norm.hpp"
#include "capi/legacy/check.hpp"

namespace tsr::capi {
namespace {

using M = tessera::PointwiseMode;
using tessera::NormMode;
using tessera::NormOptions;
using tessera::Phase;

enum : int64_t {
  kX = 1,
  kZ,
  kY,
  kScale,
  kBias,
  kMean,
  kVariance,
  kRunningMean,
  kRunningVariance,
  kFactor,
  kDy,
  kDx,
  kDz,
  kDscale,
  kDbias
};

Dims param_dims(const Shape& x, bool per_activation) {
  Dims d = x.dims;
  for (int i = 0; i < d.size(); ++i)
    if (i == 0 || (i > 1 && !per_activation)) d[i] = 1;
  return d;
}

cudnnDataType_t param_type(const Shape& x) {
  return x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

void check_params(const NormCall& n, const Named& p) {
  Dims wanted = param_dims(*n.x_desc, n.per_activation);
  demand(p.shape.dims == wanted, CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, p.name, " is ", p.shape, ", for xDesc ",
         *n.x_desc, " its sizes must be ", wanted);
  demand(p.shape.type == param_type(*n.x_desc), CUDNN_STATUS_BAD_PARAM, p.name, " is ", name_of(p.shape.type),
         ", for xDesc ", name_of(n.x_desc->type), " it must be ", name_of(param_type(*n.x_desc)));
}

bool adds(const NormCall& n) { return n.after == AfterNorm::add_activation; }
bool activates(const NormCall& n) { return n.after != AfterNorm::nothing; }

void check(const NormCall& n) {
  demand_rank({given(n.x_desc, "xDesc"), "xDesc"}, 2, 5);
  check_params(n, {given(n.params_desc, "the descriptor of scale and bias"), "the descriptor of scale and bias"});
  check_params(n, {given(n.stats_desc, "the descriptor of mean and variance"), "the descriptor of mean and variance"});
  demand(n.epsilon >= CUDNN_BN_MIN_EPSILON, CUDNN_STATUS_BAD_PARAM, "epsilon is ", n.epsilon, ", the least allowed is ",
         CUDNN_BN_MIN_EPSILON);
  if (activates(n)) given(n.activation, "activationDesc");
}

void check_output(const NormCall& n, const Shape& y, const char* name) {
  demand_equal_sizes({*n.x_desc, "xDesc"}, {y, name});
}

void demand_both(const void* a, const void* b, const char* names) {
  demand(!a == !b, CUDNN_STATUS_BAD_PARAM, names, " must both be given or both be null");
}

// What shapes the graph of every pass.
void describe_to(Call& c, const NormCall& n) {
  c.key(n.after, n.epsilon).input(kX, *n.x_desc, n.x, "x");
  if (activates(n)) c.key(n.activation->mode, n.activation->coef, n.activation->swish_beta);
}

NormOptions options_of(const NormCall& n, Phase phase) {
  return {.mode = NormMode::batch, .phase = phase, .eps = n.epsilon};
}

// Adds z and applies the activation.
TensorId finish(Maker& m, const NormCall& n, TensorId y, DType compute) {
  if (adds(n)) y = m.pointwise({.mode = M::add}, {y, m[kZ]}, compute);
  return activates(n) ? m.pointwise(forward_of(*n.activation), {y}, compute) : y;
}

template <class N>
void take_operands(Call& c, const N& n) {
  check_output(n, given(n.y_desc, "yDesc"), "yDesc");
  c.input(kScale, *n.params_desc, n.scale, "scale").input(kBias, *n.params_desc, n.bias, "bias");
  if (adds(n)) {
    check_output(n, given(n.z_desc, "zDesc"), "zDesc");
    c.input(kZ, *n.z_desc, n.z, "z");
  }
  c.output(kY, *n.y_desc, n.y, "y");
}

// A call of the training pass: what it needs to live as long as it runs.
class TrainingCall {
 public:
  explicit TrainingCall(const NormTraining& n)
      : n_(n), call_(n.handle, n.function), wide_(n.factor), narrow_(static_cast<float>(n.factor)) {
    check(n);
    demand_both(n.running_mean, n.running_variance, "resultRunningMean and resultRunningVariance");
    demand_both(n.saved_mean, n.saved_inv_variance, "resultSaveMean and resultSaveInvVariance");
    describe_to(call_, n);
    blend_.emplace(call_, n.alpha, n.beta, given(n.y_desc, "yDesc").type);
    take_operands(call_, n);
    call_.optional_output(kMean, n.stats_desc, n.saved_mean)
        .optional_output(kVariance, n.stats_desc, n.saved_inv_variance)
        .optional_output(kRunningMean, n.stats_desc, n.running_mean)
        .optional_output(kRunningVariance, n.stats_desc, n.running_variance);
    if (!n.running_mean) return;
    bool wide = n.stats_desc->type == CUDNN_DATA_DOUBLE;
    call_.key(n.factor == 1).scalar(kFactor, n.stats_desc->type, wide ? static_cast<const void*>(&wide_) : &narrow_);
  }
  TrainingCall(const TrainingCall&) = delete;
  TrainingCall& operator=(const TrainingCall&) = delete;

  void run() {
    call_.run_in(n_.workspace, n_.workspace_bytes, [&](Maker& m) { make(m); });
  }
  size_t workspace() {
    return call_.plan([&](Maker& m) { make(m); })->workspace_bytes();
  }

 private:
  // A factor of 1 takes nothing of the old value, which may never have been set.
  TensorId old(Maker& m, int64_t id) {
    if (!call_.has(id)) return kNone;
    return n_.factor == 1 ? m.zeros(n_.stats_desc->dims, m.compute(id)) : m.before(id);
  }
  void make(Maker& m) {
    DType compute = m.compute(kY);
    TensorId to = activates(n_) ? m.inferred(compute) : m.target(*blend_, kY);
    TensorId y = m.add(ops::norm_fwd,
                       {m[kX], m[kScale], m[kBias], kNone, kNone, kNone, old(m, kRunningMean), old(m, kRunningVariance),
                        kNone, m[kFactor]},
                       {to, m.result(kMean), m.result(kVariance), m.result(kRunningMean), m.result(kRunningVariance)},
                       options_of(n_, Phase::training), compute)[0];
    m.blend(*blend_, kY, finish(m, n_, y, compute));
  }

  const NormTraining& n_;
  Call call_;
  std::optional<Blend> blend_;
  double wide_;
  float narrow_;
};

// The gradient behind the activation, from its result, or from what went into it where only that tells it.
TensorId before_activation(Maker& m, const NormBackward& n, DType compute) {
  TensorId x = kNone, y = m[kY];
  if (!adds(n) && (y == kNone || n.activation->mode == CUDNN_ACTIVATION_SWISH)) {
    bool known = m[kMean] != kNone;
    x = m.add(ops::norm_fwd, {m[kX], m[kScale], m[kBias], m[kMean], m[kVariance]}, {kNew},
              options_of(n, known ? Phase::inference : Phase::training), compute)[0];
    y = m.pointwise(forward_of(*n.activation), {x}, compute);
  }
  return gradient_of(m, *n.activation, x, y, m[kDy], compute);
}

void take_activation(Call& c, const NormBackward& n) {
  if (!activates(n)) return;
  bool swish = n.activation->mode == CUDNN_ACTIVATION_SWISH;
  demand(!adds(n) || !swish, CUDNN_STATUS_NOT_SUPPORTED,
         "the gradient of SWISH behind an addition needs z, which this call does not have");
  if (adds(n) || n.y) {
    check_output(n, given(n.y_desc, "yDesc"), "yDesc");
    c.input(kY, *n.y_desc, n.y, "y");
  }
  if (!adds(n) && (!n.y || swish)) c.input(kBias, *n.params_desc, n.bias, "bias");
  if (adds(n)) {
    check_output(n, given(n.dz_desc, "dzDesc"), "dzDesc");
    c.output(kDz, *n.dz_desc, n.dz, "dz");
  }
}

void make(Maker& m, const NormBackward& n, const Blend& data, const Blend& params) {
  DType compute = m.compute(kDx);
  TensorId dy = activates(n) ? before_activation(m, n, compute) : m[kDy];
  if (adds(n)) m.pointwise({.mode = M::identity}, {dy}, compute, m.result(kDz));
  auto r = m.add(ops::norm_bwd, {m[kX], dy, m[kScale], m[kMean], m[kVariance]},
                 {m.target(data, kDx), m.target(params, kDscale), m.target(params, kDbias)},
                 options_of(n, Phase::training), compute);
  m.blend(data, kDx, r[0]);
  m.blend(params, kDscale, r[1]);
  m.blend(params, kDbias, r[2]);
}

// Hands the call and its graph to `use`.
template <class Use>
void backward(const NormBackward& n, const Use& use) {
  check(n);
  check_output(n, given(n.dy_desc, "dyDesc"), "dyDesc");
  check_output(n, given(n.dx_desc, "dxDesc"), "dxDesc");
  demand_both(n.mean, n.inv_variance, "savedMean and savedInvVariance");
  Call c(n.handle, n.function);
  describe_to(c, n);
  Blend data(c, n.alpha_data, n.beta_data, n.dx_desc->type),
      params(c, n.alpha_params, n.beta_params, n.params_desc->type, 1);
  c.input(kDy, *n.dy_desc, n.dy, "dy").input(kScale, *n.params_desc, n.scale, "scale");
  c.optional_input(kMean, n.stats_desc, n.mean).optional_input(kVariance, n.stats_desc, n.inv_variance);
  take_activation(c, n);
  c.output(kDx, *n.dx_desc, n.dx, "dx")
      .output(kDscale, *n.params_desc, n.dscale, "the gradient of scale")
      .output(kDbias, *n.params_desc, n.dbias, "the gradient of bias");
  use(c, [&](Maker& m) { make(m, n, data, params); });
}

}  // namespace

void run(const NormTraining& n) { TrainingCall(n).run(); }

size_t workspace_of(NormTraining n) {
  n.alpha = n.beta = kNoFactor;
  n.x = n.z = n.scale = n.bias = n.y = kSomewhere;
  n.running_mean = n.running_variance = n.saved_mean = n.saved_inv_variance = kSomewhere;
  return TrainingCall(n).workspace();
}

void run(const NormInference& n) {
  check(n);
  Call c(n.handle, n.function);
  describe_to(c, n);
  Blend blend(c, n.alpha, n.beta, given(n.y_desc, "yDesc").type);
  take_operands(c, n);
  c.input(kMean, *n.stats_desc, n.mean, "estimatedMean")
      .input(kVariance, *n.stats_desc, n.variance, "estimatedVariance");
  c.run([&](Maker& m) {
    DType compute = m.compute(kY);
    TensorId to = activates(n) ? m.inferred(compute) : m.target(blend, kY);
    TensorId y = m.add(ops::norm_fwd, {m[kX], m[kScale], m[kBias], m[kMean], kNone, m[kVariance]}, {to},
                       options_of(n, Phase::inference), compute)[0];
    m.blend(blend, kY, finish(m, n, y, compute));
  });
}

void run(const NormBackward& n) {
  backward(n, [&](Call& c, const auto& graph) { c.run_in(n.workspace, n.workspace_bytes, graph); });
}

size_t workspace_of(NormBackward n) {
  n.alpha_data = n.beta_data = n.alpha_params = n.beta_params = kNoFactor;
  n.x = n.scale = n.bias = n.dy = n.mean = n.inv_variance = kSomewhere;
  n.y = n.y_desc ? kSomewhere : nullptr;
  n.dz = n.dx = n.dscale = n.dbias = kSomewhere;
  size_t bytes = 0;
  backward(n, [&](Call& c, const auto& graph) { bytes = c.plan(graph)->workspace_bytes(); });
  return bytes;
}

void derive_params(Shape& params, const Shape& x, bool per_activation) {
  demand_rank({x, "xDesc"}, 2, 5);
  params = packed_shape(param_type(x), param_dims(x, per_activation));
}

}  // namespace tsr::capi
