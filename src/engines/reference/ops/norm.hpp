// SPDX-License-Identifier: Apache-2.0
// What the definitions of the norms share: statistics of the elements that belong together.
#pragma once

#include <cmath>

#include "engines/reference/context.hpp"
#include "graph/ops/norm_shape.hpp"

namespace tsr::ref {

// Calls f(position in x, position in the statistics, position in the parameters) for every element of x.
template <class F>
void each_norm_element(const Dims& x, const NormShape& shape, const F& f) {
  Dims index = Dims::filled(x.size(), 0);
  auto position = [](const Dims& i, const Dims& dims) {
    int64_t o = 0;
    for (int d = 0; d < dims.size(); ++d) o = o * dims[d] + i[d];
    return o;
  };
  for (int64_t i = 0, n = volume(x); i < n; ++i, next_index(index, x)) {
    Dims param = index;
    for (int d = 0; d < x.size(); ++d)
      if (shape.params[d] == 1) param[d] = 0;
    f(i, position(stats_index(index, x, shape.stats), shape.stats), position(param, shape.params));
  }
}

// The factor of each element: scale, 1 + scale when it is stored zero-centered, 1 when there is none.
template <class R>
Array<R> effective_scale(const Context<R>& c, int slot, const NormShape& shape) {
  Array<R> scale(shape.params, 1);
  if (!c.has(slot)) return scale;
  scale.data = c.in(slot).data;
  if (c.template options<tessera::NormOptions>().zero_centered)
    for (R& s : scale.data) s += 1;
  return scale;
}

// Elements behind each of the statistics.
inline int64_t norm_count(const Dims& x, const NormShape& shape) {
  int64_t groups = volume(shape.stats);
  return groups > 0 ? volume(x) / groups : 0;
}

template <class R>
struct Moments {
  Array<R> mean, variance;
};

// In two passes, so that a large mean does not drown a small variance. Not centered (rms): the mean is taken as 0.
template <class R>
Moments<R> moments(const Array<R>& x, const NormShape& shape, bool centered) {
  Moments<R> m{Array<R>(shape.stats), Array<R>(shape.stats)};
  R count = static_cast<R>(norm_count(x.dims, shape));
  if (centered) {
    each_norm_element(x.dims, shape, [&](int64_t i, int64_t s, int64_t) { m.mean[s] += x[i]; });
    for (R& v : m.mean.data) v /= count;
  }
  each_norm_element(x.dims, shape, [&](int64_t i, int64_t s, int64_t) {
    R difference = x[i] - m.mean[s];
    m.variance[s] += difference * difference;
  });
  for (R& v : m.variance.data) v /= count;
  return m;
}

template <class R>
Array<R> inverse_deviation(const Array<R>& variance, R eps) {
  Array<R> inverse = variance;
  for (R& v : inverse.data) v = 1 / std::sqrt(v + eps);
  return inverse;
}

// (1 - momentum) old + momentum new
template <class R>
Array<R> running_average(const Array<R>& old, const Array<R>& fresh, R momentum) {
  Array<R> next = old;
  for (int64_t i = 0; i < old.size(); ++i) next[i] = (1 - momentum) * old[i] + momentum * fresh[i];
  return next;
}

// The estimate of the variance that running statistics keep: n / (n - 1) of the mean square; 0 for one element.
template <class R>
Array<R> unbiased(const Array<R>& variance, R count) {
  Array<R> v = variance;
  for (R& s : v.data) s *= count / std::max<R>(count - 1, 1);
  return v;
}

}  // namespace tsr::ref
