// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/lrn.hpp"

namespace tsr::ref {

template <class R>
void divisive_norm_bwd(const Context<R>& c) {
  const auto& o = c.template options<tessera::LrnOptions>();
  Array<R> v = c.in(0), dy = c.in(1);
  if (c.has(2)) {
    Array<R> mean = c.in(2);
    for (int64_t i = 0; i < v.size(); ++i) v[i] -= mean[i];
  }
  Array<R> dx = divided_gradient(v, dy, spatial_box(o, v.rank()), o);
  c.out(0, dx);
  for (R& d : dx.data) d = -d;
  c.out(1, dx);
}

TESSERA_REFERENCE(divisive_norm_bwd);

}  // namespace tsr::ref
