// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"
#include "engines/reference/random.hpp"

namespace tsr::ref {

template <class R>
void dropout(const Context<R>& c) {
  const auto& o = c.template options<tessera::DropoutOptions>();
  Stream s = stream(c, 1, 2, o);
  Array<R> x = c.in(0), y(x.dims);
  Array<int64_t> mask(x.dims);
  for (int64_t i = 0; i < x.size(); ++i) {
    mask[i] = s.bernoulli(i, 1 - o.p);
    y[i] = mask[i] ? x[i] / R(1 - o.p) : R(0);
  }
  c.out(0, y);
  c.out(1, mask);
}

TESSERA_REFERENCE(dropout);

}  // namespace tsr::ref
