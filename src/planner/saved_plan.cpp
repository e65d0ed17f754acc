// SPDX-License-Identifier: Apache-2.0
// Plans as text: options, then one line for each step, then the graph as it was given.
#include <algorithm>
#include <sstream>

#include "base/hash.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"
#include "planner/plan_builder.hpp"

namespace tsr {

namespace {

// What runs a region: an engine, or the stages of a decomposition.
struct Line {
  std::string name;
  Config config;
  std::vector<NodeId> nodes;
  std::vector<Line> stages;
};

void print(std::ostream& s, const std::vector<NodeId>& nodes) {
  s << " " << nodes.size();
  for (NodeId n : nodes) s << " " << n;
  s << "\n";
}

template <class... Parts>
[[noreturn]] void bad(const Parts&... parts) {
  fail(Status::corrupt_data, "serialised plan: ", parts...);
}

Line read_line(std::istream& in, size_t number, int depth = 0) {
  constexpr size_t kMostKnobs = 64, kMostNodes = 1000000;
  constexpr int kDeepest = 8;
  Line l;
  std::string word;
  size_t knobs = 0, stages = 0, nodes = 0;
  auto check = [&](bool fine) {
    if (!fine || depth > kDeepest) bad("step ", number, " is damaged");
  };
  check(static_cast<bool>(in >> word) && (word == "step" || word == "stages"));
  check(in >> l.name >> (word == "step" ? knobs : stages) && knobs <= kMostKnobs && stages <= kMostNodes);
  l.config.knobs.resize(knobs);
  for (auto& [name, value] : l.config.knobs) check(static_cast<bool>(in >> name >> value));
  check(in >> nodes && nodes <= kMostNodes);
  l.nodes.resize(nodes);
  for (NodeId& n : l.nodes) check(static_cast<bool>(in >> n));
  for (size_t i = 0; i < stages; ++i) l.stages.push_back(read_line(in, number, depth + 1));
  return l;
}

void add_line(const Line& l, Asked& region, PlanBuilder& builder, int inside) {
  if (l.nodes != region.region().nodes) bad("a step has other nodes than its region");
  if (l.stages.empty()) {
    const Engine* e = find_engine(l.name);
    if (!e) bad("engine '", l.name, "' does not exist here");
    ChosenStep step = step_of(region, *e, l.config);
    step.inside = inside;
    return builder.add(step);
  }
  if (const Asked::Decomposed* d = region.decomposed(l.name); d && d->stages.size() == l.stages.size()) {
    int here = builder.add(ChosenStages{&region.region(), d, inside});
    for (size_t i = 0; i < l.stages.size(); ++i) add_line(l.stages[i], *d->stages[i], builder, here);
    return;
  }
  bad("a region does not fall into ", l.stages.size(), " stages of '", l.name, "' here");
}

}  // namespace

std::string Plan::save() const {
  std::ostringstream s;
  s << "device " << device_.name << "\n";
  s << "recognise " << options_.recognise << "\n";
  s << "steps " << regions().size() << "\n";
  std::vector<bool> printed(stages_.size(), false);
  auto print_stages = [&](int i, auto& again) -> void {
    if (i < 0 || printed[static_cast<size_t>(i)]) return;
    const PlannedStages& p = stages_[static_cast<size_t>(i)];
    again(p.inside, again);
    printed[static_cast<size_t>(i)] = true;
    s << "stages " << p.rule->name << " " << p.how->stages().size();
    print(s, p.region.nodes);
  };
  for (const PlannedStep& p : steps_) {
    print_stages(p.inside, print_stages);
    s << "step " << p.engine->info().name << " " << p.config.knobs.size();
    for (const auto& [key, value] : p.config.knobs) s << " " << key << " " << value;
    print(s, p.region.nodes);
  }
  s << print_graph(*source_);
  return seal("plan", s.str());
}

std::shared_ptr<const Plan> load_plan(std::string_view text, const Device& d) {
  std::istringstream in(unseal("plan", text));
  std::string word, device;
  size_t steps = 0;
  PlanOptions options;
  if (!(in >> word >> device) || word != "device") bad("the device is missing");
  if (device != d.name) bad("made for device '", device, "', this device is '", d.name, "'");
  if (!(in >> word >> options.recognise) || word != "recognise") bad("the options are missing");
  if (!(in >> word >> steps) || word != "steps") bad("the steps are missing");
  std::vector<Line> lines;
  for (size_t i = 0; i < steps; ++i) lines.push_back(read_line(in, i));
  std::getline(in, word);
  std::string rest((std::istreambuf_iterator<char>(in)), {});
  auto g = std::make_shared<Graph>(parse_graph(rest));
  Query query(g, d, options.recognise);
  const Graph& planned = *query.graph();
  PlanBuilder builder(query, options);
  size_t covered = 0, live = query.index().live_nodes().size();
  std::vector<bool> seen(static_cast<size_t>(planned.node_count()), false);
  for (Line& l : lines) {
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
      add_line(l, query.asked(l.nodes), builder, -1);
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
