// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/causal_conv1d.hpp"

namespace tsr::ref {

template <class R>
void b2b_causal_conv1d_bwd(const Context<R>& c) {
  Array<R> x = c.in(0), proj = c.in(1), mixer = c.in(2), skip = c.in(3), y = c.in(4), dy = c.in(5);
  Array<R> dx(x.dims), dproj(proj.dims), dmixer(mixer.dims), dskip(skip.dims);
  int64_t length = y.dims[2], kp = proj.dims[2], km = mixer.dims[1];
  for (int64_t b = 0; length > 0 && b < y.dims[0]; ++b)
    for (int64_t d = 0; d < y.dims[1]; ++d) {
      Array<R> p(Dims{3, length}), dp(p.dims), g(Dims{length}), e(g.dims), dg(g.dims);
      for (int64_t t = 0; t < length; ++t) {
        for (int64_t part = 0; part < 3; ++part)
          p.at(part, t) = causal_sum(&x.at(b, d, part, 0), t, &proj.at(d, part, 0), kp, false);
        g[t] = p.at(1, t) * p.at(2, t);
        e[t] = dy.at(b, d, t) * p.at(0, t);
        dg[t] = skip[d] * e[t];
        dskip[d] += e[t] * g[t];
      }
      causal_gradients(&g[0], &e[0], length, &mixer.at(d, 0), km, false, &dg[0], &dmixer.at(d, 0));
      for (int64_t t = 0; t < length; ++t) {
        dp.at(0, t) = dy.at(b, d, t) * y.at(b, d, t);
        dp.at(1, t) = dg[t] * p.at(2, t);
        dp.at(2, t) = dg[t] * p.at(1, t);
      }
      for (int64_t part = 0; part < 3; ++part)
        causal_gradients(&x.at(b, d, part, 0), &dp.at(part, 0), length, &proj.at(d, part, 0), kp, false,
                         &dx.at(b, d, part, 0), &dproj.at(d, part, 0));
    }
  c.out(0, dx);
  c.out(1, dproj);
  c.out(2, dmixer);
  c.out(3, dskip);
}

TESSERA_REFERENCE(b2b_causal_conv1d_bwd);

}  // namespace tsr::ref
