// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/move/move.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/move/copy.hpp"
#include "engines/cpu/move/paged.hpp"
#include "graph/layouts.hpp"
#include "graph/op.hpp"

namespace tsr::cpu {
namespace {

// Part of the bandwidth of a plain copy that movements reach.
constexpr double kEfficiency = 0.8;

bool is(const Node& n, std::string_view op) { return n.op->name == op; }

// One copy of a node, from element `from` of tensor `source` to element `to` of the result.
struct Part {
  TensorId source;
  int64_t from, to;
  std::vector<CopyAxis> axes;
};

std::vector<CopyAxis> axes_of(const Dims& dims, const Dims& from, const Dims& to) {
  std::vector<CopyAxis> axes;
  for (int i = 0; i < dims.size(); ++i) axes.push_back({dims[i], from[i], to[i]});
  return axes;
}

Part transpose(const Graph& g, const Node& n) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  Dims from = y.dims;
  for (int i = 0; i < y.rank(); ++i)
    from[i] = x.strides[static_cast<int>(attrs<tessera::TransposeOptions>(n).perm[static_cast<size_t>(i)])];
  return {n.in[0], 0, 0, axes_of(y.dims, from, y.strides)};
}

Part slice(const Graph& g, const Node& n) {
  const auto& o = attrs<tessera::SliceOptions>(n);
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  Dims from = x.strides;
  int64_t start = 0;
  for (int i = 0; i < y.rank(); ++i) {
    auto k = static_cast<size_t>(i);
    if (!o.start.empty()) start += o.start[k] * x.strides[i];
    if (!o.stride.empty()) from[i] *= o.stride[k];
  }
  return {n.in[0], start, 0, axes_of(y.dims, from, y.strides)};
}

std::vector<Part> concat(const Graph& g, const Node& n) {
  const Tensor& y = g.tensor(n.out[0]);
  auto axis = static_cast<int>(normalize_axis(attrs<tessera::ConcatOptions>(n).axis, y.rank()));
  std::vector<Part> parts;
  int64_t to = 0;
  for (TensorId t : n.in) {
    const Tensor& x = g.tensor(t);
    parts.push_back({t, 0, to * y.strides[axis], axes_of(x.dims, x.strides, y.strides)});
    to += x.dims[axis];
  }
  return parts;
}

// The axes along which a tensor is walked, slowest first, neighbours without a gap merged.
std::vector<std::pair<int64_t, int64_t>> walk(const Tensor& t, bool by_memory) {
  std::vector<int> order;
  if (by_memory)
    order = memory_order(t.dims, t.strides);
  else
    for (int i = 0; i < t.rank(); ++i) order.push_back(i);
  std::vector<std::pair<int64_t, int64_t>> axes;  // size, stride
  for (int i : order) {
    if (t.dims[i] == 1) continue;
    if (!axes.empty() && axes.back().second == t.dims[i] * t.strides[i])
      axes.back() = {axes.back().first * t.dims[i], t.strides[i]};
    else
      axes.emplace_back(t.dims[i], t.strides[i]);
  }
  return axes;
}

// Cuts the axes of both tensors until they agree; false where their sizes do not divide each other.
bool reshape(const Graph& g, const Node& n, Part& part) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  part = {n.in[0], 0, 0, {}};
  if (x.numel() == 0) {
    part.axes.push_back({0, 1, 1});
    return true;
  }
  bool view = attrs<tessera::ReshapeOptions>(n).mode == tessera::ReshapeMode::view;
  auto from = walk(x, view), to = walk(y, view);
  while (!from.empty() && !to.empty()) {
    auto &a = from.back(), &b = to.back();
    int64_t size = std::min(a.first, b.first);
    if (a.first % size || b.first % size) return false;
    part.axes.push_back({size, a.second, b.second});
    for (auto* side : {&from, &to}) {
      auto& [left, stride] = side->back();
      left /= size, stride *= size;
      if (left == 1) side->pop_back();
    }
  }
  return true;
}

// The copies that a node consists of; with a null `out` only whether they exist.
Reason parts_of(const Graph& g, const Node& n, std::vector<Part>* out) {
  std::vector<Part> parts(1);
  if (is(n, "transpose"))
    parts[0] = transpose(g, n);
  else if (is(n, "slice"))
    parts[0] = slice(g, n);
  else if (is(n, "concat"))
    parts = concat(g, n);
  else if (!reshape(g, n, parts[0]))
    return Reason::no("the axes of ", describe(g.tensor(n.in[0])), " and ", describe(g.tensor(n.out[0])),
                      " do not divide each other");
  if (out) *out = std::move(parts);
  return Reason::yes();
}

class MoveStep : public Step {
 public:
  MoveStep(const Graph& g, const Node& n, int threads) : target_(n.out[0]), threads_(threads) {
    bytes_ = info(g.tensor(target_).dtype).bits / 8;
    std::vector<Part> parts;
    if (Reason why = parts_of(g, n, &parts); !why)
      fail(Status::internal_error, "move_cpu built what it declines: ", why.text());
    for (const Part& p : parts) moves_.push_back({p.source, p.from, p.to, StridedCopy(p.axes, bytes_)});
  }
  void run(const StepArgs& a) const override {
    for (const Move& m : moves_)
      m.copy.run(static_cast<const char*>(a.tensors[m.source]) + m.from * bytes_,
                 static_cast<char*>(a.tensors[target_]) + m.to * bytes_, threads_);
  }

 private:
  struct Move {
    TensorId source;
    int64_t from, to;
    StridedCopy copy;
  };
  TensorId target_;
  int threads_;
  int64_t bytes_ = 1;
  std::vector<Move> moves_;
};

Reason check_tensor(const Tensor& x, const Tensor& y) {
  if (x.dtype != y.dtype) return Reason::no("tensor ", describe(x), " has another type than ", describe(y));
  if (info(x.dtype).bits < 8) return Reason::no("tensor ", describe(x), " packs elements into bytes");
  if (info(x.dtype).vector > 1) return Reason::no("tensor ", describe(x), " is vectorised");
  if (x.ragged != kNone) return Reason::no("tensor ", describe(x), " is ragged");
  if (x.reordering != Reordering::none) return Reason::no("tensor ", describe(x), " is reordered");
  return Reason::yes();
}

class MoveEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "move_cpu", 9, DeviceKind::cpu, true,
        "transposition, slices, concatenation, reshaping and pages as threaded copies"};
    return kInfo;
  }

  Reason check(const Region& r, const Device&) const override {
    if (r.nodes.size() != 1) return Reason::no("movements run alone");
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (n.op->family != Family::movement) return Reason::no(spelling(n), " does more than move data");
    const Tensor& y = g.tensor(n.out[0]);
    bool paged = is(n, "paged_load");  // whose other inputs are indices
    for (TensorId t : paged ? std::vector<TensorId>{n.in[0]} : n.in)
      if (Reason why = check_tensor(g.tensor(t), y); !why) return why;
    if (Reason why = check_tensor(y, y); !why) return why;
    return paged ? Reason::yes() : parts_of(g, n, nullptr);
  }

  std::vector<Config> configs(const Region& r, const Device& d) const override {
    return {Config{{}, region_bytes(r) / (kEfficiency * d.bytes_per_second) + d.step_seconds}};
  }

  std::unique_ptr<Step> build(const Region& r, const Config&, const Device&) const override {
    const Node& n = r.graph->node(r.nodes[0]);
    if (is(n, "paged_load")) return make_paged_load(*r.graph, n, thread_count());
    return std::make_unique<MoveStep>(*r.graph, n, thread_count());
  }
};

}  // namespace

const Engine& move_engine() {
  static const MoveEngine e;
  return e;
}

}  // namespace tsr::cpu
