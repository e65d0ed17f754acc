// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/causal_conv1d.hpp"

namespace tsr::ref {

template <class R>
void b2b_causal_conv1d(const Context<R>& c) {
  Array<R> x = c.in(0), proj = c.in(1), mixer = c.in(2), skip = c.in(3);
  Array<R> y(c.out_tensor(0).dims), gated(y.dims), g(y.dims);
  int64_t channels = y.dims[1], length = y.dims[2], kp = proj.dims[2], km = mixer.dims[1];
  for (int64_t b = 0; b < y.dims[0]; ++b)
    for (int64_t d = 0; d < channels; ++d)
      for (int64_t t = 0; t < length; ++t) {
        auto p = [&](int64_t part) { return causal_sum(&x.at(b, d, part, 0), t, &proj.at(d, part, 0), kp, false); };
        g.at(b, d, t) = p(1) * p(2);
        y.at(b, d, t) = causal_sum(&g.at(b, d, 0), t, &mixer.at(d, 0), km, false) + skip[d] * g.at(b, d, t);
        gated.at(b, d, t) = y.at(b, d, t) * p(0);
      }
  c.out(0, y);
  c.out(1, gated);
}

TESSERA_REFERENCE(b2b_causal_conv1d);

}  // namespace tsr::ref
