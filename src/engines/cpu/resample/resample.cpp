// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/resample/resample.hpp"

#include <algorithm>
#include <limits>

#include "base/thread_pool.hpp"
#include "engines/cpu/resample/gather.hpp"
#include "engines/cpu/resample/grid.hpp"
#include "engines/cpu/resample/separable.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cpu {
namespace {

using tessera::PaddingMode;
using tessera::ResampleMode;
using tessera::ResampleOptions;
using namespace slots::resample_bwd;

// Elements of windows, as part of the machine's multiply-adds: with channels side by side, or planes transposed.
constexpr double kByChannels = 0.15, kByPlanes = 0.06;
constexpr double kMemory = 0.8;  // part of the bandwidth of a plain copy
// Places of a window are counted in the type that values have: f32 is exact up to here.
constexpr int64_t kMostPlaces = 1 << 24;

bool is_forward(const Node& n) { return n.op == &ops::resample; }

struct Problem {
  const Graph& g;
  const Node& n;
  ResampleOptions o;
  const Tensor &narrow, &wide;  // y or dy; x or dx
  Problem(const Graph& graph, const Node& node)
      : g(graph),
        n(node),
        o(with_defaults(attrs<ResampleOptions>(node), graph.tensor(node.in[0]).rank() - 2)),
        narrow(graph.tensor(is_forward(node) ? node.out[0] : node.in[kDy])),
        wide(graph.tensor(is_forward(node) ? node.in[0] : node.out[0])) {}

  int spatial() const { return narrow.rank() - 2; }
  bool largest() const { return o.mode == ResampleMode::max_pool; }
  TensorId index() const { return is_forward(n) ? slot(n.out, 1) : slot(n.in, kIndex); }
  // Gradients of maxima may have to find them again.
  bool searches() const { return !is_forward(n) && largest() && index() == kNone; }
  int64_t places() const {
    int64_t p = 1;
    for (int d = 0; d < spatial(); ++d) p *= window_extent(o, d);
    return p;
  }
  // Tensors that the step reads or writes.
  std::vector<TensorId> used() const {
    std::vector<TensorId> t = {n.in[0], n.out[0]};
    if (searches()) t.push_back(n.in[kX]);
    if (index() != kNone) t.push_back(index());
    return t;
  }
  bool in_f64() const {
    if (n.compute == DType::f64) return true;
    for (TensorId t : used()) {
      DType type = g.tensor(t).dtype;
      if (t != index() && (type == DType::f64 || type == DType::i32 || type == DType::i64)) return true;
    }
    return false;
  }
};

// From x to y.
GatherShape forward_shape(const Problem& p, const Tensor& x) {
  GatherShape s;
  s.what = p.largest() ? Collect::largest : Collect::sum;
  s.images = p.narrow.dims[0], s.channels = p.narrow.dims[1];
  for (int d = 0; d < 3; ++d) {
    auto k = static_cast<size_t>(d);
    int axis = d - (3 - p.spatial());
    s.source_size[k] = axis < 0 ? 1 : x.dims[2 + axis];
    s.axes[k] = axis < 0 ? identity_taps(1) : forward_taps(p.o, axis, x.dims[2 + axis], p.narrow.dims[2 + axis]);
  }
  s.alpha = p.o.alpha;
  s.padding = p.o.padding == PaddingMode::zero ? 0 : -std::numeric_limits<double>::infinity();
  s.source = PlaneTensor(x.dtype, x.strides);
  s.result = PlaneTensor(p.narrow.dtype, p.narrow.strides);
  return s;
}

// From dy to dx.
GatherShape backward_shape(const Problem& p) {
  GatherShape s = forward_shape(p, p.wide);
  s.what = p.largest() ? Collect::select : Collect::sum;
  for (size_t k = 0; k < 3; ++k) {
    int64_t x = s.source_size[k];
    s.source_size[k] = s.axes[k].size();
    s.axes[k] = backward_taps(s.axes[k], x);
  }
  std::swap(s.source, s.result);
  return s;
}

// Forward, and gradients that need no index of their own. `Form` is one of the two ways to compute it.
template <class Form>
class GatherStep : public Step {
 public:
  GatherStep(const Problem& p, const GatherShape& s, int threads)
      : source_(p.n.in[0]), result_(p.n.out[0]), index_(p.index()), gather_(s, threads) {}
  size_t workspace_bytes() const override { return gather_.workspace_bytes(); }
  void run(const StepArgs& a) const override {
    gather_.run({a.tensors[source_], a.tensors[result_], index_ == kNone ? nullptr : a.tensors[index_]}, a.workspace);
  }

 private:
  TensorId source_, result_, index_;
  Form gather_;
};

// The gradient of maxima that have to be found again: their places go to the workspace.
template <class T>
class SearchStep : public Step {
 public:
  SearchStep(const Problem& p, int threads)
      : dy_(p.n.in[kDy]),
        dx_(p.n.out[0]),
        x_(p.n.in[kX]),
        index_bytes_((static_cast<size_t>(p.narrow.numel()) * sizeof(T) + 255) / 256 * 256),
        search_(indexed(forward_shape(p, p.g.tensor(x_)), p), threads),
        select_(indexed(backward_shape(p), p), threads) {}
  size_t workspace_bytes() const override {
    return index_bytes_ + std::max(search_.workspace_bytes(), select_.workspace_bytes());
  }
  void run(const StepArgs& a) const override {
    std::byte* rest = a.workspace + index_bytes_;
    search_.run({a.tensors[x_], nullptr, a.workspace}, rest);
    select_.run({a.tensors[dy_], a.tensors[dx_], a.workspace}, rest);
  }

 private:
  // Places lie without gaps, channels side by side where those of dy are.
  static GatherShape indexed(GatherShape s, const Problem& p) {
    const Dims& dims = p.narrow.dims;
    bool last = p.narrow.strides[1] == 1;
    Dims strides = packed_strides(dims);
    for (int d = 2; last && d < dims.size(); ++d) strides[d] *= dims[1];
    if (last) strides[1] = 1;
    s.indexed = true;
    s.index = PlaneTensor(sizeof(T) == 8 ? DType::f64 : DType::f32, strides);
    return s;
  }
  TensorId dy_, dx_, x_;
  size_t index_bytes_;
  Gather<T> search_, select_;
};

template <class T>
std::unique_ptr<Step> make_step(const Problem& p) {
  int threads = thread_count();
  if (p.searches()) return std::make_unique<SearchStep<T>>(p, threads);
  GatherShape s = is_forward(p.n) ? forward_shape(p, p.wide) : backward_shape(p);
  if (p.index() != kNone) {
    const Tensor& index = p.g.tensor(p.index());
    s.indexed = true;
    s.index = PlaneTensor(index.dtype, index.strides);
  }
  if (separates(s)) return std::make_unique<GatherStep<SeparableGather<T>>>(p, s, threads);
  return std::make_unique<GatherStep<Gather<T>>>(p, s, threads);
}

Reason check_tensor(const Tensor& x) {
  if (info(x.dtype).bits < 8) return Reason::no("tensor ", describe(x), " packs elements into bytes");
  if (info(x.dtype).vector > 1) return Reason::no("tensor ", describe(x), " is vectorised");
  if (x.ragged != kNone) return Reason::no("tensor ", describe(x), " is ragged");
  if (x.reordering != Reordering::none) return Reason::no("tensor ", describe(x), " is reordered");
  return Reason::yes();
}

Reason check_windows(const Problem& p) {
  for (TensorId t : p.used())
    if (Reason why = check_tensor(p.g.tensor(t)); !why) return why;
  if (!p.largest()) return Reason::yes();
  for (Ratio w : p.o.window)
    if (w.num < w.den) return Reason::no("windows of ", w.num, "/", w.den, " may hold nothing to take the maximum of");
  if (p.places() > kMostPlaces) return Reason::no("windows of ", p.places(), " places, allowed: ", kMostPlaces);
  return Reason::yes();
}

double window_seconds(const Problem& p, const Region& r, const Device& d) {
  double taps = static_cast<double>(p.narrow.numel()) * static_cast<double>(p.places());
  bool by_channels = p.narrow.strides[1] == 1 && p.wide.strides[1] == 1;
  double arithmetic = taps / ((by_channels ? kByChannels : kByPlanes) * d.rates.f32);
  return std::max(region_bytes(r) / (kMemory * d.bytes_per_second), arithmetic);
}

class ResampleEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"resample_cpu", 8, DeviceKind::cpu, true,
                                         "pooling, interpolation, sampling, and their gradients"};
    return kInfo;
  }

  Matched match(const Region& r, const Device& d) const override {
    if (r.nodes.size() != 1) return Reason::no("operations over windows run alone");
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (n.op->name.starts_with("resample")) {
      Problem p(g, n);
      if (Reason why = check_windows(p); !why) return why;
      return one_way(window_seconds(p, r, d) + d.step_seconds,
                     [p] { return p.in_f64() ? make_step<double>(p) : make_step<float>(p); });
    }
    if (!is_grid_work(n)) return Reason::no(spelling(n), " is no operation over windows");
    for (const auto* list : {&n.in, &n.out})
      for (TensorId t : *list)
        if (t != kNone)
          if (Reason why = check_tensor(g.tensor(t)); !why) return why;
    return one_way(grid_seconds(r, d) + d.step_seconds, [&g, &n] { return make_grid_step(g, n, thread_count()); });
  }
};

}  // namespace

const Engine& resample_engine() {
  static const ResampleEngine e;
  return e;
}

}  // namespace tsr::cpu
