// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/gemm/flat.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "engines/cuda/gemm/args.cuh"

namespace tsr::cuda {

Reason check_flat(const Graph& g, const Problem& p) {
  if (p.moe || p.residues > 1) return Reason::no("blocks must know their rows");
  if (p.row_limit != kNone || p.column_limit != kNone || p.depth_limit != kNone) return Reason::no("sizes arrive late");
  for (TensorId t : {p.a, p.b})
    if (info(g.tensor(t).dtype).bits < 8) return Reason::no("several elements lie in a byte");
  if (p.batch.size() + p.columns.size() > dev::kSideAxes) return Reason::no("too many axes");
  return Reason::yes();
}

void flatten(const Graph& g, Problem& p, const Tensor& y) {
  AxisList flat = p.batch;
  flat.insert(flat.end(), p.columns.begin(), p.columns.end());
  p.columns = flat;
  p.batch.clear();
  bool swap_sides = smallest_step(p.rows, y) < smallest_step(p.columns, y);
  if (p.positions > 0 && !p.rows_meet) {  // what meets positions is a
    turn(p);
    swap_sides = !swap_sides;
  }
  if (swap_sides) std::swap(p.rows, p.columns);
  // Neighbouring threads take neighbouring elements: of the result, or of what long sums read.
  bool long_sums = p.depth() > dev::kDirectDepth;
  const Dims& a = g.tensor(p.a).strides;
  std::stable_sort(p.columns.begin(), p.columns.end(), [&](const ProductAxis& m, const ProductAxis& n) {
    auto step = [&](const ProductAxis& x) { return long_sums ? std::abs(x.a.stride(a)) : y.strides[x.out] * x.times; };
    return step(m) < step(n);
  });
}

}  // namespace tsr::cuda
