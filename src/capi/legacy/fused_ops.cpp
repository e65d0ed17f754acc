// SPDX-License-Identifier: Apache-2.0
// The graphs of fused sequences, and their plans.
#include "capi/legacy/fused_ops.hpp"

using namespace tsr;
using namespace tsr::capi;
using M = tessera::PointwiseMode;
using Label = cudnnFusedOpsVariantParamLabel_t;

namespace {

enum : int64_t { kEpsilon = 90, kFactor, kCount, kOther = 100 };

// Convolutions know their tensors by ids of their own.
int64_t id_of(Label l) {
  if (l == CUDNN_PTR_XDATA) return kConvX;
  if (l == CUDNN_PTR_WDATA || l == CUDNN_PTR_DWDATA) return kConvW;
  if (l == CUDNN_PTR_YDATA || l == CUDNN_PTR_DYDATA) return kConvY;
  return kOther + static_cast<int64_t>(l);
}

// A sequence under way: what it reads and writes goes to a call; without pointers it is only planned.
class Sequence {
 public:
  Sequence(Call& call, cudnnFusedOpsConstParamStruct& pack, const cudnnFusedOpsVariantParamStruct* pointers)
      : call_(call), pack_(pack), pointers_(pointers) {
    call.key(pack.ops);
  }

  bool has(Label l) const { return pack_.has(l); }
  void reads(std::initializer_list<Label> labels) {
    for (Label l : labels) {
      require_present(l);
      call_.input(id_of(l), shape(l), pointer(l), fused_tensor(l).name);
    }
  }
  void writes(std::initializer_list<Label> labels) {
    for (Label l : labels) {
      require_present(l);
      call_.output(id_of(l), shape(l), pointer(l), fused_tensor(l).name);
    }
  }
  void may_read(std::initializer_list<Label> labels) {
    for (Label l : labels)
      if (has(l)) reads({l});
  }
  void may_write(std::initializer_list<Label> labels) {
    for (Label l : labels)
      if (has(l)) writes({l});
  }
  Shape shape(Label l) {
    const FusedTensor& t = fused_tensor(l);
    if (l == CUDNN_PTR_ACTIVATION_BITMASK) return bitmask();
    if (const auto* d = pack_.find<cudnnTensorStruct>(t.descriptor)) return *d;
    if (const auto* d = pack_.find<cudnnFilterStruct>(t.descriptor)) return *d;
    refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor of ", t.name, " is not set");
  }
  Convolution convolution(ConvPass pass) {
    bool forward = pass == ConvPass::forward;
    return make_convolution(pass, pack_.find<cudnnConvolutionStruct>(CUDNN_PARAM_CONV_DESC),
                            pack_.find<cudnnTensorStruct>(CUDNN_PARAM_XDESC),
                            pack_.find<cudnnFilterStruct>(forward ? CUDNN_PARAM_WDESC : CUDNN_PARAM_DWDESC),
                            pack_.find<cudnnTensorStruct>(forward ? CUDNN_PARAM_YDESC : CUDNN_PARAM_DYDESC));
  }
  const cudnnActivationStruct* activation() {
    const auto* a = pack_.find<cudnnActivationStruct>(CUDNN_PARAM_ACTIVATION_DESC);
    return a && a->mode != CUDNN_ACTIVATION_IDENTITY ? a : nullptr;
  }
  void key_convolution(const Convolution& c) {
    const cudnnConvolutionStruct& d = c.conv;
    call_.key(d.pad, d.stride, d.dilation, d.mode, d.groups);
  }
  void key_activation() {
    if (const cudnnActivationStruct* a = activation())
      call_.key(a->mode, a->coef, a->swish_beta);
    else
      call_.key('-');
  }
  Call& call() { return call_; }
  const cudnnFusedOpsVariantParamStruct* numbers() const { return pointers_; }

 private:
  void require_present(Label l) const {
    demand(has(l), CUDNN_STATUS_BAD_PARAM, fused_tensor(l).name, " is needed, its placeholder says CUDNN_PTR_NULL");
  }
  void* pointer(Label l) const {
    if (!pointers_) return kSomewhere;
    auto it = pointers_->pointers.find(l);
    return it == pointers_->pointers.end() ? nullptr : it->second;
  }
  // One bit for each element of x, the channels of a position side by side and rounded up to 64.
  Shape bitmask() {
    const auto* d = pack_.find<cudnnTensorStruct>(CUDNN_PARAM_ACTIVATION_BITMASK_DESC);
    const auto* x = pack_.find<cudnnTensorStruct>(CUDNN_PARAM_XDESC);
    demand(d && x, CUDNN_STATUS_BAD_PARAM, "the descriptor of ", d ? "x" : "activationBitmask", " is not set");
    int64_t pitch = (x->dims[1] + 63) / 64 * 64;
    Dims strides = format_strides(CUDNN_TENSOR_NHWC, x->dims);
    for (int i = 0; i < strides.size(); ++i)
      if (i != 1) strides[i] = strides[i] / x->dims[1] * pitch;
    int64_t bits = volume(x->dims) / x->dims[1] * pitch;
    demand(d->type == CUDNN_DATA_INT32 && volume(d->dims) * 32 >= bits, CUDNN_STATUS_BAD_PARAM, "activationBitmask is ",
           *d, ", it must be INT32 with at least ", bits / 32, " elements");
    return {CUDNN_DATA_BOOLEAN, x->dims, strides};
  }

  Call& call_;
  cudnnFusedOpsConstParamStruct& pack_;
  const cudnnFusedOpsVariantParamStruct* pointers_;
};

DType compute_of(const Shape& s) { return s.type == CUDNN_DATA_DOUBLE ? DType::f64 : DType::f32; }

// scale * v + bias, as far as they are there.
TensorId scale_bias(Maker& m, TensorId v, Label scale, Label bias, DType type) {
  if (TensorId s = m[id_of(scale)]; s != kNone) v = m.pointwise({.mode = M::mul}, {v, s}, type);
  if (TensorId b = m[id_of(bias)]; b != kNone) v = m.pointwise({.mode = M::add}, {v, b}, type);
  return v;
}

// What the convolution reads: activation(eqScale * x + eqBias), rounded to the type of x as it would be in memory.
TensorId prologue(Maker& m, Sequence& s) {
  DType type = compute_of(s.shape(CUDNN_PTR_XDATA));
  const cudnnActivationStruct* a = s.activation();
  TensorId x = m[kConvX], v = scale_bias(m, x, CUDNN_PTR_BN_EQSCALE, CUDNN_PTR_BN_EQBIAS, type);
  if (v == x && !a) return x;
  TensorId rounded = m.inferred(from_data_type(s.shape(CUDNN_PTR_XDATA).type));
  m.pointwise(a ? forward_of(*a) : tessera::PointwiseOptions{}, {v}, type, rounded);
  return rounded;
}

using Make = std::function<void(Maker&)>;

Make conv_bnstats(Sequence& s) {
  Convolution c = s.convolution(ConvPass::forward);
  s.key_convolution(c), s.key_activation();
  s.reads({CUDNN_PTR_XDATA, CUDNN_PTR_WDATA}), s.may_read({CUDNN_PTR_BN_EQSCALE, CUDNN_PTR_BN_EQBIAS});
  s.writes({CUDNN_PTR_YDATA}), s.may_write({CUDNN_PTR_YSUM, CUDNN_PTR_YSQSUM});
  return [&s, c](Maker& m) {
    TensorId y = convolve(m, c, prologue(m, s), m.result(kConvY));
    auto sum = [&](Label l) { return s.has(l) ? m.result(id_of(l)) : kNew; };
    if (s.has(CUDNN_PTR_YSUM) || s.has(CUDNN_PTR_YSQSUM))
      m.add(ops::gen_stats, {y}, {sum(CUDNN_PTR_YSUM), sum(CUDNN_PTR_YSQSUM)}, std::any(ops::gen_stats.defaults),
            compute_of(c.y));
  };
}

Make wgrad(Sequence& s) {
  Convolution c = s.convolution(ConvPass::backward_filter);
  s.key_convolution(c), s.key_activation();
  s.reads({CUDNN_PTR_XDATA, CUDNN_PTR_DYDATA}), s.may_read({CUDNN_PTR_BN_EQSCALE, CUDNN_PTR_BN_EQBIAS});
  s.writes({CUDNN_PTR_DWDATA});
  return [&s, c](Maker& m) { convolve(m, c, prologue(m, s), m.result(kConvW)); };
}

Make conv_scale_bias_add_activation(Sequence& s) {
  Convolution c = s.convolution(ConvPass::forward);
  s.key_convolution(c), s.key_activation();
  s.reads({CUDNN_PTR_XDATA, CUDNN_PTR_WDATA});
  s.may_read({CUDNN_PTR_BN_EQSCALE, CUDNN_PTR_BN_EQBIAS, CUDNN_PTR_ZDATA});
  s.writes({CUDNN_PTR_YDATA});
  return [&s, c](Maker& m) {
    DType type = compute_of(c.y);
    TensorId v = scale_bias(m, convolve(m, c), CUDNN_PTR_BN_EQSCALE, CUDNN_PTR_BN_EQBIAS, type);
    if (s.has(CUDNN_PTR_ZDATA)) v = m.pointwise({.mode = M::add}, {v, m[id_of(CUDNN_PTR_ZDATA)]}, type);
    const cudnnActivationStruct* a = s.activation();
    m.pointwise(a ? forward_of(*a) : tessera::PointwiseOptions{}, {v}, type, m.result(kConvY));
  };
}

// Numbers arrive as double and are used as float, in which statistics are computed.
struct Numbers {
  float epsilon = 0, factor = 0;
  int64_t count = 1;
};

Make bn_finalize(Sequence& s, Numbers& numbers, bool training) {
  if (const cudnnFusedOpsVariantParamStruct* v = s.numbers()) {
    numbers = {static_cast<float>(v->epsilon), static_cast<float>(v->factor), v->count};
    demand(!training || numbers.count > 0, CUDNN_STATUS_BAD_PARAM, "the accumulation count is ", numbers.count,
           ", it must be positive");
  }
  bool anew = training && numbers.factor == 1;  // running statistics may not have been written yet
  s.call().key(anew).scalar(kEpsilon, CUDNN_DATA_FLOAT, &numbers.epsilon);
  s.reads({CUDNN_PTR_BN_SCALE, CUDNN_PTR_BN_BIAS});
  s.may_write({CUDNN_PTR_BN_EQSCALE, CUDNN_PTR_BN_EQBIAS});
  if (training) {
    s.call().scalar(kFactor, CUDNN_DATA_FLOAT, &numbers.factor).scalar(kCount, CUDNN_DATA_INT64, &numbers.count);
    s.reads({CUDNN_PTR_YSUM, CUDNN_PTR_YSQSUM});
    s.may_write({CUDNN_PTR_BN_SAVED_MEAN, CUDNN_PTR_BN_SAVED_INVSTD});
    s.may_write({CUDNN_PTR_BN_RUNNING_MEAN, CUDNN_PTR_BN_RUNNING_VAR});
  } else {
    s.reads({CUDNN_PTR_BN_RUNNING_MEAN, CUDNN_PTR_BN_RUNNING_VAR});
  }
  return [&s, training, anew](Maker& m) {
    auto in = [&](Label l) { return m[id_of(l)]; };
    auto out = [&](Label l) { return s.has(l) ? m.result(id_of(l)) : kNone; };
    auto old = [&](Label l) {
      if (!training) return in(l);
      if (!s.has(l)) return kNone;
      return anew ? in(CUDNN_PTR_YSUM) : m.before(id_of(l));  // anew: any number does, its weight is 0
    };
    auto wanted = [&](Label l) { return s.has(l) ? m.result(id_of(l)) : kNew; };
    tessera::BnFinalizeOptions o;
    o.phase = training ? tessera::Phase::training : tessera::Phase::inference;
    std::vector<TensorId> results = {wanted(CUDNN_PTR_BN_EQSCALE), wanted(CUDNN_PTR_BN_EQBIAS)};
    if (training)
      for (Label l :
           {CUDNN_PTR_BN_SAVED_MEAN, CUDNN_PTR_BN_SAVED_INVSTD, CUDNN_PTR_BN_RUNNING_MEAN, CUDNN_PTR_BN_RUNNING_VAR})
        results.push_back(out(l));
    m.add(ops::bn_finalize,
          {in(CUDNN_PTR_YSUM), in(CUDNN_PTR_YSQSUM), in(CUDNN_PTR_BN_SCALE), in(CUDNN_PTR_BN_BIAS),
           old(CUDNN_PTR_BN_RUNNING_MEAN), old(CUDNN_PTR_BN_RUNNING_VAR), m[kEpsilon], m[kFactor], m[kCount]},
          results, o, compute_of(s.shape(CUDNN_PTR_BN_SCALE)));
  };
}

Make gen_bitmask(Sequence& s) {
  s.key_activation();
  s.reads({CUDNN_PTR_XDATA}), s.may_read({CUDNN_PTR_BN_EQSCALE, CUDNN_PTR_BN_EQBIAS, CUDNN_PTR_ZDATA});
  if (s.has(CUDNN_PTR_ZDATA)) s.may_read({CUDNN_PTR_BN_Z_EQSCALE, CUDNN_PTR_BN_Z_EQBIAS});
  s.writes({CUDNN_PTR_YDATA}), s.may_write({CUDNN_PTR_ACTIVATION_BITMASK});
  return [&s](Maker& m) {
    DType type = compute_of(s.shape(CUDNN_PTR_XDATA));
    TensorId v = scale_bias(m, m[kConvX], CUDNN_PTR_BN_EQSCALE, CUDNN_PTR_BN_EQBIAS, type);
    if (s.has(CUDNN_PTR_ZDATA)) {
      TensorId z = m[id_of(CUDNN_PTR_ZDATA)];
      v = m.pointwise({.mode = M::add}, {v, scale_bias(m, z, CUDNN_PTR_BN_Z_EQSCALE, CUDNN_PTR_BN_Z_EQBIAS, type)},
                      type);
    }
    const cudnnActivationStruct* a = s.activation();
    m.pointwise(a ? forward_of(*a) : tessera::PointwiseOptions{}, {v}, type, m.result(kConvY));
    if (s.has(CUDNN_PTR_ACTIVATION_BITMASK))
      m.pointwise({.mode = M::cmp_gt}, {v, m.constant(0, type)}, type, m.result(id_of(CUDNN_PTR_ACTIVATION_BITMASK)));
  };
}

Make dactivation_fork_dbn(Sequence& s) {
  const cudnnActivationStruct* a = s.activation();
  demand(!a || (a->mode == CUDNN_ACTIVATION_RELU && s.has(CUDNN_PTR_ACTIVATION_BITMASK)), CUDNN_STATUS_NOT_SUPPORTED,
         "the gradient of an activation is taken from activationBitmask, which means RELU");
  s.key_activation();
  s.reads({CUDNN_PTR_XDATA, CUDNN_PTR_DYDATA, CUDNN_PTR_BN_SCALE, CUDNN_PTR_BN_SAVED_MEAN, CUDNN_PTR_BN_SAVED_INVSTD});
  if (a) s.reads({CUDNN_PTR_ACTIVATION_BITMASK});
  s.writes({CUDNN_PTR_DXDATA}), s.may_write({CUDNN_PTR_DZDATA, CUDNN_PTR_BN_DSCALE, CUDNN_PTR_BN_DBIAS});
  return [&s, a](Maker& m) {
    DType type = compute_of(s.shape(CUDNN_PTR_XDATA));
    TensorId dz = m[kConvY];
    if (a)
      dz = m.pointwise({.mode = M::select}, {dz, m.constant(0, type), m[id_of(CUDNN_PTR_ACTIVATION_BITMASK)]}, type);
    if (s.has(CUDNN_PTR_DZDATA)) m.pointwise({}, {dz}, type, m.result(id_of(CUDNN_PTR_DZDATA)));
    auto out = [&](Label l) { return s.has(l) ? m.result(id_of(l)) : kNone; };
    m.add(ops::norm_bwd,
          {m[kConvX], dz, m[id_of(CUDNN_PTR_BN_SCALE)], m[id_of(CUDNN_PTR_BN_SAVED_MEAN)],
           m[id_of(CUDNN_PTR_BN_SAVED_INVSTD)]},
          {out(CUDNN_PTR_DXDATA), out(CUDNN_PTR_BN_DSCALE), out(CUDNN_PTR_BN_DBIAS)},
          tessera::NormOptions{.mode = tessera::NormMode::batch}, type);
  };
}

// Calls use(call, make) for the sequence of a pack, with the pointers of another or only to plan.
template <class Use>
void with_sequence(cudnnHandle_t handle, cudnnFusedOpsConstParamStruct& pack,
                   const cudnnFusedOpsVariantParamStruct* pointers, const Use& use) {
  Call call(handle, "fused ops");
  Sequence s(call, pack, pointers);
  Numbers numbers;
  switch (pack.ops) {
    case CUDNN_FUSED_SCALE_BIAS_ACTIVATION_CONV_BNSTATS:
      return use(call, conv_bnstats(s));
    case CUDNN_FUSED_SCALE_BIAS_ACTIVATION_WGRAD:
      return use(call, wgrad(s));
    case CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING:
      return use(call, bn_finalize(s, numbers, true));
    case CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE:
      return use(call, bn_finalize(s, numbers, false));
    case CUDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION:
      return use(call, conv_scale_bias_add_activation(s));
    case CUDNN_FUSED_SCALE_BIAS_ADD_ACTIVATION_GEN_BITMASK:
      return use(call, gen_bitmask(s));
    default:
      return use(call, dactivation_fork_dbn(s));
  }
}

// Programs insist that these need no workspace; they run in the handle's memory.
bool finalizes(cudnnFusedOps_t ops) {
  return ops == CUDNN_FUSED_BN_FINALIZE_STATISTICS_TRAINING || ops == CUDNN_FUSED_BN_FINALIZE_STATISTICS_INFERENCE;
}

bool normalizes(cudnnFusedOps_t ops) { return ops != CUDNN_FUSED_CONV_SCALE_BIAS_ADD_ACTIVATION; }

}  // namespace

cudnnStatus_t CUDNNWINAPI cudnnMakeFusedOpsPlan(cudnnHandle_t handle, cudnnFusedOpsPlan_t plan,
                                                const cudnnFusedOpsConstParamPack_t constPack,
                                                size_t* workspaceSizeInBytes) {
  return answer(TESSERA_CALL(cudnnMakeFusedOpsPlan, handle, plan, constPack, workspaceSizeInBytes), [&] {
    cudnnFusedOpsPlanStruct& p = given(plan, "plan");
    cudnnFusedOpsConstParamStruct pack = given(constPack, "constPack");
    size_t& bytes = given(workspaceSizeInBytes, "workspaceSizeInBytes");
    demand(p.ops == pack.ops, CUDNN_STATUS_BAD_PARAM, "the plan is for sequence ", static_cast<int>(p.ops),
           ", constPack for ", static_cast<int>(pack.ops));
    demand(!normalizes(pack.ops) || pack.mode != CUDNN_BATCHNORM_PER_ACTIVATION, CUDNN_STATUS_NOT_SUPPORTED,
           "the batch norm mode is PER_ACTIVATION; SPATIAL and SPATIAL_PERSISTENT are supported");
    with_sequence(handle, pack, nullptr, [&](Call& call, const Make& make) {
      size_t needed = call.plan(make)->workspace_bytes();
      bytes = finalizes(pack.ops) ? 0 : needed;
    });
    p.made = std::move(pack);
  });
}

cudnnStatus_t CUDNNWINAPI cudnnFusedOpsExecute(cudnnHandle_t handle, const cudnnFusedOpsPlan_t plan,
                                               cudnnFusedOpsVariantParamPack_t varPack) {
  return answer(TESSERA_CALL(cudnnFusedOpsExecute, handle, plan, varPack), [&] {
    cudnnFusedOpsPlanStruct& p = given(plan, "plan");
    const cudnnFusedOpsVariantParamStruct& v = given(varPack, "varPack");
    demand(p.made.has_value(), CUDNN_STATUS_BAD_PARAM, "the plan was not made");
    demand(p.ops == v.ops, CUDNN_STATUS_BAD_PARAM, "the plan is for sequence ", static_cast<int>(p.ops),
           ", varPack for ", static_cast<int>(v.ops));
    auto it = v.pointers.find(CUDNN_PTR_WORKSPACE);
    void* workspace = it == v.pointers.end() ? nullptr : it->second;
    with_sequence(handle, *p.made, &v,
                  [&](Call& call, const Make& make) { call.run_in(workspace, v.workspace_bytes, make); });
  });
}
