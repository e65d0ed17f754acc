// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/list.hpp"

#include <algorithm>
#include <limits>

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;
using tessera::PointwiseOptions;
using tessera::ReduceMode;

struct Reduction {
  M mode;
  ReduceMode reduce;
  double neutral;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Reduction kReductions[] = {{M::add, ReduceMode::add, 0},
                                     {M::mul, ReduceMode::mul, 1},
                                     {M::max, ReduceMode::max, -kInfinity},
                                     {M::min, ReduceMode::min, kInfinity}};

// What the last node of the combination does with the accumulator; the other operand is `value`.
struct Combination {
  const Reduction* how = nullptr;
  TensorId value = kNone;
};

bool is_pointwise(const Node& n) { return n.op == &ops::pointwise; }

Combination last_step(const Subgraph& s) {
  TensorId acc = s.params[0];
  NodeId last = s.graph.producer(s.results[0]);
  if (last == kNone || !is_pointwise(s.graph.node(last))) return {};
  const Node& n = s.graph.node(last);
  const auto& o = attrs<PointwiseOptions>(n);
  auto how = std::find_if(std::begin(kReductions), std::end(kReductions),
                          [&](const Reduction& r) { return r.mode == o.mode; });
  if (how == std::end(kReductions) || o.alpha1 != 1 || o.alpha2 != 1) return {};
  if ((n.in[0] == acc) == (n.in[1] == acc)) return {};
  return {how, n.in[n.in[0] == acc ? 1 : 0]};
}

// The nodes before the last must be able to run on whole tensors instead of single elements.
void check_nodes(const Subgraph& s) {
  NodeId last = s.graph.producer(s.results[0]);
  for (TensorId t = 0; t < s.graph.tensor_count(); ++t) {
    const Tensor& x = s.graph.tensor(t);
    if (x.numel() != 1) decline("the combination reads tensor ", describe(x));
    bool computed = s.graph.producer(t) != kNone;
    if (computed && x.dtype != DType::f32 && x.dtype != DType::f64 && !is_boolean(x.dtype))
      decline("the combination rounds to ", x.dtype);
  }
  for (NodeId i = 0; i < s.graph.node_count(); ++i) {
    const Node& n = s.graph.node(i);
    if (!is_pointwise(n)) decline("the combination holds ", spelling(n));
    if (i != last && contains(n.in, s.params[0]))
      decline("the combination changes the accumulator before its last step");
  }
}

// The value of each element of x, as the combination's nodes compute it.
TensorId element_value(const Node& n, const Subgraph& s, TensorId value, Decomposition& d) {
  std::vector<TensorId> here(static_cast<size_t>(s.graph.tensor_count()), kNone);
  auto at = [&](TensorId t) -> TensorId& { return here[static_cast<size_t>(t)]; };
  at(s.params[1]) = d.whole(n.in[0]);
  for (size_t i = 0; i < s.captures.size(); ++i) at(s.captures[i]) = d.view(n.captures[i], {1}, {0});
  for (TensorId t = 0; t < s.graph.tensor_count(); ++t)
    if (const Tensor& x = s.graph.tensor(t); x.is_constant())
      at(t) = d.constant(load<double>(x.dtype, x.constant.data(), 0), x.dtype);
  NodeId last = s.graph.producer(s.results[0]);
  for (NodeId i = 0; i < s.graph.node_count(); ++i) {
    if (i == last) continue;
    const Node& inner = s.graph.node(i);
    std::vector<TensorId> in;
    for (TensorId t : inner.in)
      if (t != kNone) in.push_back(at(t));
    at(inner.out[0]) = d.pointwise(attrs<PointwiseOptions>(inner), in, inner.compute);
  }
  return at(value);
}

}  // namespace

void decompose_reduce_by(const Region& r, const Node& n, Decomposition& d) {
  const Graph& g = *r.graph;
  const auto& o = attrs<tessera::ReduceByOptions>(n);
  const Subgraph& s = *o.combine;
  Combination last = last_step(s);
  if (!last.how) decline("the combination does not end in a sum, product, maximum or minimum with acc");
  check_nodes(s);
  TensorId value = element_value(n, s, last.value, d), y = d.whole(n.out[0]);
  if (!(d.tensor(value).dims == g.tensor(n.in[0]).dims)) decline("the combination does not read its element");
  bool starts_neutral = o.init == last.how->neutral;
  TensorId reduced = starts_neutral ? y : d.temporary(n.compute, g.tensor(n.out[0]).dims);
  d.reduce(last.how->reduce, n.compute, value, reduced);
  if (starts_neutral) return;
  d.end_stage();
  d.apply(last.how->mode, n.compute, reduced, d.constant(o.init, n.compute), y);
}

}  // namespace tsr
