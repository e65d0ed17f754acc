// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.hpp"

#include "graph/ops/list.hpp"

namespace tsr {

Node Builder::make_node(const OpSpec& op, std::vector<TensorId> in, std::vector<TensorId> out, std::any options) {
  Node n;
  n.op = &op;
  n.in = std::move(in), n.out = std::move(out);
  n.out.resize(op.out.size(), kNone);
  n.attrs = op.defaults;
  if (options.has_value()) n.attrs = std::move(options);
  for (const tessera::Subgraph& s : subgraphs(n))
    n.captures.insert(n.captures.end(), s->captured.begin(), s->captured.end());
  return n;
}

std::vector<TensorId> Builder::add(const OpSpec& op, std::vector<TensorId> in, std::vector<TensorId> out,
                                   std::any options, DType compute, const std::vector<TensorId>& captures) {
  Node n = make_node(op, std::move(in), std::move(out), std::move(options));
  n.compute = compute, n.compute_given = true;
  n.captures.insert(n.captures.end(), captures.begin(), captures.end());
  return keep(std::move(n));
}

TensorId Builder::pointwise(const tessera::PointwiseOptions& o, std::vector<TensorId> in, DType compute, TensorId to) {
  return add(ops::pointwise, std::move(in), {to}, o, compute)[0];
}

TensorId Builder::constant(double value, DType type) { return keep(make_scalar_constant(type, value)); }

TensorId Builder::inferred(DType type) {
  Tensor t;
  t.dtype = type, t.dtype_given = true;
  return keep(std::move(t));
}

TensorId Builder::sized(DType type, const Dims& dims) {
  Tensor t;
  t.dtype = type, t.dims = dims;
  t.dtype_given = t.dims_given = true;
  return keep(std::move(t));
}

}  // namespace tsr
