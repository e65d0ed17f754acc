// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/move/move.hpp"

#include "base/thread_pool.hpp"
#include "engines/cpu/move/copy.hpp"
#include "engines/cpu/move/paged.hpp"
#include "engines/cpu/move/ragged.hpp"
#include "graph/op.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cpu {
namespace {

// Part of the bandwidth of a plain copy that movements reach.
constexpr double kEfficiency = 0.8;

bool loads_pages(const Node& n) { return n.op == &ops::paged_load; }

class MoveStep : public Step {
 public:
  MoveStep(const Tensor& y, TensorId target, const std::vector<Copy>& copies, int threads)
      : target_(target), threads_(threads), bytes_(info(y.dtype).bits / 8) {
    for (const Copy& c : copies) moves_.push_back({c.source, c.from, c.to, StridedCopy(c.axes, bytes_)});
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
  int64_t bytes_;
  std::vector<Move> moves_;
};

Reason check_tensor(const Tensor& x, const Tensor& y) {
  if (x.dtype != y.dtype) return Reason::no("tensor ", describe(x), " has another type than ", describe(y));
  if (info(x.dtype).bits < 8) return Reason::no("tensor ", describe(x), " packs elements into bytes");
  if (info(x.dtype).vector > 1) return Reason::no("tensor ", describe(x), " is vectorised");
  if (x.reordering != Reordering::none) return Reason::no("tensor ", describe(x), " is reordered");
  return Reason::yes();
}

class MoveEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "move_cpu", 9, DeviceKind::cpu, true,
        "transposition, slices, concatenation, reshaping, pages and packed sequences as threaded copies"};
    return kInfo;
  }

  Matched match(const Region& r, const Device& d) const override {
    if (r.nodes.size() != 1) return Reason::no("movements run alone");
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (n.op->family != Family::movement) return Reason::no(spelling(n), " does more than move data");
    const Tensor& y = g.tensor(n.out[0]);
    bool paged = loads_pages(n);  // whose other inputs are indices
    for (TensorId t : paged ? std::vector<TensorId>{n.in[0]} : n.in)
      if (Reason why = check_tensor(g.tensor(t), y); !why) return why;
    if (Reason why = check_tensor(y, y); !why) return why;
    double seconds = region_bytes(r) / (kEfficiency * d.bytes_per_second) + d.step_seconds;
    bool ragged = has_ragged(g, n);
    if (ragged)
      if (Reason why = check_ragged_copy(g, n); !why) return why;
    if (paged) return one_way(seconds, [&g, &n] { return make_paged_load(g, n, thread_count()); });
    if (ragged) return one_way(seconds, [&g, &n] { return make_ragged_copy(g, n, thread_count()); });
    std::vector<Copy> copies;
    if (Reason why = copies_of(g, n, &copies); !why) return why;
    return one_way(seconds, [copies = std::move(copies), &y, target = n.out[0]] {
      return std::make_unique<MoveStep>(y, target, copies, thread_count());
    });
  }
};

}  // namespace

const Engine& move_engine() {
  static const MoveEngine e;
  return e;
}

}  // namespace tsr::cpu
