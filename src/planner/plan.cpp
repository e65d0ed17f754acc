// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <unordered_map>

#include "base/hash.hpp"
#include "base/settings.hpp"
#include "base/trace.hpp"
#include "graph/op.hpp"
#include "graph/ops/list.hpp"
#include "graph/passes/recognise.hpp"
#include "graph/passes/views.hpp"
#include "graph/text.hpp"
#include "planner/machine.hpp"
#include "planner/partition.hpp"
#include "planner/plan_cache.hpp"
#include "planner/ragged.hpp"
#include "planner/tuning.hpp"

namespace tsr {
namespace {

bool listed(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_last_resort(const Engine& e) { return e.info().last_resort; }

std::string engine_names() {
  std::vector<std::string_view> names;
  for (const Engine* e : all_engines()) names.push_back(e->info().name);
  return any_of_text(names);
}

// Places blocks with lifetimes [first, last] (in steps) so that blocks alive together do not overlap; large ones first.
struct Block {
  size_t bytes;
  int first, last;
  size_t offset = 0;
};

size_t place(std::vector<Block>& blocks) {
  std::vector<size_t> order(blocks.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  std::vector<size_t> placed;  // by offset
  size_t total = 0;
  for (size_t i : order) {
    Block& b = blocks[i];
    size_t at = 0;
    for (size_t k : placed) {
      const Block& o = blocks[k];
      if (o.last < b.first || b.last < o.first) continue;
      if (at + b.bytes <= o.offset) break;
      at = std::max(at, align_up(o.offset + o.bytes));
    }
    b.offset = at;
    total = std::max(total, at + b.bytes);
    placed.insert(std::lower_bound(placed.begin(), placed.end(), i,
                                   [&](size_t x, size_t y) { return blocks[x].offset < blocks[y].offset; }),
                  i);
  }
  return align_up(total);
}

// The graph that is cut into regions.
std::shared_ptr<const Graph> prepared(std::shared_ptr<const Graph> g, const Device& d, const PlanOptions& o) {
  g = pad_virtual(g);
  return unpack_ragged(o.recognise ? order_views(recognise(g)) : g, d);
}

}  // namespace

std::string to_string(const Config& c) {
  std::string s;
  for (const auto& [key, value] : c.knobs) s += (s.empty() ? "" : " ") + key + "=" + std::to_string(value);
  return s.empty() ? "default" : s;
}

const Engine* find_engine(std::string_view name) {
  for (const Engine* e : all_engines())
    if (e->info().name == name) return e;
  return nullptr;
}

double region_bytes(const Region& r) {
  double bytes = 0;
  for (const auto* list : {&r.inputs, &r.outputs})
    for (TensorId t : *list)
      bytes += static_cast<double>(byte_size(r.graph->tensor(t).dtype, r.graph->tensor(t).numel()));
  return bytes;
}

double region_flops(const Region& r) {
  double total = 0;
  for (NodeId n : r.nodes) total += node_flops(*r.graph, r.graph->node(n));
  return total;
}

Limits region_limits(const Region& r, const Device& d) {
  Limits l = {region_bytes(r) / d.bytes_per_second, 0};
  for (NodeId id : r.nodes) {
    const Node& n = r.graph->node(id);
    Family f = n.op->family;
    // Products of narrow numbers may use instructions for them; everything else is computed in f32 or wider.
    bool products = f == Family::matmul || f == Family::conv || f == Family::attention || f == Family::recurrent;
    bool narrow = products && !n.in.empty() && info(r.graph->tensor(n.in[0]).dtype).bits <= 16;
    double rate = narrow ? d.narrow_flops_per_second : d.flops_per_second;
    if (n.compute == DType::f64) rate = d.flops_per_second / 2;
    l.arithmetic += node_flops(*r.graph, n) / rate;
  }
  return l;
}

std::string PlanOptions::key() const {
  std::string s = cat(workspace_limit, ' ', deterministic, fuse, recognise, fallback, tuned);
  for (const std::string& e : engines) s.append(" +").append(e);
  for (const std::string& e : without) s.append(" -").append(e);
  if (!config.empty()) s.append(" =").append(config);
  return s;
}

class PlanBuilder {
 public:
  PlanBuilder(std::shared_ptr<const Graph> g, const Device& d, const PlanOptions& o,
              std::shared_ptr<OwnMemory> own = nullptr)
      : plan_(new Plan) {
    for (const auto* list : {&o.engines, &o.without})
      for (const std::string& name : *list)
        require(find_engine(name), "there is no engine named '", name, "'; engines: ", Lazy{engine_names});
    plan_->source_ = g;
    plan_->graph_ = prepared(g, d, o);
    plan_->device_ = d;
    plan_->options_ = o;
    plan_->own_ = own ? std::move(own) : std::make_shared<OwnMemory>(d.memory);
    for (const Engine* e : all_engines()) {
      const EngineInfo& info = e->info();
      if (info.device != d.kind || (o.deterministic && !info.deterministic) || listed(o.without, info.name)) continue;
      bool named = o.engines.empty() || listed(o.engines, info.name);
      if (named || (o.fallback && is_last_resort(*e))) engines_.push_back(e);
    }
  }

  // What regions are cut from; it lives as long as the plan.
  const Graph& graph() const { return *plan_->graph_; }

  std::shared_ptr<const Plan> build() {
    const Graph& g = *plan_->graph_;
    for (Region& r : partition(g, [&](const Region& region) { return cost(region); })) add_step(std::move(r));
    return finish();
  }

  PlanOutline outline() {
    PlanOutline result;
    for (Region& r : partition(*plan_->graph_, [&](const Region& region) { return cost(region); })) {
      PlannedStep s;
      s.region = std::move(r);
      choose(s);
      result.seconds += s.config.seconds;
      result.engines.push_back(s.engine);
      result.text += cat(s.engine->info().name, " ", to_string(s.config), ":");
      for (NodeId n : s.region.nodes) result.text += cat(" ", n);
      result.text += '\n';
      result.candidates = s.engine->configs(s.region, plan_->device_);
    }
    if (result.engines.size() != 1) result.candidates.clear();
    return result;
  }

  // Modelled seconds of a region. Engines that the caller named take all they can, whatever it costs.
  double cost(const Region& r) const {
    bool several = r.nodes.size() > 1;
    if (several && !plan_->options_.fuse) return kImpossible;
    double best = kImpossible;
    for (const Engine* e : engines_) {
      if ((is_last_resort(*e) && (several || best < kImpossible)) || !e->check(r, plan_->device_).ok()) continue;
      if (!plan_->options_.engines.empty()) return 0;
      for (const Config& c : e->configs(r, plan_->device_)) best = std::min(best, c.seconds);
    }
    return best;
  }

  void add_step(Region r, const Engine* engine = nullptr, const Config* config = nullptr) {
    PlannedStep s;
    s.region = std::move(r);
    if (engine)
      s.engine = engine, s.config = *config;
    else
      choose(s);
    s.step = s.engine->build(s.region, s.config, plan_->device_);
    plan_->steps_.push_back(std::move(s));
  }

  std::shared_ptr<const Plan> finish() {
    lay_out();
    if (plan_->workspace_bytes() > plan_->options_.workspace_limit) {
      fail(Status::not_supported, "the plan needs ", plan_->workspace_bytes(), " bytes of workspace, the limit is ",
           plan_->options_.workspace_limit);
    }
    const Graph& g = *plan_->graph_;
    upload_constants();
    for (int i = 0; i < g.tensor_count(); ++i)
      if (!g.tensor(i).is_constant() && (g.tensor(i).stored || g.tensor(i).by_value)) plan_->bound_.push_back(i);
    find_uses();
    if (log_enabled(3)) {
      std::string text =
          cat("plan: ", plan_->steps_.size(), " steps, ", plan_->workspace_bytes(), " bytes of workspace:");
      for (const PlannedStep& s : plan_->steps_)
        text += cat(" ", s.engine->info().name, "(", s.region.nodes.size(), ")");
      log_line(3, text + " for " + print_graph(*plan_->source_, {.one_line = true}));
    }
    return plan_;
  }

 private:
  // Single numbers travel with the launches; larger constants must lie in the device's memory.
  void upload_constants() {
    const Graph& g = *plan_->graph_;
    const DeviceMemory* memory = plan_->device_.memory;
    for (int i = 0; i < g.tensor_count(); ++i) {
      const Tensor& t = g.tensor(i);
      if (!t.is_constant()) continue;
      std::shared_ptr<void> data(const_cast<std::byte*>(t.constant.data()), [](void*) {});
      if (memory && t.numel() > 1) {
        data = std::shared_ptr<void>(memory->allocate(t.constant.size()), [memory](void* p) { memory->release(p); });
        memory->copy_in(data.get(), t.constant.data(), t.constant.size());
      }
      plan_->constants_.emplace_back(i, std::move(data));
    }
  }

  bool choose_tuned(PlannedStep& s) const {
    if (!plan_->options_.tuned || active_tuning().size() == 0) return false;
    const TunedChoice* c = active_tuning().find(tuning_machine(plan_->device_), tuning_key(s.region));
    if (!c) return false;
    for (const Engine* e : engines_) {
      if (e->info().name != c->engine || !e->check(s.region, plan_->device_).ok()) continue;
      s.engine = e;
      s.config = c->config;
      s.config.measured = true;
      return true;
    }
    return false;
  }

  bool choose_named(PlannedStep& s) const {
    if (plan_->options_.config.empty()) return false;
    for (const Engine* e : engines_) {
      if (!e->check(s.region, plan_->device_).ok()) continue;
      for (Config& c : e->configs(s.region, plan_->device_)) {
        if (to_string(c) != plan_->options_.config) continue;
        s.engine = e;
        s.config = std::move(c);
        return true;
      }
    }
    return false;
  }

  void choose(PlannedStep& s) const {
    if (choose_named(s) || choose_tuned(s)) return;
    bool found = false;
    for (const Engine* e : engines_) {
      if (found && is_last_resort(*e)) continue;
      if (!e->check(s.region, plan_->device_).ok()) continue;
      for (Config& c : e->configs(s.region, plan_->device_)) {
        if (found && c.seconds >= s.config.seconds) continue;
        s.engine = e;
        s.config = std::move(c);
        found = true;
      }
    }
    if (found) return;
    std::string text =
        "no engine can run " + spelling(s.region.graph->node(s.region.nodes[0])) + " under these options:";
    for (const Engine* e : all_engines()) {
      if (e->info().device != plan_->device_.kind) continue;
      bool allowed = std::find(engines_.begin(), engines_.end(), e) != engines_.end();
      std::string why = "excluded by the options";
      if (allowed) why = e->check(s.region, plan_->device_).text();
      text += cat("\n  ", e->info().name, ": ", why);
    }
    throw Error(Status::not_supported, text);
  }

  // Temporaries between steps live from the step that writes them to the last one that reads them; a step's own scratch
  // lives for that step.
  void lay_out() {
    const Graph& g = *plan_->graph_;
    std::vector<Block> blocks;
    std::unordered_map<TensorId, size_t> block_of;
    std::vector<TensorId> owner;
    for (size_t i = 0; i < plan_->steps_.size(); ++i) {
      const PlannedStep& s = plan_->steps_[i];
      int now = static_cast<int>(i);
      if (TensorId source = s.step->view_of(); source != kNone) {
        plan_->views_.emplace_back(s.region.outputs[0], source);
        if (auto it = block_of.find(source); it != block_of.end()) block_of[s.region.outputs[0]] = it->second;
        continue;
      }
      for (TensorId t : s.region.outputs) {
        if (g.tensor(t).stored) continue;
        block_of[t] = blocks.size();
        owner.push_back(t);
        blocks.push_back({std::max<size_t>(1, static_cast<size_t>(g.tensor(t).bytes())), now, now});
      }
      for (TensorId t : s.region.inputs)
        if (auto it = block_of.find(t); it != block_of.end()) blocks[it->second].last = now;
    }
    size_t temporaries = blocks.size();
    for (size_t i = 0; i < plan_->steps_.size(); ++i) {
      int now = static_cast<int>(i);
      blocks.push_back({plan_->steps_[i].step->workspace_bytes(), now, now});
    }
    plan_->workspace_bytes_ = place(blocks);
    for (size_t k = 0; k < temporaries; ++k) plan_->placed_.emplace_back(owner[k], blocks[k].offset);
    for (size_t i = 0; i < plan_->steps_.size(); ++i)
      plan_->steps_[i].workspace_offset = blocks[temporaries + i].offset;
  }

  // Of labels only as many are read as their lengths say: their memory may end before their sizes do, and something
  // else may follow it.
  bool ends_early(TensorId t) const {
    const Graph& g = *plan_->graph_;
    constexpr size_t kLabels = 1;
    std::vector<NodeId> readers = g.consumers(t);
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId n) {
      return g.node(n).op == &ops::ctc_loss && g.node(n).in[kLabels] == t;
    });
  }

  // Which steps read the caller's memory last, directly or as a view, and which write it.
  void find_uses() {
    const Graph& g = *plan_->graph_;
    std::vector<Plan::Use> uses(static_cast<size_t>(g.tensor_count()));
    std::vector<TensorId> memory(uses.size());  // whose memory each tensor is
    for (TensorId t = 0; t < g.tensor_count(); ++t)
      uses[static_cast<size_t>(t)].tensor = memory[static_cast<size_t>(t)] = t;
    for (auto [view, source] : plan_->views_) memory[static_cast<size_t>(view)] = memory[static_cast<size_t>(source)];
    for (size_t i = 0; i < plan_->steps_.size(); ++i) {
      const PlannedStep& s = plan_->steps_[i];
      if (s.step->view_of() != kNone) continue;
      int now = static_cast<int>(i);
      for (TensorId t : s.region.inputs) {
        Plan::Use& u = uses[static_cast<size_t>(memory[static_cast<size_t>(t)])];
        u.last_read = now;
        u.read_as_view = u.read_as_view || memory[static_cast<size_t>(t)] != t;
      }
      for (TensorId t : s.region.outputs) uses[static_cast<size_t>(t)].written = now;
    }
    for (Plan::Use& u : uses) {
      const Tensor& t = g.tensor(u.tensor);
      if (!t.stored || t.by_value || t.is_constant() || (u.last_read < 0 && u.written < 0)) continue;
      if (ends_early(u.tensor)) continue;
      u.bytes = static_cast<size_t>(t.bytes());
      if (u.bytes > 0) plan_->uses_.push_back(u);
    }
  }

  std::shared_ptr<Plan> plan_;
  std::vector<const Engine*> engines_;
};

std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Graph> g, const Device& d, const PlanOptions& o,
                                      std::shared_ptr<OwnMemory> own) {
  require(g && g->finalized(), "the graph must be finalized before it is planned");
  TraceRange range("plan");
  return PlanBuilder(std::move(g), d, o, std::move(own)).build();
}

PlanOutline outline_plan(const std::shared_ptr<const Graph>& g, const Device& d, const PlanOptions& o) {
  require(g && g->finalized(), "the graph must be finalized before it is planned");
  return PlanBuilder(g, d, o).outline();
}

std::shared_ptr<const Plan> plan_as_one(std::shared_ptr<const Graph> g, const Device& d, const Engine& engine,
                                        const Config& config) {
  PlanBuilder builder(g, d, {.recognise = false});
  GraphIndex index(*g);
  std::vector<NodeId> nodes;
  for (NodeId n = 0; n < g->node_count(); ++n)
    if (index.live[static_cast<size_t>(n)]) nodes.push_back(n);
  builder.add_step(make_region(*g, index, std::move(nodes)), &engine, &config);
  return builder.finish();
}

bool Plan::deterministic() const {
  return std::all_of(steps_.begin(), steps_.end(), [](const PlannedStep& s) { return s.engine->info().deterministic; });
}

int Plan::kernels() const {
  int n = 0;
  for (const PlannedStep& s : steps_) n += s.step->kernels();
  return n;
}

double Plan::bytes_moved() const {
  double n = 0;
  for (const PlannedStep& s : steps_)
    if (s.step->view_of() == kNone) n += region_bytes(s.region);
  return n;
}

double Plan::flops() const {
  double n = 0;
  for (const PlannedStep& s : steps_) n += region_flops(s.region);
  return n;
}

// --- serialisation: options, then one line for each step, then the graph as planned
std::string Plan::save() const {
  std::ostringstream s;
  s << "device " << device_.name << "\n";
  s << "recognise " << options_.recognise << "\n";
  s << "steps " << steps_.size() << "\n";
  for (const PlannedStep& p : steps_) {
    s << "step " << p.engine->info().name << " " << p.config.knobs.size();
    for (const auto& [key, value] : p.config.knobs) s << " " << key << " " << value;
    s << " " << p.region.nodes.size();
    for (NodeId n : p.region.nodes) s << " " << n;
    s << "\n";
  }
  s << print_graph(*source_);
  return seal("plan", s.str());
}

std::shared_ptr<const Plan> load_plan(std::string_view text, const Device& d) {
  std::istringstream in(unseal("plan", text));
  auto bad = [](const auto&... parts) { fail(Status::corrupt_data, "serialised plan: ", parts...); };
  std::string word, device;
  size_t steps = 0;
  PlanOptions options;
  if (!(in >> word >> device) || word != "device") bad("the device is missing");
  if (device != d.name) bad("made for device '", device, "', this device is '", d.name, "'");
  if (!(in >> word >> options.recognise) || word != "recognise") bad("the options are missing");
  if (!(in >> word >> steps) || word != "steps") bad("the steps are missing");
  struct Line {
    std::string engine;
    Config config;
    std::vector<NodeId> nodes;
  };
  std::vector<Line> lines;
  for (size_t i = 0; i < steps; ++i) {
    Line l;
    size_t knobs = 0, nodes = 0;
    if (!(in >> word >> l.engine >> knobs) || word != "step" || knobs > 64) bad("step ", i, " is damaged");
    for (size_t k = 0; k < knobs; ++k) {
      std::pair<std::string, int64_t> knob;
      if (!(in >> knob.first >> knob.second)) bad("step ", i, " is damaged");
      l.config.knobs.push_back(knob);
    }
    if (!(in >> nodes) || nodes > 1000000) bad("step ", i, " is damaged");
    for (size_t k = 0; k < nodes; ++k) {
      NodeId n = 0;
      if (!(in >> n)) bad("step ", i, " is damaged");
      l.nodes.push_back(n);
    }
    lines.push_back(std::move(l));
  }
  std::getline(in, word);
  std::string rest((std::istreambuf_iterator<char>(in)), {});
  auto g = std::make_shared<Graph>(parse_graph(rest));
  PlanBuilder builder(g, d, options);
  const Graph& planned = builder.graph();
  GraphIndex index(planned);
  size_t covered = 0, live = static_cast<size_t>(std::count(index.live.begin(), index.live.end(), true));
  std::vector<bool> seen(static_cast<size_t>(planned.node_count()), false);
  for (Line& l : lines) {
    const Engine* e = find_engine(l.engine);
    if (!e) bad("engine '", l.engine, "' does not exist here");
    for (NodeId n : l.nodes) {
      if (n < 0 || n >= planned.node_count() || seen[static_cast<size_t>(n)]) bad("a step names node ", n);
      seen[static_cast<size_t>(n)] = true;
      ++covered;
    }
    std::sort(l.nodes.begin(), l.nodes.end());
    Region r = make_region(planned, index, l.nodes);
    for (TensorId t : r.inputs)
      if (NodeId p = planned.producer(t); p != kNone && !seen[static_cast<size_t>(p)])
        bad("the steps are out of order");
    if (Reason why = e->check(r, d); !why) bad("engine '", l.engine, "' declines its step: ", why.text());
    builder.add_step(std::move(r), e, &l.config);
  }
  if (covered != live) bad("the steps do not cover the graph");
  return builder.finish();
}

// --- cache
namespace {

PlanCache<uint64_t>& cache() {
  static PlanCache<uint64_t> c;
  return c;
}

}  // namespace

std::shared_ptr<const Plan> cached_plan(const std::shared_ptr<const Graph>& g, const Device& d, const PlanOptions& o) {
  // With its number: two GPUs of a kind, or a GPU and its record, have plans of their own.
  uint64_t key = hash_text(o.key(), hash_text(cat(d.key(), ":", d.index), g->fingerprint()));
  if (auto plan = cache().find(key)) return plan;
  auto plan = make_plan(g, d, o);
  // A plan that prepares frozen weights belongs to those weights: another model of the same shape needs its own.
  std::vector<TensorId> inputs = g->inputs();
  if (std::none_of(inputs.begin(), inputs.end(), [&](TensorId t) { return g->tensor(t).frozen; }))
    cache().keep(key, plan);
  return plan;
}

size_t plan_cache_size() { return cache().size(); }
void clear_plan_cache() { cache().clear(); }

}  // namespace tsr
