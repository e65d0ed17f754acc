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
    for (const ChosenStep& s : q.choose(o, ruled_out)) builder.add(s);
    builder.lay_out();
    if (builder.plan().workspace_bytes() <= o.workspace_limit) return builder.finish();
    // The step that needs most goes to another engine.
    auto need = [](const PlannedStep& s) { return s.step->workspace_bytes(); };
    const std::vector<PlannedStep>& steps = builder.plan().steps();
    auto most = std::max_element(steps.begin(), steps.end(),
                                 [&](const PlannedStep& x, const PlannedStep& y) { return need(x) < need(y); });
    if (most == steps.end() || need(*most) == 0)
      fail(Status::not_supported, "the plan needs ", builder.plan().workspace_bytes(),
           " bytes of workspace for what its steps hand each other, the limit is ", o.workspace_limit);
    ruled_out[{most->region.nodes, most->engine}] = need(*most);
  }
}

std::shared_ptr<const Plan> plan_as_one(Query& q, const Engine& engine, const Config& config) {
  PlanBuilder builder(q, {.recognise = false});
  builder.add(q.choose(q.index().live_nodes(), engine, config));
  builder.lay_out();
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

}  // namespace tsr
