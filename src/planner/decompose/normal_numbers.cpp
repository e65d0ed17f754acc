// SPDX-License-Identifier: Apache-2.0
#include <numbers>
#include "planner/decompose/list.hpp"

namespace tsr {

using M = tessera::PointwiseMode;

bool is_normal(const Graph&, const Node& n) {
  return attrs<tessera::RngOptions>(n).distribution == tessera::Distribution::normal;
}

// Box and Muller: two uniform numbers make two normal ones.
void decompose_normal_numbers(const Region& r, const Node& n, Decomposition& d) {
  const Graph& g = *r.graph;
  const auto& o = attrs<tessera::RngOptions>(n);
  const Tensor& y = g.tensor(n.out[0]);
  DType type = y.dtype == DType::f64 ? DType::f64 : DType::f32;
  int64_t count = y.numel(), pairs = (count + 1) / 2;
  TensorId uniform = d.temporary(DType::f32, {2 * pairs});
  tessera::RngOptions numbers;
  numbers.distribution = tessera::Distribution::uniform;
  numbers.seed = o.seed, numbers.offset = o.offset;
  numbers.size = {2 * pairs};
  Node draw = n;
  draw.attrs = numbers;
  for (TensorId& t : draw.in)
    if (t != kNone) t = d.whole(t);
  draw.out = {uniform};
  d.add(draw);
  d.end_stage();
  bool dense = y.strides == packed_strides(y.dims);
  TensorId line = dense ? d.view(n.out[0], {count}, {1}) : d.temporary(type, {count});
  for (int64_t odd : {0, 1}) {
    Dims half = {odd ? count / 2 : pairs};
    auto apply = [&](M m, TensorId a, TensorId b = kNone, TensorId to = kNone) { return d.apply(m, type, a, b, to); };
    auto number = [&](double v) { return d.constant(v, type); };
    TensorId u = d.reshaped(uniform, half, {2}), v = d.reshaped(uniform, half, {2}, 1);
    TensorId radius = apply(M::sqrt, apply(M::mul, apply(M::log, apply(M::sub, number(1), u)), number(-2)));
    TensorId turn = apply(odd ? M::sin : M::cos, apply(M::mul, v, number(2 * std::numbers::pi)));
    TensorId spread = apply(M::mul, apply(M::mul, radius, turn), number(o.stddev));
    apply(M::add, spread, number(o.mean), d.reshaped(line, half, {2}, odd));
    d.end_stage();
  }
  if (!dense) d.apply(M::identity, type, d.reshaped(line, y.dims, packed_strides(y.dims)), kNone, d.whole(n.out[0]));
}

}  // namespace tsr
