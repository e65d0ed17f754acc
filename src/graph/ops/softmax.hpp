// SPDX-License-Identifier: Apache-2.0
// What softmax and its gradient share.
#pragma once

#include "graph/op.hpp"

namespace tsr {

inline constexpr std::string_view kSoftmaxModes[] = {"softmax", "log_softmax"};

// Sizes of x with the normalised axes of size 1.
inline Dims softmax_row(const Infer& ctx, const Tensor& x) {
  const auto& axes = ctx.options<tessera::SoftmaxOptions>().axes;
  ctx.check(!axes.empty(), "axes is empty; name at least one axis");
  Dims row = x.dims;
  for (int64_t a : axes) row[static_cast<int>(normalize_axis(a, x.rank()))] = 1;
  return row;
}

inline double softmax_terms(const Graph& g, const Node& n) {
  const Tensor& x = g.tensor(n.in[0]);
  double terms = 1;
  for (int64_t a : attrs<tessera::SoftmaxOptions>(n).axes)
    terms *= static_cast<double>(x.dims[static_cast<int>(normalize_axis(a, x.rank()))]);
  return terms;
}

inline double softmax_flops(const Graph& g, const Node& n) {
  return 5 * static_cast<double>(g.tensor(n.in[0]).numel());
}

}  // namespace tsr
