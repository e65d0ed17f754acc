// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/products/problem.hpp"

#include <algorithm>
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

Reason cut_axes(Problem& p, int side, int axis, int64_t length) {
  for (AxisList* list : {&p.batch, &p.rows, &p.columns, &p.inner}) {
    AxisList out;
    for (const ProductAxis& x : *list) {
      const Move& m = side == 0 ? x.a : x.b;
      bool apart = m.axis != axis || m.times % length == 0 || x.size * m.times <= length;
      if (!apart && (m.times != 1 || x.size % length != 0 || x.dim >= 0))
        return Reason::no("parts of ", length, " elements do not end where the axes of the product do");
      out.push_back(x);
      if (apart) continue;
      ProductAxis parts = x;
      out.back().size = length, parts.size = x.size / length, parts.times = x.times * length;
      parts.a.times = x.a.times * length, parts.b.times = x.b.times * length;
      out.push_back(parts);
    }
    *list = std::move(out);
  }
  return Reason::yes();
}

int64_t smallest_step(const AxisList& list, const Tensor& y) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const ProductAxis& x : list)
    if (x.size > 1 && x.out >= 0) least = std::min(least, y.strides[x.out] * x.times);
  return least;
}

}  // namespace tsr::cuda
