// SPDX-License-Identifier: Apache-2.0
// Time measurement: works interleaved, so that drifting clocks hurt all alike, and plans with everything they need to
// run.
#pragma once

#include <deque>
#include <functional>

#include "harness/buffers.hpp"
#include "planner/plan.hpp"

namespace tsr {

struct Stats {
  double median = 0, p10 = 0, p90 = 0;  // seconds
};

Stats stats_of(std::vector<double> samples);  // the first one warms up, if others follow

using Work = std::function<void()>;

// Runs all works in turn until the time is over, at least once each; the first round warms up when others follow.
std::vector<Stats> interleave(const std::vector<Work>& works, double seconds);
double now();  // seconds of a steady clock

class Runnable {
 public:
  Runnable(std::shared_ptr<const Plan> plan, GraphBuffers& buffers);
  const Plan& plan() const { return *plan_; }
  void operator()() { plan_->execute(bindings_, workspace_.data(), workspace_.size()); }
  // The work of execute() without what it adds: checks, binding and placement.
  void steps_alone() {
    for (size_t i = 0; i < plan_->steps().size(); ++i) step(i);
  }
  void step(size_t i) { plan_->steps()[i].step->run({table_.data(), temporaries_.back().data(), nullptr}); }
  // Median seconds of each step, run in the order of the plan.
  std::vector<double> step_seconds(double seconds);

 private:
  void provide(const Tensor& t, void*& pointer);
  std::shared_ptr<const Plan> plan_;
  std::vector<Binding> bindings_;
  GuardedBuffer workspace_;
  std::vector<void*> table_;
  std::deque<GuardedBuffer> temporaries_;  // and last the scratch memory of a step
};

}  // namespace tsr
