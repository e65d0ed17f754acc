// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/gemm.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/gemm/epilogue.hpp"
#include "engines/cpu/gemm/problem.hpp"

namespace tsr::cpu {
namespace {

// Part of the machine's multiply-adds that large products reach, packing included.
constexpr double kEfficiency = 0.9;

// The result itself, where tiles can be computed in place.
struct Destination {
  TensorId tensor = kNone;
  Axes batch;
  int64_t row_stride = 0;
};

Destination find_destination(const Anchored& a, const Frame& f, DType type) {
  const Tensor& y = a.out();
  if (a.region.nodes.size() > 1 || y.dtype != type) return {};
  auto axes = [&](const std::vector<int>& list) {
    Axes x;
    for (int i : list) x.add(y.dims[i], y.strides[i]);
    return x;
  };
  Axes rows = axes(f.rows).merged(), columns = axes(f.columns).merged();
  if (rows.sizes.size() > 1 || columns.sizes.size() > 1 || columns.strides[0] != 1) return {};
  return {a.node().out[0], axes(f.batch), rows.strides[0]};
}

template <class T>
class GemmStep : public Step, private Result<T> {
 public:
  GemmStep(const Anchored& a, Problem<T> problem)
      : problem_(std::move(problem)),
        epilogue_(a.region, a.anchor, kType, problem_.frame.order()),
        destination_(find_destination(a, problem_.frame, kType)),
        product_(problem_.shape, *problem_.left, *problem_.right, epilogue_.scratch_bytes(), epilogue_.whole_rows(),
                 thread_count()) {}

  size_t workspace_bytes() const override { return product_.workspace_bytes(); }
  void run(const StepArgs& args) const override { product_.run(problem_.shape, args.tensors, args.workspace, *this); }

 private:
  static constexpr DType kType = sizeof(T) == 4 ? DType::f32 : DType::f64;

  bool place(void* const* tensors, ResultTile<T>& t) const override {
    if (destination_.tensor == kNone) return false;
    t.at = static_cast<T*>(tensors[destination_.tensor]) + destination_.batch.offset(t.batch) +
           t.row * destination_.row_stride + t.column;
    t.stride = destination_.row_stride;
    return true;
  }

  int64_t depth(void* const* tensors, int64_t batch, int64_t depth) const override {
    return problem_.limits.depth.value(tensors, batch / problem_.limits.batches, depth);
  }

  void finish(void* const* tensors, const ResultTile<T>& t, std::byte* scratch) const override {
    fill_beyond_limits(tensors, t);
    if (destination_.tensor != kNone) return;
    int64_t columns = problem_.shape.columns;
    int64_t first = (t.batch * problem_.shape.rows + t.row) * columns + t.column;
    if (t.columns == columns) return epilogue_.run(tensors, first, t.rows * columns, t.at, scratch);
    for (int64_t i = 0; i < t.rows; ++i)
      epilogue_.run(tensors, first + i * columns, t.columns, t.at + i * t.stride, scratch);
  }

  void fill_beyond_limits(void* const* tensors, const ResultTile<T>& t) const {
    const Limits& l = problem_.limits;
    if (l.rows.tensor == kNone && l.columns.tensor == kNone) return;
    int64_t index = t.batch / l.batches, rows = l.rows.value(tensors, index, problem_.shape.rows) - t.row,
            columns = l.columns.value(tensors, index, problem_.shape.columns) - t.column;
    columns = std::clamp<int64_t>(columns, 0, t.columns);
    for (int64_t i = 0; i < t.rows; ++i) {
      int64_t from = i < rows ? columns : 0;
      std::fill(t.at + i * t.stride + from, t.at + i * t.stride + t.columns, static_cast<T>(l.fill));
    }
  }

  Problem<T> problem_;
  Epilogue epilogue_;
  Destination destination_;
  Product<T> product_;
};

bool is_anchor(const Node& n) { return n.op->name == "matmul"; }

NodeId find_anchor(const Region& r) {
  for (NodeId n : r.nodes)
    if (is_anchor(r.graph->node(n))) return n;
  return kNone;
}

class GemmEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "gemm_cpu", 4, DeviceKind::cpu, true,
        "matrix products of any type and layout, with the pointwise or row-wise work behind them"};
    return kInfo;
  }

  Reason check(const Region& r, const Device&) const override {
    NodeId anchor = find_anchor(r);
    if (anchor == kNone) return Reason::no("the region has no matrix product");
    for (TensorId t : r.graph->node(anchor).in) {
      NodeId p = t == kNone ? kNone : r.graph->producer(t);
      if (p != kNone && std::find(r.nodes.begin(), r.nodes.end(), p) != r.nodes.end())
        return Reason::no("input ", describe(r.graph->tensor(t)), " of the product is computed in the region");
    }
    Anchored a{r, anchor, {}};
    if (Reason why = lower_epilogue(r, anchor, &a.rest); !why) return why;
    return check_matmul(a);
  }

  std::vector<Config> configs(const Region& r, const Device& d) const override {
    Anchored a{r, find_anchor(r), {}};
    double peak = d.flops_per_second * (is_wide(a) ? 0.5 : 1.0);
    double seconds = std::max(region_bytes(r) / d.bytes_per_second, region_flops(r) / (kEfficiency * peak));
    return {Config{{}, seconds + 2 * d.step_seconds}};
  }

  std::unique_ptr<Step> build(const Region& r, const Config&, const Device&) const override {
    Anchored a{r, find_anchor(r), {}};
    if (Reason why = lower_epilogue(r, a.anchor, &a.rest); !why)
      fail(Status::internal_error, "gemm_cpu built a region that it declines: ", why.text());
    if (is_wide(a)) return std::make_unique<GemmStep<double>>(a, matmul_problem<double>(a));
    return std::make_unique<GemmStep<float>>(a, matmul_problem<float>(a));
  }

 private:
  static bool is_wide(const Anchored& a) { return needs_wide(a, 0, 1, a.in(0).dims.back()); }
};

}  // namespace

const Engine& gemm_engine() {
  static const GemmEngine e;
  return e;
}

}  // namespace tsr::cpu
