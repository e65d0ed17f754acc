// SPDX-License-Identifier: Apache-2.0
// Batch norms with statistics of peers: first two statistics of this device's elements, then, from those of all
// devices, what the norm without peers gives (peer_statistics.hpp tells what happens between).
#include "capi/backend/translate.hpp"

namespace tsr::capi {
namespace {

using tessera::PointwiseMode;
using tessera::PointwiseOptions;
using tessera::ReduceMode;

// Nodes that compute in f32.
class Writer {
 public:
  explicit Writer(GraphBuilder& to) : to_(to) {}
  // Into a new tensor, or into `result`.
  TensorId apply(const PointwiseOptions& o, TensorId a, TensorId b = kNone, TensorId result = kNone) {
    if (result == kNone) result = to_.inferred(DType::f32);
    to_.pointwise(o, {a, b}, DType::f32, result);
    return result;
  }
  void reduce(ReduceMode mode, TensorId x, TensorId result) {
    to_.add(ops::reduce, {x, kNone}, {result}, tessera::ReduceOptions{.mode = mode}, DType::f32);
  }
  // result = factor * value; none where the result was not asked for.
  void give(TensorId value, double factor, TensorId result) {
    if (result != kNone) apply({.mode = PointwiseMode::identity, .alpha1 = factor}, value, kNone, result);
  }

 private:
  GraphBuilder& to_;
};

constexpr PointwiseOptions kSub{.mode = PointwiseMode::sub}, kMul{.mode = PointwiseMode::mul},
    kAdd{.mode = PointwiseMode::add}, kRsqrt{.mode = PointwiseMode::rsqrt};

struct Sizes {
  int64_t peers, channels, elements;  // for each channel, of all devices
  Dims per_channel;
};

Sizes sizes_of(const Descriptor& op, const GraphBuilder& to, TensorId x, size_t peers) {
  const Tensor& t = to[x];
  demand(peers <= kMostPeers, CUDNN_STATUS_NOT_SUPPORTED, op.describe(), ": statistics of ", peers,
         " peers; allowed are ", kMostPeers);
  demand(t.dtype != DType::f64, CUDNN_STATUS_NOT_SUPPORTED, op.describe(), ": tensor '", t.name,
         "' has f64; statistics of peers are exchanged as f32, of smaller types");
  demand(t.rank() >= 2, CUDNN_STATUS_BAD_PARAM, op.describe(), ": tensor '", t.name, "' has ", t.rank(),
         " dimensions; a batch norm needs 2 or more");
  Sizes s{static_cast<int64_t>(peers), t.dims[1], static_cast<int64_t>(peers), t.dims};
  for (int i = 0; i < t.rank(); ++i) {
    if (i == 1) continue;
    s.elements *= t.dims[i];
    s.per_channel[i] = 1;
  }
  return s;
}

PeerStatistics peers_of(const Descriptor& op, Attr name, const Sizes& s, bool moments) {
  PeerStatistics p;
  // Only the ids count: programs describe the buffers with all kinds of sizes.
  for (const auto& t : op.parts(name)) p.buffers.push_back(t->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0));
  p.channels = s.channels;
  p.moments = moments;
  return p;
}

// old + factor (scale new - old), for a running statistic; none where it was not asked for.
struct Running {
  Attr old, result;
};
void update_running(const Descriptor& op, GraphBuilder& to, const Running& r, TensorId value, double scale) {
  TensorId result = to.optional(op, r.result);
  if (result == kNone) return;
  TensorId old = to.required(op, r.old), factor = to.required(op, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC);
  Writer w(to);
  TensorId apart = w.apply({.mode = PointwiseMode::sub, .alpha1 = scale}, value, old);
  w.apply(kAdd, old, w.apply(kMul, apart, factor), result);
}

}  // namespace

void translate_peer_norm_fwd(const Descriptor& op, GraphBuilder& to) {
  constexpr Attr kPeers = CUDNN_ATTR_OPERATION_NORM_FWD_PEER_STAT_DESCS;
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC);
  Sizes s = sizes_of(op, to, x, op.parts(kPeers).size());
  auto [mean, variance] = to.peer_statistics(peers_of(op, kPeers, s, true), s.per_channel);
  Writer w(to);
  w.reduce(ReduceMode::avg, x, mean);
  TensorId apart = w.apply(kSub, x, mean);
  w.reduce(ReduceMode::avg, w.apply(kMul, apart, apart), variance);

  // From here on, both are those of all devices.
  TensorId epsilon = to.required(op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC);
  TensorId inv_variance = w.apply(kRsqrt, w.apply(kAdd, variance, epsilon));
  tessera::NormOptions o;
  o.mode = tessera::NormMode::batch;
  o.phase = tessera::Phase::inference;
  to.add(ops::norm_fwd,
         {x, to.optional(op, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC),
          to.optional(op, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC), mean, inv_variance},
         {to.required(op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC)}, o, DType::f32);
  w.give(mean, 1, to.optional(op, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC));
  w.give(inv_variance, 1, to.optional(op, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC));
  auto n = static_cast<double>(s.elements);
  update_running(
      op, to,
      {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC},
      mean, 1);
  update_running(
      op, to,
      {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC},
      variance, n / (n - 1));
}

void translate_peer_norm_bwd(const Descriptor& op, GraphBuilder& to) {
  constexpr Attr kPeers = CUDNN_ATTR_OPERATION_NORM_BWD_PEER_STAT_DESCS;
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC),
           dy = to.required(op, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC),
           mean = to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC),
           inv_variance = to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC),
           scale = to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC);
  demand(mean != kNone && inv_variance != kNone, CUDNN_STATUS_NOT_SUPPORTED, op.describe(),
         ": gradients with statistics of peers need the forward pass's mean and inverse variance");
  Sizes s = sizes_of(op, to, x, op.parts(kPeers).size());
  auto [sum, product] = to.peer_statistics(peers_of(op, kPeers, s, false), s.per_channel);
  Writer w(to);
  TensorId normalised = w.apply(kMul, w.apply(kSub, x, mean), inv_variance);
  w.reduce(ReduceMode::add, dy, sum);
  w.reduce(ReduceMode::add, w.apply(kMul, dy, normalised), product);

  // From here on, both are those of all devices. Programs add up, or average, what the devices give for parameters that
  // all share: each gives its part.
  auto peers = static_cast<double>(s.peers), n = static_cast<double>(s.elements);
  w.give(sum, 1 / peers, to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC));
  w.give(product, 1 / peers, to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC));
  TensorId common = w.apply(kAdd, w.apply(kMul, normalised, product), sum);
  TensorId apart = w.apply({.mode = PointwiseMode::sub, .alpha2 = 1 / n}, dy, common);
  TensorId factor = scale == kNone ? inv_variance : w.apply(kMul, scale, inv_variance);
  w.apply(kMul, apart, factor, to.required(op, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC));
}

}  // namespace tsr::capi
