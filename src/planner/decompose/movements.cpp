// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/list.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "graph/ops/list.hpp"
#include "planner/decompose/view.hpp"

namespace tsr {
namespace {

// Does an operation mean the same for any order and number of dimensions?
bool any_axes(const Node& n) {
  return n.op->family == Family::pointwise &&
         attrs<tessera::PointwiseOptions>(n).mode != tessera::PointwiseMode::gen_index;
}

// A concatenation that the work reads: its operands, along an axis that is counted from the last.
struct Parts {
  std::vector<TensorId> in;
  int from_end = 0;
  std::vector<int64_t> sizes;
};

class Mover {
 public:
  Mover(const Region& r, Decomposition& d) : r_(r), g_(*r.graph), d_(d) {}

  void run() {
    for (NodeId id : r_.nodes) check_node(g_.node(id));
    for (const auto* list : {&r_.inputs, &r_.outputs, &r_.internals})
      for (TensorId t : *list)
        if (g_.tensor(t).numel() == 0) decline("tensor ", describe(g_.tensor(t)), " is empty");
    find_sources();
    find_targets();
    for (const std::vector<NodeId>& nodes : components()) add_component(nodes);
    // What is only moved into its place beside computed parts.
    for (const auto& [t, views] : targets_)
      if (sources_.count(t))
        for (const View& to : views) add_piece({{}, {}, {{t, to}}, nullptr, 0});
  }

 private:
  // Products and operations over windows read their operands in an order of their own, which views would spoil.
  void check_node(const Node& n) const {
    if (Reason why = check_plain(g_, n); !why) throw Declined{why};
    Family f = n.op->family;
    bool by_rows = f == Family::pointwise || f == Family::reduction || f == Family::norm || f == Family::softmax ||
                   f == Family::random || f == Family::quantize || n.op == &ops::band_mask;
    if (!by_rows && !is_movement(n)) decline(spelling(n), " is neither pointwise nor row-wise");
    if (!n.captures.empty()) decline(spelling(n), " has a sub-graph");
  }

  bool is_computed(TensorId t) const {
    NodeId p = g_.producer(t);
    return p != kNone && std::binary_search(r_.nodes.begin(), r_.nodes.end(), p) && !is_movement(g_.node(p));
  }

  bool read_by_work(TensorId t) const {
    return std::any_of(r_.nodes.begin(), r_.nodes.end(), [&](NodeId id) {
      const Node& n = g_.node(id);
      return !is_movement(n) && contains(n.in, t);
    });
  }

  // Movements in front of the work: of what lies in memory already, or concatenations that the work reads.
  void find_sources() {
    for (TensorId t : r_.inputs) sources_[t] = whole_view(g_, t);
    for (NodeId id : r_.nodes) {
      const Node& n = g_.node(id);
      if (!is_movement(n)) continue;
      TensorId y = n.out[0];
      bool concat = n.op == &ops::concat, same_type = true;
      for (TensorId t : n.in) same_type = same_type && g_.tensor(t).dtype == g_.tensor(y).dtype;
      if (!same_type && !contains(r_.outputs, y)) decline(spelling(n), " converts to ", g_.tensor(y).dtype);
      View v;
      if (concat && read_by_work(y))
        add_parts(n);
      else if (!concat && same_type && sources_.count(n.in[0]) && move_view(g_, n, v = sources_[n.in[0]]))
        sources_[y] = v;
      else
        behind_.push_back(id);
    }
  }

  void add_parts(const Node& n) {
    TensorId y = n.out[0];
    if (contains(r_.outputs, y)) decline("concatenation ", describe(g_.tensor(y)), " is wanted besides");
    int rank = g_.tensor(y).rank(),
        axis = static_cast<int>(normalize_axis(attrs<tessera::ConcatOptions>(n).axis, rank));
    Parts& parts = parts_[y] = {n.in, rank - axis, {}};
    for (TensorId t : n.in) {
      if (!sources_.count(t) && !is_computed(t))
        decline("tensor ", describe(g_.tensor(t)), " is moved twice before it is read");
      parts.sizes.push_back(g_.tensor(t).dims[axis]);
    }
  }

  // Movements behind the work: where their results lie in memory, seen from what they read.
  void find_targets() {
    for (TensorId t : r_.outputs) targets_[t].push_back(whole_view(g_, t));
    for (auto id = behind_.rbegin(); id != behind_.rend(); ++id) {
      const Node& n = g_.node(*id);
      if (n.op == &ops::concat && attrs<tessera::ConcatOptions>(n).inplace_index)
        decline(spelling(n), " of an operand that lies in its place");
      std::vector<View> to = targets_[n.out[0]];
      for (size_t i = 0; i < n.in.size(); ++i) {
        if (parts_.count(n.in[i])) decline(spelling(n), " moves the parts of a concatenation on");
        for (View v : to) {
          if (!move_back(g_, n, i, v))
            decline(spelling(n), " is no view of its result ", describe(g_.tensor(n.out[0])));
          targets_[n.in[i]].push_back(std::move(v));
        }
      }
      targets_.erase(n.out[0]);
    }
    for (NodeId id : r_.nodes)
      if (!is_movement(g_.node(id)))
        for (TensorId t : g_.node(id).in)
          if (t != kNone && !sources_.count(t) && !parts_.count(t) && !is_computed(t))
            decline("tensor ", describe(g_.tensor(t)),
                    " is moved after it is computed, or not as a view, and then read");
  }

  // The work, where it hangs together.
  std::vector<std::vector<NodeId>> components() {
    std::map<NodeId, NodeId> parent;
    auto find = [&](NodeId n) {
      while (parent[n] != n) n = parent[n];
      return n;
    };
    for (NodeId id : r_.nodes) {
      if (is_movement(g_.node(id))) continue;
      parent[id] = id;
      for (TensorId t : g_.node(id).in)
        for (TensorId part : parts_.count(t) ? parts_[t].in : std::vector<TensorId>{t})
          if (part != kNone && is_computed(part)) parent[find(g_.producer(part))] = id;
    }
    std::map<NodeId, std::vector<NodeId>> groups;
    for (const auto& entry : parent) groups[find(entry.first)].push_back(entry.first);
    std::vector<std::vector<NodeId>> list;
    for (auto& group : groups) list.push_back(std::move(group.second));
    return list;
  }

  using Target = std::pair<TensorId, View>;

  void add_component(const std::vector<NodeId>& nodes) {
    const Parts* parts = nullptr;
    std::vector<Target> targets;
    for (NodeId id : nodes) {
      for (TensorId t : g_.node(id).in) {
        auto found = parts_.find(t);
        if (found == parts_.end()) continue;
        if (parts && (parts->from_end != found->second.from_end || parts->sizes != found->second.sizes))
          decline("concatenation ", describe(g_.tensor(t)), " has other parts than another one of the region");
        parts = &found->second;
      }
      for (TensorId t : g_.node(id).out)
        if (t != kNone)
          for (const View& v : targets_[t]) targets.emplace_back(t, v);
    }
    if (!parts) return add_piece({{}, nodes, targets, nullptr, 0});
    for (NodeId id : nodes)
      if (!any_axes(g_.node(id))) decline(spelling(g_.node(id)), " works on a concatenation as a whole");
    std::vector<std::vector<NodeId>> before;
    std::vector<NodeId> rest = nodes;
    for (size_t i = 0; i < parts->sizes.size(); ++i) {
      before.push_back(before_part(nodes, i));
      std::erase_if(rest, [&](NodeId id) { return contains(before.back(), id); });
    }
    for (NodeId id : rest)
      for (TensorId t : g_.node(id).in)
        if (t != kNone && is_computed(t) && !contains(rest, g_.producer(t)))
          decline("tensor ", describe(g_.tensor(t)), " is read by itself and as part of a concatenation");
    for (size_t i = 0; i < before.size(); ++i) add_piece({before[i], rest, targets, parts, i});
  }

  // What computes part `i` of the concatenations that the nodes read.
  std::vector<NodeId> before_part(const std::vector<NodeId>& nodes, size_t i) {
    std::vector<NodeId> list;
    auto add = [&](TensorId t, auto& again) -> void {
      if (parts_.count(t)) decline("concatenation ", describe(g_.tensor(t)), " is a part of another one");
      if (t == kNone || !is_computed(t) || contains(list, g_.producer(t))) return;
      if (!targets_[t].empty()) decline("tensor ", describe(g_.tensor(t)), " is wanted besides");
      list.push_back(g_.producer(t));
      for (TensorId from : g_.node(g_.producer(t)).in) again(from, again);
    };
    for (NodeId id : nodes)
      for (TensorId t : g_.node(id).in)
        if (auto found = parts_.find(t); found != parts_.end()) add(found->second.in[i], add);
    std::sort(list.begin(), list.end());
    return list;
  }

  // A view as part `i` of the region sees it.
  View part_of(View v, const Parts* parts, size_t i) const {
    if (!parts || v.rank() < parts->from_end) return v;
    const std::vector<int64_t>& sizes = parts->sizes;
    int axis = v.rank() - parts->from_end;
    int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    int64_t start = std::accumulate(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i), int64_t{0});
    if (v.size(axis) == all && !slice_view(v, axis, start, sizes[i]))
      decline("a part of tensor ", describe(g_.tensor(v.tensor)), " is no view of it");
    return v;
  }
  // --- pieces
  struct Piece {
    std::vector<NodeId> before;  // what computes this part of a concatenation, and that alone
    std::vector<NodeId> nodes;
    std::vector<Target> targets;
    const Parts* parts;
    size_t part;
  };
  // A tensor as the nodes see it: this part of it; or whole, as those before.
  using Key = std::pair<TensorId, bool>;

  Key key(const Piece& p, TensorId t, bool before) const {
    auto found = parts_.find(t);
    return found == parts_.end() ? Key(t, before) : Key(found->second.in[p.part], true);
  }

  void add_piece(const Piece& p) {
    std::map<Key, View> reads;
    auto add_read = [&](TensorId t, bool before) {
      Key k = key(p, t, before);
      if (auto source = sources_.find(k.first); source != sources_.end())
        reads[k] = k.second ? source->second : part_of(source->second, p.parts, p.part);
    };
    for (bool before : {true, false})
      for (NodeId id : before ? p.before : p.nodes)
        for (TensorId t : g_.node(id).in)
          if (t != kNone) add_read(t, before);
    std::vector<Target> writes;
    for (const auto& [t, v] : p.targets) {
      add_read(t, false);
      writes.emplace_back(t, part_of(v, p.parts, p.part));
    }
    axes_.clear();
    for (const auto& read : reads) find_axes(read.second);
    for (const auto& write : writes) find_axes(write.second);
    bool cut = std::any_of(axes_.begin(), axes_.end(), [](const std::vector<int64_t>& a) { return a.size() > 1; });
    for (NodeId id : p.nodes)
      if (cut && !any_axes(g_.node(id))) decline(spelling(g_.node(id)), " takes dimensions that lie apart as one");
    begin_stage(p.nodes, writes.front().second, reads.size() + writes.size());
    emit(p, reads, writes);
  }

  // --- dimensions that some view cuts into loops are cut for all
  // Adds the places where the loops of a view begin, by dimension from the last; the first is 1.
  void find_axes(const View& v) {
    if (axes_.size() < v.dims.size()) axes_.resize(v.dims.size(), {1});
    for (size_t i = 0; i < v.dims.size(); ++i) {
      std::vector<int64_t>& steps = axes_[i];
      const auto& loops = v.dims[v.dims.size() - 1 - i];
      int64_t step = 1;
      for (size_t k = loops.size(); k-- > 1;) {
        step *= loops[k].size;
        if (std::find(steps.begin(), steps.end(), step) == steps.end()) steps.push_back(step);
      }
      std::sort(steps.begin(), steps.end());
      for (size_t k = 1; k < steps.size(); ++k)
        if (steps[k] % steps[k - 1] != 0)
          decline("tensor ", describe(g_.tensor(v.tensor)), " is cut at ", steps[k - 1], " and ", steps[k]);
    }
  }

  // Sizes and strides along all axes.
  void spread(const View& v, Dims& sizes, Dims& strides) const {
    sizes = strides = {};
    for (int d = 0; d < v.rank(); ++d) {
      const auto& loops = v.dims[static_cast<size_t>(d)];
      const std::vector<int64_t>& steps = axes_[static_cast<size_t>(v.rank() - 1 - d)];
      int64_t end = v.size(d);
      for (size_t k = steps.size(); k-- > 0; end = std::min(end, steps[k])) {
        check_rank(sizes);
        sizes.push_back(loops.empty() ? 1 : end / steps[k]);
        strides.push_back(loops.empty() ? 1 : stride_at(loops, steps[k]));
      }
    }
  }

  // What `step` elements of a dimension add, where a loop begins or in the midst of it.
  static int64_t stride_at(const std::vector<View::Loop>& loops, int64_t step) {
    int64_t inside = 1;
    size_t k = loops.size() - 1;
    while (step >= inside * loops[k].size) inside *= loops[k--].size;
    return loops[k].stride * (step / inside);
  }

  Dims spread(const Dims& dims, const Parts* parts, size_t part) const {
    Dims sizes, strides;
    spread(part_of(packed_view(dims), parts, part), sizes, strides);
    return sizes;
  }

  void check_rank(const Dims& d) const {
    if (d.size() == kMaxRank) decline("its dimensions fall into more than ", kMaxRank);
  }

  // Pointwise pieces of the same sizes run in one kernel, up to a number of operands.
  void begin_stage(const std::vector<NodeId>& nodes, const View& first, size_t operands) {
    constexpr size_t kMostOperands = 16;
    Dims sizes, strides;
    spread(first, sizes, strides);
    bool pointwise = std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) { return any_axes(g_.node(id)); });
    stage_operands_ += operands;
    if (!pointwise || !(sizes == stage_sizes_) || stage_operands_ > kMostOperands) {
      d_.end_stage();
      stage_operands_ = operands;
    }
    stage_sizes_ = pointwise ? sizes : Dims();
  }

  void emit(const Piece& p, const std::map<Key, View>& reads, const std::vector<Target>& writes) {
    std::map<Key, TensorId> here;
    for (const auto& [k, v] : reads) here[k] = place(v);
    std::vector<bool> written(writes.size(), false);
    // A result is computed where it lies, if its type is the same there.
    auto result = [&](TensorId t, bool before) {
      for (size_t i = 0; i < writes.size(); ++i) {
        if (writes[i].first != t || g_.tensor(writes[i].second.tensor).dtype != g_.tensor(t).dtype) continue;
        written[i] = true;
        return place(writes[i].second);
      }
      return d_.sized(g_.tensor(t).dtype, spread(g_.tensor(t).dims, before ? nullptr : p.parts, p.part));
    };
    for (bool before : {true, false})
      for (NodeId id : before ? p.before : p.nodes) {
        Node n = g_.node(id);
        for (TensorId& t : n.in)
          if (t != kNone) t = here.at(key(p, t, before));
        for (TensorId& t : n.out)
          if (t != kNone) t = here[{t, before}] = result(t, before);
        d_.add(std::move(n));
      }
    for (size_t i = 0; i < writes.size(); ++i) {
      if (written[i]) continue;
      DType compute = wide_type(g_.tensor(writes[i].first).dtype);
      TensorId from = here.at({writes[i].first, false});
      d_.apply(tessera::PointwiseMode::identity, compute, from, kNone, place(writes[i].second));
    }
  }

  TensorId place(const View& v) {
    Dims sizes, strides;
    spread(v, sizes, strides);
    return d_.view(v.tensor, sizes, strides, v.offset);
  }

  const Region& r_;
  const Graph& g_;
  Decomposition& d_;
  std::vector<NodeId> behind_;
  std::map<TensorId, View> sources_;               // what lies in memory when the work begins
  std::map<TensorId, Parts> parts_;                // concatenations of that
  std::map<TensorId, std::vector<View>> targets_;  // where values go
  std::vector<std::vector<int64_t>> axes_;         // of the piece: by dimension from the last, the steps of its parts
  Dims stage_sizes_;                               // of the last pieces, if pointwise
  size_t stage_operands_ = 0;
};

}  // namespace

void decompose_movements(const Region& r, const Node&, Decomposition& d) { Mover(r, d).run(); }

}  // namespace tsr
