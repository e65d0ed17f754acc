// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/list.hpp"

namespace tsr {

bool reduces_runs(const Graph& g, const Node& n) {
  if (slot(n.in, 1) != kNone) return false;
  const Dims &x = g.tensor(n.in[0]).dims, &y = g.tensor(n.out[0]).dims;
  for (int i = 0; i < x.size(); ++i)
    if (y[i] != 1 && y[i] != x[i]) return true;
  return false;
}

// A dimension of runs is two: the runs, and the neighbours in each.
void decompose_runs(const Region& r, const Node& n, Decomposition& d) {
  const Graph& g = *r.graph;
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  auto runs = [&](int i) { return y.dims[i] != 1 && y.dims[i] != x.dims[i]; };
  int rank = x.rank();
  for (int i = 0; i < x.rank(); ++i) rank += runs(i) ? 1 : 0;
  check_rank(n, rank);
  Dims from, from_strides, to, to_strides;
  for (int i = 0; i < x.rank(); ++i) {
    int64_t run = runs(i) ? x.dims[i] / y.dims[i] : 1;
    from.push_back(x.dims[i] / run), from_strides.push_back(x.strides[i] * run);
    to.push_back(y.dims[i]), to_strides.push_back(y.strides[i]);
    if (!runs(i)) continue;
    from.push_back(run), from_strides.push_back(x.strides[i]);
    to.push_back(1), to_strides.push_back(1);
  }
  d.reduce(attrs<tessera::ReduceOptions>(n).mode, n.compute, d.view(n.in[0], from, from_strides),
           d.view(n.out[0], to, to_strides));
}

}  // namespace tsr
