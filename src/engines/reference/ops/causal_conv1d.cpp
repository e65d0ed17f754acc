// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/causal_conv1d.hpp"

namespace tsr::ref {

template <class R>
void causal_conv1d(const Context<R>& c) {
  const auto& o = c.template options<tessera::CausalConvOptions>();
  Array<R> x = c.in(0), w = c.in(1), y(x.dims), bias(Dims{x.dims[1]});
  if (c.has(2)) bias = c.in(2);
  int64_t length = x.dims[2], taps = w.dims[1];
  for (int64_t row = 0; row < x.dims[0] * x.dims[1]; ++row)
    for (int64_t t = 0; t < length; ++t) {
      int64_t d = row % x.dims[1];
      R z = bias[d] + causal_sum(&x[row * length], t, &w[d * taps], taps, o.reversed);
      y[row * length + t] = o.activation == tessera::CausalActivation::silu ? z / (1 + std::exp(-z)) : z;
    }
  c.out(0, y);
}

TESSERA_REFERENCE(causal_conv1d);

}  // namespace tsr::ref
