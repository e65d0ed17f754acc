// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/moe.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using tessera::MoeMode;
using namespace slots::moe_matmul;

}  // namespace

template <class R>
void moe_matmul(const Context<R>& c) {
  const auto& o = c.template options<tessera::MoeOptions>();
  Ints index, ks;
  if (c.has(kIndex)) index = c.integers(kIndex);
  if (c.has(kKs)) ks = c.integers(kKs);
  with_sum_type(c, [&](auto zero) {
    using T = decltype(zero);
    Array<T> token = c.template in<T>(kToken), weight = c.template in<T>(kWeight), y(c.out_tensor(0).dims);
    each_routed_row(c.integers(kOffset), y.dims[1], weight.dims[0], [&](int64_t row, int64_t expert) {
      auto r = static_cast<size_t>(row);
      int64_t from = row, to = row;
      if (o.mode == MoeMode::gather) from = index[r];
      if (o.mode == MoeMode::scatter) {
        int64_t k = ks.empty() ? 0 : ks[r];
        if (index[r] < 0 || index[r] >= y.dims[1] || k < 0 || k >= o.top_k) return;
        to = index[r] * o.top_k + k;
      }
      if (from < 0 || from >= token.dims[1] || to >= y.dims[1]) return;
      for (int64_t n = 0; n < y.dims[2]; ++n) {
        T sum{};
        for (int64_t k = 0; k < token.dims[2]; ++k) sum += token.at(0, from, k) * weight.at(expert, k, n);
        y.at(0, to, n) = sum;
      }
    });
    c.out(0, y);
  });
}

TESSERA_REFERENCE(moe_matmul);

}  // namespace tsr::ref
