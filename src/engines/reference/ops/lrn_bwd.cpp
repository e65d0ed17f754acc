// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/lrn.hpp"

namespace tsr::ref {

template <class R>
void lrn_bwd(const Context<R>& c) {
  const auto& o = c.template options<tessera::LrnOptions>();
  c.out(0, divided_gradient(c.in(0), c.in(1), channel_box(o), o));
}

TESSERA_REFERENCE(lrn_bwd);

}  // namespace tsr::ref
