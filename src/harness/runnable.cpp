// SPDX-License-Identifier: Apache-2.0
#include "harness/runnable.hpp"

#include <algorithm>

#include "harness/replay.hpp"

namespace tsr {

Runnable::Runnable(std::shared_ptr<const Plan> plan, GraphBuffers& buffers)
    : plan_(std::move(plan)),
      device_(plan_->source(), buffers, plan_->device()),
      bindings_(device_.bindings()),
      table_(static_cast<size_t>(plan_->graph().tensor_count()), nullptr) {
  require_present(plan_->device());
  device_.upload();
  workspace_ = device_memory(plan_->device(), plan_->workspace_bytes());
  const Graph& planned = plan_->graph();
  for (const Binding& b : bindings_) table_[static_cast<size_t>(planned.find_uid(b.uid))] = b.data;
  size_t scratch = 0;
  for (const PlannedStep& s : plan_->steps()) {
    scratch = std::max(scratch, s.step->workspace_bytes());
    if (TensorId source = s.step->view_of(); source != kNone) {
      provide(planned.tensor(source), table_[static_cast<size_t>(source)]);
      table_[static_cast<size_t>(s.region.outputs[0])] = table_[static_cast<size_t>(source)];
    }
    for (const auto* list : {&s.region.inputs, &s.region.outputs})
      for (TensorId t : *list) provide(planned.tensor(t), table_[static_cast<size_t>(t)]);
  }
  scratch_ = device_memory(plan_->device(), scratch);
}

void Runnable::provide(const Tensor& t, void*& pointer) {
  if (pointer) return;
  const DeviceMemory* memory = plan_->device().memory;
  if (t.is_constant() && (!memory || t.numel() == 1)) {
    pointer = const_cast<std::byte*>(t.constant.data());
    return;
  }
  pointer = temporaries_.emplace_back(device_memory(plan_->device(), static_cast<size_t>(t.bytes()))).get();
  if (t.is_constant()) memory->copy_in(pointer, t.constant.data(), t.constant.size());
}

std::vector<double> Runnable::step_seconds(double seconds) {
  std::vector<StreamWork> works;
  for (size_t i = 0; i < plan_->steps().size(); ++i) works.emplace_back([this, i](void* stream) { step(i, stream); });
  std::vector<double> out;
  for (const Stats& s : time_in_turn(plan_->device(), works, seconds)) out.push_back(s.median);
  return out;
}

}  // namespace tsr
