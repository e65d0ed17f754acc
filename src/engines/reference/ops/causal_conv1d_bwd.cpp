// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/causal_conv1d.hpp"

namespace tsr::ref {

template <class R>
void causal_conv1d_bwd(const Context<R>& c) {
  const auto& o = c.template options<tessera::CausalConvOptions>();
  Array<R> x = c.in(0), w = c.in(1), dy = c.in(2), bias(Dims{x.dims[1]});
  if (c.has(3)) bias = c.in(3);
  Array<R> dx(x.dims), dw(w.dims), dbias(bias.dims);
  int64_t length = x.dims[2], taps = w.dims[1];
  for (int64_t row = 0; length > 0 && row < x.dims[0] * x.dims[1]; ++row) {
    int64_t d = row % x.dims[1];
    const R *xs = &x[row * length], *ws = &w[d * taps];
    std::vector<R> dz(static_cast<size_t>(length));
    for (int64_t t = 0; t < length; ++t) {
      R& slope = dz[static_cast<size_t>(t)];
      slope = dy[row * length + t];
      if (o.activation == tessera::CausalActivation::silu) {
        R z = bias[d] + causal_sum(xs, t, ws, taps, o.reversed), s = 1 / (1 + std::exp(-z));
        slope *= s * (1 + z * (1 - s));
      }
      dbias[d] += slope;
    }
    causal_gradients(xs, dz.data(), length, ws, taps, o.reversed, &dx[row * length], &dw[d * taps]);
  }
  c.out(0, dx);
  c.out(1, dw);
  c.out(2, dbias);
}

TESSERA_REFERENCE(causal_conv1d_bwd);

}  // namespace tsr::ref
