// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"
#include "engines/reference/rows.hpp"

namespace tsr::ref {

template <class R>
void reduce_by(const Context<R>& c) {
  const auto& o = c.template options<tessera::ReduceByOptions>();
  Array<R> x = c.in(0), y(c.out_tensor(0).dims, static_cast<R>(o.init));
  std::vector<Array<R>> operands(2, Array<R>(Dims{1}));
  Dims index = Dims::filled(x.rank(), 0);
  for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) {
    R& accumulator = of_row(y, index);
    operands[0][0] = accumulator;
    operands[1][0] = x[i];
    accumulator = c.call(*o.combine, operands)[0][0];
  }
  c.out(0, y);
}

TESSERA_REFERENCE(reduce_by);

}  // namespace tsr::ref
