// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/rope.hpp"

#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
void rope_bwd(const Context<R>& c) {
  rotate(c, R(-1));
}

TESSERA_REFERENCE(rope_bwd);

}  // namespace tsr::ref
