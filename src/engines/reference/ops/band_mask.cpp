// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using tessera::PointwiseMode;
using namespace slots::band_mask;

bool compare(PointwiseMode mode, double a, double b) {
  switch (mode) {
    case PointwiseMode::cmp_eq:
      return a == b;
    case PointwiseMode::cmp_neq:
      return a != b;
    case PointwiseMode::cmp_gt:
      return a > b;
    case PointwiseMode::cmp_ge:
      return a >= b;
    case PointwiseMode::cmp_lt:
      return a < b;
    default:
      return a <= b;
  }
}

// Length of each batch from lengths or from their running sums; 0 when neither is given.
template <class R>
Ints lengths(const Context<R>& c, int slot, int cumulative_slot, int64_t batch) {
  Ints v(static_cast<size_t>(batch), 0), given;
  if (c.has(slot)) given = c.integers(slot);
  if (c.has(cumulative_slot)) given = c.integers(cumulative_slot);
  for (size_t b = 0; b < v.size(); ++b) {
    if (c.has(slot)) v[b] = given[given.size() == 1 ? 0 : b];
    if (c.has(cumulative_slot)) v[b] = given[b + 1] - given[b];
  }
  return v;
}

}  // namespace

template <class R>
void band_mask(const Context<R>& c) {
  const auto& o = c.template options<tessera::BandMaskOptions>();
  Array<R> x = c.in(kX), y(x.dims);
  R fill = c.in(kFill)[0];
  double left = c.template scalar<double>(kLeft, 0), shift = c.template scalar<double>(kShiftRight, 0);
  Ints q = lengths(c, kSeqQ, kCuSeqQ, x.dims[0]), kv = lengths(c, kSeqKv, kCuSeqKv, x.dims[0]);
  Dims index = Dims::filled(4, 0);
  for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) {
    auto b = static_cast<size_t>(index[0]);
    auto row = static_cast<double>(index[2]), column = static_cast<double>(index[3]),
         off = static_cast<double>(kv[b] - q[b]);
    bool keep =
        c.has(kLeft) ? compare(o.compare, column + left - off, row) : compare(o.compare, row + off + shift, column);
    y[i] = keep ? x[i] : fill;
  }
  c.out(0, y);
}

TESSERA_REFERENCE(band_mask);

}  // namespace tsr::ref
