// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using namespace slots::bn_bwd_weights;

}  // namespace

template <class R>
void bn_bwd_weights(const Context<R>& c) {
  Array<R> dy = c.in(kDy), x = c.in(kX), mean = c.in(kMean), inv_std = c.in(kInvStd), scale = c.in(kScale);
  Array<R> dscale(scale.dims), dbias(scale.dims), dy_scale(scale.dims), x_scale(scale.dims), bias(scale.dims);
  Dims index = Dims::filled(x.rank(), 0);
  for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) {
    int64_t k = index[1];
    dscale[k] += dy[i] * ((x[i] - mean[k]) * inv_std[k]);
    dbias[k] += dy[i];
  }
  for (int64_t k = 0; k < scale.size(); ++k) {
    R count = static_cast<R>(x.size()) / static_cast<R>(scale.size());
    dy_scale[k] = scale[k] * inv_std[k];
    x_scale[k] = -dy_scale[k] * inv_std[k] * dscale[k] / count;
    bias[k] = -dy_scale[k] * dbias[k] / count - x_scale[k] * mean[k];
  }
  c.out(kDscale, dscale);
  c.out(kDbias, dbias);
  c.out(kEqDyScale, dy_scale);
  c.out(kEqXScale, x_scale);
  c.out(kEqBias, bias);
}

TESSERA_REFERENCE(bn_bwd_weights);

}  // namespace tsr::ref
