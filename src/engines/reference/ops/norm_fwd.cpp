// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"
#include "engines/reference/ops/norm.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using tessera::NormMode;
using tessera::NormOptions;
using tessera::Phase;
using namespace slots::norm_fwd;

}  // namespace

template <class R>
void norm_fwd(const Context<R>& c) {
  const auto& o = c.template options<NormOptions>();
  NormShape shape = norm_shape(c.graph(), c.node());
  Array<R> x = c.in(kX), y(x.dims), scale = effective_scale(c, kScale, shape), bias(shape.params, 0);
  if (c.has(kBias)) bias.data = c.in(kBias).data;
  R eps = c.scalar(kEpsilon, static_cast<R>(o.eps)), momentum = c.scalar(kMomentum, static_cast<R>(o.momentum));

  Array<R> mean, inverse;
  if (o.mode == NormMode::batch && o.phase == Phase::inference) {
    mean = c.in(kMean);
    inverse = c.has(kInvVariance) ? c.in(kInvVariance) : inverse_deviation(c.in(kVariance), eps);
  } else {
    Moments<R> m = moments(x, shape, o.mode != NormMode::rms);
    inverse = inverse_deviation(m.variance, eps);
    if (c.wants(kNewMean)) c.out(kNewMean, running_average(c.in(kRunningMean), m.mean, momentum));
    if (c.wants(kNewVar)) {
      R count = static_cast<R>(norm_count(x.dims, shape));
      c.out(kNewVar, running_average(c.in(kRunningVar), unbiased(m.variance, count), momentum));
    }
    mean = std::move(m.mean);
  }
  each_norm_element(x.dims, shape, [&](int64_t i, int64_t s, int64_t p) {
    y[i] = scale[p] * ((x[i] - mean[s]) * inverse[s]) + bias[p];
  });
  c.out(kY, y);
  c.out(kOutMean, mean);
  c.out(kOutInvVariance, inverse);
}

TESSERA_REFERENCE(norm_fwd);

}  // namespace tsr::ref
