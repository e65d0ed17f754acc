// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/conv.hpp"

namespace tsr::ref {

template <class R>
void conv_dgrad(const Context<R>& c) {
  with_sum_type(c, [&](auto zero) {
    using T = decltype(zero);
    Array<T> dy = c.template in<T>(0), w = c.template in<T>(1), dx(c.out_tensor(0).dims);
    each_product(dx.dims, w.dims, dy.dims, c.template options<tessera::ConvOptions>(),
                 [&](int64_t ix, int64_t iw, int64_t iy) { dx[ix] += dy[iy] * w[iw]; });
    scaled_output(c, dx, 2);
  });
}

TESSERA_REFERENCE(conv_dgrad);

}  // namespace tsr::ref
