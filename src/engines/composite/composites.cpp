// SPDX-License-Identifier: Apache-2.0
// The operations that run as composites.
#include <algorithm>

#include "engines/composite/composite.hpp"
#include "engines/composite/composites_generated.hpp"
#include "engines/composite/composites_reduce_by.hpp"
#include "engines/composite/composites_strided.hpp"
#include "graph/ops/norm_shape.hpp"
#include "graph/ops/rope.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;
using tessera::NormMode;
using tessera::NormOptions;

Reason check_tensors(const Graph& g, const Node& n) {
  if (!is_real(n.compute) && !is(n, "rng")) return Reason::no(spelling(n), " computes in ", n.compute);
  for (const auto* list : {&n.in, &n.out})
    for (TensorId t : *list) {
      if (t == kNone) continue;
      const Tensor& x = g.tensor(t);
      if (x.ragged != kNone) return Reason::no("tensor ", describe(x), " is ragged");
      if (x.reordering != Reordering::none) return Reason::no("tensor ", describe(x), " is reordered");
      if (info(x.dtype).bits < 8) return Reason::no("tensor ", describe(x), " packs elements into bytes");
    }
  const Tensor& x = g.tensor(n.in[0]);
  if (is(n, "norm_bwd") && attrs<NormOptions>(n).mode == NormMode::group && x.rank() == kMaxRank)
    return Reason::no("tensor ", describe(x), " has ", kMaxRank, " dimensions, one of them groups of channels");
  return Reason::yes();
}

DType wide(const Node& n) { return n.compute == DType::f64 ? DType::f64 : DType::f32; }

// Cosines and sines first, once for each position; then the two halves of what turns, and the rest.
void rope(const Graph& g, const Node& n, Composite& c) {
  const auto& o = attrs<tessera::RopeOptions>(n);
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]), &f = g.tensor(n.in[1]);
  DType type = wide(n);
  int64_t r = rope_dim(o, x), half = r / 2, first = x.dims[3] - r;
  Dims angles = {1, 1, x.dims[2], half}, part = x.dims;
  part[3] = half;
  TensorId theta = c.view(g, n.in[1], angles, {0, 0, f.strides[rope_positions(f)], f.strides[3]});
  TensorId cosine = c.temporary(type, angles), sine = c.temporary(type, angles);
  TensorId scale = c.constant(type, o.scale), turn = c.constant(type, is(n, "rope") ? o.scale : -o.scale);
  c.apply(M::mul, type, c.apply(M::cos, type, theta), scale, cosine);
  c.apply(M::mul, type, c.apply(M::sin, type, theta), turn, sine);
  c.end_stage();
  auto piece = [&](TensorId t, const Tensor& of, const Dims& dims, int64_t at) {
    return c.view(g, t, dims, of.strides, at * of.strides[3]);
  };
  TensorId low = piece(n.in[0], x, part, first), high = piece(n.in[0], x, part, first + half);
  TensorId to_low = piece(n.out[0], y, part, first), to_high = piece(n.out[0], y, part, first + half);
  c.apply(M::sub, type, c.apply(M::mul, type, low, cosine), c.apply(M::mul, type, high, sine), to_low);
  c.apply(M::add, type, c.apply(M::mul, type, high, cosine), c.apply(M::mul, type, low, sine), to_high);
  if (first == 0) return;
  c.end_stage();
  part[3] = first;
  c.apply(M::mul, type, piece(n.in[0], x, part, 0), scale, piece(n.out[0], y, part, 0));
}

// y[t] = act(bias + sum_j w[j] x[t - j]) for `count` times from `first` on, as a sum over views of x.
void causal_times(const Graph& g, const Node& n, int64_t first, int64_t count, int64_t taps, Composite& c) {
  const auto& o = attrs<tessera::CausalConvOptions>(n);
  const Tensor &x = g.tensor(n.in[0]), &w = g.tensor(n.in[1]), &y = g.tensor(n.out[0]);
  DType type = wide(n);
  Dims dims = {x.dims[0], x.dims[1], count}, one = {1, x.dims[1], 1};
  TensorId sum = kNone;
  if (TensorId b = slot(n.in, 2); b != kNone) sum = c.view(g, b, one, {0, g.tensor(b).strides[0], 0});
  bool silu = o.activation == tessera::CausalActivation::silu;
  TensorId to = c.view(g, n.out[0], dims, y.strides, first * y.strides[2]);
  for (int64_t j = 0; j < taps; ++j) {
    int64_t tap = o.reversed ? j : w.dims[1] - 1 - j;
    TensorId weight = c.view(g, n.in[1], one, {0, w.strides[0], 0}, tap * w.strides[1]);
    TensorId past = c.view(g, n.in[0], dims, x.strides, (first - j) * x.strides[2]);
    bool last = j + 1 == taps && !silu;
    TensorId product = c.apply(M::mul, type, past, weight, last && sum == kNone ? to : kNone);
    sum = sum == kNone ? product : c.apply(M::add, type, product, sum, last ? to : kNone);
  }
  if (silu) c.apply(M::swish, type, sum, kNone, to);
  c.end_stage();
}

// Times that meet all taps at once, the few before them one by one.
void causal_conv(const Graph& g, const Node& n, Composite& c) {
  int64_t length = g.tensor(n.in[0]).dims[2], taps = g.tensor(n.in[1]).dims[1];
  for (int64_t t = 0; t + 1 < taps && t < length; ++t) causal_times(g, n, t, 1, t + 1, c);
  if (length >= taps) causal_times(g, n, taps - 1, length - taps + 1, taps, c);
}

// Short filters over sequences whose channels lie side by side.
bool sums_over_views(const Graph& g, const Node& n) {
  if (!is(n, "causal_conv1d")) return false;
  constexpr int64_t kTaps = 8;
  const Tensor& x = g.tensor(n.in[0]);
  return x.strides[1] == 1 && x.strides[2] != 1 && g.tensor(n.in[1]).dims[1] <= kTaps;
}

// Sizes and strides with 1s in front, up to the rank of x.
TensorId padded(const Graph& g, TensorId t, int rank, Composite& c) {
  const Tensor& x = g.tensor(t);
  Dims dims = Dims::filled(rank - x.rank(), 1), strides = Dims::filled(rank - x.rank(), 0);
  for (int i = 0; i < x.rank(); ++i) dims.push_back(x.dims[i]), strides.push_back(x.strides[i]);
  return c.view(g, t, dims, strides);
}

void sum_over(TensorId from, TensorId to, DType type, Composite& c) {
  Node n;
  n.op = &op("reduce");
  n.attrs = tessera::ReduceOptions{};
  n.in = {from};
  n.out = {to};
  n.compute = type;
  n.compute_given = true;
  c.add(n);
}

// The channels of a tensor as groups of `length`: two dimensions instead of one. Statistics have one value for each
// group.
TensorId grouped(TensorId t, int64_t channels, int64_t length, Composite& c) {
  Dims dims, strides;
  const Tensor& x = c.tensor(t);
  for (int i = 0; i < x.rank(); ++i) {
    bool whole = i == 1 && x.dims[i] == channels;
    dims.push_back(whole ? channels / length : x.dims[i]);
    strides.push_back(whole ? x.strides[i] * length : x.strides[i]);
    if (i != 1) continue;
    dims.push_back(whole ? length : 1);
    strides.push_back(x.strides[i]);
  }
  return c.reshaped(t, dims, strides);
}

// Statistics where they are missing; the gradient of x, row by row; the gradients of scale and bias, across the rows.
void norm_gradient(const Region& region, const Node& n, Composite& c) {
  using namespace slots::norm_bwd;
  const Graph& g = *region.graph;
  const auto& o = attrs<NormOptions>(n);
  DType type = wide(n);
  // Results that nobody wants have no memory.
  auto wanted = [&](size_t i) {
    TensorId t = slot(n.out, i);
    return std::find(region.outputs.begin(), region.outputs.end(), t) == region.outputs.end() ? kNone : t;
  };
  int rank = g.tensor(n.in[kX]).rank();
  bool rms = o.mode == NormMode::rms;
  Node dx = n;
  for (TensorId& t : dx.in)
    if (t != kNone) t = c.whole(g, t);
  dx.in.resize(6, kNone);
  if (slot(n.in, kInvVariance) == kNone) {
    Dims stats = norm_shape(g, n).stats;
    dx.in[kInvVariance] = c.temporary(type, stats);
    if (!rms) dx.in[kMean] = c.temporary(type, stats);
    Node forward;
    forward.op = &op("norm_fwd");
    forward.attrs = o;
    forward.compute = n.compute;
    forward.compute_given = true;
    forward.in = {dx.in[kX], dx.in[kScale], kNone, kNone, kNone, kNone, kNone, kNone, dx.in[kEpsilon]};
    forward.out = {kNew, rms ? kNone : dx.in[kMean], dx.in[kInvVariance]};
    c.add(forward);
    c.end_stage();
  }
  TensorId dscale = wanted(1), dbias = wanted(2);
  if (wanted(0) != kNone) {
    dx.out = {c.whole(g, n.out[0])};
    dx.in[kEpsilon] = kNone;
    c.add(dx);
    c.end_stage();
  }
  auto operand = [&](TensorId t) {
    const Dims& x = g.tensor(n.in[kX]).dims;
    return o.mode == NormMode::group ? grouped(t, x[1], x[1] / o.groups, c) : t;
  };
  if (dscale != kNone) {
    TensorId x = operand(dx.in[kX]), d = rms ? x : c.apply(M::sub, type, x, operand(dx.in[kMean]));
    TensorId product =
        c.apply(M::mul, type, operand(dx.in[kDy]), c.apply(M::mul, type, d, operand(dx.in[kInvVariance])));
    sum_over(product, operand(padded(g, dscale, rank, c)), type, c);
  }
  if (dbias != kNone) sum_over(operand(dx.in[kDy]), operand(padded(g, dbias, rank, c)), type, c);
}

bool sums_across_rows(const Node& n) {
  if (!is(n, "norm_bwd") || (slot(n.out, 1) == kNone && slot(n.out, 2) == kNone)) return false;
  return attrs<NormOptions>(n).mode != NormMode::batch;
}

}  // namespace

std::optional<MadeComposite> make_composite(const Region& r, const Engine& fused, const Device& d) {
  if (r.nodes.size() != 1) return {};
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  // GPUs have engines for these two.
  bool cpu = d.kind == DeviceKind::cpu;
  bool turns = cpu && (is(n, "rope") || is(n, "rope_bwd"));
  bool convolves = cpu && sums_over_views(g, n);
  bool generates = is_generated(n);
  bool combines = is(n, "reduce_by");
  bool strides = is_strided(g, n, d.kind);
  if (!turns && !convolves && !generates && !combines && !strides && !sums_across_rows(n)) return {};
  auto c = std::make_shared<Composite>();
  Reason why;
  if (!strides) why = check_tensors(g, n);
  if (!why) return MadeComposite{nullptr, why};
  if (strides)
    why = stride(r, n, *c);
  else if (turns)
    rope(g, n, *c);
  else if (convolves)
    causal_conv(g, n, *c);
  else if (generates)
    generate(g, n, *c);
  else if (combines)
    why = reduce_by(g, n, *c);
  else
    norm_gradient(r, n, *c);
  if (why) why = c->finish(fused, d);
  return MadeComposite{why ? c : nullptr, why};
}

}  // namespace tsr
