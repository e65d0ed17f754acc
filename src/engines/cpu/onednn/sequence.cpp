// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/onednn/sequence.hpp"

#include <algorithm>
#include <new>

#include "engines/cpu/onednn/readiness.hpp"
#include "graph/ops/list.hpp"
#include "planner/engine.hpp"

namespace tsr::onednn {
namespace {

constexpr size_t kAlign = 64;
size_t align_up(size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

const dnnl::stream& stream() {
  thread_local const dnnl::stream s(device());
  return s;
}

}  // namespace

const dnnl::engine& device() {
  // Never destroyed: steps and streams of other threads may outlive static objects.
  static const auto* e = (hold_isa(), new dnnl::engine(dnnl::engine::kind::cpu, 0));
  return *e;
}

void Sequence::FreeBytes::operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{kAlign}); }

Sequence::Sequence(const Region& r) {
  // Some ten microseconds of one thread.
  constexpr double kFewFlops = 1e6, kFewBytes = 128 * 1024;
  bool small = region_flops(r) < kFewFlops && region_bytes(r) < kFewBytes;
  threads_ = small ? 1 : thread_count();
}

Place Sequence::reserve(size_t bytes) {
  Place p{Place::workspace, 0, workspace_};
  workspace_ += align_up(bytes);
  return p;
}

void Sequence::copy(const Tensor& from, Place source, const Tensor& to, Place target) {
  pointwise(PointwiseMode::identity, from, {source}, to, target);
}

void Sequence::add(const Tensor& from, Place a, Place b, const Tensor& to, Place target) {
  pointwise(PointwiseMode::add, from, {a, b}, to, target);
}

void Sequence::pointwise(PointwiseMode mode, const Tensor& from, std::vector<Place> sources, const Tensor& to,
                         Place target) {
  auto c = std::make_unique<Copy>();
  auto plain = [](const Tensor& t) {
    Tensor r;
    r.dtype = t.dtype, r.dims = t.dims, r.strides = t.strides;
    r.stored = r.dtype_given = r.dims_given = r.strides_given = true;
    r.alignment = 1;
    return r;
  };
  Node n;
  n.op = &ops::pointwise;
  n.attrs = tessera::PointwiseOptions{.mode = mode};
  for (size_t i = 0; i < sources.size(); ++i) n.in.push_back(c->graph.add_tensor(plain(from)));
  n.out = {c->graph.add_tensor(plain(to))};
  c->graph.add_node(n);
  c->graph.finalize();
  Region region = make_region(c->graph, GraphIndex(c->graph), {0});
  Device device = cpu_device();
  Matched m = find_engine("fused_cpu")->match(region, device);
  if (!m.ok()) fail(Status::internal_error, "a copy beside oneDNN's work is declined: ", m.why.text());
  c->step = m.match->build(m.match->configs()[0]);
  c->places = std::move(sources);
  c->places.push_back(target);
  scratch_ = std::max(scratch_, c->step->workspace_bytes());
  Command command;
  command.copy = std::move(c);
  adding_to_->push_back(std::move(command));
}

void Sequence::call(const Primitives& p, std::vector<Arg> args) {
  if (args.size() >= kMaxArgs) fail(Status::internal_error, "a oneDNN primitive with ", args.size(), " arguments");
  if (p.scratch > 0) {
    Desc bytes({static_cast<int64_t>(p.scratch)}, Type::u8, memory::format_tag::a);
    args.push_back({DNNL_ARG_SCRATCHPAD, bytes, {Place::scratch, 0, 0}});
    scratch_ = std::max(scratch_, p.scratch);
  }
  Command command;
  command.primitives = p;
  command.args = std::move(args);
  adding_to_->push_back(std::move(command));
}

void Sequence::reorder(const Desc& from, Place source, const Desc& to, Place target) {
  auto p = make_primitives(threads_, [&](bool) -> std::optional<dnnl::reorder::primitive_desc> {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return dnnl::reorder::primitive_desc(device(), from, device(), to, attr);
  });
  call(p, {{DNNL_ARG_FROM, from, source}, {DNNL_ARG_TO, to, target}});
}

Place Sequence::prepare(const Graph& g, TensorId source, size_t bytes, const std::function<void(Place)>& fill) {
  bool once = g.tensor(source).frozen && prepared_.size() < kMaxPrepared;
  if (!once) {
    Place p = reserve(bytes);
    fill(p);
    return p;
  }
  auto p = std::make_unique<Prepared>();
  p->source = source;
  p->offset = reserve(bytes).offset;
  p->memory.reset(static_cast<std::byte*>(::operator new (std::max<size_t>(bytes, 1), std::align_val_t{kAlign})));
  Place place{Place::prepared, static_cast<int32_t>(prepared_.size()), 0};
  adding_to_ = &p->commands;
  fill(place);
  adding_to_ = &commands_;
  prepared_.push_back(std::move(p));
  return place;
}

std::byte* Sequence::resolve(const Frame& f, Place p) const {
  std::byte* base = nullptr;
  if (p.kind == Place::tensor) base = static_cast<std::byte*>(f.args.tensors[p.index]);
  if (p.kind == Place::workspace) base = f.args.workspace;
  if (p.kind == Place::scratch) base = f.args.workspace + workspace_;
  if (p.kind == Place::prepared) base = f.prepared[static_cast<size_t>(p.index)];
  return base + p.offset;
}

void Sequence::run(const StepArgs& a) const {
  Frame f{a, {}};
  for (size_t i = 0; i < prepared_.size(); ++i) run_prepared(*prepared_[i], i, f);
  run_all(commands_, f);
}

void Sequence::run_prepared(Prepared& p, size_t index, Frame& f) const {
  const void* source = f.args.tensors[p.source];
  std::byte*& place = f.prepared[index];
  int state = p.state.load(std::memory_order_acquire);
  if (state == Prepared::ready && p.seen == source) {
    place = p.memory.get();
    return;
  }
  bool first = state == Prepared::empty && p.state.compare_exchange_strong(state, Prepared::filling);
  place = first ? p.memory.get() : f.args.workspace + p.offset;
  run_all(p.commands, f);
  if (!first) return;
  p.seen = source;
  p.state.store(Prepared::ready, std::memory_order_release);
}

void Sequence::run_all(const std::vector<Command>& commands, const Frame& f) const {
  for (const Command& c : commands) {
    if (!c.copy) {
      run_call(c, f);
      continue;
    }
    std::array<void*, 3> tensors{};
    std::transform(c.copy->places.begin(), c.copy->places.end(), tensors.begin(),
                   [&](Place p) { return resolve(f, p); });
    c.copy->step->run({tensors.data(), f.args.workspace + workspace_, f.args.stream});
  }
}

void Sequence::run_call(const Command& c, const Frame& f) const {
  // Objects of oneDNN that hold a pointer; small, and needed for each execution since many threads may execute at once.
  std::array<dnnl::memory, kMaxArgs> memories;
  std::array<dnnl_exec_arg_t, kMaxArgs> args;
  size_t count = 0;
  for (const Arg& a : c.args) {
    memories[count] = dnnl::memory(a.desc, device(), resolve(f, a.place));
    args[count] = {a.index, memories[count].get()};
    ++count;
  }
  ThreadLease lease(threads_);
  bool alone = lease.threads() == 1 && c.primitives.alone.get(true);
  TeamSize size(alone ? 1 : threads_);
  const dnnl::primitive& p = alone ? c.primitives.alone : c.primitives.team;
  dnnl_status_t status = dnnl_primitive_execute(p.get(), stream().get(), static_cast<int>(count), args.data());
  if (status != dnnl_success)
    fail(Status::internal_error, "oneDNN's ", c.primitives.name, " failed with status ", static_cast<int>(status));
}

}  // namespace tsr::onednn
