// SPDX-License-Identifier: Apache-2.0
// How a norm cuts its input: which elements share statistics and which share a scale. Forward and backward, inference
// of sizes and engines all ask here.
#pragma once

#include "graph/op.hpp"

namespace tsr {

std::span<const std::string_view> norm_modes();

struct NormShape {
  Dims stats;  // sizes of mean and inv_variance: x's sizes with 1 (group norm: the number of groups) where x is reduced
  Dims params;  // sizes of scale and bias, with 1 in front when the tensors have fewer dimensions than x
};

// `scale` are the sizes of scale (or bias), `stats` those of mean or inv_variance; null when there are none.
// Layer and rms norm are over `axes`; without it over the axes in which scale is not 1; failing that those in which the
// statistics are 1; failing that all but the first.
NormShape norm_shape(const tessera::NormOptions& o, const Dims& x, const Dims* scale, const Dims* stats);
// The same for a node of either direction, from its inputs.
NormShape norm_shape(const Graph& g, const Node& n);

// Where the statistics of element `index` of x lie.
inline Dims stats_index(const Dims& index, const Dims& x, const Dims& stats) {
  Dims s = index;
  for (int d = 0; d < x.size(); ++d) s[d] = index[d] * stats[d] / x[d];
  return s;
}

// Checks what both directions share: x, the options, sizes of scale, bias and the given statistics.
NormShape check_norm(const Infer& ctx);
// By-value scalars such as epsilon hold one number.
void check_scalar(const Infer& ctx, int slot);
// Type of statistics and gradients of parameters.
inline DType stats_type(const Infer& ctx) { return ctx.node().compute == DType::f64 ? DType::f64 : DType::f32; }

// Elements that the longest of a norm's sums adds up.
double norm_terms(const Graph& g, const Node& n);

}  // namespace tsr
