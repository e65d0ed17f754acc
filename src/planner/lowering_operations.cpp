// SPDX-License-Identifier: Apache-2.0
// The operations that fused engines know, one entry each.
#include <algorithm>

#include "graph/ops/block_scale.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/norm_shape.hpp"
#include "graph/ops/slots.hpp"
#include "planner/lowering.hpp"

namespace tsr {
namespace {

using tessera::NormMode;
using tessera::NormOptions;

TensorId first_output(const Node& n) { return n.out[0]; }

Dims as_result(const Graph& g, const Node& n) { return g.tensor(n.out[0] != kNone ? n.out[0] : n.out[1]).dims; }

Dims whole_axes(const Graph& g, const Node& n) {
  if (slot(n.in, 1) != kNone) decline(spelling(n), " with group offsets");
  const Dims &x = g.tensor(n.in[0]).dims, &y = g.tensor(n.out[0]).dims;
  for (int i = 0; i < x.size(); ++i)
    if (y[i] != 1 && y[i] != x[i]) decline(spelling(n), " reduces runs of dimension ", i);
  return y;
}

Dims without_axes(const Graph& g, const Node& n) {
  Dims kept = g.tensor(n.in[0]).dims;
  for (int64_t a : attrs<tessera::SoftmaxOptions>(n).axes) kept[static_cast<int>(normalize_axis(a, kept.size()))] = 1;
  return kept;
}

Dims statistics(const Graph& g, const Node& n) { return norm_shape(g, n).stats; }

Dims channels(const Graph& g, const Node& n) {
  const Dims& x = g.tensor(n.in[0]).dims;
  Dims kept = Dims::filled(x.size(), 1);
  kept[1] = x[1];
  return kept;
}

// Group norm with more than one group of more than one channel; statistics of others have sizes that x has, or 1.
std::optional<Split> groups(const Graph& g, const Node& n) {
  const auto& o = attrs<NormOptions>(n);
  const Dims& x = g.tensor(n.in[0]).dims;
  if (o.mode != NormMode::group || o.groups <= 1 || o.groups >= x[1]) return std::nullopt;
  return Split{x.size() - 1, o.groups, x[1] / o.groups};
}

std::optional<Split> scale_blocks(const Graph& g, const Node& n) {
  const Tensor& x = g.tensor(n.in[0]);
  Dims lengths = scale_lengths(g, n);
  int axis = block_axis(lengths);
  if (std::count(lengths.begin(), lengths.end(), 1) != x.rank() - 1)
    decline(spelling(n), " in blocks of ", lengths, "; one length must differ from 1");
  if (x.dims[axis] % lengths[axis] != 0)
    decline(spelling(n), ": dimension ", axis, " of ", describe(x), " does not hold whole blocks of ", lengths[axis]);
  return Split{x.rank() - axis, x.dims[axis] / lengths[axis], lengths[axis]};
}

constexpr LoweredOp kTable[] = {
    {.op = &ops::pointwise, .write = lowered::pointwise, .spans = first_output, .any_compute = true},
    {.op = &ops::reduce, .write = lowered::reduce, .kept = whole_axes, .any_compute = true},
    {.op = &ops::argmax, .write = lowered::argmax, .kept = as_result, .any_compute = true},
    {.op = &ops::softmax, .write = lowered::softmax, .kept = without_axes},
    {.op = &ops::softmax_bwd, .write = lowered::softmax_bwd, .kept = without_axes},
    {.op = &ops::cross_entropy, .write = lowered::cross_entropy, .kept = as_result},
    {.op = &ops::cross_entropy_bwd, .write = lowered::cross_entropy_bwd},
    {.op = &ops::norm_fwd, .write = lowered::norm_fwd, .kept = statistics, .split = groups},
    {.op = &ops::norm_bwd, .write = lowered::norm_bwd, .kept = statistics, .split = groups},
    {.op = &ops::gen_stats, .write = lowered::gen_stats, .kept = channels},
    {.op = &ops::bn_finalize,
     .write = lowered::bn_finalize,
     .spans = [](const Node& n) { return n.in[slots::bn_finalize::kScale]; }},
    {.op = &ops::bn_bwd_weights, .write = lowered::bn_bwd_weights, .kept = channels},
    {.op = &ops::rng, .write = lowered::rng, .spans = first_output, .any_compute = true},
    {.op = &ops::dropout, .write = lowered::dropout},
    {.op = &ops::dropout_bwd, .write = lowered::dropout_bwd},
    {.op = &ops::band_mask, .write = lowered::band_mask},
    {.op = &ops::block_scale_quantize,
     .write = lowered::block_scale_quantize,
     .split = scale_blocks,
     .blocks = LoweredOp::reduced},
    {.op = &ops::block_scale_dequantize,
     .write = lowered::block_scale_dequantize,
     .split = scale_blocks,
     .blocks = LoweredOp::read},
};

}  // namespace

const LoweredOp& lowered_op(const Node& n) {
  for (const LoweredOp& o : kTable)
    if (o.op == n.op) return o;
  decline(spelling(n), " is neither pointwise nor row-wise");
}

}  // namespace tsr
