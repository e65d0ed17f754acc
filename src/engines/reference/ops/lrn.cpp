// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/lrn.hpp"

namespace tsr::ref {

template <class R>
void lrn(const Context<R>& c) {
  const auto& o = c.template options<tessera::LrnOptions>();
  c.out(0, divided(c.in(0), channel_box(o), o));
}

TESSERA_REFERENCE(lrn);

}  // namespace tsr::ref
