// SPDX-License-Identifier: Apache-2.0
#include "graph/passes/recompute.hpp"

#include <set>

#include "graph/op.hpp"

namespace tsr {
namespace {

constexpr size_t kLongest = 16;  // operations that one value may be computed again with

size_t at(int i) { return static_cast<size_t>(i); }

class Recompute {
 public:
  Recompute(Graph& g, NodeId backward) : g_(g), backward_(backward), uses_(at(g.tensor_count())) {
    for (NodeId i = 0; i < g.node_count(); ++i)
      for (TensorId t : node_reads(g, g.node(i))) {
        Uses& u = uses_[at(t)];
        (i < backward ? u.forward : u.backward) = true;
        if (g.node(i).op->family != Family::pointwise) u.other = true;
      }
  }

  void run() {
    // In the order of the forward pass: what is kept is a source for what follows.
    for (NodeId i = 0; i < backward_; ++i) {
      TensorId t = g_.node(i).out[0];
      if (t == kNone || !uses_[at(t)].backward || !passing(t)) continue;
      if (pays(t))
        copy(t);
      else
        kept_.insert(t);
    }
    if (!copies_.empty()) g_.replace_inputs(backward_, copies_);
  }

 private:
  struct Uses {
    bool forward = false, backward = false;
    bool other = false;  // read by something that no pointwise step takes in
  };

  // A forward value that exists only within pointwise steps.
  bool passing(TensorId t) const {
    NodeId from = g_.producer(t);
    return from != kNone && from < backward_ && g_.node(from).op->family == Family::pointwise && !g_.tensor(t).stored &&
           !uses_[at(t)].other && !kept_.count(t);
  }

  // What lies in memory and `t` is made of, and how many operations that takes.
  void find_sources(TensorId t, std::set<TensorId>& sources, std::set<TensorId>& through) const {
    through.insert(t);
    for (TensorId x : g_.node(g_.producer(t)).in) {
      if (x == kNone || through.count(x) || through.size() > kLongest) continue;
      if (passing(x))
        find_sources(x, sources, through);
      else
        sources.insert(x);
    }
  }

  // Counts what it takes from now on as read by the backward pass, if it pays.
  bool pays(TensorId t) {
    std::set<TensorId> sources, through;
    find_sources(t, sources, through);
    if (through.size() > kLongest) return false;
    double again = 0, kept = 2 * static_cast<double>(g_.tensor(t).bytes());
    for (TensorId x : sources) {
      const Tensor& s = g_.tensor(x);
      bool in_memory = g_.producer(x) == kNone || s.stored || uses_[at(x)].other;
      if (s.is_constant() || s.by_value || uses_[at(x)].backward) continue;  // read there in any case
      again += static_cast<double>(s.bytes()) * (in_memory ? 1 : 2);
    }
    if (again > kept) return false;
    for (TensorId x : sources) uses_[at(x)].backward = true;
    return true;
  }

  TensorId copy(TensorId t) {
    auto [it, fresh] = copies_.try_emplace(t, kNone);
    if (!fresh) return it->second;
    Node n = g_.node(g_.producer(t));
    for (TensorId& x : n.in)
      if (x != kNone && passing(x)) x = copy(x);
    Tensor again = g_.tensor(t);
    again.name.clear();
    again.uid = 0;
    n.out = {g_.add_tensor(again)};
    return copies_[t] = g_.node(g_.add_node(std::move(n))).out[0];
  }

  Graph& g_;
  NodeId backward_;
  std::vector<Uses> uses_;
  std::set<TensorId> kept_;
  std::unordered_map<TensorId, TensorId> copies_;
};

}  // namespace

void recompute_pointwise(Graph& g, NodeId backward) { Recompute(g, backward).run(); }

}  // namespace tsr
