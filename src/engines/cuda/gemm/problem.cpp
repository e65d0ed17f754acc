// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/gemm/problem.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>

namespace tsr::cuda {
namespace {

int64_t extent(const AxisList& list) {
  int64_t n = 1;
  for (const ProductAxis& x : list) n *= x.size;
  return n;
}

}  // namespace

int64_t Problem::row_count() const { return extent(rows); }
int64_t Problem::column_count() const { return extent(columns); }
int64_t Problem::depth() const { return extent(inner); }
int64_t Problem::batches() const { return extent(batch); }

void turn(Problem& p) {
  std::swap(p.rows, p.columns);
  std::swap(p.a, p.b);
  std::swap(p.row_limit, p.column_limit);
  p.rows_meet = !p.rows_meet;
  for (AxisList* list : {&p.batch, &p.rows, &p.columns, &p.inner})
    for (ProductAxis& x : *list) std::swap(x.a, x.b);
}

int64_t smallest_step(const AxisList& list, const Tensor& y) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const ProductAxis& x : list)
    if (x.size > 1 && x.out >= 0) least = std::min(least, y.strides[x.out] * x.times);
  return least;
}

Reason check_flat(const Graph& g, const Problem& p) {
  if (p.moe || p.residues > 1) return Reason::no("blocks must know their rows");
  if (p.row_limit != kNone || p.column_limit != kNone || p.depth_limit != kNone) return Reason::no("sizes arrive late");
  for (TensorId t : {p.a, p.b})
    if (info(g.tensor(t).dtype).bits < 8) return Reason::no("several elements lie in a byte");
  if (p.batch.size() + p.columns.size() > dev::kSideAxes) return Reason::no("too many axes");
  return Reason::yes();
}

void flatten(Problem& p, const Tensor& y) {
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
  std::stable_sort(p.columns.begin(), p.columns.end(), [&](const ProductAxis& m, const ProductAxis& n) {
    auto step = [&](const ProductAxis& x) { return long_sums ? std::abs(x.a) : y.strides[x.out] * x.times; };
    return step(m) < step(n);
  });
}

}  // namespace tsr::cuda
