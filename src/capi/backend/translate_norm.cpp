// SPDX-License-Identifier: Apache-2.0
// Normalisations and the statistics of batch norm.
#include <algorithm>

#include "capi/backend/translate.hpp"

namespace tsr::capi {
namespace {

using tessera::NormMode;
using tessera::Phase;

// The interface has no attribute for the number of groups; statistics of the forward pass show it.
int64_t groups_of(const Descriptor& op, Attr mean, Attr inv_variance) {
  const Descriptor* stats = op.part(mean) ? op.part(mean) : op.part(inv_variance);
  demand(stats && dims_of(*stats).size() >= 2, CUDNN_STATUS_NOT_SUPPORTED, op.describe(),
         ": a group norm without statistics, whose sizes tell the number of groups");
  return dims_of(*stats)[1];
}

NormMode mode_of(const Descriptor& op, Attr name) {
  auto mode = op.one(name, CUDNN_LAYER_NORM);
  switch (mode) {
    case CUDNN_LAYER_NORM:
      return NormMode::layer;
    case CUDNN_INSTANCE_NORM:
      return NormMode::instance;
    case CUDNN_BATCH_NORM:
      return NormMode::batch;
    case CUDNN_GROUP_NORM:
      return NormMode::group;
    case CUDNN_RMS_NORM:
      return NormMode::rms;
    case CUDNN_ADA_LAYER_NORM:
      return NormMode::ada_layer;
    default:
      refuse(CUDNN_STATUS_BAD_PARAM, op.describe(), ": norm mode ", static_cast<int>(mode), " does not exist");
  }
}

// Layer norms: statistics have size 1 in the dimensions that they stand for. Without them the sizes of the scale tell.
// Dimensions of size 1 in front of these are batches, of which there may be more at execution.
Ints axes_of(const GraphBuilder& g, NormMode mode, TensorId x, TensorId stats) {
  Ints axes;
  bool layers = mode == NormMode::layer || mode == NormMode::rms || mode == NormMode::ada_layer;
  if (!layers || stats == kNone || g[stats].rank() != g[x].rank()) return axes;
  for (int i = mode == NormMode::ada_layer ? 1 : 0; i < g[x].rank(); ++i)
    if (g[stats].dims[i] == 1) axes.push_back(i);
  while (axes.size() > 1 && g[x].dims[static_cast<int>(axes[0])] == 1) axes.erase(axes.begin());
  return axes;
}

// Whether statistics are to be exchanged. One peer is this device itself.
bool has_peers(const Descriptor& op, Attr name, NormMode mode) {
  size_t peers = op.parts(name).size();
  demand(peers <= 1 || mode == NormMode::batch, CUDNN_STATUS_NOT_SUPPORTED, op.describe(), ": statistics of ", peers,
         " peers; only batch norms have them");
  return peers > 1;
}

std::vector<TensorId> optional_tensors(GraphBuilder& to, const Descriptor& op, std::initializer_list<Attr> names) {
  std::vector<TensorId> ids;
  for (Attr name : names) ids.push_back(to.optional(op, name));
  return ids;
}

}  // namespace

void translate_norm_fwd(const Descriptor& op, GraphBuilder& to) {
  tessera::NormOptions o;
  o.mode = mode_of(op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE);
  bool training = op.one(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_INFERENCE) == CUDNN_NORM_FWD_TRAINING;
  if (has_peers(op, CUDNN_ATTR_OPERATION_NORM_FWD_PEER_STAT_DESCS, o.mode) && training)
    return translate_peer_norm_fwd(op, to);
  o.phase = training ? Phase::training : Phase::inference;
  if (o.mode == NormMode::group)
    o.groups = groups_of(op, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC);
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC);
  TensorId mean = to.optional(op, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC);
  TensorId inv_variance = to.optional(op, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC);
  o.axes = axes_of(to, o.mode, x, inv_variance == kNone ? mean : inv_variance);
  // Statistics are given to a batch norm's inference, and results of training. What else is set does not matter.
  bool fixed = o.mode == NormMode::batch && !training, running = o.mode == NormMode::batch && training;
  std::vector<TensorId> in =
      optional_tensors(to, op, {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC});
  auto for_running = [&](Attr name) { return running ? to.optional(op, name) : kNone; };
  in.insert(in.begin(), x);
  in.insert(in.end(), {fixed ? mean : kNone, fixed ? inv_variance : kNone, kNone,
                       for_running(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC),
                       for_running(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC),
                       to.optional(op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC),
                       for_running(CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC)});
  std::vector<TensorId> out = {to.required(op, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC),
                               training && o.mode != NormMode::rms ? mean : kNone, training ? inv_variance : kNone,
                               for_running(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC),
                               for_running(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC)};
  to.add(ops::norm_fwd, in, out, o, compute_for(to, x));
}

void translate_norm_bwd(const Descriptor& op, GraphBuilder& to) {
  tessera::NormOptions o;
  o.mode = mode_of(op, CUDNN_ATTR_OPERATION_NORM_BWD_MODE);
  if (has_peers(op, CUDNN_ATTR_OPERATION_NORM_BWD_PEER_STAT_DESCS, o.mode)) return translate_peer_norm_bwd(op, to);
  if (o.mode == NormMode::group)
    o.groups = groups_of(op, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC);
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC);
  TensorId mean = to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC);
  TensorId inv_variance = to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC);
  o.axes = axes_of(to, o.mode, x, inv_variance == kNone ? mean : inv_variance);
  std::vector<TensorId> in = {x,
                              to.required(op, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC),
                              to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC),
                              mean,
                              inv_variance,
                              to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_EPSILON_DESC)};
  std::vector<TensorId> out = {to.required(op, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC),
                               to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC),
                               to.optional(op, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC)};
  to.add(ops::norm_bwd, in, out, o, compute_for(to, x));
}

// The attribute for the type to compute in is ignored: widespread clients set it to another enumeration's values.
void translate_gen_stats(const Descriptor& op, GraphBuilder& to) {
  TensorId x = to.required(op, CUDNN_ATTR_OPERATION_GENSTATS_XDESC);
  to.add(ops::gen_stats, {x},
         {to.required(op, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC),
          to.required(op, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC)},
         {}, compute_for(to, x));
}

void translate_bn_finalize(const Descriptor& op, GraphBuilder& to) {
  tessera::BnFinalizeOptions o;
  auto mode = op.one(CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE, CUDNN_BN_FINALIZE_STATISTICS_TRAINING);
  o.phase = mode == CUDNN_BN_FINALIZE_STATISTICS_INFERENCE ? Phase::inference : Phase::training;
  std::vector<TensorId> in = optional_tensors(
      to, op,
      {CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC,
       CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC,
       CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC,
       CUDNN_ATTR_OPERATION_BN_FINALIZE_EPSILON_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC,
       CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC});
  std::vector<TensorId> out = optional_tensors(
      to, op,
      {CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC,
       CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC, CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC,
       CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC,
       CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC});
  if (o.phase == Phase::inference) std::fill(out.begin() + 2, out.end(), kNone);  // statistics are given
  to.add(ops::bn_finalize, in, out, o, compute_type(op, CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC));
}

void translate_bn_bwd_weights(const Descriptor& op, GraphBuilder& to) {
  std::vector<TensorId> in = {to.required(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC),
                              to.required(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC),
                              to.required(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC),
                              to.required(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC),
                              to.required(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC)};
  std::vector<TensorId> out = optional_tensors(
      to, op,
      {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
       CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
       CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS});
  to.add(ops::bn_bwd_weights, in, out, {}, compute_type(op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC));
}

}  // namespace tsr::capi
