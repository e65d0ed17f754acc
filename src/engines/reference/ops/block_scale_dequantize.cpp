// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/block_scale.hpp"
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
void block_scale_dequantize(const Context<R>& c) {
  const auto& o = c.template options<tessera::BlockScaleOptions>();
  Array<R> x = c.in(0), y(x.dims);
  Dims lengths = *dequantize_lengths(o, x.dims, c.in_tensor(1));
  Array<R> scale = read_scales<R>(c.in_memory(1), block_axis(lengths));
  Dims index = Dims::filled(x.rank(), 0);
  for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) {
    R s = scale.at(scale_index(index, lengths));
    y[i] = x[i] * (o.neg_scale ? -s : s);
  }
  c.out(0, y);
}

TESSERA_REFERENCE(block_scale_dequantize);

}  // namespace tsr::ref
