// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/rope/rope.hpp"

#include <algorithm>

#include "engines/cuda/rope/args.cuh"
#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/tensors.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/rope.hpp"
#include "graph/ragged.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kMostPairs = 8;               // of a thread, in each sequence
constexpr int kSequences = 4;               // that a thread turns by the same angles
constexpr int64_t kWideIndex = 2000000000;  // threads from which 32 bits do not count them

int64_t bytes_of(const Tensor& t) { return info(t.dtype).bits / 8; }

// Elements that a thread can move at once.
int vector_length(const Tensor& x, const Tensor& y, int64_t passing, int64_t turning) {
  int64_t v = std::min<int64_t>(kMostPairs, 16 / std::min(bytes_of(x), bytes_of(y)));
  auto fits = [&](const Tensor& t) {
    bool ok = t.strides[3] == 1 && t.alignment % std::min<int64_t>(16, v * bytes_of(t)) == 0;
    for (int i = 0; i < 3; ++i) ok = ok && t.strides[i] % v == 0;
    return ok && (t.ragged == kNone || t.ragged_multiplier % v == 0);
  };
  while (v > 1 && (passing % v || turning % v || !fits(x) || !fits(y))) v /= 2;
  return static_cast<int>(v);
}

class RopeStep : public Step {
 public:
  RopeStep(const Graph& g, const Node& n, const Device& d) {
    const Tensor &x = g.tensor(n.in[0]), &angles = g.tensor(n.in[1]), &y = g.tensor(n.out[0]);
    const auto& o = attrs<tessera::RopeOptions>(n);
    if (x.numel() == 0) return;
    args_.turning = rope_dim(o, x) / 2;
    args_.passing = x.dims[3] - 2 * args_.turning;
    for (int i = 0; i < 4; ++i) args_.x_steps[i] = x.strides[i], args_.y_steps[i] = y.strides[i];
    args_.angle_steps[0] = angles.strides[rope_positions(angles)], args_.angle_steps[1] = angles.strides[3];
    args_.x_ragged = ragged_arg(g, x), args_.y_ragged = ragged_arg(g, y);
    bound_.pointer(args_.x, n.in[0]);
    bound_.pointer(args_.angles, n.in[1]);
    bound_.pointer(args_.y, n.out[0]);
    bound_.pointer(args_.x_ragged.offsets, x.ragged);
    bound_.pointer(args_.y_ragged.offsets, y.ragged);
    args_.scale = o.scale;
    args_.sign = n.op == &ops::rope ? 1 : -1;
    args_.sequences = x.dims[0] * x.dims[1];
    int v = vector_length(x, y, args_.passing, args_.turning),
        sequences = args_.sequences >= kSequences ? kSequences : 1;
    int64_t pieces = (args_.passing + args_.turning) / v;
    args_.heads = dev::make_divisor(x.dims[1]);
    args_.positions = dev::make_divisor(x.dims[2]);
    args_.pieces = dev::make_divisor(pieces);
    args_.count = (args_.sequences + sequences - 1) / sequences * x.dims[2] * pieces;
    bool wide = false;
    for (const Tensor* t : {&x, &angles, &y}) wide = wide || t->dtype == DType::f64;
    Program p;
    p.include = "engines/cuda/rope/rope.cuh";
    p.generated = "using namespace tsr::dev;";
    p.args = "RopeArgs";
    p.body =
        cat("rope<", device_type(x.dtype), ", ", device_type(y.dtype), ", ", device_type(angles.dtype), ", ",
            wide ? "double" : "float", ", ", v, ", ", sequences, ", ", args_.count > kWideIndex ? "i64" : "i32", ">");
    p.threads = grid_.threads = kThreads;
    grid_.blocks = (args_.count + kThreads - 1) / kThreads;
    kernel_ = get_kernel(p, d);
  }
  int kernels() const override { return kernel_ ? 1 : 0; }
  void run(const StepArgs& s) const override {
    if (kernel_) kernel_->launch(grid_, s.stream, bound_.filled(s));
  }

 private:
  KernelArgs<dev::RopeArgs> bound_;
  dev::RopeArgs& args_ = bound_.args;
  Grid grid_;
  std::shared_ptr<const Kernel> kernel_;
};

class RopeEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {"rope_cuda", 107, DeviceKind::cuda, true,
                                         "rotary position embeddings and their gradient"};
    return kInfo;
  }

  Matched match(const Region& r, const Device& d) const override {
    if (r.nodes.size() != 1) return Reason::no("a rotary embedding runs alone");
    const Node& n = r.graph->node(r.nodes[0]);
    if (n.op != &ops::rope && n.op != &ops::rope_bwd) return Reason::no(spelling(n), " is no rotary embedding");
    for (TensorId t : {n.in[0], n.in[1], n.out[0]}) {
      const Tensor& x = r.graph->tensor(t);
      if (x.on_host()) return Reason::no("tensor ", describe(x), " is a number that travels with the launch");
      if (x.ragged != kNone && (t == n.in[1] || ragged_axis(x) != 2))
        return Reason::no("tensor ", describe(x), " is ragged; here only x and y may be, along dimension 2");
      if (tsr::info(x.dtype).bits < 8) return Reason::no("tensor ", describe(x), " packs elements into bytes");
      if (!is_real(x.dtype)) return Reason::no("tensor ", describe(x), " has type ", x.dtype, "; allowed: real types");
    }
    return one_way(region_bytes(r) / d.bytes_per_second + d.step_seconds,
                   [&g = *r.graph, &n, &d] { return std::make_unique<RopeStep>(g, n, d); });
  }
};

}  // namespace

const Engine& rope_engine() {
  static const RopeEngine e;
  return e;
}

}  // namespace tsr::cuda
