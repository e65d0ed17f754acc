// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/block_scale.hpp"

#include <cmath>

#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

template <class R>
void block_scale_quantize(const Context<R>& c) {
  const auto& o = c.template options<tessera::BlockScaleOptions>();
  Array<R> x = c.in(0), y(x.dims), scale(c.out_tensor(1).dims);
  auto cut = static_cast<int>(normalize_axis(o.axis, x.rank()));
  Dims lengths = Dims::filled(x.rank(), 1);
  lengths[cut] = o.block[0];
  DType type = c.out_tensor(0).dtype, scale_type = c.out_tensor(1).dtype;
  auto largest = static_cast<R>(tsr::largest(type));
  Dims index = Dims::filled(x.rank(), 0);
  for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) {
    R& s = scale.at(scale_index(index, lengths));
    R a = std::fabs(x[i]);
    if (std::isnan(a) || a > s) s = a;  // a NaN stays: nothing compares greater
  }
  for (R& s : scale.data) s = static_cast<R>(round_to(scale_type, s / largest));
  index = Dims::filled(x.rank(), 0);
  for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) {
    R s = scale.at(scale_index(index, lengths));
    y[i] = s == 0 ? R(0) : x[i] / s;
  }
  c.out(0, y);
  if (c.wants(1)) write_scales(c.out_memory(1), scale, cut);
}

TESSERA_REFERENCE(block_scale_quantize);

}  // namespace tsr::ref
