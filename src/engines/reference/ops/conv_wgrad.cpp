// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/conv.hpp"

namespace tsr::ref {

template <class R>
void conv_wgrad(const Context<R>& c) {
  with_sum_type(c, [&](auto zero) {
    using T = decltype(zero);
    Array<T> dy = c.template in<T>(0), x = c.template in<T>(1), dw(c.out_tensor(0).dims);
    each_product(x.dims, dw.dims, dy.dims, c.template options<tessera::ConvOptions>(),
                 [&](int64_t ix, int64_t iw, int64_t iy) { dw[iw] += dy[iy] * x[ix]; });
    scaled_output(c, dw, 2);
  });
}

TESSERA_REFERENCE(conv_wgrad);

}  // namespace tsr::ref
