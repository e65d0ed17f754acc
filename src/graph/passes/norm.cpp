// SPDX-License-Identifier: Apache-2.0
// Layer norm:  d = x - avg(x),  y = d * rsqrt(avg(d * d) + eps) [* scale [+ bias]]
// RMS norm:    the same with d = x.
#include <algorithm>

#include "graph/passes/patterns.hpp"
#include "graph/passes/rewrite.hpp"

namespace tsr {
namespace {

using tessera::NormOptions;
using tessera::ReduceMode;
using M = PointwiseMode;

struct Found {
  TensorId x = kNone, mean = kNone, inv = kNone, eps = kNone, scale = kNone, bias = kNone, y = kNone;
  Ints axes;
  std::set<NodeId> inside;
};

Ints reduced_axes(const Tensor& x, const Tensor& y) {
  Ints axes;
  for (int i = 0; i < x.rank(); ++i)
    if (x.dims[i] != y.dims[i]) axes.push_back(i);
  return axes;
}

// The mean of `t` over some axes: the node that computes `result`, or kNone.
NodeId average_of(const GraphView& v, TensorId result, TensorId t) {
  NodeId n = v.producer(result);
  return v.is_reduce(n, ReduceMode::avg) && v.in(n, 0) == t ? n : kNone;
}

// Extends the match by one multiplication or addition with a parameter when that is the only use of the result so far.
void absorb(const GraphView& v, Found& f, M mode, TensorId& parameter) {
  const auto& users = v.consumers(f.y);
  if (v.tensor(f.y).stored || users.size() != 1 || !v.is_pointwise(users[0], mode)) return;
  TensorId p = v.other(users[0], f.y);
  if (p == f.y || v.tensor(p).rank() != v.tensor(f.x).rank()) return;
  // Parameters vary along normalised axes only.
  for (int i = 0; i < v.tensor(p).rank(); ++i) {
    bool normalised = std::find(f.axes.begin(), f.axes.end(), i) != f.axes.end();
    if (v.tensor(p).dims[i] != (normalised ? v.tensor(f.x).dims[i] : 1)) return;
  }
  parameter = p;
  f.y = v.out(users[0]);
  f.inside.insert(users[0]);
}

bool match(const GraphView& v, NodeId rsqrt, Found& f) {
  f.inv = v.out(rsqrt);
  NodeId add = v.producer(v.in(rsqrt, 0));
  if (!v.is_pointwise(add, M::add)) return false;
  f.eps = v.is_scalar(v.in(add, 1)) ? v.in(add, 1) : v.in(add, 0);
  TensorId variance = v.other(add, f.eps);
  if (!v.is_scalar(f.eps) || variance == kNone) return false;
  NodeId average = v.producer(variance);
  if (!v.is_reduce(average, ReduceMode::avg)) return false;
  NodeId square = v.producer(v.in(average, 0));
  if (!v.is_pointwise(square, M::mul) || v.in(square, 0) != v.in(square, 1)) return false;
  TensorId d = v.in(square, 0);
  f.x = d;
  f.axes = reduced_axes(v.tensor(d), v.tensor(variance));
  if (f.axes.empty()) return false;
  f.inside = {rsqrt, add, average, square};
  NodeId sub = v.producer(d);
  if (v.is_pointwise(sub, M::sub)) {
    NodeId mean = average_of(v, v.in(sub, 1), v.in(sub, 0));
    if (mean != kNone && reduced_axes(v.tensor(d), v.tensor(v.out(mean))) == f.axes) {
      f.x = v.in(sub, 0);
      f.mean = v.out(mean);
      f.inside.insert({sub, mean});
    }
  }
  NodeId product = kNone;
  for (NodeId n : v.consumers(f.inv))
    if (v.is_pointwise(n, M::mul) && v.other(n, f.inv) == d) product = n;
  if (product == kNone || !(v.tensor(v.out(product)).dims == v.tensor(f.x).dims)) return false;
  f.inside.insert(product);
  f.y = v.out(product);
  absorb(v, f, M::mul, f.scale);
  if (f.scale != kNone) absorb(v, f, M::add, f.bias);
  for (NodeId n : f.inside) {
    TensorId t = v.out(n);
    if (t != f.y && t != f.mean && t != f.inv && !v.hidden(t, f.inside)) return false;
  }
  return true;
}

Rewrite rewrite(const GraphView& v, const Found& f, NodeId rsqrt) {
  const OpSpec& spec = op("norm_fwd");
  NormOptions o;
  o.mode = f.mean == kNone ? tessera::NormMode::rms : tessera::NormMode::layer;
  o.axes = f.axes;
  Node n;
  n.op = &spec;
  n.compute = v.node(rsqrt).compute;
  n.in.assign(spec.in.size(), kNone);
  n.out.assign(spec.out.size(), kNone);
  n.in[input_slot(spec, "x")] = f.x;
  n.in[input_slot(spec, "scale")] = f.scale;
  n.in[input_slot(spec, "bias")] = f.bias;
  n.in[input_slot(spec, "epsilon")] = f.eps;
  n.out[output_slot(spec, "y")] = f.y;
  if (f.mean != kNone && v.wanted(f.mean, f.inside)) n.out[output_slot(spec, "mean")] = f.mean;
  if (v.wanted(f.inv, f.inside)) n.out[output_slot(spec, "inv_variance")] = f.inv;
  n.attrs = o;
  Rewrite r(v);
  r.remove(f.inside);
  r.add(std::move(n));
  return r;
}

}  // namespace

std::vector<Rewrite> recognise_norm(const GraphView& v) {
  std::vector<Rewrite> found;
  for (NodeId n = 0; n < v.graph().node_count(); ++n) {
    Found f;
    if (!v.live(n) || !v.is_pointwise(n, M::rsqrt) || !match(v, n, f)) continue;
    try {
      found.push_back(rewrite(v, f, n));
    } catch (const Error& e) {
      // Sizes or types that the operation does not take: the composite stays as it is.
      if (e.status() != Status::bad_parameter) throw;
    }
  }
  return found;
}

}  // namespace tsr
