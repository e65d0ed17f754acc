// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/gemm.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/gemm/epilogue.hpp"
#include "engines/cpu/gemm/moe.hpp"
#include "engines/cpu/gemm/problem.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cpu {
namespace {

// Part of the machine's multiply-adds that large products and convolutions reach, packing included. Those of bytes are
// counted in multiply-adds of 16-bit numbers, which take twice as long. AMX waits for the second cache.
constexpr double kEfficiency = 0.82, kBytes = 1.8, kTiles = 0.25;

double peak(Packing p, const Rates& r) {
  switch (p) {
    case Packing::f64:
      return r.f64;
    case Packing::bf16:
      return (has_amx_products() ? kTiles : 1) * r.bits16;
    case Packing::bytes:
      return (has_amx_products() ? kTiles : 1) * kBytes * r.bits16;
    default:
      return r.f32;
  }
}

// Are tiles parts of the result as they are? Then they can be computed there, if rows lie at one stride.
bool is_result(const Anchored& a, const Placement& p, const Scaling& s, DType type) {
  DType parts = a.out().dtype == DType::c64 ? DType::f32 : a.out().dtype == DType::c128 ? DType::f64 : a.out().dtype;
  if (a.region.nodes.size() > 1 || parts != type || s.alpha != 1 || s.beta != 0) return false;
  Axes columns = p.columns.merged();
  return columns.sizes.size() == 1 && columns.strides[0] == 1;
}

// What the product itself reads, as opposed to what follows it.
std::vector<TensorId> product_reads(const Anchored& a, const Scaling& s) {
  std::vector<TensorId> reads = node_reads(a.graph(), a.node());
  if (auto c = std::find(reads.begin(), reads.end(), s.c); s.c != kNone && c != reads.end()) reads.erase(c);
  return reads;
}

template <class T>
class GemmStep : public Step, private Result<SumOf<T>> {
  using Sum = SumOf<T>;
  using Tile = ResultTile<Sum>;

 public:
  GemmStep(const Anchored& a, Problem<T> problem)
      : problem_(std::move(problem)),
        reads_(product_reads(a, problem_.scaling)),
        result_(is_result(a, problem_.place, problem_.scaling, kType) ? a.node().out[0] : kNone),
        rows_(problem_.place.rows.merged()),
        row_count_(problem_.place.row_count.merged()),
        epilogue_(result_ == kNone ? std::make_unique<Epilogue>(a.region, a.anchor, a.epilogue, kType, problem_.scaling,
                                                                problem_.frame.order())
                                   : nullptr),
        product_(problem_.shape, *problem_.left, *problem_.right,
                 {epilogue_ ? epilogue_->scratch_bytes() : 0, epilogue_ && epilogue_->whole_rows(), problem_.stream,
                  thread_count()}) {}

  size_t workspace_bytes() const override { return product_.workspace_bytes(); }
  bool may_overwrite(TensorId in, TensorId out) const override {
    return std::find(reads_.begin(), reads_.end(), in) == reads_.end() &&
           (!epilogue_ || epilogue_->may_overwrite(in, out));
  }
  void run(const StepArgs& args) const override { product_.run(problem_.shape, args.tensors, args.workspace, *this); }

 private:
  static constexpr DType kType = std::is_integral_v<Sum> ? DType::i32 : sizeof(Sum) == 4 ? DType::f32 : DType::f64;

  bool place(void* const* tensors, Tile& t) const override {
    if (!in_place()) return false;
    t.at = memory(tensors, t, t.row);
    t.stride = rows_.strides[0];
    return true;
  }

  int64_t depth(void* const* tensors, int64_t batch, int64_t depth) const override {
    return problem_.limits.depth.value(tensors, batch / problem_.limits.batches, depth);
  }

  void finish(void* const* tensors, const Tile& t, std::byte* scratch) const override {
    fill_beyond_limits(tensors, t);
    if (in_place()) return;
    if (result_ != kNone) {
      for (int64_t i = 0; i < t.rows; ++i) std::copy_n(t.at + i * t.stride, t.columns, memory(tensors, t, t.row + i));
      return;
    }
    const Placement& p = problem_.place;
    int64_t base = p.start_count + p.batch_count.offset(t.batch) + t.column;
    if (row_count_.sizes.size() == 1 && t.columns == row_count_.strides[0])
      return epilogue_->run(tensors, base + t.row * t.columns, t.rows * t.columns, t.at, scratch);
    for (int64_t i = 0; i < t.rows; ++i)
      epilogue_->run(tensors, base + row_count_.offset(t.row + i), t.columns, t.at + i * t.stride, scratch);
  }

  bool in_place() const { return result_ != kNone && rows_.sizes.size() == 1; }
  // Where a row of the tile belongs in the result.
  Sum* memory(void* const* tensors, const Tile& t, int64_t row) const {
    const Placement& p = problem_.place;
    return static_cast<Sum*>(tensors[result_]) + p.start + p.batch.offset(t.batch) + rows_.offset(row) + t.column;
  }

  void fill_beyond_limits(void* const* tensors, const Tile& t) const {
    const Limits& l = problem_.limits;
    if (l.rows.tensor == kNone && l.columns.tensor == kNone) return;
    int64_t index = t.batch / l.batches, rows = l.rows.value(tensors, index, problem_.shape.rows) - t.row,
            columns = l.columns.value(tensors, index, problem_.shape.columns) - t.column;
    columns = std::clamp<int64_t>(columns, 0, t.columns);
    Sum fill;
    store(kType, &fill, 0, l.fill);
    for (int64_t i = 0; i < t.rows; ++i) {
      int64_t from = i < rows ? columns : 0;
      std::fill(t.at + i * t.stride + from, t.at + i * t.stride + t.columns, fill);
    }
  }

  Problem<T> problem_;
  std::vector<TensorId> reads_;
  TensorId result_;  // kNone: the epilogue stores it
  Axes rows_, row_count_;
  std::unique_ptr<Epilogue> epilogue_;
  Product<T> product_;
};

// Products that make one result, one after the other.
class Together : public Step {
 public:
  explicit Together(std::vector<std::unique_ptr<Step>> steps) : steps_(std::move(steps)) {}
  size_t workspace_bytes() const override {
    size_t most = 0;
    for (const auto& s : steps_) most = std::max(most, s->workspace_bytes());
    return most;
  }
  bool may_overwrite(TensorId in, TensorId out) const override {
    return std::all_of(steps_.begin(), steps_.end(), [&](const auto& s) { return s->may_overwrite(in, out); });
  }
  void run(const StepArgs& args) const override {
    for (const auto& s : steps_) s->run(args);
  }

 private:
  std::vector<std::unique_ptr<Step>> steps_;
};

// What the engine knows of a kind of anchor.
struct Kind {
  std::string_view op;
  Reason (*check)(const Anchored& a);
  Packing (*packing)(const Anchored& a);
  std::unique_ptr<Step> (*build)(const Anchored& a);
};

// f(T()) for the type that operands are packed as.
template <class F>
std::unique_ptr<Step> packed_as(Packing p, const F& f) {
  switch (p) {
    case Packing::f64:
      return f(double{});
    case Packing::bf16:
      return f(Bf16{});
    case Packing::bytes:
      return f(Byte{});
    default:
      return f(float{});
  }
}

std::unique_ptr<Step> build_matmul(const Anchored& a) {
  return packed_as(matmul_packing(a), [&]<class T>(T) -> std::unique_ptr<Step> {
    return std::make_unique<GemmStep<T>>(a, matmul_problem<T>(a));
  });
}

std::unique_ptr<Step> build_conv(const Anchored& a) {
  return packed_as(conv_packing(a), [&]<class T>(T) -> std::unique_ptr<Step> {
    if constexpr (std::is_same_v<T, float>)
      if (auto step = depthwise_conv(a)) return step;
    std::vector<std::unique_ptr<Step>> steps;
    for (Problem<T>& p : conv_problems<T>(a)) steps.push_back(std::make_unique<GemmStep<T>>(a, std::move(p)));
    if (steps.size() == 1) return std::move(steps[0]);
    return std::make_unique<Together>(std::move(steps));
  });
}

constexpr Kind kKinds[] = {
    {"matmul", check_matmul, matmul_packing, build_matmul},
    {"conv_fprop", check_conv, conv_packing, build_conv},
    {"conv_dgrad", check_conv, conv_packing, build_conv},
    {"conv_wgrad", check_conv, conv_packing, build_conv},
    {"moe_matmul", check_moe, moe_packing, build_moe},
    {"moe_matmul_bwd", check_moe_bwd, moe_bwd_packing, build_moe_bwd},
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

class GemmEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "gemm_cpu", 4, DeviceKind::cpu, true,
        "matrix products and convolutions of any type and layout, with the pointwise or row-wise work behind them"};
    return kInfo;
  }

  Matched match(const Region& r, const Device& d) const override {
    NodeId anchor = find_anchor(r);
    if (anchor == kNone) return Reason::no("the region has no matrix product or convolution");
    for (TensorId t : r.graph->node(anchor).in) {
      NodeId p = t == kNone ? kNone : r.graph->producer(t);
      if (p != kNone && std::find(r.nodes.begin(), r.nodes.end(), p) != r.nodes.end())
        return Reason::no("input ", describe(r.graph->tensor(t)), " of the product is computed in the region");
    }
    Anchored a{r, anchor, {}};
    const Kind* kind = kind_of(a.node());
    if (is_complex(a.node().compute)) {
      if (a.node().op != &ops::matmul) return Reason::no(spelling(a.node()), " computes in ", a.node().compute);
      if (Reason why = check_complex_matmul(a); !why) return why;
    } else {
      if (Reason why = lower_epilogue(r, anchor, &a.epilogue); !why) return why;
      if (Reason why = kind->check(a); !why) return why;
    }
    double most = peak(kind->packing(a), d.rates);
    double arithmetic =
        a.node().op->family == Family::conv ? conv_seconds(a, most, d.units) : region_flops(r) / (kEfficiency * most);
    double seconds = std::max(region_bytes(r) / d.bytes_per_second, arithmetic) + 2 * d.step_seconds;
    return one_way(seconds, [kind, a = std::move(a)] { return kind->build(a); });
  }
};

}  // namespace

const Engine& gemm_engine() {
  static const GemmEngine e;
  return e;
}

}  // namespace tsr::cpu
