// SPDX-License-Identifier: Apache-2.0
// Gradients of attention on tensor cores: which nodes they are for, and what their kernels are told.
#pragma once

#include "engines/cuda/scores/arguments.hpp"
#include "engines/cuda/scores/check.hpp"
#include "engines/cuda/scores/gradient_args.cuh"

namespace tsr::cuda {

// A node, as it asks for gradients.
struct GradientProblem {
  explicit GradientProblem(const Region& r);

  attention::Problem p;
  attention::Sequences o, grad_o, stats, delta;  // delta: not given if the caller has none
  attention::Sequences dq, dk, dv, dsink;        // not given: nobody reads them
};

// Why gradients cannot be computed on tensor cores as they multiply 16-bit numbers, wherever those lie, if they cannot.
// Engines decide themselves about gradients of a bias and largest magnitudes of those of scores.
Reason check_gradients(const Region& r);

// Sequences, and how many tiles there are of `rows` queries and `keys` keys. The workspace gets numbers of rows.
template <class Args>
void fill_gradients(Arguments<Args>& arguments, const Graph& g, const GradientProblem& m, int64_t rows, int64_t keys) {
  Args& a = arguments.base();
  const sdpa::Shape& n = m.p.n;
  const std::pair<dev::attention::Sequences*, const attention::Sequences*> sequences[] = {
      {&a.o, &m.o},       {&a.stats, &m.stats}, {&a.delta, &m.delta}, {&a.grad_q, &m.dq},
      {&a.grad_k, &m.dk}, {&a.grad_v, &m.dv},   {&a.dsink, &m.dsink}};
  for (auto [to, from] : sequences) arguments.set(*to, *from);
  arguments.set(a.grad_o, m.grad_o);
  a.dq_whole = moves_in_eights(g, m.dq), a.dk_whole = moves_in_eights(g, m.dk), a.dv_whole = moves_in_eights(g, m.dv);
  a.query_tiles = static_cast<int>(ceil_div(n.sq, rows)), a.key_tiles = static_cast<int>(ceil_div(n.skv, keys));
  int64_t bytes = n.b * n.hq * a.query_tiles * rows * 4;
  arguments.reserve(a.row_stats, bytes);
  arguments.reserve(a.row_delta, bytes);
}

}  // namespace tsr::cuda
