// SPDX-License-Identifier: Apache-2.0
#include "planner/plan_builder.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/settings.hpp"
#include "graph/op.hpp"
#include "graph/ops/list.hpp"
#include "graph/text.hpp"
#include "planner/workspace.hpp"

namespace tsr {

PlanBuilder::PlanBuilder(const Query& q, const PlanOptions& o, std::shared_ptr<OwnMemory> own) : plan_(new Plan) {
  plan_->source_ = q.source();
  plan_->graph_ = q.graph();
  plan_->device_ = q.device();
  plan_->options_ = o;
  plan_->own_ = own ? std::move(own) : std::make_shared<OwnMemory>(q.device().memory);
}

void PlanBuilder::add(const ChosenStep& s) {
  plan_->steps_.push_back({*s.region, s.engine, s.config, s.match->build(s.config), 0});
}

std::shared_ptr<const Plan> PlanBuilder::finish() {
  const Graph& g = *plan_->graph_;
  upload_constants();
  for (int i = 0; i < g.tensor_count(); ++i)
    if (!g.tensor(i).is_constant() && (g.tensor(i).stored || g.tensor(i).by_value)) plan_->bound_.push_back(i);
  find_uses();
  if (log_enabled(3)) {
    std::string text =
        cat("plan: ", plan_->steps_.size(), " steps, ", plan_->workspace_bytes(), " bytes of workspace:");
    for (const PlannedStep& s : plan_->steps_) text += cat(" ", s.engine->info().name, "(", s.region.nodes.size(), ")");
    log_line(3, text + " for " + print_graph(*plan_->source_, {.one_line = true}));
  }
  return plan_;
}

// Single numbers travel with the launches; larger constants must lie in the device's memory.
void PlanBuilder::upload_constants() {
  const Graph& g = *plan_->graph_;
  const DeviceMemory* memory = plan_->device_.memory;
  for (int i = 0; i < g.tensor_count(); ++i) {
    const Tensor& t = g.tensor(i);
    if (!t.is_constant()) continue;
    std::shared_ptr<void> data(const_cast<std::byte*>(t.constant.data()), [](void*) {});
    if (memory && t.numel() > 1) {
      data = std::shared_ptr<void>(memory->allocate(t.constant.size()), [memory](void* p) { memory->release(p); });
      memory->copy_in(data.get(), t.constant.data(), t.constant.size());
    }
    plan_->constants_.emplace_back(i, std::move(data));
  }
}

// Temporaries between steps live from the step that writes them to the last one that reads them; a step's own scratch
// lives for that step.
void PlanBuilder::lay_out() {
  const Graph& g = *plan_->graph_;
  std::vector<WorkspaceBlock> blocks;
  std::unordered_map<TensorId, size_t> block_of;
  std::vector<TensorId> owner;
  for (size_t i = 0; i < plan_->steps_.size(); ++i) {
    const PlannedStep& s = plan_->steps_[i];
    int now = static_cast<int>(i);
    if (TensorId source = s.step->view_of(); source != kNone) {
      plan_->views_.emplace_back(s.region.outputs[0], source);
      if (auto it = block_of.find(source); it != block_of.end()) block_of[s.region.outputs[0]] = it->second;
      continue;
    }
    for (TensorId t : s.region.outputs) {
      if (g.tensor(t).stored) continue;
      block_of[t] = blocks.size();
      owner.push_back(t);
      blocks.push_back({std::max<size_t>(1, static_cast<size_t>(g.tensor(t).bytes())), now, now});
    }
    for (TensorId t : s.region.inputs)
      if (auto it = block_of.find(t); it != block_of.end()) blocks[it->second].last = now;
  }
  size_t temporaries = blocks.size();
  for (size_t i = 0; i < plan_->steps_.size(); ++i) {
    int now = static_cast<int>(i);
    blocks.push_back({plan_->steps_[i].step->workspace_bytes(), now, now});
  }
  plan_->workspace_bytes_ = place(blocks);
  for (size_t k = 0; k < temporaries; ++k) plan_->placed_.emplace_back(owner[k], blocks[k].offset);
  for (size_t i = 0; i < plan_->steps_.size(); ++i) plan_->steps_[i].workspace_offset = blocks[temporaries + i].offset;
}

// Of labels only as many are read as their lengths say: their memory may end before their sizes do, and something
// else may follow it.
bool PlanBuilder::ends_early(TensorId t) const {
  const Graph& g = *plan_->graph_;
  constexpr size_t kLabels = 1;
  std::vector<NodeId> readers = g.consumers(t);
  return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId n) {
    return g.node(n).op == &ops::ctc_loss && g.node(n).in[kLabels] == t;
  });
}

// Which steps read the caller's memory last, directly or as a view, and which write it.
void PlanBuilder::find_uses() {
  const Graph& g = *plan_->graph_;
  std::vector<Plan::Use> uses(static_cast<size_t>(g.tensor_count()));
  std::vector<TensorId> memory(uses.size());  // whose memory each tensor is
  for (TensorId t = 0; t < g.tensor_count(); ++t)
    uses[static_cast<size_t>(t)].tensor = memory[static_cast<size_t>(t)] = t;
  for (auto [view, source] : plan_->views_) memory[static_cast<size_t>(view)] = memory[static_cast<size_t>(source)];
  for (size_t i = 0; i < plan_->steps_.size(); ++i) {
    const PlannedStep& s = plan_->steps_[i];
    if (s.step->view_of() != kNone) continue;
    int now = static_cast<int>(i);
    for (TensorId t : s.region.inputs) {
      Plan::Use& u = uses[static_cast<size_t>(memory[static_cast<size_t>(t)])];
      u.last_read = now;
      u.read_as_view = u.read_as_view || memory[static_cast<size_t>(t)] != t;
    }
    for (TensorId t : s.region.outputs) uses[static_cast<size_t>(t)].written = now;
  }
  for (Plan::Use& u : uses) {
    const Tensor& t = g.tensor(u.tensor);
    if (!t.stored || t.by_value || t.is_constant() || (u.last_read < 0 && u.written < 0)) continue;
    if (ends_early(u.tensor)) continue;
    u.bytes = static_cast<size_t>(t.bytes());
    if (u.bytes > 0) plan_->uses_.push_back(u);
  }
}

}  // namespace tsr
