// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/gemm/gemm.hpp"

#include <algorithm>
#include <optional>

#include "engines/cuda/gemm/flat.hpp"
#include "engines/cuda/gemm/step.hpp"
#include "engines/cuda/products/layout.hpp"

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
  if (t.on_host()) return Reason::no("input ", describe(t), " of ", spelling(n), " is a scalar in host memory");
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

class GemmMatch : public Match {
 public:
  GemmMatch(const Region& r, const Device& d, NodeId anchor, const Problem& described, const TileKind& kind,
            const Expr& lowered)
      : region_(r), device_(d), problem_(described), flat_(described), kind_(kind) {
    const Graph& g = *r.graph;
    const Node& n = g.node(anchor);
    const Tensor& y = lead(r, g.tensor(n.out[0]));
    if (should_turn(problem_, y)) {
      turn(problem_);
      if (kind_.tensor) std::swap(kind_.tensor->a, kind_.tensor->b);
    }
    bool direct = !kind_.tensor && check_flat(g, flat_).ok();
    if (direct) flatten(flat_, y);
    epilogue_.emplace(r, anchor, lowered, product_type(kind_.sum), problem_.scaling);
    if (kind_.tensor) {
      ProductLayout m(g, problem_, *epilogue_, ProductForm::tensor_tiles);
      kind_.vectors = m.access(0).vectors && m.access(1).vectors;
    }
    choices_ = choices(problem_, kind_, direct, r, d);
  }
  Reason check(const Node& n) const {
    constexpr int64_t kDeepest = (int64_t{1} << 31) - 64;  // inner positions are counted in 32 bits
    if (problem_.depth() > kDeepest)
      return Reason::no(spelling(n), " sums ", problem_.depth(), " products, the limit is ", kDeepest);
    if (std::none_of(choices_.begin(), choices_.end(), [](const Choice& c) { return c.tile != nullptr; }))
      return Reason::no(spelling(n), " has ", problem_.row_count(), " rows, ", problem_.column_count(), " columns and ",
                        problem_.batches(), " batches: more tiles than a launch has blocks");
    if (Reason why = epilogue_->check(dev::kEpilogueOperands); !why) return why;
    return ProductLayout(*region_.graph, problem_, *epilogue_).check();
  }
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const Choice& c : choices_) list.push_back(config(c));
    return list;
  }
  std::unique_ptr<Step> build(const Config& config) const override {
    for (const Choice& c : choices_)
      if (this->config(c).knobs == config.knobs)
        return std::make_unique<GemmStep>(*region_.graph, c.tile ? problem_ : flat_, *epilogue_, kind_, c, device_);
    fail(Status::internal_error, "gemm_cuda has no configuration ", to_string(config));
  }

 private:
  // Without tiles (direct.cuh) there are 0 rows and columns.
  static Config config(const Choice& c) {
    return {{{"rows", c.tile ? c.tile->height : 0}, {"columns", c.tile ? c.tile->width : 0}, {"splits", c.splits}},
            c.seconds};
  }

  const Region& region_;
  const Device& device_;
  Problem problem_, flat_;  // in tiles, and without
  TileKind kind_;
  std::vector<Choice> choices_;
  std::optional<Epilogue> epilogue_;
};

// Two engines: on CUDA cores, which take everything, and on tensor cores.
class GemmEngine : public Engine {
 public:
  GemmEngine(const EngineInfo& info, bool tensor) : info_(info), tensor_(tensor) {}
  const EngineInfo& info() const override { return info_; }

  Matched match(const Region& r, const Device& d) const override {
    const Graph& g = *r.graph;
    constexpr int kOldest = 80;
    if (tensor_ && d.arch < kOldest)
      return Reason::no("the device has compute capability ", d.arch / 10, ".", d.arch % 10, ", not 8.0 or later");
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
    Expr epilogue;
    if (Reason why = lower_epilogue(r, anchor, &epilogue); !why) return why;
    if (epilogue.has_reduction) return Reason::no("what follows ", spelling(n), " reduces rows");
    Problem p = kind->problem(g, n);
    TileKind with{sum_type(g, n, p), std::nullopt};
    if (tensor_ && !(with.tensor = tensor_types(g, p, with.sum)))
      return Reason::no("tensor cores do not multiply ", g.tensor(p.a).dtype, " by ", g.tensor(p.b).dtype,
                        " without rounding, or have no sums of ", with.sum);
    auto m = std::make_unique<GemmMatch>(r, d, anchor, p, with, epilogue);
    if (Reason why = m->check(n); !why) return why;
    return m;
  }

 private:
  EngineInfo info_;
  bool tensor_;
};

}  // namespace

const Engine& gemm_engine() {
  static const GemmEngine e({"gemm_cuda", 103, DeviceKind::cuda, true,
                             "matrix products and convolutions of any type and layout, with the pointwise work behind "
                             "them"},
                            false);
  return e;
}

const Engine& mma_engine() {
  static const GemmEngine e(
      {.name = "mma_cuda",
       .id = 116,
       .device = DeviceKind::cuda,
       .text = "matrix products and convolutions of any layout, with the pointwise work behind them, on the tensor "
               "cores of compute capability 8.0 and later",
       .tensor_cores = true},
      true);
  return e;
}

}  // namespace tsr::cuda
