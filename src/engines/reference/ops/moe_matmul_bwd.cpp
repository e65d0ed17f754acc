// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/moe.hpp"

namespace tsr::ref {

template <class R>
void moe_matmul_bwd(const Context<R>& c) {
  with_sum_type(c, [&](auto zero) {
    using T = decltype(zero);
    Array<T> dy = c.template in<T>(0), token = c.template in<T>(1), dw(c.out_tensor(0).dims);
    each_routed_row(c.integers(2), token.dims[1], dw.dims[0], [&](int64_t row, int64_t expert) {
      for (int64_t k = 0; k < dw.dims[1]; ++k)
        for (int64_t n = 0; n < dw.dims[2]; ++n) dw.at(expert, k, n) += token.at(0, row, k) * dy.at(0, row, n);
    });
    c.out(0, dw);
  });
}

TESSERA_REFERENCE(moe_matmul_bwd);

}  // namespace tsr::ref
