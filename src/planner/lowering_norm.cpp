// SPDX-License-Identifier: Apache-2.0
// Norms and their parts as instructions.
#include "graph/ops/slots.hpp"
#include "planner/lowering.hpp"

namespace tsr {

using tessera::NormMode;
using tessera::NormOptions;
using tessera::Phase;
using tessera::ReduceMode;
using M = PointwiseMode;

int Lowering::effective_scale(TensorId t, bool zero_centered, Lane lane) {
  int s = value(t, lane);
  return zero_centered ? apply(M::add, s, scalar(1, lane)) : s;
}

// Variance of x (mean square when not centred); d becomes the deviation and `average` the mean. The mean of the
// deviations, 0 but for the rounding of a large mean, is taken out again: that saves the digits of a small variance.
int Lowering::centre(bool centred, int x, int& d, int& average) {
  if (!centred) return mean(apply(M::mul, x, x));
  // Any number near the mean would do for `first`.
  int first = mean(x, true), rough = apply(M::sub, x, first), rest = mean(rough);
  average = apply(M::add, first, rest);
  d = apply(M::sub, rough, rest);
  return apply(M::sub, mean(apply(M::mul, rough, rough)), apply(M::mul, rest, rest));
}

void Lowering::norm(const Node& n) {
  using namespace slots::norm_fwd;
  const auto& o = attrs<NormOptions>(n);
  Lane lane = compute_lane(n);
  int x = value(n.in[kX], lane);
  int eps = slot(n.in, kEpsilon) == kNone ? scalar(o.eps, lane) : value(n.in[kEpsilon], lane);
  int average = -1, inverse = -1, variance = -1, d = x;
  bool given = o.mode == NormMode::batch && o.phase == Phase::inference;
  if (given) {
    average = value(n.in[kMean], lane);
    inverse = slot(n.in, kInvVariance) != kNone ? value(n.in[kInvVariance], lane)
                                                : apply(M::rsqrt, apply(M::add, value(n.in[kVariance], lane), eps));
    d = apply(M::sub, x, average);
  } else {
    variance = centre(o.mode != NormMode::rms, x, d, average);
    inverse = apply(M::rsqrt, apply(M::add, variance, eps));
  }
  int scale = slot(n.in, kScale) == kNone ? -1 : effective_scale(n.in[kScale], o.zero_centered, lane), factor = inverse;
  bool early = scale >= 0 && at(scale).row;  // one factor for each row instead of two for each element
  if (early) factor = apply(M::mul, inverse, scale);
  int y = apply(M::mul, d, factor);
  if (scale >= 0 && !early) y = apply(M::mul, y, scale);
  if (slot(n.in, kBias) != kNone) y = apply(M::add, y, value(n.in[kBias], lane));
  define(n.out[0], y);
  if (slot(n.out, 1) != kNone) define(n.out[1], average);
  if (slot(n.out, 2) != kNone) define(n.out[2], inverse);
  if (slot(n.out, 3) == kNone && slot(n.out, 4) == kNone) return;
  int momentum = slot(n.in, kMomentum) == kNone ? scalar(o.momentum, lane) : value(n.in[kMomentum], lane);
  int rest = apply(M::sub, scalar(1, lane), momentum);
  auto blend = [&](TensorId old, int fresh) {
    return apply(M::add, apply(M::mul, value(old, lane), rest), apply(M::mul, fresh, momentum));
  };
  auto count = static_cast<double>(e_.row_length());
  int unbiased = apply(M::mul, variance, scalar(count > 1 ? count / (count - 1) : 1, lane));
  if (slot(n.out, 3) != kNone) define(n.out[3], blend(n.in[kRunningMean], average));
  if (slot(n.out, 4) != kNone) define(n.out[4], blend(n.in[kRunningVar], unbiased));
}

void Lowering::norm_backward(const Node& n) {
  using namespace slots::norm_bwd;
  const auto& o = attrs<NormOptions>(n);
  Lane lane = compute_lane(n);
  int x = value(n.in[kX], lane), dy = value(n.in[kDy], lane);
  bool rms = o.mode == NormMode::rms, fixed = o.mode == NormMode::batch && o.phase == Phase::inference;
  int d = x, average = -1, inverse = -1;
  if (slot(n.in, kInvVariance) != kNone) {
    inverse = value(n.in[kInvVariance], lane);
    if (!rms) d = apply(M::sub, x, value(n.in[kMean], lane));
  } else {
    int eps = slot(n.in, kEpsilon) == kNone ? scalar(o.eps, lane) : value(n.in[kEpsilon], lane);
    inverse = apply(M::rsqrt, apply(M::add, centre(!rms, x, d, average), eps));
  }
  int normal = apply(M::mul, d, inverse), factor = inverse, g = dy;
  if (slot(n.in, kScale) != kNone) {
    int scale = effective_scale(n.in[kScale], o.zero_centered, lane);
    // A scale that is the same for a whole row can wait until its sums are known, which dscale and dbias then share.
    if (at(scale).row)
      factor = apply(M::mul, inverse, scale);
    else
      g = apply(M::mul, dy, scale);
  }
  int sum = -1, product = -1;  // of g, and of g and what was normalised
  if (fixed) {
    // Statistics that do not depend on x: the operation is linear.
    define(n.out[0], apply(M::mul, factor, g));
  } else {
    product = reduce(ReduceMode::add, apply(M::mul, g, normal));
    int inner = apply(M::mul, d, apply(M::mul, inverse, over_length(product)));
    if (!rms) sum = reduce(ReduceMode::add, g);
    int centred = rms ? g : apply(M::sub, g, over_length(sum));
    define(n.out[0], apply(M::mul, factor, apply(M::sub, centred, inner)));
  }
  // Gradients of scale and bias sum over the rows, which only batch norm's rows already do.
  if (slot(n.out, 1) == kNone && slot(n.out, 2) == kNone) return;
  if (o.mode != NormMode::batch) {
    if (!gpu_) decline(spelling(n), " with gradients of scale or bias sums across rows");
    if (slot(n.out, 1) != kNone) define_across(n.out[1], apply(M::mul, dy, normal));
    define_across(slot(n.out, 2), dy);
    return;
  }
  bool known = g == dy && !fixed;
  if (slot(n.out, 1) != kNone) define(n.out[1], known ? product : reduce(ReduceMode::add, apply(M::mul, dy, normal)));
  if (slot(n.out, 2) != kNone) define(n.out[2], known ? sum : reduce(ReduceMode::add, dy));
}

void Lowering::channel_sums(const Node& n) {
  int x = value(n.in[0], compute_lane(n));
  define(n.out[0], reduce(ReduceMode::add, x));
  define(n.out[1], reduce(ReduceMode::add, apply(M::mul, x, x)));
}

void Lowering::finalize_batch_norm(const Node& n) {
  using namespace slots::bn_finalize;
  const auto& o = attrs<tessera::BnFinalizeOptions>(n);
  Lane lane = compute_lane(n);
  auto given = [&](size_t at, double fallback) {
    return slot(n.in, at) == kNone ? scalar(fallback, lane) : value(n.in[at], lane);
  };
  int eps = given(kEpsilon, o.eps), average = -1, variance = -1;
  if (o.phase == Phase::inference) {
    average = value(n.in[kRunningMean], lane);
    variance = value(n.in[kRunningVar], lane);
  } else {
    int count = given(kCount, static_cast<double>(o.count)), one = scalar(1, lane);
    average = apply(M::div, value(n.in[kSum], lane), count);
    int raw = apply(M::sub, apply(M::div, value(n.in[kSqSum], lane), count), apply(M::mul, average, average));
    variance = apply(M::max, raw, scalar(0, lane));
    int momentum = given(kMomentum, o.momentum), rest = apply(M::sub, one, momentum);
    auto blend = [&](TensorId old, int fresh) {
      return apply(M::add, apply(M::mul, value(old, lane), rest), apply(M::mul, fresh, momentum));
    };
    if (slot(n.out, 4) != kNone) define(n.out[4], blend(n.in[kRunningMean], average));
    if (slot(n.out, 5) != kNone) {
      // A single element has no unbiased variance; it stays as it is.
      int others = apply(M::max, apply(M::sub, count, one), one);
      int factor = apply(M::select, apply(M::div, count, others), one, apply(M::cmp_gt, count, one));
      define(n.out[5], blend(n.in[kRunningVar], apply(M::mul, variance, factor)));
    }
  }
  int inverse = apply(M::rsqrt, apply(M::add, variance, eps)),
      factor = apply(M::mul, value(n.in[kScale], lane), inverse);
  define(n.out[0], factor);
  define(n.out[1], apply(M::sub, value(n.in[kBias], lane), apply(M::mul, average, factor)));
  define(slot(n.out, 2), average);
  define(slot(n.out, 3), inverse);
}

void Lowering::batch_norm_weights(const Node& n) {
  using namespace slots::bn_bwd_weights;
  Lane lane = compute_lane(n);
  int dy = value(n.in[kDy], lane), average = value(n.in[kMean], lane), inverse = value(n.in[kInvStd], lane);
  int normal = apply(M::mul, apply(M::sub, value(n.in[kX], lane), average), inverse);
  int dscale = reduce(ReduceMode::add, apply(M::mul, dy, normal)), dbias = reduce(ReduceMode::add, dy);
  int count = scalar(static_cast<double>(e_.row_length()), lane);
  int of_dy = apply(M::mul, value(n.in[kScale], lane), inverse), minus = apply(M::neg, of_dy);
  int of_x = apply(M::div, apply(M::mul, apply(M::mul, minus, inverse), dscale), count);
  int bias = apply(M::sub, apply(M::div, apply(M::mul, minus, dbias), count), apply(M::mul, of_x, average));
  int results[] = {dscale, dbias, of_dy, of_x, bias};
  for (size_t i = 0; i < 5; ++i) define(slot(n.out, i), results[i]);
}

}  // namespace tsr
