// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/rounding.hpp"

#include <algorithm>

#include "graph/op.hpp"
#include "graph/ops/list.hpp"

namespace tsr {

double lost_of_products(const Graph& g, const Node& n) {
  if ((n.op != &ops::matmul && n.op->family != Family::conv) || n.compute != DType::f32) return 0;
  auto type = [&](size_t i) { return g.tensor(n.in[i]).dtype; };
  auto small = [&](size_t i) { return is_real(type(i)) && info(type(i)).bits == 8; };
  double lost = 0;
  if (small(0) && small(1)) lost = 2 * 0x1p-13 * (allows_fast_sums(n) ? std::max(1.0, n.op->terms(g, n) / 128) : 1);
  if (allows_tf32(n) && (type(0) == DType::f32 || type(1) == DType::f32)) lost += 0x1p-9;
  return lost;
}

}  // namespace tsr
