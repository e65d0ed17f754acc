// SPDX-License-Identifier: Apache-2.0
#include "planner/explain.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "graph/op.hpp"
#include "graph/text.hpp"
#include "planner/partition.hpp"

namespace tsr {
namespace {

EngineAnswer ask(const Engine& e, Asked& region, const Plan& plan, Takers who) {
  EngineAnswer a;
  a.engine = e.info().name;
  a.reason = may_take(e.info(), who) ? excluded(e.info(), plan.options()) : "not deterministic, as stages are";
  if (!a.reason.empty()) return a;
  const Asked::Answer& answer = region.answer(e);
  a.accepted = answer.matched.ok();
  a.reason = answer.matched.why.text();
  if (!a.accepted) return a;
  a.config = to_string(answer.configs.front());
  a.seconds = answer.configs.front().seconds;
  return a;
}

// The first stage that nobody takes.
std::string nobody_takes(const Asked::Decomposed& d, const Choice& choice) {
  size_t i = 0;
  while (i + 1 < d.stages.size() && choice.seconds(*d.stages[i], Takers::of_stages) < kImpossible) ++i;
  const Region& r = d.stages[i]->region();
  std::string more = r.nodes.size() > 1 ? cat(" and ", r.nodes.size() - 1, " more") : "";
  return cat("no engine that is allowed takes stage ", i + 1, " of ", d.stages.size(), ", ",
             spelling(r.graph->node(r.nodes[0])), more);
}

EngineAnswer ask(const Asked::Decomposed& d, const Plan& plan) {
  EngineAnswer a;
  a.engine = cat("stages of ", d.rule->name);
  a.config = "default";
  Choice choice(plan.device(), plan.options());
  a.seconds = choice.seconds(d);
  a.accepted = a.seconds < kImpossible;
  if (!a.accepted) a.reason = d.why ? nobody_takes(d, choice) : d.why.text();
  return a;
}

std::vector<EngineAnswer> ask_all(const Region& r, const Plan& plan, Takers who) {
  Asked region(r, plan.device());
  std::vector<EngineAnswer> answers;
  for (const Engine* e : all_engines())
    if (e->info().device == plan.device().kind && (who == Takers::all || !e->info().last_resort))
      answers.push_back(ask(*e, region, plan, who));
  for (const Asked::Decomposed& d : region.decomposed()) answers.push_back(ask(d, plan));
  if (const Asked::Decomposed* d = region.decomposed(plan.options().stages); d && d->rule->by_name)
    answers.push_back(ask(*d, plan));
  return answers;
}

ExplainedTensor explain_tensor(const Graph& g, TensorId id) {
  const Tensor& t = g.tensor(id);
  ExplainedTensor e;
  e.name = t.name;
  e.type = print_type(t);
  e.bytes = static_cast<double>(byte_size(t.dtype, t.numel()));
  if (t.is_constant())
    e.kind = ExplainedTensor::constant;
  else if (t.by_value)
    e.kind = ExplainedTensor::scalar;
  else if (g.producer(id) == kNone)
    e.kind = ExplainedTensor::input;
  else
    e.kind = t.stored ? ExplainedTensor::output : ExplainedTensor::internal;
  return e;
}

// Numbers the tensors and nodes of the graph, and behind them those of decompositions; of memory that has several names
// there only the one it has outside.
class Explainer {
 public:
  explicit Explainer(const Plan& plan) : plan_(plan) {}

  Explanation run(const std::vector<double>& measured) {
    const Graph& g = plan_.graph();
    e_.device = plan_.device().name;
    e_.recognised = &g != &plan_.source();
    e_.operations = static_cast<size_t>(g.node_count());
    add_graph(g, -1);
    for (size_t i = 0; i < plan_.stages().size(); ++i) add_stages(static_cast<int>(i));
    for (const PlannedStep& p : plan_.steps()) {
      add_step(p);
      if (!measured.empty()) e_.steps.back().measured = measured[e_.steps.size() - 1];
      e_.seconds += e_.steps.back().seconds;
    }
    for (const Region* r : plan_.regions())
      for (NodeId n : r->nodes)
        for (const auto* list : {&e_.nodes[static_cast<size_t>(n)].reads, &e_.nodes[static_cast<size_t>(n)].writes})
          for (int t : *list) e_.unfused_bytes += e_.tensors[static_cast<size_t>(t)].bytes;
    bool all = std::all_of(e_.steps.begin(), e_.steps.end(), [](const ExplainedStep& s) { return s.measured > 0; });
    for (const ExplainedStep& s : e_.steps) e_.measured += all ? s.measured : 0;
    if (plan_.options().fuse) add_boundaries();
    e_.bytes = plan_.bytes_moved();
    e_.flops = plan_.flops();
    e_.kernels = plan_.kernels();
    e_.workspace = plan_.workspace_bytes();
    e_.deterministic = plan_.deterministic();
    return std::move(e_);
  }

 private:
  struct Numbers {
    std::vector<int> tensors;
    int first_node = 0;
  };
  static Takers takers(int inside) { return inside < 0 ? Takers::all : Takers::of_stages; }
  const Numbers& numbers(int inside) const { return numbers_[static_cast<size_t>(inside + 1)]; }

  std::vector<int> listed(const std::vector<TensorId>& tensors, int inside) const {
    std::vector<int> list;
    for (TensorId t : tensors)
      if (int n = t == kNone ? -1 : numbers(inside).tensors[static_cast<size_t>(t)]; n >= 0 && !contains(list, n))
        list.push_back(n);
    return list;
  }

  void add_graph(const Graph& g, int inside) {
    Numbers& own = numbers_.emplace_back();
    own.first_node = static_cast<int>(e_.nodes.size());
    for (TensorId t = 0; t < g.tensor_count(); ++t) own.tensors.push_back(number(g, inside, t));
    for (NodeId i = 0; i < g.node_count(); ++i) {
      const Node& n = g.node(i);
      ExplainedNode x;
      x.op = spelling(n);
      x.text = print_node(g, n);
      x.reads = listed(node_reads(g, n), inside);
      x.writes = listed(n.out, inside);
      x.flops = node_flops(g, n);
      for (int t : x.writes) e_.tensors[static_cast<size_t>(t)].producer = own.first_node + i;
      e_.nodes.push_back(std::move(x));
    }
  }

  int number(const Graph& g, int inside, TensorId t) {
    if (inside >= 0) {
      using Place = Decomposition::Place;
      const PlannedStages& s = plan_.stages()[static_cast<size_t>(inside)];
      Place p = s.how->place(t);
      bool outside = p.where == Place::outside;
      if (outside || (p.where == Place::inside && p.of != t))
        return numbers(outside ? s.inside : inside).tensors[static_cast<size_t>(p.of)];
    }
    e_.tensors.push_back(explain_tensor(g, t));
    return static_cast<int>(e_.tensors.size()) - 1;
  }

  void add_stages(int i) {
    const PlannedStages& s = plan_.stages()[static_cast<size_t>(i)];
    ExplainedStages x;
    x.name = s.rule->name;
    for (NodeId n : s.region.nodes) x.nodes.push_back(numbers(s.inside).first_node + n);
    for (int n : x.nodes) e_.nodes[static_cast<size_t>(n)].stages = i;
    x.answers = ask_all(s.region, plan_, takers(s.inside));
    for (EngineAnswer& a : x.answers) a.chosen = a.engine == cat("stages of ", x.name);
    x.first_step = static_cast<int>(plan_.steps().size());
    e_.stages.push_back(std::move(x));
    add_graph(s.how->graph(), i);
  }

  void add_step(const PlannedStep& p) {
    auto number = static_cast<int>(e_.steps.size());
    ExplainedStep s;
    s.engine = p.engine->info().name;
    s.config = to_string(p.config);
    for (NodeId n : p.region.nodes) s.nodes.push_back(numbers(p.inside).first_node + n);
    for (int n : s.nodes) e_.nodes[static_cast<size_t>(n)].step = number;
    s.inputs = listed(p.region.inputs, p.inside);
    s.outputs = listed(p.region.outputs, p.inside);
    s.internals = listed(p.region.internals, p.inside);
    s.answers = ask_all(p.region, plan_, takers(p.inside));
    for (EngineAnswer& a : s.answers)
      if (a.engine == s.engine) a.chosen = true, s.seconds = a.seconds;
    // A loaded plan carries knobs, not costs: there the engine's own best candidate stands in.
    if (p.config.measured)
      s.measured = p.config.seconds;
    else if (p.config.seconds > 0)
      s.seconds = p.config.seconds;
    if (p.step->view_of() == kNone) s.limits = region_limits(p.region, plan_.device());
    s.bytes = region_bytes(p.region);
    s.flops = region_flops(p.region);
    s.kernels = p.step->kernels();
    s.workspace = p.step->workspace_bytes();
    for (int t : s.outputs)
      if (auto& kind = e_.tensors[static_cast<size_t>(t)].kind; kind != ExplainedTensor::output)
        kind = ExplainedTensor::temporary;
    for (int i = p.inside; i >= 0; i = plan_.stages()[static_cast<size_t>(i)].inside) {
      ExplainedStages& x = e_.stages[static_cast<size_t>(i)];
      x.first_step = std::min(x.first_step, number);
      x.last_step = number;
    }
    e_.steps.push_back(std::move(s));
  }

  // Where a region of the graph reads from another: why they are not one.
  void add_boundaries() {
    const Graph& g = plan_.graph();
    GraphIndex index(g);
    std::vector<const Region*> region_of(static_cast<size_t>(g.node_count()), nullptr);
    for (const Region* r : plan_.regions())
      for (NodeId n : r->nodes) region_of[static_cast<size_t>(n)] = r;
    auto step_of = [&](NodeId n) {
      const ExplainedNode& x = e_.nodes[static_cast<size_t>(n)];
      return x.stages < 0 ? x.step : e_.stages[static_cast<size_t>(x.stages)].first_step;
    };
    std::set<std::pair<int, int>> seen;
    for (NodeId n = 0; n < g.node_count(); ++n) {
      const Region* to = region_of[static_cast<size_t>(n)];
      if (!to) continue;
      for (TensorId t : node_reads(g, g.node(n))) {
        NodeId p = g.producer(t);
        const Region* from = p == kNone ? nullptr : region_of[static_cast<size_t>(p)];
        if (!from || from == to || !seen.insert({step_of(p), step_of(n)}).second) continue;
        std::vector<NodeId> nodes = from->nodes;
        nodes.insert(nodes.end(), to->nodes.begin(), to->nodes.end());
        std::sort(nodes.begin(), nodes.end());
        e_.boundaries.push_back(
            {step_of(p), step_of(n), ask_all(make_region(g, index, nodes), plan_, Takers::no_last_resort)});
      }
    }
  }

  const Plan& plan_;
  Explanation e_;
  std::vector<Numbers> numbers_;  // of the graph, then of each decomposition
};

std::string scaled(double v, const std::vector<const char*>& units, double base) {
  size_t i = 0;
  while (i + 1 < units.size() && v >= base) v /= base, ++i;
  char buffer[48];
  std::snprintf(buffer, sizeof buffer,
                v == std::floor(v) && v < 1000 ? "%.0f%s"
                : v < 10                       ? "%.2f%s"
                : v < 100                      ? "%.1f%s"
                                               : "%.0f%s",
                v, units[i]);
  return buffer;
}

std::string names_of(const Explanation& e, const std::vector<int>& ids) {
  std::string s;
  for (int i : ids) {
    const ExplainedTensor& t = e.tensors[static_cast<size_t>(i)];
    s += (s.empty() ? "" : ", ") + t.name + " " + t.type;
  }
  return s.empty() ? "nothing" : s;
}

// How close a step comes to the time that the machine needs at least.
std::string limits_text(const ExplainedStep& s) {
  if (s.limits.seconds() == 0) return "nothing is moved or computed";
  double seconds = s.measured > 0 ? s.measured : s.seconds;
  char text[96];
  std::snprintf(text, sizeof text, "%.0f%% of the memory limit, %.0f%% of the arithmetic limit",
                100 * s.limits.memory / seconds, 100 * s.limits.arithmetic / seconds);
  // Random data of a small graph stays in caches between the runs that are measured.
  bool cached = s.limits.memory > seconds;
  return cat(text, cached ? " (what is moved lies in caches)" : "", s.measured > 0 ? "" : " by the model",
             "; bound by ", s.limits.memory >= s.limits.arithmetic ? "memory" : "arithmetic", ", at least ",
             human_seconds(s.limits.seconds()));
}

std::string answer_text(const EngineAnswer& a) {
  if (a.accepted)
    return cat(a.engine, ": yes, ", human_seconds(a.seconds), a.config == "default" ? "" : ", " + a.config,
               a.chosen ? " (chosen)" : "");
  return cat(a.engine, ": no, ", a.reason);
}

}  // namespace

std::string human_bytes(double bytes) { return scaled(bytes, {" B", " kB", " MB", " GB", " TB"}, 1000); }
std::string human_count(double n) { return scaled(n, {"", " k", " M", " G", " T", " P"}, 1000); }
std::string human_seconds(double s) { return scaled(s * 1e9, {" ns", " us", " ms", " s"}, 1000); }

Explanation explain(const Plan& plan, const std::vector<double>& measured) { return Explainer(plan).run(measured); }

std::string to_text(const Explanation& e) {
  std::string s = cat("plan for ", e.device, ": ", e.steps.size(), e.steps.size() == 1 ? " step, " : " steps, ",
                      e.kernels, e.kernels == 1 ? " kernel, " : " kernels, ", human_bytes(e.bytes), " moved (",
                      human_bytes(e.unfused_bytes), " if every operation used memory), ", human_count(e.flops),
                      " operations, workspace ", human_bytes(static_cast<double>(e.workspace)), ", modelled time ",
                      human_seconds(e.seconds), e.measured > 0 ? ", measured " + human_seconds(e.measured) : "",
                      e.deterministic ? ", deterministic" : ", not deterministic", "\n");
  if (e.recognised) s += "composite operations, views or packed sequences were rewritten before planning\n";
  for (size_t i = 0; i < e.steps.size(); ++i) {
    const ExplainedStep& step = e.steps[i];
    for (const ExplainedStages& x : e.stages) {
      if (x.first_step != static_cast<int>(i)) continue;
      s += cat("\nsteps ", x.first_step + 1, " to ", x.last_step + 1, ": stages of ", x.name, "\n");
      for (int n : x.nodes) s += "    " + e.nodes[static_cast<size_t>(n)].text + "\n";
      for (const EngineAnswer& a : x.answers) s += "  " + answer_text(a) + "\n";
    }
    s += cat("\nstep ", i + 1, ": ", step.engine, step.config == "default" ? "" : " (" + step.config + ")", ", ",
             human_seconds(step.seconds), step.measured > 0 ? " (measured " + human_seconds(step.measured) + ")" : "",
             ", ", human_bytes(step.bytes), ", ", human_count(step.flops), " operations, ", step.kernels,
             step.kernels == 1 ? " kernel" : " kernels", ", scratch ", human_bytes(static_cast<double>(step.workspace)),
             "\n");
    s += "  " + limits_text(step) + "\n";
    for (int n : step.nodes) s += "    " + e.nodes[static_cast<size_t>(n)].text + "\n";
    s += "  reads   " + names_of(e, step.inputs) + "\n";
    s += "  writes  " + names_of(e, step.outputs) + "\n";
    if (!step.internals.empty()) s += "  inside  " + names_of(e, step.internals) + "\n";
    for (const EngineAnswer& a : step.answers) s += "  " + answer_text(a) + "\n";
    for (const Boundary& b : e.boundaries) {
      if (b.to != static_cast<int>(i)) continue;
      for (const EngineAnswer& a : b.answers) s += cat("  joined with step ", b.from + 1, "? ", answer_text(a), "\n");
    }
  }
  size_t dead = 0;
  for (const ExplainedNode& n : e.nodes) dead += n.step < 0 && n.stages < 0;
  if (dead > 0)
    s += cat("\n", dead, dead == 1 ? " operation is" : " operations are", " left out: nothing reads the results\n");
  return s;
}

}  // namespace tsr
