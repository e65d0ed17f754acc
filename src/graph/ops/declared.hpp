// SPDX-License-Identifier: Apache-2.0
// Sizes that the inputs of an operation do not tell.
#pragma once

#include "graph/op.hpp"

namespace tsr {

// The `size` option where there is one, otherwise what the author declared on the output. Sizes that were declared once
// and survive only as the output's current ones (see Graph::with_shapes) become the option.
inline Ints declared_sizes(const Infer& ctx, Ints& size) {
  const Tensor& y = ctx.out(0);
  ctx.check(!size.empty() || y.dims_given || !y.dims.empty(),
            "the sizes of the result are missing: give size= or the sizes of the output");
  if (size.empty() && !y.dims_given) size = y.dims.to_vector();
  return size.empty() ? y.dims.to_vector() : size;
}

}  // namespace tsr
