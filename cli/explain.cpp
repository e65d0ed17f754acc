// SPDX-License-Identifier: Apache-2.0
// `tessera explain`: what the plan of a graph does and why, as text, JSON, DOT or a web page.
#include <iostream>
#include <nlohmann/json.hpp>

#include "formats.hpp"
#include "graph/text.hpp"
#include "harness/runnable.hpp"

namespace tsr::cli {
namespace {

struct Arguments {
  PlanArguments plan;
  std::string html;
  bool json = false, dot = false, measure = false;
};

// Seconds of each step, on random data.
std::vector<double> measure(const std::shared_ptr<const Plan>& plan) {
  GraphBuffers buffers(plan->source(), {});
  return Runnable(plan, buffers).step_seconds(0.5);
}

Json answers_json(const std::vector<EngineAnswer>& answers) {
  Json list = Json::array();
  for (const EngineAnswer& a : answers) {
    Json j = {{"engine", a.engine}, {"accepted", a.accepted}, {"chosen", a.chosen}};
    if (a.accepted)
      j["config"] = a.config, j["seconds"] = number(a.seconds);
    else
      j["reason"] = a.reason;
    list.push_back(std::move(j));
  }
  return list;
}

int run(const Arguments& a) {
  require(!a.json || !a.dot, "--json and --dot exclude each other: both print to standard output");
  std::shared_ptr<const Graph> g = read_graph(a.plan.graph);
  auto plan = make_plan(g, a.plan.pick_device(), a.plan.options());
  Explanation e = explain(*plan, a.measure ? measure(plan) : std::vector<double>());
  if (!a.html.empty()) {
    write_file(a.html, to_html(e, print_graph(*g)));
    if (!a.json && !a.dot) std::cout << "wrote " << a.html << "\n";
  }
  if (a.json)
    print_json(to_json(e));
  else if (a.dot)
    std::cout << to_dot(e);
  else if (a.html.empty())
    std::cout << to_text(e);
  return kOk;
}

}  // namespace

Json to_json(const Explanation& e) {
  static constexpr const char* kKinds[] = {"input", "scalar", "constant", "output", "temporary", "internal"};
  Json j = {{"device", e.device},        {"seconds", number(e.seconds)},
            {"bytes", e.bytes},          {"unfused_bytes", e.unfused_bytes},
            {"flops", e.flops},          {"kernels", e.kernels},
            {"workspace", e.workspace},  {"deterministic", e.deterministic},
            {"recognised", e.recognised}};
  for (const char* key : {"tensors", "nodes", "steps", "stages", "boundaries"}) j[key] = Json::array();
  for (const ExplainedTensor& t : e.tensors)
    j["tensors"].push_back(
        {{"name", t.name}, {"type", t.type}, {"kind", kKinds[t.kind]}, {"bytes", t.bytes}, {"producer", t.producer}});
  for (const ExplainedNode& n : e.nodes)
    j["nodes"].push_back({{"op", n.op},
                          {"text", n.text},
                          {"step", n.step},
                          {"reads", n.reads},
                          {"writes", n.writes},
                          {"flops", n.flops}});
  for (const ExplainedStep& s : e.steps)
    j["steps"].push_back({{"engine", s.engine},
                          {"config", s.config},
                          {"nodes", s.nodes},
                          {"inputs", s.inputs},
                          {"outputs", s.outputs},
                          {"internals", s.internals},
                          {"seconds", number(s.seconds)},
                          {"measured_seconds", s.measured > 0 ? number(s.measured) : Json()},
                          {"memory_limit_seconds", number(s.limits.memory)},
                          {"arithmetic_limit_seconds", number(s.limits.arithmetic)},
                          {"bytes", s.bytes},
                          {"flops", s.flops},
                          {"kernels", s.kernels},
                          {"workspace", s.workspace},
                          {"answers", answers_json(s.answers)}});
  for (const ExplainedStages& s : e.stages)
    j["stages"].push_back({{"name", s.name},
                           {"first_step", s.first_step},
                           {"last_step", s.last_step},
                           {"nodes", s.nodes},
                           {"answers", answers_json(s.answers)}});
  for (const Boundary& b : e.boundaries)
    j["boundaries"].push_back({{"from", b.from}, {"to", b.to}, {"answers", answers_json(b.answers)}});
  return j;
}

std::string to_dot(const Explanation& e) {
  auto quoted = [](const std::string& s) {
    std::string q = "\"";
    for (char c : s) q += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return q + "\"";
  };
  std::string s =
      "digraph plan {\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=Helvetica];\n";
  for (size_t i = 0; i < e.steps.size(); ++i) {
    const ExplainedStep& step = e.steps[i];
    s += cat("  subgraph cluster_", i, " {\n    label=", quoted(cat(i + 1, ": ", step.engine)),
             "; style=\"rounded,filled\"; fillcolor=\"#e8f0fe\"; fontname=Helvetica;\n");
    for (int n : step.nodes) s += cat("    n", n, " [label=", quoted(e.nodes[static_cast<size_t>(n)].op), "];\n");
    s += "  }\n";
  }
  for (size_t t = 0; t < e.tensors.size(); ++t) {
    const ExplainedTensor& x = e.tensors[t];
    bool drawn = x.producer < 0 || x.kind == ExplainedTensor::output;
    if (drawn) s += cat("  t", t, " [shape=plaintext, style=\"\", label=", quoted(x.name + "\n" + x.type), "];\n");
    if (drawn && x.producer >= 0 && e.nodes[static_cast<size_t>(x.producer)].step >= 0)
      s += cat("  n", x.producer, " -> t", t, ";\n");
  }
  for (size_t n = 0; n < e.nodes.size(); ++n) {
    if (e.nodes[n].step < 0) continue;
    for (int t : e.nodes[n].reads) {
      const ExplainedTensor& x = e.tensors[static_cast<size_t>(t)];
      if (x.producer < 0)
        s += cat("  t", t, " -> n", n, ";\n");
      else
        s += cat("  n", x.producer, " -> n", n, " [label=", quoted(x.type), ", fontsize=9];\n");
    }
  }
  return s + "}\n";
}

void add_explain(Command& app) {
  auto a = std::make_shared<Arguments>();
  Command c = app.add_command("explain", "Say how a graph would run and why");
  a->plan.add_to(c);
  c.add_flag("--measure", a->measure, "run each step on random data and show the measured time too");
  c.add_flag("--json", a->json, "print as JSON");
  c.add_flag("--dot", a->dot, "print a drawing in the DOT language");
  c.add_option("--html", a->html, "write a self-contained web page to this file");
  c.footer(
      "Examples: tessera explain 'x = input f32[4,64]; y = softmax x; output y' --measure\n"
      "          tessera explain graph.txt --device h200 --html plan.html");
  c.runs([a] { return run(*a); });
}

}  // namespace tsr::cli
