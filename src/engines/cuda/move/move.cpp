// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/move/move.hpp"

#include "engines/cuda/move/copy.hpp"
#include "engines/cuda/move/pages.hpp"
#include "engines/cuda/move/ragged.hpp"
#include "graph/op.hpp"

namespace tsr::cuda {
namespace {

bool gathers_pages(const Node& n) { return n.op->name == "paged_load"; }

// Pointwise kernels walk both sides in one order, which is slow where the two lie in memory differently.
Reason check_identity(const Graph& g, const Node& n) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  if (plain_type(x) != plain_type(y) && !(is_real(x.dtype) && is_real(y.dtype)))
    return Reason::no(spelling(n), " converts ", describe(x), " to ", y.dtype, " by way of ", n.compute);
  if (info(x.dtype).vector == info(y.dtype).vector && x.strides == y.strides && !has_ragged(g, n))
    return Reason::no(spelling(n), " leaves ", describe(x), " in its order");
  return Reason::yes();
}

std::vector<Copy> copies_in(const Graph& g, const Node& n) {
  std::vector<Copy> copies;
  if (Reason why = copies_of(g, n, &copies); !why)
    fail(Status::internal_error, "move_cuda built what it declines: ", why.text());
  return copies;
}

class MoveStep : public Step {
 public:
  MoveStep(const Graph& g, const Node& n, const Device& d) : copies_(g, copies_in(g, n), n.out[0], d) {}
  int kernels() const override { return copies_.kernels(); }
  void run(const StepArgs& a) const override { copies_.run(a.tensors, a.stream); }

 private:
  DeviceCopies copies_;
};

class MoveEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "move_cuda", 105, DeviceKind::cuda, true,
        "transposition, slices, concatenation, reshaping, changes of layout and gathering of pages"};
    return kInfo;
  }

  Reason check(const Region& r, const Device&) const override {
    if (r.nodes.size() != 1) return Reason::no("movements run alone");
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (gathers_pages(n)) return check_pages(g, n);
    std::vector<Copy> copies;
    if (Reason why = copies_of(g, n, &copies); !why) return why;
    if (n.op->name == "pointwise")
      if (Reason why = check_identity(g, n); !why) return why;
    if (has_ragged(g, n)) return check_ragged(g, n);
    for (const Copy& c : copies)
      if (Reason why = check_copy(g, c, n.out[0]); !why) return why;
    return Reason::yes();
  }

  std::vector<Config> configs(const Region& r, const Device& d) const override {
    // A change of layout is one of the pointwise operations; those are modelled as if all their accesses were runs.
    constexpr double kIdentity = 0.9;
    const Node& n = r.graph->node(r.nodes[0]);
    size_t launches = gathers_pages(n) ? 1 : (n.in.size() + dev::kManyCopies - 1) / dev::kManyCopies;
    double share = n.op->name == "pointwise" ? kIdentity : 1;
    return {Config{{}, share * region_bytes(r) / d.bytes_per_second + static_cast<double>(launches) * d.step_seconds}};
  }

  std::unique_ptr<Step> build(const Region& r, const Config&, const Device& d) const override {
    const Node& n = r.graph->node(r.nodes[0]);
    if (gathers_pages(n)) return make_pages_step(*r.graph, n, d);
    if (has_ragged(*r.graph, n)) return make_ragged_step(*r.graph, n, d);
    return std::make_unique<MoveStep>(*r.graph, n, d);
  }
};

}  // namespace

const Engine& move_engine() {
  static const MoveEngine e;
  return e;
}

}  // namespace tsr::cuda
