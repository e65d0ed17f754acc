// SPDX-License-Identifier: Apache-2.0
// Norms and their parts as instructions.
#include "graph/ops/slots.hpp"
#include "planner/lowering.hpp"

namespace tsr::lowered {

using tessera::NormMode;
using tessera::NormOptions;
using tessera::Phase;
using tessera::ReduceMode;
using M = PointwiseMode;

static int effective_scale(Lowering& l, TensorId t, bool zero_centered, Lane lane) {
  int s = l.value(t, lane);
  return zero_centered ? l.apply(M::add, s, l.scalar(1, lane)) : s;
}

// Variance of x (mean square when not centred); d becomes the deviation and `average` the mean. The mean of the
// deviations, 0 but for the rounding of a large mean, is taken out again: that saves the digits of a small variance.
static int centre(Lowering& l, bool centred, int x, int& d, int& average) {
  if (!centred) return l.mean(l.apply(M::mul, x, x));
  // Any number near the mean would do for `first`.
  int first = l.mean(x, true), rough = l.apply(M::sub, x, first), rest = l.mean(rough);
  average = l.apply(M::add, first, rest);
  d = l.apply(M::sub, rough, rest);
  return l.apply(M::sub, l.mean(l.apply(M::mul, rough, rough)), l.apply(M::mul, rest, rest));
}

void norm_fwd(Lowering& l, const Node& n) {
  using namespace slots::norm_fwd;
  const auto& o = attrs<NormOptions>(n);
  Lane lane = l.compute_lane(n);
  int x = l.value(n.in[kX], lane);
  int eps = slot(n.in, kEpsilon) == kNone ? l.scalar(o.eps, lane) : l.value(n.in[kEpsilon], lane);
  int average = -1, inverse = -1, variance = -1, d = x;
  bool given = o.mode == NormMode::batch && o.phase == Phase::inference;
  if (given) {
    average = l.value(n.in[kMean], lane);
    inverse = slot(n.in, kInvVariance) != kNone
                  ? l.value(n.in[kInvVariance], lane)
                  : l.apply(M::rsqrt, l.apply(M::add, l.value(n.in[kVariance], lane), eps));
    d = l.apply(M::sub, x, average);
  } else {
    variance = centre(l, o.mode != NormMode::rms, x, d, average);
    inverse = l.apply(M::rsqrt, l.apply(M::add, variance, eps));
  }
  int scale = slot(n.in, kScale) == kNone ? -1 : effective_scale(l, n.in[kScale], o.zero_centered, lane),
      factor = inverse;
  bool early = scale >= 0 && l.at(scale).row;  // one factor for each row instead of two for each element
  if (early) factor = l.apply(M::mul, inverse, scale);
  int y = l.apply(M::mul, d, factor);
  if (scale >= 0 && !early) y = l.apply(M::mul, y, scale);
  if (slot(n.in, kBias) != kNone) y = l.apply(M::add, y, l.value(n.in[kBias], lane));
  l.define(n.out[0], y);
  if (slot(n.out, 1) != kNone) l.define(n.out[1], average);
  if (slot(n.out, 2) != kNone) l.define(n.out[2], inverse);
  if (slot(n.out, 3) == kNone && slot(n.out, 4) == kNone) return;
  int momentum = slot(n.in, kMomentum) == kNone ? l.scalar(o.momentum, lane) : l.value(n.in[kMomentum], lane);
  int rest = l.apply(M::sub, l.scalar(1, lane), momentum);
  auto blend = [&](TensorId old, int fresh) {
    return l.apply(M::add, l.apply(M::mul, l.value(old, lane), rest), l.apply(M::mul, fresh, momentum));
  };
  auto count = static_cast<double>(l.expr().row_length());
  int unbiased = l.apply(M::mul, variance, l.scalar(count > 1 ? count / (count - 1) : 1, lane));
  if (slot(n.out, 3) != kNone) l.define(n.out[3], blend(n.in[kRunningMean], average));
  if (slot(n.out, 4) != kNone) l.define(n.out[4], blend(n.in[kRunningVar], unbiased));
}

void norm_bwd(Lowering& l, const Node& n) {
  using namespace slots::norm_bwd;
  const auto& o = attrs<NormOptions>(n);
  Lane lane = l.compute_lane(n);
  int x = l.value(n.in[kX], lane), dy = l.value(n.in[kDy], lane);
  bool rms = o.mode == NormMode::rms, fixed = o.mode == NormMode::batch && o.phase == Phase::inference;
  int d = x, average = -1, inverse = -1;
  if (slot(n.in, kInvVariance) != kNone) {
    inverse = l.value(n.in[kInvVariance], lane);
    if (!rms) d = l.apply(M::sub, x, l.value(n.in[kMean], lane));
  } else {
    int eps = slot(n.in, kEpsilon) == kNone ? l.scalar(o.eps, lane) : l.value(n.in[kEpsilon], lane);
    inverse = l.apply(M::rsqrt, l.apply(M::add, centre(l, !rms, x, d, average), eps));
  }
  int normal = l.apply(M::mul, d, inverse), factor = inverse, g = dy;
  if (slot(n.in, kScale) != kNone) {
    int scale = effective_scale(l, n.in[kScale], o.zero_centered, lane);
    // A scale that is the same for a whole row can wait until its sums are known, which dscale and dbias then share.
    if (l.at(scale).row)
      factor = l.apply(M::mul, inverse, scale);
    else
      g = l.apply(M::mul, dy, scale);
  }
  int sum = -1, product = -1;  // of g, and of g and what was normalised
  if (fixed) {
    // Statistics that do not depend on x: the operation is linear.
    l.define(n.out[0], l.apply(M::mul, factor, g));
  } else {
    product = l.reduce(ReduceMode::add, l.apply(M::mul, g, normal));
    int inner = l.apply(M::mul, d, l.apply(M::mul, inverse, l.over_length(product)));
    if (!rms) sum = l.reduce(ReduceMode::add, g);
    int centred = rms ? g : l.apply(M::sub, g, l.over_length(sum));
    l.define(n.out[0], l.apply(M::mul, factor, l.apply(M::sub, centred, inner)));
  }
  // Gradients of scale and bias sum over the rows, which only batch norm's rows already do.
  if (slot(n.out, 1) == kNone && slot(n.out, 2) == kNone) return;
  if (o.mode != NormMode::batch) {
    if (!l.gpu()) decline(spelling(n), " with gradients of scale or bias sums across rows");
    if (slot(n.out, 1) != kNone) l.define_across(n.out[1], l.apply(M::mul, dy, normal));
    l.define_across(slot(n.out, 2), dy);
    return;
  }
  bool known = g == dy && !fixed;
  if (slot(n.out, 1) != kNone)
    l.define(n.out[1], known ? product : l.reduce(ReduceMode::add, l.apply(M::mul, dy, normal)));
  if (slot(n.out, 2) != kNone) l.define(n.out[2], known ? sum : l.reduce(ReduceMode::add, dy));
}

void gen_stats(Lowering& l, const Node& n) {
  int x = l.value(n.in[0], l.compute_lane(n));
  l.define(n.out[0], l.reduce(ReduceMode::add, x));
  l.define(n.out[1], l.reduce(ReduceMode::add, l.apply(M::mul, x, x)));
}

void bn_finalize(Lowering& l, const Node& n) {
  using namespace slots::bn_finalize;
  const auto& o = attrs<tessera::BnFinalizeOptions>(n);
  Lane lane = l.compute_lane(n);
  auto given = [&](size_t at, double fallback) {
    return slot(n.in, at) == kNone ? l.scalar(fallback, lane) : l.value(n.in[at], lane);
  };
  int eps = given(kEpsilon, o.eps), average = -1, variance = -1;
  if (o.phase == Phase::inference) {
    average = l.value(n.in[kRunningMean], lane);
    variance = l.value(n.in[kRunningVar], lane);
  } else {
    int count = given(kCount, static_cast<double>(o.count)), one = l.scalar(1, lane);
    average = l.apply(M::div, l.value(n.in[kSum], lane), count);
    int raw = l.apply(M::sub, l.apply(M::div, l.value(n.in[kSqSum], lane), count), l.apply(M::mul, average, average));
    variance = l.apply(M::max, raw, l.scalar(0, lane));
    int momentum = given(kMomentum, o.momentum), rest = l.apply(M::sub, one, momentum);
    auto blend = [&](TensorId old, int fresh) {
      return l.apply(M::add, l.apply(M::mul, l.value(old, lane), rest), l.apply(M::mul, fresh, momentum));
    };
    if (slot(n.out, 4) != kNone) l.define(n.out[4], blend(n.in[kRunningMean], average));
    if (slot(n.out, 5) != kNone) {
      // A single element has no unbiased variance; it stays as it is.
      int others = l.apply(M::max, l.apply(M::sub, count, one), one);
      int factor = l.apply(M::select, l.apply(M::div, count, others), one, l.apply(M::cmp_gt, count, one));
      l.define(n.out[5], blend(n.in[kRunningVar], l.apply(M::mul, variance, factor)));
    }
  }
  int inverse = l.apply(M::rsqrt, l.apply(M::add, variance, eps)),
      factor = l.apply(M::mul, l.value(n.in[kScale], lane), inverse);
  l.define(n.out[0], factor);
  l.define(n.out[1], l.apply(M::sub, l.value(n.in[kBias], lane), l.apply(M::mul, average, factor)));
  l.define(slot(n.out, 2), average);
  l.define(slot(n.out, 3), inverse);
}

void bn_bwd_weights(Lowering& l, const Node& n) {
  using namespace slots::bn_bwd_weights;
  Lane lane = l.compute_lane(n);
  int dy = l.value(n.in[kDy], lane), average = l.value(n.in[kMean], lane), inverse = l.value(n.in[kInvStd], lane);
  int normal = l.apply(M::mul, l.apply(M::sub, l.value(n.in[kX], lane), average), inverse);
  int dscale = l.reduce(ReduceMode::add, l.apply(M::mul, dy, normal)), dbias = l.reduce(ReduceMode::add, dy);
  int count = l.scalar(static_cast<double>(l.expr().row_length()), lane);
  int of_dy = l.apply(M::mul, l.value(n.in[kScale], lane), inverse), minus = l.apply(M::neg, of_dy);
  int of_x = l.apply(M::div, l.apply(M::mul, l.apply(M::mul, minus, inverse), dscale), count);
  int bias = l.apply(M::sub, l.apply(M::div, l.apply(M::mul, minus, dbias), count), l.apply(M::mul, of_x, average));
  int results[] = {dscale, dbias, of_dy, of_x, bias};
  for (size_t i = 0; i < 5; ++i) l.define(slot(n.out, i), results[i]);
}

}  // namespace tsr::lowered
