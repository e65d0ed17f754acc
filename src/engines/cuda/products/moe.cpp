// SPDX-License-Identifier: Apache-2.0
// Products of experts. Rows are routed on the device: route.cuh cuts them into items that share an expert.
#include "engines/cuda/products/problem.hpp"
#include "graph/op.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cuda {
namespace {

using namespace slots::moe_matmul;
namespace bwd = slots::moe_matmul_bwd;

}  // namespace

Problem moe_problem(const Graph& g, const Node& n) {
  const Tensor &token = g.tensor(n.in[kToken]), &weight = g.tensor(n.in[kWeight]), &y = g.tensor(n.out[0]);
  const auto& o = attrs<tessera::MoeOptions>(n);
  Problem p;
  p.a = n.in[kToken], p.b = n.in[kWeight];
  p.rows = {{y.dims[1], {1}, {}, 1}};
  p.columns = {{weight.dims[2], {}, {2}, 2}};
  p.inner = {{weight.dims[1], {2}, {1}}};
  MoeProblem m;
  m.mode = o.mode == tessera::MoeMode::gather    ? dev::kGather
           : o.mode == tessera::MoeMode::scatter ? dev::kScatter
                                                 : dev::kInOrder;
  m.offsets = n.in[kOffset], m.index = slot(n.in, kIndex), m.ks = slot(n.in, kKs);
  m.ranges = g.tensor(m.offsets).numel(), m.experts = weight.dims[0], m.expert_step = weight.strides[0];
  m.rows = y.dims[1], m.sources = token.dims[1], m.top_k = o.top_k;
  p.moe = m;
  return p;
}

Problem moe_bwd_problem(const Graph& g, const Node& n) {
  const Tensor &dy = g.tensor(n.in[bwd::kDoutput]), &token = g.tensor(n.in[bwd::kToken]), &dw = g.tensor(n.out[0]);
  Problem p;
  p.a = n.in[bwd::kToken], p.b = n.in[bwd::kDoutput];
  p.batch = {{dw.dims[0], {}, {}, 0}};
  p.rows = {{token.dims[2], {2}, {}, 1}};
  p.columns = {{dy.dims[2], {}, {2}, 2}};
  p.inner = {{token.dims[1], {1}, {1}}};
  MoeProblem m;
  m.mode = dev::kExpertGradient;
  m.offsets = n.in[kOffset];
  m.ranges = g.tensor(m.offsets).numel(), m.experts = dw.dims[0], m.rows = token.dims[1];
  p.moe = m;
  return p;
}

}  // namespace tsr::cuda
