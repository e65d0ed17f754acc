// SPDX-License-Identifier: Apache-2.0
// Matrix products. A batch that only one operand has counts as rows of a or columns of b.
#include "engines/cuda/products/problem.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cuda {
namespace {

using namespace slots::matmul;

// One batch axis. Where an operand has fewer batches, runs of them share one.
void add_batch(int i, const Tensor& a, const Tensor& b, int64_t size, AxisList& to) {
  int64_t share_a = a.dims[i] ? size / a.dims[i] : 1, share_b = b.dims[i] ? size / b.dims[i] : 1;
  int64_t run = std::max(share_a, share_b);  // one of them is 1
  if (run > 1) to.push_back({run, {share_a > 1 ? -1 : i}, {share_b > 1 ? -1 : i}, i});
  int64_t a_runs = share_a > 1 ? 1 : run, b_runs = share_b > 1 ? 1 : run;
  if (size / run != 1) to.push_back({size / run, {i, a_runs}, {i, b_runs}, i, run});
}

}  // namespace

Problem matmul_problem(const Graph& g, const Node& n) {
  const Tensor &a = g.tensor(n.in[kA]), &b = g.tensor(n.in[kB]), &y = g.tensor(n.out[0]);
  Problem p;
  p.a = n.in[kA], p.b = n.in[kB];
  p.row_limit = slot(n.in, kM), p.column_limit = slot(n.in, kN), p.depth_limit = slot(n.in, kK);
  p.padding = attrs<tessera::MatmulOptions>(n).padding_value;
  p.tf32 = attrs<tessera::MatmulOptions>(n).tf32;
  bool limited = p.row_limit != kNone || p.column_limit != kNone || p.depth_limit != kNone;
  int r = y.rank();
  p.rows.push_back({a.dims[r - 2], {r - 2}, {}, r - 2});
  p.columns.push_back({b.dims[r - 1], {}, {r - 1}, r - 1});
  p.inner.push_back({a.dims[r - 1], {r - 1}, {r - 2}});
  for (int i = r - 3; i >= 0; --i) {
    bool fold = !limited && a.dims[i] != b.dims[i];
    if (fold && b.dims[i] == 1)
      p.rows.push_back({a.dims[i], {i}, {}, i});
    else if (fold && a.dims[i] == 1)
      p.columns.push_back({b.dims[i], {}, {i}, i});
    else
      add_batch(i, a, b, y.dims[i], p.batch);
  }
  if (limited && r > 2)
    for (int i = 1; i < r - 2; ++i) p.limit_batches *= y.dims[i];
  return p;
}

}  // namespace tsr::cuda
