// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/move/ragged.hpp"

#include "engines/cuda/move/copy.hpp"
#include "engines/cuda/tensors.hpp"
#include "graph/layouts.hpp"
#include "graph/op.hpp"
#include "graph/ragged.hpp"

namespace tsr::cuda {
namespace {

constexpr int kThreads = 256;

// A loop over a dimension: index = start + scale * number.
struct Loop {
  int dimension;
  int64_t size, start = 0, scale = 1;
};

dev::RaggedSide make_side(const Graph& g, const Tensor& t, const std::vector<Loop>& loops) {
  dev::RaggedSide s{};
  int time = t.ragged == kNone ? -1 : ragged_axis(t);
  s.loops = static_cast<int>(loops.size());
  s.batch_loop = s.time_loop = -1;
  s.batch_step = t.rank() > 0 ? t.strides[0] : 0;
  for (int l = 0; l < s.loops; ++l) {
    const Loop& loop = loops[static_cast<size_t>(l)];
    s.size[l] = loop.size;
    s.step[l] = loop.scale * t.strides[loop.dimension];
    if (loop.dimension == 0)
      s.batch_loop = l, s.batch_start = loop.start, s.batch_scale = loop.scale;
    else
      s.first += loop.start * t.strides[loop.dimension];
    if (loop.dimension == time) s.time_loop = l, s.time_start = loop.start, s.time_scale = loop.scale;
  }
  s.ragged = ragged_arg(g, t);
  return s;
}

// All dimensions of a tensor, or those of more than one element in the order of its memory.
std::vector<Loop> loops_over(const Tensor& t, bool by_memory = false) {
  std::vector<Loop> loops;
  if (by_memory)
    for (int d : memory_order(t.dims, t.strides)) loops.push_back({d, t.dims[d]});
  else
    for (int d = 0; d < t.rank(); ++d) loops.push_back({d, t.dims[d]});
  return loops;
}

// The loops that walk through both sides of each copy of a node.
struct Walk {
  TensorId source;
  std::vector<Loop> from, to;
};

std::vector<Walk> walks_of(const Graph& g, const Node& n) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  std::vector<Walk> walks;
  if (n.op->name == "reshape") {
    bool view = attrs<tessera::ReshapeOptions>(n).mode == tessera::ReshapeMode::view;
    return {{n.in[0], loops_over(x, view), loops_over(y, view)}};
  }
  if (n.op->name == "concat") {
    auto axis = static_cast<size_t>(normalize_axis(attrs<tessera::ConcatOptions>(n).axis, y.rank()));
    int64_t start = 0;
    for (TensorId t : n.in) {
      Walk w{t, loops_over(g.tensor(t)), loops_over(g.tensor(t))};
      w.to[axis].start = start;
      start += w.to[axis].size;
      walks.push_back(std::move(w));
    }
    return walks;
  }
  Walk w{n.in[0], loops_over(y), loops_over(y)};
  for (size_t i = 0; i < w.from.size(); ++i) {
    if (n.op->name == "transpose") w.from[i].dimension = static_cast<int>(attrs<tessera::TransposeOptions>(n).perm[i]);
    if (n.op->name == "slice") {
      const auto& o = attrs<tessera::SliceOptions>(n);
      if (!o.start.empty()) w.from[i].start = o.start[i];
      if (!o.stride.empty()) w.from[i].scale = o.stride[i];
    }
  }
  return {std::move(w)};
}

class RaggedStep : public Step {
 public:
  RaggedStep(const Graph& g, const Node& n, const Device& d) : target_(n.out[0]) {
    const Tensor& y = g.tensor(target_);
    to_offsets_ = y.ragged;
    for (const Walk& w : walks_of(g, n)) {
      const Tensor& x = g.tensor(w.source);
      Launch l{w.source, x.ragged, {}, {}, nullptr};
      l.args.count = 1;
      for (const Loop& loop : w.to) l.args.count *= loop.size;
      if (l.args.count == 0) continue;
      l.args.from = make_side(g, x, w.from), l.args.to = make_side(g, y, w.to);
      Program p;
      p.include = "engines/cuda/move/ragged.cuh";
      p.generated = "using namespace tsr::dev;";
      p.args = "RaggedArgs";
      p.body = cat("copy_ragged<", device_type(x.dtype), ", ", device_type(y.dtype), ">");
      p.threads = l.grid.threads = kThreads;
      l.grid.blocks = (l.args.count + kThreads - 1) / kThreads;
      l.kernel = get_kernel(p, d);
      launches_.push_back(std::move(l));
    }
  }
  int kernels() const override { return static_cast<int>(launches_.size()); }
  void run(const StepArgs& s) const override {
    for (const Launch& l : launches_) {
      dev::RaggedArgs a = l.args;
      a.from.data = s.tensors[l.source], a.to.data = s.tensors[target_];
      if (l.offsets != kNone) a.from.ragged.offsets = s.tensors[l.offsets];
      if (to_offsets_ != kNone) a.to.ragged.offsets = s.tensors[to_offsets_];
      l.kernel->launch(l.grid, s.stream, a);
    }
  }

 private:
  struct Launch {
    TensorId source, offsets;
    Grid grid;
    dev::RaggedArgs args;
    std::shared_ptr<const Kernel> kernel;
  };
  TensorId target_, to_offsets_;
  std::vector<Launch> launches_;
};

}  // namespace

bool has_ragged(const Graph& g, const Node& n) {
  for (const auto* list : {&n.in, &n.out})
    for (TensorId t : *list)
      if (t != kNone && g.tensor(t).ragged != kNone) return true;
  return false;
}

Reason check_ragged(const Graph& g, const Node& n) {
  for (const auto* list : {&n.in, &n.out})
    for (TensorId id : *list) {
      if (id == kNone) continue;
      const Tensor& t = g.tensor(id);
      if (lies_on_host(t)) return Reason::no("tensor ", describe(t), " is a number that travels with the launch");
      if (t.rank() < 3 && t.ragged != kNone)
        return Reason::no("tensor ", describe(t), " is ragged and has ", t.rank(), " dimensions; at least 3");
      if (info(t.dtype).bits < 8 || info(t.dtype).vector > 1 || is_complex(t.dtype))
        return Reason::no("tensor ", describe(t), " has type ", t.dtype,
                          "; packed sequences hold whole real numbers or integers");
    }
  return Reason::yes();
}

std::unique_ptr<Step> make_ragged_step(const Graph& g, const Node& n, const Device& d) {
  return std::make_unique<RaggedStep>(g, n, d);
}

}  // namespace tsr::cuda
