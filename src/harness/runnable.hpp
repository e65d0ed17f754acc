// SPDX-License-Identifier: Apache-2.0
// A plan with everything it needs to run on its device, as a whole and step by step.
#pragma once

#include "harness/device_buffers.hpp"

namespace tsr {

class Runnable {
 public:
  // The contents of `buffers` go to the device. Raises when the device is not there.
  Runnable(std::shared_ptr<const Plan> plan, GraphBuffers& buffers);
  const Plan& plan() const { return *plan_; }
  void operator()(void* stream = nullptr) {
    plan_->execute(bindings_, workspace_.get(), plan_->workspace_bytes(), stream);
  }
  void download() { device_.download(); }  // results, into the buffers
  // The work of execute() without what it adds: checks, binding and placement.
  void steps_alone() {
    for (size_t i = 0; i < plan_->steps().size(); ++i) step(i);
  }
  void step(size_t i, void* stream = nullptr) { plan_->run_step(i, bound_, stream); }
  // Median seconds of each step, run in the order of the plan.
  std::vector<double> step_seconds(double seconds);

 private:
  std::shared_ptr<const Plan> plan_;
  DeviceBuffers device_;
  std::vector<Binding> bindings_;
  std::shared_ptr<void> workspace_;
  Plan::Bound bound_;
};

}  // namespace tsr
