// SPDX-License-Identifier: Apache-2.0
#include "planner/plan.hpp"

#include <algorithm>

#include "base/trace.hpp"
#include "planner/plan_builder.hpp"

namespace tsr {

std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Graph> g, const Device& d, const PlanOptions& o,
                                      std::shared_ptr<OwnMemory> own) {
  TraceRange range("plan");
  Query q(std::move(g), d, o.recognise);
  return make_plan(q, o, std::move(own));
}

std::shared_ptr<const Plan> make_plan(Query& q, const PlanOptions& o, std::shared_ptr<OwnMemory> own) {
  RuledOut ruled_out;
  for (;;) {
    PlanBuilder builder(q, o, own);
    ChosenSteps chosen = q.choose(o, ruled_out);
    for (const ChosenStages& s : chosen.stages) builder.add(s);
    for (const ChosenStep& s : chosen.steps) builder.add(s);
    builder.lay_out();
    if (builder.plan().workspace_bytes() <= o.workspace_limit) return builder.finish();
    // What needs most is left to others: the scratch of a step, or the temporaries of a decomposition.
    std::pair<size_t, RuledOut::key_type> most;
    auto consider = [&](size_t bytes, const Region* r, std::string_view by) {
      if (bytes > most.first) most = {bytes, {r, by}};
    };
    for (size_t i = 0; i < chosen.steps.size(); ++i)
      consider(builder.plan().steps()[i].step->workspace_bytes(), chosen.steps[i].region,
               chosen.steps[i].engine->info().name);
    for (const ChosenStages& s : chosen.stages) consider(s.by->how->temporary_bytes(), s.region, s.by->rule->name);
    if (most.first == 0)
      fail(Status::not_supported, "the plan needs ", builder.plan().workspace_bytes(),
           " bytes of workspace for what its steps hand each other, the limit is ", o.workspace_limit);
    ruled_out[most.second] = most.first;
  }
}

std::shared_ptr<const Plan> plan_as_one(Query& q, const Engine& engine, const Config& config) {
  PlanBuilder builder(q, {.recognise = false});
  builder.add(step_of(q.asked(q.index().live_nodes()), engine, config));
  builder.lay_out();
  return builder.finish();
}

size_t Plan::slots() const {
  if (stages_.empty()) return static_cast<size_t>(graph_->tensor_count());
  return stages_.back().first_slot + static_cast<size_t>(stages_.back().how->graph().tensor_count());
}

std::vector<const Region*> Plan::regions() const {
  std::vector<const Region*> list;
  for (const PlannedStep& s : steps_)
    if (s.inside < 0) list.push_back(&s.region);
  for (const PlannedStages& s : stages_)
    if (s.inside < 0) list.push_back(&s.region);
  return list;
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
  for (const Region* r : regions()) n += region_flops(*r);
  return n;
}

}  // namespace tsr
