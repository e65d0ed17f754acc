// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/gemm/problem.hpp"

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
  if (p.moe || p.residues > 1 || (p.positions > 0 && !p.rows_meet)) return Reason::no("blocks must know their rows");
  if (p.row_limit != kNone || p.column_limit != kNone || p.depth_limit != kNone) return Reason::no("sizes arrive late");
  if (p.depth() > dev::kDirectDepth) return Reason::no("sums of ", p.depth(), " products");
  for (TensorId t : {p.a, p.b})
    if (info(g.tensor(t).dtype).bits < 8) return Reason::no("several elements lie in a byte");
  if (p.batch.size() + p.columns.size() > dev::kSideAxes) return Reason::no("too many axes");
  return Reason::yes();
}

void flatten(Problem& p, const Tensor& y) {
  // The narrowest axis comes first: neighbouring threads take neighbouring elements.
  bool first = smallest_step(p.batch, y) < smallest_step(p.columns, y);
  p.columns.insert(first ? p.columns.begin() : p.columns.end(), p.batch.begin(), p.batch.end());
  p.batch.clear();
  if (smallest_step(p.rows, y) < smallest_step(p.columns, y)) std::swap(p.rows, p.columns);
}

}  // namespace tsr::cuda
