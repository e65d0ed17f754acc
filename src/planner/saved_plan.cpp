// SPDX-License-Identifier: Apache-2.0
// Plans as text: options, then one line for each step, then the graph as it was given.
#include <algorithm>
#include <sstream>

#include "base/hash.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"
#include "planner/plan_builder.hpp"

namespace tsr {

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
  Query query(g, d, options.recognise);
  const Graph& planned = *query.graph();
  PlanBuilder builder(query, options);
  size_t covered = 0, live = query.index().live_nodes().size();
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
    for (NodeId n : l.nodes)
      for (TensorId t : node_reads(planned, planned.node(n)))
        if (NodeId p = planned.producer(t); p != kNone && !seen[static_cast<size_t>(p)])
          bad("the steps are out of order");
    try {
      builder.add(query.choose(l.nodes, *e, l.config));
    } catch (const Error& error) {
      if (error.status() != Status::not_supported) throw;
      bad(error.what());
    }
  }
  if (covered != live) bad("the steps do not cover the graph");
  builder.lay_out();
  return builder.finish();
}

}  // namespace tsr
