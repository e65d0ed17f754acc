// SPDX-License-Identifier: Apache-2.0
// What local response and divisive normalisation share: options and their checks.
#pragma once

#include "graph/ops/check_real.hpp"

namespace tsr {

inline void lrn_fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<tessera::LrnOptions>(&options);
  v("n", o.n, "elements of the window");
  v("alpha", o.alpha, "factor of the mean square in the window");
  v("beta", o.beta, "the exponent");
  v("k", o.k, "added to it");
}

// x is slot 0; the other slots, where present, have its sizes.
inline void check_lrn(const Infer& ctx, int lowest_rank, std::initializer_list<int> others) {
  const auto& o = ctx.options<tessera::LrnOptions>();
  ctx.check(o.n >= 1, "option n is ", o.n, ", the window must have at least 1 element");
  check_real(ctx, {0});
  check_real(ctx, others);
  ctx.check_rank(0, lowest_rank, 5);
  for (int s : others) ctx.check_dims(s, ctx.in(0).dims);
}

// Elements of the window before and after its centre across channels.
inline int64_t lrn_before(int64_t n) { return (n - 1) / 2; }
inline int64_t lrn_after(int64_t n) { return n - 1 - lrn_before(n); }

inline double lrn_terms(const Graph&, const Node& node) {
  return static_cast<double>(attrs<tessera::LrnOptions>(node).n);
}

inline double divisive_norm_terms(const Graph& g, const Node& node) {
  double window = 1;
  for (int d = 2; d < g.tensor(node.in[0]).rank(); ++d) window *= lrn_terms(g, node);
  return window;
}

}  // namespace tsr
