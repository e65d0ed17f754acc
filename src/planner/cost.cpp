// SPDX-License-Identifier: Apache-2.0
#include "planner/cost.hpp"

#include <algorithm>

#include "graph/op.hpp"
#include "graph/ops/rounding.hpp"

namespace tsr {
namespace {

// Products may use instructions for their operands' type; everything else is computed in f32 or wider.
double rate(const Graph& g, const Node& n, const Rates& r) {
  if (n.compute == DType::f64 || n.compute == DType::c128) return r.f64;
  Family f = n.op->family;
  bool products = f == Family::matmul || f == Family::conv || f == Family::attention || f == Family::recurrent;
  if (!products || n.in.empty()) return r.f32;
  int bits = info(g.tensor(n.in[0]).dtype).bits;
  return bits <= 8 ? r.bits8 : bits <= 16 ? r.bits16 : allows_tf32(n) ? r.tf32 : r.f32;
}

}  // namespace

double region_bytes(const Region& r) {
  double bytes = 0;
  for (const auto* list : {&r.inputs, &r.outputs})
    for (TensorId t : *list)
      bytes += static_cast<double>(byte_size(r.graph->tensor(t).dtype, r.graph->tensor(t).numel()));
  return bytes;
}

double region_flops(const Region& r) {
  double total = 0;
  for (NodeId n : r.nodes) total += node_flops(*r.graph, r.graph->node(n));
  return total;
}

int64_t most_parts(const Region& r, double bytes) {
  return std::max<int64_t>(1, static_cast<int64_t>(region_bytes(r) / std::max(bytes, 1.0)));
}

Limits region_limits(const Region& r, const Device& d) {
  Limits l = {region_bytes(r) / d.bytes_per_second, 0};
  for (NodeId n : r.nodes)
    l.arithmetic += node_flops(*r.graph, r.graph->node(n)) / rate(*r.graph, r.graph->node(n), d.rates);
  return l;
}

double roofline(const Region& r, const Device& d, double efficiency) {
  double memory = region_bytes(r) / d.bytes_per_second, arithmetic = region_flops(r) / (efficiency * d.rates.f32);
  return std::max(memory, arithmetic);
}

}  // namespace tsr
