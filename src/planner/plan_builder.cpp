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
  plan_->steps_.push_back({*s.region, s.engine, s.config, s.match->build(s.config), s.inside, first_slot(s.inside)});
}

int PlanBuilder::add(const ChosenStages& s) {
  plan_->stages_.push_back({*s.region, s.by->rule, s.by->how, s.inside, plan_->slots()});
  return static_cast<int>(plan_->stages_.size()) - 1;
}

size_t PlanBuilder::first_slot(int inside) const {
  return inside < 0 ? 0 : plan_->stages_[static_cast<size_t>(inside)].first_slot;
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
  upload_constants(*plan_->graph_, 0);
  for (const PlannedStages& s : plan_->stages_) upload_constants(s.how->graph(), s.first_slot);
}

void PlanBuilder::upload_constants(const Graph& g, size_t first_slot) {
  const DeviceMemory* memory = plan_->device_.memory;
  for (int i = 0; i < g.tensor_count(); ++i) {
    const Tensor& t = g.tensor(i);
    if (!t.is_constant()) continue;
    std::shared_ptr<void> data(const_cast<std::byte*>(t.constant.data()), [](void*) {});
    if (memory && t.numel() > 1) {
      data = std::shared_ptr<void>(memory->allocate(t.constant.size()), [memory](void* p) { memory->release(p); });
      memory->copy_in(data.get(), t.constant.data(), t.constant.size());
    }
    plan_->constants_.emplace_back(first_slot + static_cast<size_t>(i), std::move(data));
  }
}

void PlanBuilder::make_view(size_t slot, size_t source, int64_t offset) {
  Memory m = memory_.at(source);
  m.offset += offset;
  memory_[slot] = m;
  plan_->views_.push_back({slot, m.slot, m.offset});
}

size_t PlanBuilder::memory(int inside, TensorId t) {
  size_t here = slot(inside, t);
  auto [known, fresh] = memory_.try_emplace(here, Memory{here});
  if (!fresh || inside < 0) return known->second.slot;
  const PlannedStages& s = plan_->stages_[static_cast<size_t>(inside)];
  Decomposition::Place p = s.how->place(t);
  if (p.where == Decomposition::Place::nowhere || s.how->is_temporary(t)) return here;
  int around = p.where == Decomposition::Place::outside ? s.inside : inside;
  memory(around, p.of);
  make_view(here, slot(around, p.of), p.offset);
  return memory_.at(here).slot;
}

size_t PlanBuilder::workspace_bytes(size_t slot) const {
  const Graph& g = *plan_->graph_;
  auto bytes = [](const Tensor& t) { return std::max<size_t>(1, static_cast<size_t>(t.bytes())); };
  if (slot < static_cast<size_t>(g.tensor_count())) {
    const Tensor& t = g.tensor(static_cast<TensorId>(slot));
    return t.stored || t.by_value || t.is_constant() ? 0 : bytes(t);
  }
  auto next = std::find_if(plan_->stages_.begin(), plan_->stages_.end(),
                           [&](const PlannedStages& s) { return s.first_slot > slot; });
  const PlannedStages& s = *(next - 1);
  auto t = static_cast<TensorId>(slot - s.first_slot);
  return s.how->is_temporary(t) ? bytes(s.how->tensor(t)) : 0;
}

// Temporaries live from the first step that touches them to the last; a step's own scratch lives for that step.
void PlanBuilder::lay_out() {
  std::vector<WorkspaceBlock> blocks;
  std::unordered_map<size_t, size_t> block_of;
  std::vector<size_t> owner;
  for (size_t i = 0; i < plan_->steps_.size(); ++i) {
    const PlannedStep& s = plan_->steps_[i];
    int now = static_cast<int>(i);
    if (TensorId source = s.step->view_of(); source != kNone) {
      memory(s.inside, source);
      make_view(slot(s.inside, s.region.outputs[0]), slot(s.inside, source), 0);
      continue;
    }
    for (const auto* list : {&s.region.outputs, &s.region.inputs})
      for (TensorId t : *list) {
        size_t m = memory(s.inside, t), bytes = workspace_bytes(m);
        if (bytes == 0) continue;
        auto [it, fresh] = block_of.try_emplace(m, blocks.size());
        if (fresh) owner.push_back(m), blocks.push_back({bytes, now, now});
        blocks[it->second].last = now;
      }
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

// Which steps read the caller's memory last, directly or as a view, and which write it first.
void PlanBuilder::find_uses() {
  const Graph& g = *plan_->graph_;
  std::vector<Plan::Use> uses(static_cast<size_t>(g.tensor_count()));
  for (size_t i = 0; i < plan_->steps_.size(); ++i) {
    const PlannedStep& s = plan_->steps_[i];
    if (s.step->view_of() != kNone) continue;
    int now = static_cast<int>(i);
    for (const auto* list : {&s.region.inputs, &s.region.outputs})
      for (TensorId t : *list) {
        Memory m = memory_.at(slot(s.inside, t));
        if (m.slot >= uses.size()) continue;
        bool reads = list == &s.region.inputs;
        Plan::Access& a = reads ? uses[m.slot].last_read : uses[m.slot].first_written;
        bool again = a.step == now;
        if (!reads && a.step >= 0 && !again) continue;
        a = {now, again && a.tensor != t ? kNone : t, m.slot != slot(s.inside, t), m.offset};
      }
  }
  for (TensorId t = 0; t < g.tensor_count(); ++t) {
    Plan::Use& u = uses[static_cast<size_t>(t)];
    const Tensor& x = g.tensor(t);
    if (!x.stored || x.by_value || x.is_constant() || (u.last_read.step < 0 && u.first_written.step < 0)) continue;
    if (ends_early(t)) continue;
    u.tensor = t;
    u.bytes = static_cast<size_t>(x.bytes());
    if (u.bytes > 0) plan_->uses_.push_back(u);
  }
}

}  // namespace tsr
