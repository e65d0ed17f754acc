// SPDX-License-Identifier: Apache-2.0
// Each region has a level, larger than the levels of all regions it reads from. Regions of one level therefore never
// depend on each other and may be merged without making a cycle; a node may join the regions of the highest level among
// its producers, and regions that nobody else reads. That needs no reachability search: the work is linear in the
// graph, times that of asking the engines.
#include "planner/partition.hpp"

#include <algorithm>
#include <numeric>
#include <queue>

#include "graph/op.hpp"

namespace tsr {
namespace {

constexpr size_t kMaxRegionNodes = 96;  // bounds the cost of asking; larger regions gain nothing more

class Partitioner {
 public:
  Partitioner(const Graph& g, const GraphIndex& index, const RegionCost& cost) : g_(g), index_(index), cost_(cost) {}

  std::vector<NodeList> run() {
    auto count = static_cast<size_t>(g_.node_count());
    parent_.resize(count);
    std::iota(parent_.begin(), parent_.end(), 0);
    level_.assign(count, 0);
    members_.resize(count);
    seconds_.assign(count, -1);
    find_late();
    for (NodeId n = 0; n < g_.node_count(); ++n)
      if (index_.live[static_cast<size_t>(n)]) place(n);
    return ordered();
  }

 private:
  static size_t at(int i) { return static_cast<size_t>(i); }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }

  // Roots of the regions that produce what `n` reads.
  std::vector<size_t> producers(NodeId n) {
    std::vector<size_t> roots;
    for (TensorId t : node_reads(g_, g_.node(n)))
      if (NodeId p = g_.producer(t); p != kNone) roots.push_back(find(static_cast<size_t>(p)));
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    return roots;
  }

  // Pointwise work whose results only later steps read is best done by those steps, if its operands lie in memory in
  // any case or are no larger than the results. `depth_` counts the operations on the way to a node that pointwise work
  // does not join for certain.
  void find_late() {
    auto count = static_cast<size_t>(g_.node_count());
    depth_.assign(count, 0);
    late_.assign(count, false);
    auto pointwise = [&](NodeId n) { return g_.node(n).op->family == Family::pointwise; };
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      for (TensorId t : node_reads(g_, g_.node(n)))
        if (NodeId p = g_.producer(t); p != kNone) depth_[at(n)] = std::max(depth_[at(n)], depth_[at(p)]);
      depth_[at(n)] += !pointwise(n);
    }
    auto later = [&](NodeId reader, NodeId n) { return depth_[at(reader)] > depth_[at(n)]; };
    for (NodeId n = g_.node_count() - 1; n >= 0; --n) {
      TensorId t = g_.node(n).out[0];
      if (!pointwise(n) || g_.tensor(t).stored) continue;
      const auto& readers = index_.consumers[at(t)];
      late_[at(n)] = !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId u) {
        return pointwise(u) && (late_[at(u)] || later(u, n));
      });
    }
    for (NodeId n = 0; n < g_.node_count(); ++n) {
      if (!late_[at(n)]) continue;
      int64_t extra = 0;  // bytes that must be kept for it
      for (TensorId t : node_reads(g_, g_.node(n))) {
        NodeId p = g_.producer(t);
        if (p == kNone || late_[at(p)] || g_.tensor(t).stored) continue;
        const auto& readers = index_.consumers[at(t)];
        bool in_memory = std::any_of(readers.begin(), readers.end(),
                                     [&](NodeId u) { return late_[at(u)] ? u < n : !pointwise(u) || later(u, p); });
        if (!in_memory) extra += g_.tensor(t).bytes();
      }
      if (extra > g_.tensor(g_.node(n).out[0]).bytes()) late_[at(n)] = false;
    }
  }

  void place(NodeId n) {
    auto self = static_cast<size_t>(n);
    members_[self] = {n};
    std::vector<size_t> roots = producers(n);
    int highest = 0;
    for (size_t r : roots) highest = std::max(highest, level_[r]);
    level_[self] = highest + 1;
    std::vector<size_t> top = {self};
    for (size_t r : roots)
      if (level_[r] == highest && (!late_[self] || late_[r])) top.push_back(r);
    bool joined = join(top, highest);
    // Lower regions that nobody else reads may rise: what an update multiplies old averages by, transposed weights.
    std::sort(roots.begin(), roots.end(), [&](size_t a, size_t b) { return level_[a] > level_[b]; });
    for (size_t r : roots) {
      if (find(r) == find(self) || (late_[self] && !late_[r]) || read_elsewhere(r, n)) continue;
      joined |= join({find(self), r}, joined ? level_[find(self)] : highest + 1);
    }
    if (!joined && g_.node(n).op->family == Family::recurrent) join_same_operands(n);
  }

  // Gradients of data and of weights of one recurrent network: both follow from the same passes.
  void join_same_operands(NodeId n) {
    auto operands = [&](NodeId m) {
      std::vector<TensorId> list = node_reads(g_, g_.node(m));
      std::sort(list.begin(), list.end());
      return list;
    };
    for (NodeId m : index_.consumers[at(g_.node(n).in[0])])
      if (m < n && index_.live[at(m)] && level_[find(at(m))] == level_[at(n)] && operands(m) == operands(n) &&
          join({at(n), find(at(m))}, level_[at(n)]))
        return;
  }

  bool join(const std::vector<size_t>& roots, int level) {
    if (roots.size() < 2) return false;
    NodeList merged;
    for (size_t r : roots) merged.insert(merged.end(), members_[r].begin(), members_[r].end());
    if (merged.size() > kMaxRegionNodes) return false;
    std::sort(merged.begin(), merged.end());
    double together = cost_(merged);
    if (together == kImpossible) return false;
    double apart = 0;
    for (size_t r : roots) apart += seconds_of(r);
    if (together > apart) return false;
    for (size_t r : roots) parent_[r] = roots[0], members_[r].clear();
    seconds_[roots[0]] = together;
    members_[roots[0]] = std::move(merged);
    level_[roots[0]] = level;
    return true;
  }

  double seconds_of(size_t root) {
    if (seconds_[root] < 0) seconds_[root] = cost_(members_[root]);
    return seconds_[root];
  }

  // Does a node that was placed before `n`, outside the region and that of `n`, read from it?
  bool read_elsewhere(size_t root, NodeId n) {
    for (NodeId m : members_[root])
      for (TensorId t : g_.node(m).out)
        if (t != kNone)
          for (NodeId user : index_.consumers[static_cast<size_t>(t)])
            if (user < n && find(at(user)) != root && find(at(user)) != find(at(n))) return true;
    return false;
  }

  // Runs as close to the author's order as dependencies allow, so that temporaries live briefly.
  std::vector<NodeList> ordered() {
    std::vector<size_t> roots;
    std::vector<int> waiting(parent_.size(), 0);
    std::vector<std::vector<size_t>> users(parent_.size());
    using Entry = std::pair<NodeId, size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (size_t r = 0; r < members_.size(); ++r) {
      if (members_[r].empty()) continue;
      std::vector<size_t> from;
      for (NodeId n : members_[r])
        for (size_t p : producers(n))
          if (p != r) from.push_back(p);
      std::sort(from.begin(), from.end());
      from.erase(std::unique(from.begin(), from.end()), from.end());
      for (size_t p : from) users[p].push_back(r);
      waiting[r] = static_cast<int>(from.size());
      if (from.empty()) ready.emplace(members_[r].back(), r);
    }
    std::vector<NodeList> regions;
    while (!ready.empty()) {
      size_t r = ready.top().second;
      ready.pop();
      regions.push_back(members_[r]);
      for (size_t u : users[r])
        if (--waiting[u] == 0) ready.emplace(members_[u].back(), u);
    }
    return regions;
  }

  const Graph& g_;
  const GraphIndex& index_;
  const RegionCost& cost_;
  std::vector<size_t> parent_;
  std::vector<int> level_;
  std::vector<NodeList> members_;  // by root
  std::vector<double> seconds_;    // by root, negative when not asked for yet
  std::vector<int> depth_;         // by node
  std::vector<bool> late_;         // by node; of a region, that of its root
};

}  // namespace

std::vector<NodeList> partition(const Graph& g, const GraphIndex& index, const RegionCost& cost) {
  return Partitioner(g, index, cost).run();
}

}  // namespace tsr
