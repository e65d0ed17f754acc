// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"
#include "engines/reference/ops/norm.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using tessera::BnFinalizeOptions;
using namespace slots::bn_finalize;

}  // namespace

template <class R>
void bn_finalize(const Context<R>& c) {
  const auto& o = c.template options<BnFinalizeOptions>();
  R eps = c.scalar(kEpsilon, static_cast<R>(o.eps)), momentum = c.scalar(kMomentum, static_cast<R>(o.momentum));
  R count = static_cast<R>(c.template scalar<int64_t>(kCount, o.count));
  Array<R> scale = c.in(kScale), bias = c.in(kBias), mean(scale.dims), variance(scale.dims);
  if (o.phase == tessera::Phase::inference) {
    mean = c.in(kRunningMean);
    variance = c.in(kRunningVar);
  } else {
    Array<R> sum = c.in(kSum), sq_sum = c.in(kSqSum);
    for (int64_t i = 0; i < sum.size(); ++i) {
      mean[i] = sum[i] / count;
      variance[i] = sq_sum[i] / count - mean[i] * mean[i];
      if (variance[i] < 0) variance[i] = 0;
    }
    if (c.wants(kNewMean)) c.out(kNewMean, running_average(c.in(kRunningMean), mean, momentum));
    if (c.wants(kNewVar)) c.out(kNewVar, running_average(c.in(kRunningVar), unbiased(variance, count), momentum));
  }
  Array<R> inv_std = inverse_deviation(variance, eps);
  for (int64_t i = 0; i < scale.size(); ++i) {
    scale[i] *= inv_std[i];
    bias[i] -= mean[i] * scale[i];
  }
  c.out(kEqScale, scale);
  c.out(kEqBias, bias);
  c.out(kMean, mean);
  c.out(kInvStd, inv_std);
}

TESSERA_REFERENCE(bn_finalize);

}  // namespace tsr::ref
