// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;

// y[t] = act(bias + sum_j w[j] x[t - j]) for `count` times from `first` on, as a sum over views of x.
void causal_times(const Graph& g, const Node& n, int64_t first, int64_t count, int64_t taps, Decomposition& d) {
  const auto& o = attrs<tessera::CausalConvOptions>(n);
  const Tensor &x = g.tensor(n.in[0]), &w = g.tensor(n.in[1]), &y = g.tensor(n.out[0]);
  DType type = wide_compute(n);
  Dims dims = {x.dims[0], x.dims[1], count}, one = {1, x.dims[1], 1};
  TensorId sum = kNone;
  if (TensorId b = slot(n.in, 2); b != kNone) sum = d.view(b, one, {0, g.tensor(b).strides[0], 0});
  bool silu = o.activation == tessera::CausalActivation::silu;
  TensorId to = d.view(n.out[0], dims, y.strides, first * y.strides[2]);
  for (int64_t j = 0; j < taps; ++j) {
    int64_t tap = o.reversed ? j : w.dims[1] - 1 - j;
    TensorId weight = d.view(n.in[1], one, {0, w.strides[0], 0}, tap * w.strides[1]);
    TensorId past = d.view(n.in[0], dims, x.strides, (first - j) * x.strides[2]);
    bool last = j + 1 == taps && !silu;
    TensorId product = d.apply(M::mul, type, past, weight, last && sum == kNone ? to : kNone);
    sum = sum == kNone ? product : d.apply(M::add, type, product, sum, last ? to : kNone);
  }
  if (silu) d.apply(M::swish, type, sum, kNone, to);
  d.end_stage();
}

}  // namespace

// Times that meet all taps at once, the few before them one by one.
void decompose_causal_conv(const Region& r, const Node& n, Decomposition& d) {
  const Graph& g = *r.graph;
  int64_t length = g.tensor(n.in[0]).dims[2], taps = g.tensor(n.in[1]).dims[1];
  for (int64_t t = 0; t + 1 < taps && t < length; ++t) causal_times(g, n, t, 1, t + 1, d);
  if (length >= taps) causal_times(g, n, taps - 1, length - taps + 1, taps, d);
}

// Short filters over sequences whose channels lie side by side.
bool has_few_taps(const Graph& g, const Node& n) {
  constexpr int64_t kTaps = 8;
  const Tensor& x = g.tensor(n.in[0]);
  return x.strides[1] == 1 && x.strides[2] != 1 && g.tensor(n.in[1]).dims[1] <= kTaps;
}

}  // namespace tsr
