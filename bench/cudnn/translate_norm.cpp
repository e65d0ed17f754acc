// SPDX-License-Identifier: Apache-2.0
// Normalisations and the statistics of batch norm.
#include "cudnn/translations.hpp"
#include "graph/op.hpp"
#include "graph/ops/norm_shape.hpp"

namespace cudnn {
namespace {

using tessera::NormOptions;
using tessera::Phase;
using Mode = tessera::NormMode;
using tsr::attrs;

// cuDNN's norms multiply by the scale as it is.
int64_t whole_scale(Writer& w, const NormOptions& o, int64_t scale) {
  if (!o.zero_centered || scale == kAbsent) return scale;
  return w.pointwise(PointwiseMode::add, scale, w.scalar(DataType::float_, 1));
}

// The same value for all channels, as parameters that cuDNN needs.
int64_t constant_like(Writer& w, const Ints& dims, double value) {
  size_t count = 1;
  for (int64_t d : dims) count *= static_cast<size_t>(d);
  return w.contents(dims, DataType::float_, std::vector<double>(count, value));
}

// A scalar input, or the option in its place.
int64_t scalar_or(Writer& w, const tsr::Node& n, int slot, DataType type, double option) {
  return Writer::has(n, slot) ? w.in(n, slot) : w.scalar(type, option);
}

enum In { kX, kScale, kBias, kMean, kInvVariance, kVariance, kRunningMean, kRunningVar, kEpsilon, kMomentum };
enum Out { kY, kOutMean, kOutInvVariance, kNewMean, kNewVar };

void check_compute(const Writer& w, const tsr::Node& n) {
  if (n.compute == tsr::DType::f64 && w.source().tensor(n.in[kX]).dtype != tsr::DType::f64)
    refuse("cuDNN's norms compute as x is stored");
}

// cuDNN norms are over the dimensions in which the scale is not 1; without one over all but the first.
void check_axes(const Writer& w, const tsr::Node& n, int64_t x, int64_t scale, tsr::TensorId scale_source) {
  auto mode = attrs<NormOptions>(n).mode;
  if (mode != Mode::layer && mode != Mode::rms && mode != Mode::ada_layer) return;
  const tsr::Tensor& source = w.source().tensor(n.in[kX]);
  if (mode == Mode::ada_layer && w.tensor(x).dims.size() != static_cast<size_t>(source.rank()))
    refuse("ada_layer_norm of ", source.rank(), " dimensions beside operations that need more");
  int64_t rows = tsr::volume(tsr::norm_shape(w.source(), n).stats), all = source.numel();
  int64_t told = w.tensor(x).dims[0];
  if (scale != kAbsent)
    told = all / w.source().tensor(scale_source).numel() * (mode == Mode::ada_layer ? source.dims[0] : 1);
  if (told != rows) refuse("cuDNN's norms are over the dimensions of the scale");
}

// Sizes of the statistics in the description's terms: those of a batch norm's scale; of layers 1 where the scale is
// not.
Ints statistics_dims(const Writer& w, const NormOptions& o, int64_t x, int64_t scale) {
  Mode mode = o.mode;
  if (mode == Mode::batch) return w.tensor(scale).dims;
  Ints dims = w.tensor(x).dims;
  for (size_t i = 0; i < dims.size(); ++i) {
    bool channels = mode == Mode::instance || mode == Mode::group;
    bool layer = scale != kAbsent && w.tensor(scale).dims[i] == 1;
    bool first = i == 0 && (scale == kAbsent || mode == Mode::ada_layer);
    if (channels ? i > 1 : !first && !layer) dims[i] = 1;
  }
  if (mode == Mode::group) dims[1] = o.groups;
  return dims;
}

// The library has engines for the arithmetic, and none for the operation.
void batch_norm_inference(Writer& w, const tsr::Node& n) {
  using P = PointwiseMode;
  int64_t mean = Writer::has(n, kMean) ? w.in(n, kMean) : w.in(n, kRunningMean);
  int64_t inv_variance = w.in(n, kInvVariance), scale = w.in(n, kScale), bias = w.in(n, kBias), y = w.out(n, kY);
  if (inv_variance == kAbsent) {
    int64_t variance = Writer::has(n, kVariance) ? w.in(n, kVariance) : w.in(n, kRunningVar);
    int64_t epsilon = scalar_or(w, n, kEpsilon, DataType::float_, attrs<NormOptions>(n).eps);
    inv_variance = w.pointwise(P::rsqrt, w.pointwise(P::add, variance, epsilon));
  }
  std::vector<Pointwise> steps = {{.mode = P::sub, .x = w.in(n, kX), .b = mean},
                                  {.mode = P::mul, .x = kAbsent, .b = inv_variance}};
  if (scale != kAbsent) steps.push_back({.mode = P::mul, .x = kAbsent, .b = scale});
  if (bias != kAbsent) steps.push_back({.mode = P::add, .x = kAbsent, .b = bias});
  steps.back().y = y;
  int64_t value = steps[0].x;
  for (Pointwise& step : steps) {
    step.x = value;
    value = w.pointwise(step);
  }
}

}  // namespace

void norm_fwd(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<NormOptions>(n);
  if (o.mode == Mode::batch && o.phase == Phase::inference) return batch_norm_inference(w, n);
  int64_t x = w.in(n, kX), scale = whole_scale(w, o, w.in(n, kScale)), bias = w.in(n, kBias), y = w.out(n, kY);
  int64_t mean = w.out(n, kOutMean), inv_variance = w.out(n, kOutInvVariance);
  check_compute(w, n);
  check_axes(w, n, x, scale, n.in[kScale]);
  if (o.mode == Mode::batch) {  // cuDNN's needs both
    tsr::Dims params = tsr::norm_shape(w.source(), n).params;
    Ints dims = w.spread(w.source().tensor(n.in[kX]), params.to_vector(), 1);
    if (scale == kAbsent) scale = constant_like(w, dims, 1);
    if (bias == kAbsent) bias = constant_like(w, dims, 0);
  }
  // Statistics come together. Batch norm always stores them, and of group norm they tell the number of groups.
  bool training = o.mode == Mode::batch || o.mode == Mode::group || mean != kAbsent || inv_variance != kAbsent;
  int64_t like = mean != kAbsent ? mean : inv_variance;
  Ints dims = like != kAbsent ? w.tensor(like).dims : training ? statistics_dims(w, o, x, scale) : Ints();
  if (training && inv_variance == kAbsent) inv_variance = w.scratch(dims);
  if (training && mean == kAbsent && o.mode != Mode::rms) mean = w.scratch(dims);
  int64_t epsilon = scalar_or(w, n, kEpsilon, DataType::float_, o.eps);
  int64_t running[] = {w.in(n, kRunningMean), w.in(n, kRunningVar), w.out(n, kNewMean), w.out(n, kNewVar)};
  bool tracks = running[2] != kAbsent || running[3] != kAbsent;
  int64_t momentum = tracks ? scalar_or(w, n, kMomentum, DataType::float_, o.momentum) : kAbsent;
  Node& node = w.add(Kind::operation_norm_forward)
                   .set(Attr::operation_norm_fwd_mode, static_cast<NormMode>(o.mode))
                   .set(Attr::operation_norm_fwd_phase, training ? NormPhase::training : NormPhase::inference);
  set_tensor(node, Attr::operation_norm_fwd_xdesc, x);
  set_tensor(node, Attr::operation_norm_fwd_mean_desc, mean);
  set_tensor(node, Attr::operation_norm_fwd_inv_variance_desc, inv_variance);
  set_tensor(node, Attr::operation_norm_fwd_scale_desc, scale);
  set_tensor(node, Attr::operation_norm_fwd_bias_desc, bias);
  set_tensor(node, Attr::operation_norm_fwd_epsilon_desc, epsilon);
  set_tensor(node, Attr::operation_norm_fwd_ydesc, y);
  if (!tracks) return;
  set_tensor(node, Attr::operation_norm_fwd_exp_avg_factor_desc, momentum);
  set_tensor(node, Attr::operation_norm_fwd_input_running_mean_desc, running[0]);
  set_tensor(node, Attr::operation_norm_fwd_input_running_var_desc, running[1]);
  set_tensor(node, Attr::operation_norm_fwd_output_running_mean_desc, running[2]);
  set_tensor(node, Attr::operation_norm_fwd_output_running_var_desc, running[3]);
}

namespace {

// Gradients need the statistics of the forward pass: where they are not given it is run again.
void run_forward(Writer& w, const tsr::Node& n, int64_t x, int64_t scale, int64_t epsilon, int64_t* mean,
                 int64_t* inv_variance) {
  const auto& o = attrs<NormOptions>(n);
  check_axes(w, n, x, scale, n.in[2]);
  tsr::Dims params = tsr::norm_shape(w.source(), n).params;
  if (o.mode == Mode::batch && scale == kAbsent)
    scale = constant_like(w, w.spread(w.source().tensor(n.in[0]), params.to_vector(), 1), 1);
  Ints dims = statistics_dims(w, o, x, scale);
  *inv_variance = w.scratch(dims);
  *mean = o.mode == Mode::rms ? kAbsent : w.scratch(dims);
  int64_t y = w.scratch(w.tensor(x).dims), bias = kAbsent;
  if (scale != kAbsent && o.mode != Mode::rms) bias = constant_like(w, w.tensor(scale).dims, 0);
  Node& node = w.add(Kind::operation_norm_forward)
                   .set(Attr::operation_norm_fwd_mode, static_cast<NormMode>(o.mode))
                   .set(Attr::operation_norm_fwd_phase, NormPhase::training);
  set_tensor(node, Attr::operation_norm_fwd_xdesc, x);
  set_tensor(node, Attr::operation_norm_fwd_mean_desc, *mean);
  set_tensor(node, Attr::operation_norm_fwd_inv_variance_desc, *inv_variance);
  set_tensor(node, Attr::operation_norm_fwd_scale_desc, scale);
  set_tensor(node, Attr::operation_norm_fwd_bias_desc, bias);
  set_tensor(node, Attr::operation_norm_fwd_epsilon_desc, epsilon);
  set_tensor(node, Attr::operation_norm_fwd_ydesc, y);
}

}  // namespace

void norm_bwd(Writer& w, const tsr::Node& n) {
  enum In { kX, kDy, kScale, kMean, kInvVariance, kEpsilon };
  enum Out { kDx, kDscale, kDbias };
  const auto& o = attrs<NormOptions>(n);
  if (o.phase == Phase::inference) refuse("cuDNN's norm gradients are those of training");
  check_compute(w, n);
  int64_t x = w.in(n, kX), dy = w.in(n, kDy), scale = whole_scale(w, o, w.in(n, kScale)), mean = w.in(n, kMean);
  int64_t inv_variance = w.in(n, kInvVariance);
  if (inv_variance == kAbsent || (o.mode != Mode::rms && mean == kAbsent))
    run_forward(w, n, x, scale, scalar_or(w, n, kEpsilon, DataType::float_, o.eps), &mean, &inv_variance);
  int64_t dx = w.out(n, kDx), dscale = w.out(n, kDscale), dbias = w.out(n, kDbias);
  // With a scale its gradient is part of the operation; rms norm may go without that of a bias.
  if (scale != kAbsent && dscale == kAbsent) dscale = w.scratch(w.tensor(scale).dims);
  if (scale != kAbsent && dbias == kAbsent && o.mode != Mode::rms) dbias = w.scratch(w.tensor(scale).dims);
  Node& node = w.add(Kind::operation_norm_backward).set(Attr::operation_norm_bwd_mode, static_cast<NormMode>(o.mode));
  set_tensor(node, Attr::operation_norm_bwd_xdesc, x);
  set_tensor(node, Attr::operation_norm_bwd_dydesc, dy);
  set_tensor(node, Attr::operation_norm_bwd_scale_desc, scale);
  set_tensor(node, Attr::operation_norm_bwd_mean_desc, o.mode == Mode::rms ? kAbsent : mean);
  set_tensor(node, Attr::operation_norm_bwd_inv_variance_desc, inv_variance);
  set_tensor(node, Attr::operation_norm_bwd_dscale_desc, dscale);
  set_tensor(node, Attr::operation_norm_bwd_dbias_desc, dbias);
  set_tensor(node, Attr::operation_norm_bwd_dxdesc, dx);
}

void gen_stats(Writer& w, const tsr::Node& n) {
  int64_t x = w.in(n, 0), sum = w.out(n, 0), sq_sum = w.out(n, 1);
  Node& node = w.add(Kind::operation_gen_stats)
                   .set(Attr::operation_genstats_mode, GenStatsMode::sum_sqsum)
                   .set(Attr::operation_genstats_math_prec, data_type(n.compute));
  set_tensor(node, Attr::operation_genstats_xdesc, x);
  set_tensor(node, Attr::operation_genstats_sumdesc, sum);
  set_tensor(node, Attr::operation_genstats_sqsumdesc, sq_sum);
}

void bn_finalize(Writer& w, const tsr::Node& n) {
  enum In { kSum, kSqSum, kScale, kBias, kRunningMean, kRunningVar, kEpsilon, kMomentum, kCount };
  const auto& o = attrs<tessera::BnFinalizeOptions>(n);
  bool training = o.phase == Phase::training;
  int64_t in[6], out[6];
  for (int i = 0; i < 6; ++i) in[i] = w.in(n, i), out[i] = w.out(n, i);
  int64_t epsilon = scalar_or(w, n, kEpsilon, DataType::float_, o.eps), momentum = kAbsent, count = kAbsent;
  if (Writer::has(n, kCount) && w.source().tensor(n.in[kCount]).dtype != tsr::DType::i64)
    refuse("accum_count: cuDNN counts in i64");
  if (training) {
    momentum = scalar_or(w, n, kMomentum, DataType::float_, o.momentum);
    count = scalar_or(w, n, kCount, DataType::int64, static_cast<double>(o.count));
  }
  constexpr Attr kIn[] = {Attr::operation_bn_finalize_y_sum_desc,
                          Attr::operation_bn_finalize_y_sq_sum_desc,
                          Attr::operation_bn_finalize_scale_desc,
                          Attr::operation_bn_finalize_bias_desc,
                          Attr::operation_bn_finalize_prev_running_mean_desc,
                          Attr::operation_bn_finalize_prev_running_var_desc};
  constexpr Attr kOut[] = {Attr::operation_bn_finalize_eq_scale_desc,
                           Attr::operation_bn_finalize_eq_bias_desc,
                           Attr::operation_bn_finalize_saved_mean_desc,
                           Attr::operation_bn_finalize_saved_inv_std_desc,
                           Attr::operation_bn_finalize_updated_running_mean_desc,
                           Attr::operation_bn_finalize_updated_running_var_desc};
  Node& node =
      w.add(Kind::operation_bn_finalize_statistics)
          .set(Attr::operation_bn_finalize_stats_mode, training ? BnFinalizeMode::training : BnFinalizeMode::inference)
          .set(Attr::operation_bn_finalize_math_prec, data_type(n.compute));
  for (size_t i = 0; i < 6; ++i) set_tensor(node, kIn[i], in[i]);
  for (size_t i = 0; i < 6; ++i) set_tensor(node, kOut[i], out[i]);
  set_tensor(node, Attr::operation_bn_finalize_epsilon_desc, epsilon);
  set_tensor(node, Attr::operation_bn_finalize_exp_averate_factor_desc, momentum);
  set_tensor(node, Attr::operation_bn_finalize_accum_count_desc, count);
}

void bn_bwd_weights(Writer& w, const tsr::Node& n) {
  constexpr Attr kIn[] = {Attr::operation_bn_bwd_weights_dy_desc, Attr::operation_bn_bwd_weights_x_desc,
                          Attr::operation_bn_bwd_weights_mean_desc, Attr::operation_bn_bwd_weights_invstd_desc,
                          Attr::operation_bn_bwd_weights_bn_scale_desc};
  constexpr Attr kOut[] = {Attr::operation_bn_bwd_weights_dbn_scale_desc, Attr::operation_bn_bwd_weights_dbn_bias_desc,
                           Attr::operation_bn_bwd_weights_eq_dy_scale_desc,
                           Attr::operation_bn_bwd_weights_eq_x_scale_desc, Attr::operation_bn_bwd_weights_eq_bias};
  int64_t in[5], out[5];
  for (int i = 0; i < 5; ++i) in[i] = w.in(n, i), out[i] = w.out(n, i);
  Node& node =
      w.add(Kind::operation_bn_bwd_weights).set(Attr::operation_bn_bwd_weights_math_prec, data_type(n.compute));
  for (size_t i = 0; i < 5; ++i) set_tensor(node, kIn[i], in[i]);
  for (size_t i = 0; i < 5; ++i) set_tensor(node, kOut[i], out[i]);
}

}  // namespace cudnn
