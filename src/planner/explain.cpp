// SPDX-License-Identifier: Apache-2.0
#include "planner/explain.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "graph/op.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

bool listed(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Why the options keep an engine from being asked at all; empty when they do not.
std::string excluded(const EngineInfo& e, const Plan& plan) {
  const PlanOptions& o = plan.options();
  if (listed(o.without, e.name)) return "left out by the options";
  if (o.deterministic && !e.deterministic) return "not deterministic, which the options ask for";
  bool last_resort = find_engine(e.name)->info().last_resort;
  if (!o.engines.empty() && !listed(o.engines, e.name) && !(o.fallback && last_resort))
    return "not among the named engines";
  return "";
}

EngineAnswer ask(const Engine& e, const Region& r, const Plan& plan) {
  EngineAnswer a;
  a.engine = e.info().name;
  a.reason = excluded(e.info(), plan);
  if (!a.reason.empty()) return a;
  Matched m = e.match(r, plan.device());
  a.accepted = m.ok();
  a.reason = m.why.text();
  if (!a.accepted) return a;
  std::vector<Config> configs = m.match->configs();
  a.config = to_string(configs.front());
  a.seconds = configs.front().seconds;
  return a;
}

ExplainedTensor explain_tensor(const Graph& g, TensorId id) {
  const Tensor& t = g.tensor(id);
  ExplainedTensor e;
  e.name = t.name;
  e.type = print_type(t);
  e.bytes = static_cast<double>(byte_size(t.dtype, t.numel()));
  e.producer = g.producer(id);
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

ExplainedStep explain_step(const PlannedStep& p, const Plan& plan) {
  ExplainedStep s;
  s.engine = p.engine->info().name;
  s.config = to_string(p.config);
  s.nodes.assign(p.region.nodes.begin(), p.region.nodes.end());
  s.inputs.assign(p.region.inputs.begin(), p.region.inputs.end());
  s.outputs.assign(p.region.outputs.begin(), p.region.outputs.end());
  s.internals.assign(p.region.internals.begin(), p.region.internals.end());
  for (const Engine* e : all_engines()) {
    if (e->info().device != plan.device().kind) continue;
    s.answers.push_back(ask(*e, p.region, plan));
    s.answers.back().chosen = e == p.engine;
    if (e == p.engine) s.seconds = s.answers.back().seconds;
  }
  // A loaded plan carries knobs, not costs: there the engine's own best candidate stands in.
  if (p.config.measured)
    s.measured = p.config.seconds;
  else if (p.config.seconds > 0)
    s.seconds = p.config.seconds;
  if (p.step->view_of() == kNone) s.limits = region_limits(p.region, plan.device());
  s.bytes = region_bytes(p.region);
  s.flops = region_flops(p.region);
  s.kernels = p.step->kernels();
  s.workspace = p.step->workspace_bytes();
  return s;
}

std::vector<Boundary> explain_boundaries(const Plan& plan, const Explanation& e) {
  const Graph& g = plan.graph();
  GraphIndex index(g);
  std::set<std::pair<int, int>> seen;
  std::vector<Boundary> out;
  for (const ExplainedNode& n : e.nodes) {
    if (n.step < 0) continue;
    for (int t : n.reads) {
      int p = e.tensors[static_cast<size_t>(t)].producer;
      int from = p < 0 ? -1 : e.nodes[static_cast<size_t>(p)].step;
      if (from < 0 || from == n.step || !seen.insert({from, n.step}).second) continue;
      std::vector<NodeId> nodes = plan.steps()[static_cast<size_t>(from)].region.nodes;
      const auto& more = plan.steps()[static_cast<size_t>(n.step)].region.nodes;
      nodes.insert(nodes.end(), more.begin(), more.end());
      std::sort(nodes.begin(), nodes.end());
      Region joined = make_region(g, index, nodes);
      Boundary b{from, n.step, {}};
      // The last resort takes operations one by one, joining gains it nothing.
      for (const Engine* engine : all_engines())
        if (engine->info().device == plan.device().kind && !engine->info().last_resort)
          b.answers.push_back(ask(*engine, joined, plan));
      out.push_back(std::move(b));
    }
  }
  return out;
}

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
  return cat(text, s.measured > 0 ? "" : " by the model", "; bound by ",
             s.limits.memory >= s.limits.arithmetic ? "memory" : "arithmetic", ", at least ",
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

Explanation explain(const Plan& plan, const std::vector<double>& measured) {
  const Graph& g = plan.graph();
  Explanation e;
  e.device = plan.device().name;
  e.recognised = &plan.graph() != &plan.source();
  for (TensorId t = 0; t < g.tensor_count(); ++t) e.tensors.push_back(explain_tensor(g, t));
  for (NodeId i = 0; i < g.node_count(); ++i) {
    const Node& n = g.node(i);
    ExplainedNode x;
    x.op = spelling(n);
    x.text = print_node(g, n);
    for (TensorId t : node_reads(g, n)) x.reads.push_back(t);
    for (TensorId t : n.out)
      if (t != kNone) x.writes.push_back(t);
    x.flops = node_flops(g, n);
    e.nodes.push_back(std::move(x));
  }
  for (const PlannedStep& p : plan.steps()) {
    int step = static_cast<int>(e.steps.size());
    e.steps.push_back(explain_step(p, plan));
    for (NodeId n : p.region.nodes) {
      ExplainedNode& x = e.nodes[static_cast<size_t>(n)];
      x.step = step;
      for (const auto* list : {&x.reads, &x.writes})
        for (int t : *list) e.unfused_bytes += e.tensors[static_cast<size_t>(t)].bytes;
    }
    for (TensorId t : p.region.outputs)
      if (!g.tensor(t).stored) e.tensors[static_cast<size_t>(t)].kind = ExplainedTensor::temporary;
    if (!measured.empty()) e.steps.back().measured = measured[static_cast<size_t>(step)];
    e.seconds += e.steps.back().seconds;
  }
  bool all = std::all_of(e.steps.begin(), e.steps.end(), [](const ExplainedStep& s) { return s.measured > 0; });
  for (const ExplainedStep& s : e.steps) e.measured += all ? s.measured : 0;
  if (plan.options().fuse) e.boundaries = explain_boundaries(plan, e);
  e.bytes = plan.bytes_moved();
  e.flops = plan.flops();
  e.kernels = plan.kernels();
  e.workspace = plan.workspace_bytes();
  e.deterministic = plan.deterministic();
  return e;
}

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
  for (const ExplainedNode& n : e.nodes) dead += n.step < 0;
  if (dead > 0)
    s += cat("\n", dead, dead == 1 ? " operation is" : " operations are", " left out: nothing reads the results\n");
  return s;
}

}  // namespace tsr
