// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"
#include "engines/reference/ops/norm.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using tessera::NormMode;
using tessera::NormOptions;
using tessera::Phase;
using namespace slots::norm_bwd;

}  // namespace

template <class R>
void norm_bwd(const Context<R>& c) {
  const auto& o = c.template options<NormOptions>();
  NormShape shape = norm_shape(c.graph(), c.node());
  Array<R> x = c.in(kX), dy = c.in(kDy), dx(x.dims), z(x.dims), scale = effective_scale(c, kScale, shape);
  bool centered = o.mode != NormMode::rms;

  Array<R> mean(shape.stats, 0), inverse;
  if (c.has(kInvVariance)) {
    inverse = c.in(kInvVariance);
    if (centered) mean = c.in(kMean);
  } else {
    Moments<R> m = moments(x, shape, centered);
    inverse = inverse_deviation(m.variance, c.scalar(kEpsilon, static_cast<R>(o.eps)));
    mean = std::move(m.mean);
  }

  Array<R> dscale(shape.params), dbias(shape.params), mean_g(shape.stats), mean_gz(shape.stats);
  R count = static_cast<R>(norm_count(x.dims, shape));
  each_norm_element(x.dims, shape, [&](int64_t i, int64_t s, int64_t p) {
    z[i] = (x[i] - mean[s]) * inverse[s];
    dscale[p] += dy[i] * z[i];
    dbias[p] += dy[i];
    mean_g[s] += scale[p] * dy[i] / count;
    mean_gz[s] += scale[p] * dy[i] * z[i] / count;
  });
  bool constant_statistics = o.phase == Phase::inference;
  each_norm_element(x.dims, shape, [&](int64_t i, int64_t s, int64_t p) {
    R g = scale[p] * dy[i];
    if (!constant_statistics) g -= z[i] * mean_gz[s] + (centered ? mean_g[s] : 0);
    dx[i] = inverse[s] * g;
  });
  c.out(kDx, dx);
  if (c.wants(kDscale)) dscale.dims = c.out_tensor(kDscale).dims;
  if (c.wants(kDbias)) dbias.dims = c.out_tensor(kDbias).dims;
  c.out(kDscale, dscale);
  c.out(kDbias, dbias);
}

TESSERA_REFERENCE(norm_bwd);

}  // namespace tsr::ref
