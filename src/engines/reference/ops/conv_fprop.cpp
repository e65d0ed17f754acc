// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/conv.hpp"

namespace tsr::ref {

template <class R>
void conv_fprop(const Context<R>& c) {
  with_sum_type(c, [&](auto zero) {
    using T = decltype(zero);
    Array<T> x = c.template in<T>(0), w = c.template in<T>(1), y(c.out_tensor(0).dims);
    each_product(x.dims, w.dims, y.dims, c.template options<tessera::ConvOptions>(),
                 [&](int64_t ix, int64_t iw, int64_t iy) { y[iy] += x[ix] * w[iw]; });
    scaled_output(c, y, 2);
  });
}

TESSERA_REFERENCE(conv_fprop);

}  // namespace tsr::ref
