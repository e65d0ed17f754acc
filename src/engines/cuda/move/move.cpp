// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/move/move.hpp"

#include "engines/cuda/move/copy.hpp"
#include "engines/cuda/move/pages.hpp"
#include "engines/cuda/move/ragged.hpp"
#include "graph/op.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cuda {
namespace {

bool gathers_pages(const Node& n) { return n.op == &ops::paged_load; }

// Pointwise kernels walk both sides in one order, which is slow where the two lie in memory differently.
Reason check_identity(const Graph& g, const Node& n) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  if (plain_type(x) != plain_type(y) && !(is_real(x.dtype) && is_real(y.dtype)))
    return Reason::no(spelling(n), " converts ", describe(x), " to ", y.dtype, " by way of ", n.compute);
  if (info(x.dtype).vector == info(y.dtype).vector && x.strides == y.strides && !has_ragged(g, n))
    return Reason::no(spelling(n), " leaves ", describe(x), " in its order");
  return Reason::yes();
}

class MoveEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "move_cuda", 105, DeviceKind::cuda, true,
        "transposition, slices, concatenation, reshaping, changes of layout and gathering of pages"};
    return kInfo;
  }

  Matched match(const Region& r, const Device& d) const override {
    if (r.nodes.size() != 1) return Reason::no("movements run alone");
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (gathers_pages(n)) {
      if (Reason why = check_pages(g, n); !why) return why;
      return one_way(seconds(r, d, 1), [&g, &n, &d] { return make_pages_step(g, n, d); });
    }
    std::vector<Copy> copies;
    if (Reason why = copies_of(g, n, &copies); !why) return why;
    bool identity = n.op == &ops::pointwise;
    if (identity)
      if (Reason why = check_identity(g, n); !why) return why;
    // A change of layout is one of the pointwise operations; those are modelled as if all their accesses were runs.
    constexpr double kIdentity = 0.9;
    double modelled = seconds(r, d, (n.in.size() + dev::kManyCopies - 1) / dev::kManyCopies, identity ? kIdentity : 1);
    if (has_ragged(g, n)) {
      if (Reason why = check_ragged(g, n); !why) return why;
      return one_way(modelled, [&g, &n, &d] { return make_ragged_step(g, n, d); });
    }
    for (const Copy& c : copies)
      if (Reason why = check_copy(g, c, n.out[0]); !why) return why;
    return one_way(modelled,
                   [copies = std::move(copies), &g, &n, &d] { return make_copy_step(g, copies, n.out[0], d); });
  }

 private:
  static double seconds(const Region& r, const Device& d, size_t launches, double share = 1) {
    return share * region_bytes(r) / d.bytes_per_second + static_cast<double>(launches) * d.step_seconds;
  }
};

}  // namespace

const Engine& move_engine() {
  static const MoveEngine e;
  return e;
}

}  // namespace tsr::cuda
