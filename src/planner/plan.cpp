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
  PlanBuilder builder(q, o, std::move(own));
  for (const ChosenStep& s : q.choose(o)) builder.add(s);
  return builder.finish();
}

std::shared_ptr<const Plan> plan_as_one(Query& q, const Engine& engine, const Config& config) {
  PlanBuilder builder(q, {.recognise = false});
  builder.add(q.choose(q.index().live_nodes(), engine, config));
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
