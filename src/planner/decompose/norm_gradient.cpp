// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/list.hpp"

#include "graph/ops/list.hpp"

#include "graph/ops/norm_shape.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;
using tessera::NormMode;
using tessera::NormOptions;

// Sizes and strides with 1s in front, up to the rank of x.
TensorId padded(const Graph& g, TensorId t, int rank, Decomposition& d) {
  const Tensor& x = g.tensor(t);
  Dims dims = Dims::filled(rank - x.rank(), 1), strides = Dims::filled(rank - x.rank(), 0);
  for (int i = 0; i < x.rank(); ++i) dims.push_back(x.dims[i]), strides.push_back(x.strides[i]);
  return d.view(t, dims, strides);
}

// The channels of a tensor as groups of `length`: two dimensions instead of one. Statistics have one value for each
// group.
TensorId grouped(TensorId t, int64_t channels, int64_t length, Decomposition& d) {
  Dims dims, strides;
  const Tensor& x = d.tensor(t);
  for (int i = 0; i < x.rank(); ++i) {
    bool whole = i == 1 && x.dims[i] == channels;
    dims.push_back(whole ? channels / length : x.dims[i]);
    strides.push_back(whole ? x.strides[i] * length : x.strides[i]);
    if (i != 1) continue;
    dims.push_back(whole ? length : 1);
    strides.push_back(x.strides[i]);
  }
  return d.reshaped(t, dims, strides);
}

}  // namespace

bool sums_across_rows(const Graph&, const Node& n) {
  if (slot(n.out, 1) == kNone && slot(n.out, 2) == kNone) return false;
  return attrs<NormOptions>(n).mode != NormMode::batch;
}

// Statistics where they are missing; the gradient of x, row by row; the gradients of scale and bias, across the rows.
void decompose_norm_gradient(const Region& region, const Node& n, Decomposition& d) {
  using namespace slots::norm_bwd;
  const Graph& g = *region.graph;
  const auto& o = attrs<NormOptions>(n);
  DType type = wide_compute(n);
  int rank = g.tensor(n.in[kX]).rank();
  check_rank(n, rank + (o.mode == NormMode::group));
  bool rms = o.mode == NormMode::rms;
  Node dx = n;
  for (TensorId& t : dx.in)
    if (t != kNone) t = d.whole(t);
  dx.in.resize(6, kNone);
  if (slot(n.in, kInvVariance) == kNone) {
    Dims stats = norm_shape(g, n).stats;
    dx.in[kInvVariance] = d.temporary(type, stats);
    if (!rms) dx.in[kMean] = d.temporary(type, stats);
    d.add(ops::norm_fwd, {dx.in[kX], dx.in[kScale], kNone, kNone, kNone, kNone, kNone, kNone, dx.in[kEpsilon]},
          {kNew, rms ? kNone : dx.in[kMean], dx.in[kInvVariance]}, o, n.compute);
    d.end_stage();
  }
  TensorId dscale = slot(n.out, 1), dbias = slot(n.out, 2);
  if (wanted(region, n.out[0])) {
    dx.out = {d.whole(n.out[0])};
    dx.in[kEpsilon] = kNone;
    d.add(dx);
    d.end_stage();
  }
  auto operand = [&](TensorId t) {
    const Dims& x = g.tensor(n.in[kX]).dims;
    return o.mode == NormMode::group ? grouped(t, x[1], x[1] / o.groups, d) : t;
  };
  if (wanted(region, dscale)) {
    TensorId x = operand(dx.in[kX]), centred = rms ? x : d.apply(M::sub, type, x, operand(dx.in[kMean]));
    TensorId product =
        d.apply(M::mul, type, operand(dx.in[kDy]), d.apply(M::mul, type, centred, operand(dx.in[kInvVariance])));
    d.reduce(tessera::ReduceMode::add, type, product, operand(padded(g, dscale, rank, d)));
  }
  if (wanted(region, dbias))
    d.reduce(tessera::ReduceMode::add, type, operand(dx.in[kDy]), operand(padded(g, dbias, rank, d)));
}

}  // namespace tsr
