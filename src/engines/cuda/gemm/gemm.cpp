// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/gemm/gemm.hpp"

#include <algorithm>
#include <optional>

#include "engines/cuda/gemm/flat.hpp"
#include "engines/cuda/gemm/step.hpp"
#include "engines/cuda/products/layout.hpp"
#include "planner/prologue.hpp"

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

Reason match_prologues(const CutRegion& cut, const Node& n, const Device& d, Problem& p,
                       std::array<std::optional<Prologue>, 2>& out) {
  if (static_cast<int64_t>(sizeof(dev::PrologueGemmArgs)) > d.argument_bytes)
    return Reason::no("work before ", spelling(n), " needs launches with ", sizeof(dev::PrologueGemmArgs),
                      " bytes of arguments, the driver takes ", d.argument_bytes);
  if (p.moe) return Reason::no("work before ", spelling(n), ", whose rows are routed");
  if (p.residues > 1) return Reason::no("work before ", spelling(n), ", which has strides");
  for (int side : {0, 1}) {
    const Region& before = cut.before[static_cast<size_t>(side)];
    if (before.nodes.empty()) continue;
    Prologue& computed = out[static_cast<size_t>(side)].emplace(before);
    if (Reason why = computed.check(dev::kPrologueOperands); !why) return why;
    const Expr& e = computed.expr();
    if (e.split_axis < 0) continue;
    if (Reason why = cut_axes(p, side, e.split_axis, e.space[e.split_axis + 1]); !why) return why;
  }
  return Reason::yes();
}

class GemmMatch : public Match {
 public:
  GemmMatch(const Region& r, const Device& d, NodeId anchor, const CutRegion& cut, const Problem& described,
            std::array<std::optional<Prologue>, 2> computed, const TileKind& kind, const Expr& lowered)
      : region_(r), device_(d), problem_(described), flat_(described), kind_(kind), computed_(std::move(computed)) {
    const Graph& g = *r.graph;
    const Node& n = g.node(anchor);
    const Tensor& y = lead(r, g.tensor(n.out[0]));
    if (should_turn(problem_, y)) {
      turn(problem_);
      std::swap(computed_[0], computed_[1]);
      if (kind_.tensor) std::swap(kind_.tensor->a, kind_.tensor->b);
    }
    kind_.reduced = lowered.has_reduction;
    bool direct = !kind_.tensor && !kind_.reduced && !cut.has_prologue() && check_flat(g, flat_).ok();
    if (direct) flatten(g, flat_, y);
    epilogue_.emplace(cut.rest, anchor, lowered, product_type(kind_.sum), problem_.scaling);
    kind_.computed = cut.has_prologue();
    if (kind_.tensor) {
      ProductLayout m(g, problem_, *epilogue_, ProductForm::tensor_tiles, prologues());
      kind_.vectors = m.access(0).vectors && m.access(1).vectors;
    }
    choices_ = choices(problem_, kind_, direct, r, d);
  }
  Reason check(const Node& n) {
    constexpr int64_t kDeepest = (int64_t{1} << 31) - 64;  // inner positions are counted in 32 bits
    if (problem_.depth() > kDeepest)
      return Reason::no(spelling(n), " sums ", problem_.depth(), " products, the limit is ", kDeepest);
    if (std::none_of(choices_.begin(), choices_.end(), [](const Choice& c) { return c.tile != nullptr; }))
      return Reason::no(spelling(n), " has ", problem_.row_count(), " rows, ", problem_.column_count(), " columns and ",
                        problem_.batches(), " batches: more tiles than a launch has blocks");
    if (Reason why = epilogue_->check(dev::kEpilogueOperands); !why) return why;
    if (Reason why = epilogue_->find_reduction(result_axes(problem_), &reduction_); !why) return why;
    if (Reason why = check_reduction(n); !why) return why;
    return ProductLayout(*region_.graph, problem_, *epilogue_, ProductForm::tiles, prologues()).check();
  }
  Reason check_reduction(const Node& n) const {
    using dev::Reduced;
    if (reduction_.over == Reduced::nothing) return Reason::yes();
    if (problem_.moe) return Reason::no("what follows ", spelling(n), " reduces rows that are routed");
    bool in_order = problem_.residues == 1 || (problem_.rows_meet && reduction_.over == Reduced::rows);
    if (!in_order && reduction_.over != Reduced::all)
      return Reason::no("what follows ", spelling(n), " reduces positions that are not computed in their order");
    constexpr int64_t kMost = 4;  // what blocks join must fit where tiles were
    if (epilogue_->reductions() > kMost)
      return Reason::no("what follows ", spelling(n), " has ", epilogue_->reductions(), " reductions, at most ", kMost);
    return Reason::yes();
  }
  std::vector<Config> configs() const override {
    std::vector<Config> list;
    for (const Choice& c : choices_) list.push_back(config(c));
    return list;
  }
  std::unique_ptr<Step> build(const Config& config) const override {
    for (const Choice& c : choices_)
      if (this->config(c).knobs == config.knobs)
        return std::make_unique<GemmStep>(*region_.graph, c.tile ? problem_ : flat_, prologues(), *epilogue_,
                                          reduction_, kind_, c, device_);
    fail(Status::internal_error, "gemm_cuda has no configuration ", to_string(config));
  }

 private:
  Prologues prologues() const {
    return {computed_[0] ? &*computed_[0] : nullptr, computed_[1] ? &*computed_[1] : nullptr};
  }
  // Without tiles (direct.cuh) there are 0 rows and columns.
  static Config config(const Choice& c) {
    return {{{"rows", c.tile ? c.tile->height : 0}, {"columns", c.tile ? c.tile->width : 0}, {"splits", c.splits}},
            c.seconds};
  }

  const Region& region_;
  const Device& device_;
  Problem problem_, flat_;  // in tiles, and without
  TileKind kind_;
  std::array<std::optional<Prologue>, 2> computed_;  // operands that what stands before the product computes
  std::vector<Choice> choices_;
  std::optional<Epilogue> epilogue_;
  Reduction reduction_;
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
    CutRegion cut;
    if (Reason why = cut_prologues(r, anchor, &cut); !why) return why;
    if (!is_real(n.compute) && !is_integer(n.compute)) return Reason::no(spelling(n), " computes in ", n.compute);
    for (size_t slot : {size_t{0}, size_t{1}})
      if (Reason why = check_operand(n, g.tensor(n.in[slot])); !why) return why;
    const Kind* kind = kind_of(n);
    if (kind->check)
      if (Reason why = kind->check(g, n); !why) return why;
    Expr epilogue;
    if (Reason why = lower_epilogue(cut.rest, anchor, &epilogue); !why) return why;
    Problem p = kind->problem(g, n);
    TileKind with{sum_type(g, n, p), std::nullopt};
    if (tensor_ && !(with.tensor = tensor_types(g, p, with.sum)))
      return Reason::no("tensor cores do not multiply ", g.tensor(p.a).dtype, " by ", g.tensor(p.b).dtype,
                        " without rounding, or have no sums of ", with.sum);
    std::array<std::optional<Prologue>, 2> computed;
    if (cut.has_prologue())
      if (Reason why = match_prologues(cut, n, d, p, computed); !why) return why;
    auto m = std::make_unique<GemmMatch>(r, d, anchor, cut, p, std::move(computed), with, epilogue);
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
                             "matrix products and convolutions of any type and layout, with the pointwise work around "
                             "them"},
                            false);
  return e;
}

const Engine& mma_engine() {
  static const GemmEngine e(
      {.name = "mma_cuda",
       .id = 116,
       .device = DeviceKind::cuda,
       .text = "matrix products and convolutions of any layout, with the pointwise work around them, on the tensor "
               "cores of compute capability 8.0 and later",
       .tensor_cores = true},
      true);
  return e;
}

}  // namespace tsr::cuda
