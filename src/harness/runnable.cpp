// SPDX-License-Identifier: Apache-2.0
#include "harness/runnable.hpp"

#include "harness/replay.hpp"

namespace tsr {

Runnable::Runnable(std::shared_ptr<const Plan> plan, GraphBuffers& buffers)
    : plan_(std::move(plan)), device_(plan_->source(), buffers, plan_->device()), bindings_(device_.bindings()) {
  require_present(plan_->device());
  device_.upload();
  workspace_ = device_memory(plan_->device(), plan_->workspace_bytes());
  bound_ = plan_->bind(bindings_, workspace_.get());
}

std::vector<double> Runnable::step_seconds(double seconds) {
  std::vector<StreamWork> works;
  for (size_t i = 0; i < plan_->steps().size(); ++i) works.emplace_back([this, i](void* stream) { step(i, stream); });
  std::vector<double> out;
  for (const Stats& s : time_in_turn(plan_->device(), works, seconds)) out.push_back(s.median);
  return out;
}

}  // namespace tsr
