// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/move/move.hpp"

#include "base/thread_pool.hpp"
#include "engines/cpu/move/copy.hpp"
#include "engines/cpu/move/paged.hpp"
#include "engines/cpu/move/ragged.hpp"
#include "graph/op.hpp"

namespace tsr::cpu {
namespace {

// Part of the bandwidth of a plain copy that movements reach.
constexpr double kEfficiency = 0.8;

bool loads_pages(const Node& n) { return n.op->name == "paged_load"; }

class MoveStep : public Step {
 public:
  MoveStep(const Graph& g, const Node& n, int threads) : target_(n.out[0]), threads_(threads) {
    bytes_ = info(g.tensor(target_).dtype).bits / 8;
    std::vector<Copy> copies;
    if (Reason why = copies_of(g, n, &copies); !why)
      fail(Status::internal_error, "move_cpu built what it declines: ", why.text());
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
  int64_t bytes_ = 1;
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

  Reason check(const Region& r, const Device&) const override {
    if (r.nodes.size() != 1) return Reason::no("movements run alone");
    const Graph& g = *r.graph;
    const Node& n = g.node(r.nodes[0]);
    if (n.op->family != Family::movement) return Reason::no(spelling(n), " does more than move data");
    const Tensor& y = g.tensor(n.out[0]);
    bool paged = loads_pages(n);  // whose other inputs are indices
    for (TensorId t : paged ? std::vector<TensorId>{n.in[0]} : n.in)
      if (Reason why = check_tensor(g.tensor(t), y); !why) return why;
    if (Reason why = check_tensor(y, y); !why) return why;
    if (has_ragged(g, n)) return check_ragged_copy(g, n);
    return paged ? Reason::yes() : copies_of(g, n, nullptr);
  }

  std::vector<Config> configs(const Region& r, const Device& d) const override {
    return {Config{{}, region_bytes(r) / (kEfficiency * d.bytes_per_second) + d.step_seconds}};
  }

  std::unique_ptr<Step> build(const Region& r, const Config&, const Device&) const override {
    const Node& n = r.graph->node(r.nodes[0]);
    if (loads_pages(n)) return make_paged_load(*r.graph, n, thread_count());
    if (has_ragged(*r.graph, n)) return make_ragged_copy(*r.graph, n, thread_count());
    return std::make_unique<MoveStep>(*r.graph, n, thread_count());
  }
};

}  // namespace

const Engine& move_engine() {
  static const MoveEngine e;
  return e;
}

}  // namespace tsr::cpu
