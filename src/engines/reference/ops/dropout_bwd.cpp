// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
void dropout_bwd(const Context<R>& c) {
  R keep = R(1 - c.template options<tessera::DropoutOptions>().p);
  Array<R> dy = c.in(0), mask = c.in(1), dx(dy.dims);
  for (int64_t i = 0; i < dy.size(); ++i) dx[i] = mask[i] != 0 ? dy[i] / keep : R(0);
  c.out(0, dx);
}

TESSERA_REFERENCE(dropout_bwd);

}  // namespace tsr::ref
