// SPDX-License-Identifier: Apache-2.0
// Executing a plan: the caller's pointers, checked; memory that outputs share with inputs; the steps in their order.
#include <algorithm>
#include <cstring>

#include "base/trace.hpp"
#include "graph/op.hpp"
#include "planner/overlap.hpp"
#include "planner/plan.hpp"

namespace tsr {
namespace {

size_t at(TensorId t) { return static_cast<size_t>(t); }

std::byte* aligned(void* p) { return reinterpret_cast<std::byte*>(align_up(reinterpret_cast<uintptr_t>(p))); }

void check_alignment(const Tensor& x, void* p) {
  // Less than an element's own alignment cannot be promised away.
  auto promised =
      static_cast<uintptr_t>(x.by_value ? 1 : std::max<int64_t>(x.alignment, std::min(8, info(x.dtype).bits / 8)));
  // Not require(): the description costs more than many a step and must be made for an error only.
  if (reinterpret_cast<uintptr_t>(p) % promised != 0)
    fail(Status::bad_parameter, "tensor ", describe(x), ": its pointer is not aligned to the ", promised,
         " bytes that were promised; declare a smaller alignment");
}

}  // namespace

void require_present(const Device& d) {
  if (d.kind != DeviceKind::cpu && !d.memory)
    fail(Status::not_supported, "the device ", d.name,
         " is known by its record alone: plans for it can be made and explained, not run; to run use cpu, cuda or "
         "emulated");
}

void Plan::execute(std::span<const Binding> bindings, void* workspace, size_t workspace_bytes, void* stream) const {
  size_t skipped = static_cast<size_t>(aligned(workspace) - static_cast<std::byte*>(workspace));
  require(workspace || workspace_bytes_ == 0, "the workspace is a null pointer, the plan needs ",
          this->workspace_bytes(), " bytes");
  require(workspace_bytes_ == 0 || workspace_bytes >= skipped + workspace_bytes_, "the workspace has ", workspace_bytes,
          " bytes, the plan needs ", this->workspace_bytes());
  run(bindings, aligned(workspace), stream);
}

void Plan::execute_within(std::span<const Binding> bindings, void* workspace, size_t workspace_bytes,
                          void* stream) const {
  if (workspace_bytes_ == 0 || (workspace && workspace_bytes >= this->workspace_bytes()))
    return run(bindings, aligned(workspace), stream);
  require_present(device_);
  if (device_.memory) device_.memory->attach();
  OwnMemory::Lease lease;
  lease.take(*own_, workspace_bytes_, stream);
  run(bindings, lease.data(), stream);
}

void Plan::execute(std::span<const Binding> bindings, void* workspace, size_t workspace_bytes, void* stream,
                   std::span<const ShapeOverride> overrides) const {
  if (overrides.empty()) return execute(bindings, workspace, workspace_bytes, stream);
  with_shapes(overrides)->execute(bindings, workspace, workspace_bytes, stream);
}

void Plan::bind(std::span<const Binding> bindings, std::vector<void*>& table) const {
  const Graph& g = *graph_;
  table.assign(slots(), nullptr);
  for (const Binding& b : bindings) {
    TensorId t = g.find_uid(b.uid);
    require(t != kNone, "a pointer was given for unique id ", b.uid, ", which the graph does not have");
    table[at(t)] = b.data;
  }
  for (TensorId t : bound_) {
    const Tensor& x = g.tensor(t);
    if (void* p = table[at(t)]) {
      check_alignment(x, p);
      continue;
    }
    require(x.span() == 0, g.producer(t) == kNone ? "input " : "output ", describe(x), " has no pointer");
    static std::byte empty[kMemoryAlign];
    table[at(t)] = empty;
  }
}

void Plan::run(std::span<const Binding> bindings, std::byte* workspace, void* stream) const {
  TraceRange range("execute");
  require_present(device_);
  if (device_.memory) device_.memory->attach();
  // Grows once per thread; executing a plan allocates nothing after that.
  thread_local Bound bound;
  bound.workspace = workspace;
  std::vector<void*>& table = bound.table;
  bind(bindings, table);
  OwnMemory::Lease lease;
  if (overlaps(table)) {
    std::vector<const Use*> copied = overwritten_early(table);
    size_t bytes = 0;
    for (const Use* u : copied) bytes += align_up(u->bytes);
    if (bytes > 0) lease.take(*own_, bytes, stream);
    std::byte* to = lease.data();
    for (const Use* u : copied) {
      void*& from = table[at(u->tensor)];
      device_.memory ? device_.memory->copy_within(to, from, u->bytes, stream)
                     : static_cast<void>(std::memcpy(to, from, u->bytes));
      from = to;
      to += align_up(u->bytes);
    }
  }
  place(workspace, table);
  for (size_t i = 0; i < steps_.size(); ++i) run_step(i, bound, stream);
}

void Plan::place(std::byte* workspace, std::vector<void*>& table) const {
  for (const auto& [slot, data] : constants_) table[slot] = data.get();
  for (auto [slot, offset] : placed_) table[slot] = workspace + offset;
  for (const View& v : views_) table[v.slot] = static_cast<std::byte*>(table[v.source]) + v.offset;
}

Plan::Bound Plan::bind(std::span<const Binding> bindings, void* workspace) const {
  Bound b{{}, aligned(workspace)};
  bind(bindings, b.table);
  place(b.workspace, b.table);
  return b;
}

void Plan::run_step(size_t i, const Bound& b, void* stream) const {
  const PlannedStep& s = steps_[i];
  s.step->run({b.table.data() + s.first_slot, b.workspace + s.workspace_offset, stream});
}

// Whether an output may have bytes in common with an input: asked by every execution, so one look at all of them in the
// order of their addresses.
bool Plan::overlaps(const std::vector<void*>& table) const {
  struct Range {
    uintptr_t begin, end;
    bool written;
  };
  thread_local std::vector<Range> ranges;
  ranges.clear();
  for (const Use& u : uses_) {
    auto begin = reinterpret_cast<uintptr_t>(table[at(u.tensor)]);
    ranges.push_back({begin, begin + u.bytes, u.first_written.step >= 0});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  uintptr_t read_to = 0, written_to = 0;
  for (const Range& r : ranges) {
    if (r.begin < (r.written ? read_to : written_to)) return true;
    uintptr_t& end = r.written ? written_to : read_to;
    end = std::max(end, r.end);
  }
  return false;
}

// Inputs that an output in the same memory would overwrite before all steps have read them.
std::vector<const Plan::Use*> Plan::overwritten_early(const std::vector<void*>& table) const {
  std::vector<const Use*> found;
  for (const Use& in : uses_) {
    const Tensor& x = graph_->tensor(in.tensor);
    if (in.first_written.step >= 0) continue;
    bool early = false;
    for (const Use& out : uses_) {
      if (out.first_written.step < 0) continue;
      const Tensor& y = graph_->tensor(out.tensor);
      Overlap o = overlap(x, table[at(in.tensor)], y, table[at(out.tensor)]);
      if (o == Overlap::partly)
        fail(Status::bad_parameter, "output ", describe(y), " shares a part of its memory with input ", describe(x),
             "; allowed are separate memory, or the same pointer with the same sizes, strides and size of an element");
      if (o == Overlap::none || may_overwrite(in, out)) continue;
      // Only the offsets of packed sequences tell how much there is to copy.
      if (x.ragged != kNone)
        fail(Status::not_supported, "output ", describe(y), " has the memory of input ", describe(x),
             ", which this plan still reads after writing it; packed sequences need separate memory here");
      early = true;
    }
    if (early) found.push_back(&in);
  }
  return found;
}

bool Plan::may_overwrite(const Use& input, const Use& output) const {
  const Access &read = input.last_read, &write = output.first_written;
  if (read.step != write.step) return read.step < write.step;
  if (read.tensor == kNone || write.tensor == kNone) return false;
  const PlannedStep& s = steps_[static_cast<size_t>(write.step)];
  const Tensor &x = s.region.graph->tensor(read.tensor), &y = s.region.graph->tensor(write.tensor);
  bool alike = x.dims == y.dims && x.strides == y.strides && read.offset == write.offset;
  return (alike || (!read.view && !write.view)) && s.step->may_overwrite(read.tensor, write.tensor);
}

std::shared_ptr<const Plan> Plan::with_shapes(std::span<const ShapeOverride> overrides) const {
  constexpr size_t kKept = 64;
  std::string key;
  for (const ShapeOverride& o : overrides) key += cat(o.uid, o.dims, o.strides);
  {
    std::lock_guard guard(reshaped_lock_);
    for (auto& [k, plan] : reshaped_)
      if (k == key) return plan;
  }
  std::vector<Graph::Shape> shapes;
  for (const ShapeOverride& o : overrides) {
    TensorId t = source_->find_uid(o.uid);
    require(t != kNone, "sizes were given for unique id ", o.uid, ", which the graph does not have");
    shapes.push_back({t, o.dims, o.strides});
  }
  auto plan = make_plan(std::make_shared<Graph>(source_->with_shapes(shapes)), device_, options_, own_);
  std::lock_guard guard(reshaped_lock_);
  if (reshaped_.size() >= kKept) reshaped_.erase(reshaped_.begin());
  reshaped_.emplace_back(key, plan);
  return plan;
}

}  // namespace tsr
