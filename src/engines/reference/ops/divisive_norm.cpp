// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/lrn.hpp"

namespace tsr::ref {

template <class R>
void divisive_norm(const Context<R>& c) {
  const auto& o = c.template options<tessera::LrnOptions>();
  Array<R> v = c.in(0);
  if (c.has(1)) {
    Array<R> mean = c.in(1);
    for (int64_t i = 0; i < v.size(); ++i) v[i] -= mean[i];
  }
  c.out(0, divided(v, spatial_box(o, v.rank()), o));
}

TESSERA_REFERENCE(divisive_norm);

}  // namespace tsr::ref
