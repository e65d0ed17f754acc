// SPDX-License-Identifier: Apache-2.0
// A plan with its scratch memory, ready to be called from any number of threads. It knows nothing of Python.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "api/state.hpp"
#include "planner/plan.hpp"
#include "runtime/devices.hpp"

namespace tessera::python {

// Scratch memory of a plan. A call takes a piece and gives it back when its work is launched: what is launched later
// into the same stream runs later, so pieces are kept for each stream.
class Workspaces {
 public:
  OwnedMemory take(size_t bytes, const tsr::Device& d, void* stream) {
    {
      std::lock_guard guard(lock_);
      std::vector<OwnedMemory>& free = free_[stream];
      if (!free.empty()) {
        OwnedMemory m = std::move(free.back());
        free.pop_back();
        return m;
      }
    }
    return allocate(bytes, d.memory, "a workspace");
  }
  void give_back(OwnedMemory m, void* stream) {
    std::lock_guard guard(lock_);
    free_[stream].push_back(std::move(m));
  }

 private:
  std::mutex lock_;
  std::map<void*, std::vector<OwnedMemory>> free_;
};

class Runner {
 public:
  explicit Runner(std::shared_ptr<const tsr::Plan> plan) : plan_(std::move(plan)) {}

  const tsr::Plan& plan() const { return *plan_; }

  void execute(std::span<const tsr::Binding> bindings, void* stream) {
    size_t bytes = plan_->workspace_bytes();
    if (bytes == 0) return plan_->execute(bindings, nullptr, 0, stream);
    OwnedMemory workspace = workspaces_.take(bytes, plan_->device(), stream);
    plan_->execute(bindings, workspace.get(), bytes, stream);
    workspaces_.give_back(std::move(workspace), stream);
  }

 private:
  std::shared_ptr<const tsr::Plan> plan_;
  Workspaces workspaces_;
};

}  // namespace tessera::python
