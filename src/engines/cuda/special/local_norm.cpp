// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels and divisive normalisation across space, forward and backward.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engines/cuda/special/local_norm_args.cuh"
#include "engines/cuda/special/special.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/lrn.hpp"

namespace tsr::cuda {
namespace {

using Args = dev::LocalNormArgs;
constexpr int kThreads = 256;
constexpr const char* kInclude = "engines/cuda/special/local_norm.cuh";

// Dimensions of a tensor from the one with the largest stride to the one with the smallest.
std::vector<int> sorted_dims(const Tensor& t) {
  std::vector<int> order(static_cast<size_t>(t.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return t.strides[a] > t.strides[b]; });
  return order;
}

struct Slots {
  TensorId x, mean = kNone, dy = kNone, out, dmean = kNone;
};

Slots slots_of(const Region& r, const Node& n) {
  Slots s{.x = n.in[0], .out = wanted(r, n.out[0])};
  if (n.op == &ops::divisive_norm) s.mean = slot(n.in, 1);
  if (n.op == &ops::lrn_bwd || n.op == &ops::divisive_norm_bwd) s.dy = n.in[1];
  if (n.op == &ops::divisive_norm_bwd) s.mean = slot(n.in, 2), s.dmean = wanted(r, slot(n.out, 1));
  return s;
}

}  // namespace

std::unique_ptr<Step> build_local_norm(const Region& r, const Device& d) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  const auto& options = attrs<tessera::LrnOptions>(n);
  bool across_channels = n.op == &ops::lrn || n.op == &ops::lrn_bwd;
  Slots s = slots_of(r, n);
  const Tensor& x = g.tensor(s.x);
  auto step = std::make_unique<Launches<Args>>();
  Args& a = step->args;
  std::vector<int> order = sorted_dims(x);
  int shift = dev::kNormAxes - x.rank();
  bool small = x.numel() < (int64_t{1} << 31);
  auto bind = [&](dev::Operand& o, TensorId t) {
    step->bind(o, g, t);
    if (t == kNone) return;
    small = small && g.tensor(t).span() < (int64_t{1} << 31);
    o = {};
    for (int i = 0; i < x.rank(); ++i) o.strides[shift + i] = g.tensor(t).strides[order[static_cast<size_t>(i)]];
  };
  bind(a.x, s.x), bind(a.mean, s.mean), bind(a.dy, s.dy);
  bind(a.out, s.out), bind(a.dmean, s.dmean);

  a.elements = x.numel();
  double box = 1;
  int64_t stride = 1;
  for (int i = dev::kNormAxes - 1; i >= 0; --i) {
    int axis = i < shift ? -1 : order[static_cast<size_t>(i - shift)];
    int64_t size = axis < 0 ? 1 : x.dims[axis];
    a.sizes[i] = dev::make_divisor(std::max<int64_t>(1, size));
    a.packed.strides[i] = stride;
    stride *= size;
    if (across_channels ? axis != 1 : axis < 2) continue;
    // A box that reaches beyond the tensor is no larger than the tensor.
    a.before[i] = std::min(lrn_before(options.n), size);
    a.after[i] = std::min(across_channels ? lrn_after(options.n) : lrn_before(options.n), size);
    box *= static_cast<double>(options.n);
  }
  a.k = options.k, a.alpha = options.alpha / box, a.beta = options.beta;

  Grid grid{ceil_div(a.elements, kThreads), kThreads, 0};
  std::string lane = lane_of(g, n, {s.x, s.mean, s.dy, s.out, s.dmean}), number = small ? "i32" : "i64";
  auto type = [&](TensorId t) { return device_type_of(g, t); };
  if (s.dy == kNone) {
    step->add(kInclude, "LocalNormArgs", instance("local_norm", lane, type(s.x), type(s.mean), type(s.out), number),
              grid, d);
    return step;
  }
  step->workspace = static_cast<size_t>(a.elements) * 2 * (lane == "double" ? 8 : 4);
  step->add(kInclude, "LocalNormArgs", instance("local_norm_pulls", lane, type(s.x), type(s.mean), type(s.dy), number),
            grid, d);
  step->add(kInclude, "LocalNormArgs",
            instance("local_norm_bwd", lane, type(s.x), type(s.mean), type(s.dy), type(s.out), type(s.dmean), number),
            grid, d);
  return step;
}

}  // namespace tsr::cuda
