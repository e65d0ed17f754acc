// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/gemm/gemm.hpp"

#include <algorithm>

#include "engines/cuda/gemm/memory.hpp"
#include "engines/cuda/gemm/step.hpp"

namespace tsr::cuda {
namespace {

// What the engine knows of a kind of anchor.
struct Kind {
  std::string_view op;
  Problem (*problem)(const Graph& g, const Node& n);
  Reason (*check)(const Graph& g, const Node& n);  // null: nothing to check
};
constexpr Kind kKinds[] = {
    {"matmul", matmul_problem, nullptr},      {"conv_fprop", conv_problem, check_conv},
    {"conv_dgrad", conv_problem, check_conv}, {"conv_wgrad", conv_problem, check_conv},
    {"moe_matmul", moe_problem, nullptr},     {"moe_matmul_bwd", moe_bwd_problem, nullptr},
};

const Kind* kind_of(const Node& n) {
  for (const Kind& k : kKinds)
    if (k.op == n.op->name) return &k;
  return nullptr;
}

NodeId find_anchor(const Region& r) {
  for (NodeId n : r.nodes)
    if (kind_of(r.graph->node(n))) return n;
  return kNone;
}

Reason check_operand(const Node& n, const Tensor& t) {
  if (is_complex(t.dtype)) return Reason::no("input ", describe(t), " is complex");
  if (info(t.dtype).vector > 1) return Reason::no("input ", describe(t), " is vectorised");
  if (t.reordering != Reordering::none) return Reason::no("input ", describe(t), " is reordered");
  if (t.ragged != kNone) return Reason::no("input ", describe(t), " is ragged");
  if (on_host(t)) return Reason::no("input ", describe(t), " of ", spelling(n), " is a scalar in host memory");
  return Reason::yes();
}

// The stored result with the sizes of the product whose memory order counts.
const Tensor& lead(const Region& r, const Tensor& product) {
  for (size_t i = r.outputs.size(); i-- > 0;)
    if (r.graph->tensor(r.outputs[i]).dims == product.dims) return r.graph->tensor(r.outputs[i]);
  return product;
}

// Columns should lie side by side in the result; where one side is small, it should be the rows.
bool should_turn(const Problem& p, const Tensor& y) {
  constexpr int64_t kFew = 16;
  if (p.moe && p.moe->mode != dev::kExpertGradient) return false;
  if (std::min(p.row_count(), p.column_count()) <= kFew) return p.column_count() < p.row_count();
  return smallest_step(p.rows, y) < smallest_step(p.columns, y);
}

Problem make_problem(const Region& r, NodeId anchor) {
  const Node& n = r.graph->node(anchor);
  Problem p = kind_of(n)->problem(*r.graph, n);
  if (should_turn(p, lead(r, r.graph->tensor(n.out[0])))) turn(p);
  return p;
}

class GemmEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "gemm_cuda", 103, DeviceKind::cuda, true,
        "matrix products and convolutions of any type and layout, with the pointwise work behind them"};
    return kInfo;
  }

  Reason check(const Region& r, const Device& d) const override {
    const Graph& g = *r.graph;
    NodeId anchor = find_anchor(r);
    if (anchor == kNone) return Reason::no("the region has no matrix product or convolution");
    const Node& n = g.node(anchor);
    for (TensorId t : n.in) {
      NodeId p = t == kNone ? kNone : g.producer(t);
      if (p != kNone && std::find(r.nodes.begin(), r.nodes.end(), p) != r.nodes.end())
        return Reason::no("input ", describe(g.tensor(t)), " of the product is computed in the region");
    }
    if (!is_real(n.compute) && !is_integer(n.compute)) return Reason::no(spelling(n), " computes in ", n.compute);
    for (size_t slot : {size_t{0}, size_t{1}})
      if (Reason why = check_operand(n, g.tensor(n.in[slot])); !why) return why;
    const Kind* kind = kind_of(n);
    if (kind->check)
      if (Reason why = kind->check(g, n); !why) return why;
    Expr rest;
    if (Reason why = lower_epilogue(r, anchor, &rest); !why) return why;
    if (rest.has_reduction) return Reason::no("what follows ", spelling(n), " reduces rows");
    Problem p = make_problem(r, anchor);
    constexpr int64_t kDeepest = (int64_t{1} << 31) - 64;  // inner positions are counted in 32 bits
    if (p.depth() > kDeepest) return Reason::no(spelling(n), " sums ", p.depth(), " products, the limit is ", kDeepest);
    DType sum = sum_type(g, n, p);
    if (choices(p, sum, false, r, d).empty())
      return Reason::no(spelling(n), " has ", p.row_count(), " rows, ", p.column_count(), " columns and ", p.batches(),
                        " batches: more tiles than a launch has blocks");
    Rest after(r, anchor, product_type(sum), p.scaling);
    if (Reason why = after.check(); !why) return why;
    return Memory(g, p, after).check();
  }

  std::vector<Config> configs(const Region& r, const Device& d) const override {
    std::vector<Config> out;
    NodeId anchor = find_anchor(r);
    const Node& n = r.graph->node(anchor);
    Problem p = make_problem(r, anchor);
    bool direct = check_flat(*r.graph, kind_of(n)->problem(*r.graph, n)).ok();
    for (const Choice& c : choices(p, sum_type(*r.graph, n, p), direct, r, d)) {
      Config config{{{"height", 0}, {"width", 0}, {"splits", c.splits}}, c.seconds};
      if (c.tile) config.knobs[0].second = c.tile->height, config.knobs[1].second = c.tile->width;
      out.push_back(config);
    }
    return out;
  }

  std::unique_ptr<Step> build(const Region& r, const Config& config, const Device& d) const override {
    NodeId anchor = find_anchor(r);
    auto knob = [&](std::string_view name) {
      for (const auto& [k, v] : config.knobs)
        if (k == name) return v;
      fail(Status::internal_error, "gemm_cuda was built without knob ", name);
    };
    if (knob("height") == 0) {  // no tiles
      const Node& n = r.graph->node(anchor);
      Problem flat = kind_of(n)->problem(*r.graph, n);
      flatten(flat, lead(r, r.graph->tensor(n.out[0])));
      return std::make_unique<GemmStep>(r, anchor, flat, Choice{nullptr, knob("splits"), 0}, d);
    }
    Problem p = make_problem(r, anchor);
    for (const TileShape& t : tile_shapes(sum_type(*r.graph, r.graph->node(anchor), p)))
      if (t.height == knob("height") && t.width == knob("width"))
        return std::make_unique<GemmStep>(r, anchor, p, Choice{&t, knob("splits"), 0}, d);
    fail(Status::internal_error, "gemm_cuda has no tile of ", knob("height"), " x ", knob("width"));
  }
};

}  // namespace

const Engine& gemm_engine() {
  static const GemmEngine e;
  return e;
}

}  // namespace tsr::cuda
