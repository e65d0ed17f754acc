// SPDX-License-Identifier: Apache-2.0
#include "capi/call.hpp"

#include <algorithm>
#include <cctype>

#include "capi/host_graph.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/devices.hpp"

namespace tsr::capi {

using M = tessera::PointwiseMode;

Call::Call(cudnnHandle_t handle, const char* function) : handle_(given(handle, "handle")) {
  key_.reserve(512);
  arguments_.reserve(12);
  append(std::string_view(function));
}

namespace {

void demand_set(const Shape& s, const char* name) {
  demand(!s.dims.empty(), CUDNN_STATUS_BAD_PARAM, "the descriptor of ", name, " has not been set");
}

}  // namespace

Call& Call::input(int64_t id, const Shape& s, const void* data, const char* name) {
  demand_set(s, name);
  demand(data, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, name, " is a null pointer; its descriptor is ", s);
  optional_input(id, &s, data);
  arguments_.back().name = name;
  return *this;
}

Call& Call::output(int64_t id, const Shape& s, void* data, const char* name) {
  demand_set(s, name);
  demand(data, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, name, " is a null pointer; its descriptor is ", s);
  optional_output(id, &s, data);
  arguments_.back().name = name;
  return *this;
}

Call& Call::optional_input(int64_t id, const Shape* s, const void* data) {
  if (!s || !data) return key('-');
  demand_set(*s, "a tensor");
  arguments_.push_back({id, *s, const_cast<void*>(data), false, false});
  return key(id, *s);
}

Call& Call::optional_output(int64_t id, const Shape* s, void* data) {
  if (!s || !data) return key('-');
  demand_set(*s, "a tensor");
  arguments_.push_back({id, *s, data, true, false});
  return key(id, *s);
}

Call& Call::host_input(int64_t id, const Shape& s, const void* data, const char* name) {
  input(id, s, data, name);
  arguments_.back().on_host = true;
  return *this;
}

Call& Call::scalar(int64_t id, cudnnDataType_t type, const void* value) {
  arguments_.push_back({id, {type, {1}, {1}}, const_cast<void*>(value), false, true});
  return key(id, type);
}

bool Call::has(int64_t id) const {
  return std::any_of(arguments_.begin(), arguments_.end(), [&](const Argument& a) { return a.id == id; });
}

const Shape& Call::shape(int64_t id) const {
  for (const Argument& a : arguments_)
    if (a.id == id) return a.shape;
  refuse(CUDNN_STATUS_INTERNAL_ERROR, "the call has no tensor ", id);
}

void Call::append_dims(const Dims& d) {
  append(static_cast<char>(d.size()));
  key_.append(reinterpret_cast<const char*>(d.begin()), static_cast<size_t>(d.size()) * sizeof(int64_t));
}

void Call::append_shape(const Shape& s) {
  append(s.type);
  append_dims(s.dims);
  append_dims(s.strides);
}

namespace {

constexpr int64_t kVector = 16;

size_t staged_bytes_of(const Shape& s) { return align_up(bytes_of(s)); }

// What a pointer lets a plan promise: whole vectors, or single elements.
int64_t alignment_of(const void* p, cudnnDataType_t type) {
  return reinterpret_cast<uintptr_t>(p) % kVector == 0 ? kVector : static_cast<int64_t>(bytes_of(type));
}

}  // namespace

void Call::finish_key() {
  for (const Argument& a : arguments_)
    if (!a.by_value) append(static_cast<char>(alignment_of(a.data, a.shape.type)));
  append(options.key());
}

std::shared_ptr<const Plan> Call::plan_graph(const std::shared_ptr<const Graph>& g) const {
  try {
    return tsr::make_plan(g, handle_.device, options);
  } catch (const Error& e) {
    if (!engines_are_a_wish || e.status() != Status::not_supported) throw;
    if (logs(CUDNN_SEV_WARNING))
      log_message(CUDNN_SEV_WARNING, CUDNN_STATUS_SUCCESS, cat("all engines are asked instead: ", e.what()));
  }
  PlanOptions any = options;
  any.engines.clear(), any.without.clear();
  return tsr::make_plan(g, handle_.device, any);
}

bool Call::find_plan() {
  finish_key();
  plan_ = handle_.plans.find(key_);
  if (plan_) log_graph(plan_->source());
  return plan_ != nullptr;
}

void Call::make_plan(void (*make)(const void*, Maker&), const void* f) {
  cuda::RelaxedCapture allowed;
  Maker m(*this);
  make(f, m);
  m.finish();
  auto g = std::make_shared<Graph>(std::move(m.graph()));
  g->finalize();
  log_graph(*g);
  plan_ = plan_graph(g);
  handle_.plans.keep(key_, plan_);
}

size_t Call::staged_bytes() const {
  size_t bytes = 0;
  for (const Argument& a : arguments_)
    if (a.on_host && is_gpu(handle_.device)) bytes += staged_bytes_of(a.shape);
  return bytes == 0 ? 0 : bytes + kMemoryAlign;  // the workspace may have any alignment
}

size_t Call::workspace_bytes(const Plan& p) const { return staged_bytes() + p.workspace_bytes(); }

void* Call::stage(void* workspace) {
  if (staged_bytes() == 0) return workspace;
  demand(workspace, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the workspace is a null pointer");
  workspace = reinterpret_cast<void*>(align_up(reinterpret_cast<uintptr_t>(workspace)));
  for (Argument& a : arguments_) {
    if (!a.on_host) continue;
    handle_.copy_in(workspace, a.data, bytes_of(a.shape));
    a.data = workspace;
    workspace = static_cast<std::byte*>(workspace) + staged_bytes_of(a.shape);
  }
  return workspace;
}

void Call::check_space(const void* workspace, size_t bytes) const {
  if (handle_.device.kind == DeviceKind::cpu) check_workspace(workspace, bytes);
}

void Call::execute(void* workspace, size_t bytes, bool own_workspace) {
  size_t needed = workspace_bytes(*plan_);
  demand(own_workspace || bytes >= needed, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "the workspace has ", bytes,
         " bytes, needed are ", needed);
  if (!is_gpu(handle_.device) && is_recording(handle_.stream) && record(own_workspace ? nullptr : workspace)) return;
  if (own_workspace) bytes = needed, workspace = handle_.scratch(bytes);
  workspace = stage(workspace), bytes -= staged_bytes();
  if (logs(CUDNN_SEV_INFO)) log_factors();
  std::vector<Binding> bindings;
  bindings.reserve(2 * arguments_.size());
  auto add = [&](bool on_host) {
    for_each_binding([&](const Binding& b, const Argument& a) {
      if (a.on_host == on_host) bindings.push_back(b);
    });
  };
  add(false);
  if (handle_.device.kind == DeviceKind::cpu) check_memory(plan_->source(), bindings);
  add(true);
  plan_->execute(bindings, workspace, bytes, handle_.stream);
}

// The log of the call shows the address of a factor; what is there depends on the types of tensors.
void Call::log_factors() const {
  std::string text;
  for (const Argument& a : arguments_) {
    if (!a.by_value || a.id < kAlphaId) continue;
    double value = load<double>(from_data_type(a.shape.type), a.data, 0);
    text += cat(text.empty() ? "" : "\n", (a.id - kAlphaId) % 2 == 0 ? "alpha" : "beta", "=", value);
  }
  if (!text.empty()) log_message(CUDNN_SEV_INFO, CUDNN_STATUS_SUCCESS, cat("factors\n", text));
}

bool Call::record(void* workspace) const {
  Later later(plan_, workspace);
  for_each_binding([&](const Binding& b, const Argument& a) {
    if (a.on_host)
      later.bind_copy(b, bytes_of(a.shape));
    else
      later.bind(b);
  });
  return capi::record(handle_.stream, std::move(later));
}

namespace {

double read_factor(const void* p, cudnnDataType_t type, double absent, const char* name) {
  demand(p, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, name, " is a null pointer");
  if (p == kNoFactor) return absent;
  return type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(p) : *static_cast<const float*>(p);
}

}  // namespace

Blend::Blend(Call& c, const void* alpha, const void* beta, cudnnDataType_t type, int number) : number_(number) {
  cudnnDataType_t factor = type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  scales_ = read_factor(alpha, factor, 1, "alpha") != 1;
  adds_ = read_factor(beta, factor, 0, "beta") != 0;
  c.key(scales_, adds_);
  if (scales_) c.scalar(alpha_id(), factor, alpha);
  if (adds_) c.scalar(beta_id(), factor, beta);
}

Maker::Maker(const Call& c) : call_(c) {
  for (const Call::Argument& a : c.arguments_) {
    if (!a.written) read_[a.id] = from_memory(add_memory(a, a.id), a.shape);
  }
}

namespace {

// Can it be a name in the text form?
bool is_word(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c == '_' || std::isalnum(c) != 0; });
}

}  // namespace

TensorId Maker::add_memory(const Call::Argument& a, int64_t uid) {
  Shape s = a.by_value ? a.shape : in_memory(a.shape);
  Tensor t;
  if (a.name && uid == a.id && is_word(a.name) && graph_.find(a.name) == kNone) t.name = a.name;
  t.uid = uid, t.uid_given = true;
  t.dtype = from_data_type(s.type), t.dtype_given = true;
  t.dims = s.dims, t.strides = s.strides, t.dims_given = t.strides_given = true;
  t.stored = !a.by_value, t.by_value = a.by_value;
  t.alignment = a.by_value ? 1 : alignment_of(a.data, s.type);
  return graph_.add_tensor(std::move(t));
}

TensorId Maker::from_memory(TensorId memory, const Shape& s) {
  if (lanes_of(s.type) == 1) return memory;
  TensorId plain = inferred(from_data_type(s.type));
  add(ops::reshape, {memory}, {plain},
      tessera::ReshapeOptions{.size = s.dims.to_vector(), .mode = tessera::ReshapeMode::logical});
  return plain;
}

void Maker::finish() {
  for (auto [plain, memory] : vectored_)
    add(ops::reshape, {plain}, {memory},
        tessera::ReshapeOptions{.size = graph_.tensor(memory).dims.to_vector(), .mode = tessera::ReshapeMode::logical});
}

TensorId Maker::operator[](int64_t id) const {
  auto it = read_.find(id);
  return it == read_.end() ? kNone : it->second;
}

TensorId Maker::result(int64_t id) {
  auto it = written_.find(id);
  if (it != written_.end()) return it->second;
  for (const Call::Argument& a : call_.arguments_) {
    if (a.id != id || !a.written) continue;
    TensorId memory = add_memory(a, id);
    if (lanes_of(a.shape.type) == 1) return written_[id] = memory;
    Tensor t;
    t.dtype = from_data_type(a.shape.type), t.dims = a.shape.dims, t.strides = packed_strides(t.dims);
    t.dtype_given = t.dims_given = t.strides_given = true;
    TensorId plain = graph_.add_tensor(std::move(t));
    vectored_.emplace_back(plain, memory);
    return written_[id] = plain;
  }
  return kNone;
}

DType Maker::compute(int64_t id) const { return call_.shape(id).type == CUDNN_DATA_DOUBLE ? DType::f64 : DType::f32; }

TensorId Maker::zeros(const Dims& dims, DType type) {
  Tensor t;
  t.dtype = type, t.dims = dims, t.strides = packed_strides(dims);
  t.dtype_given = t.dims_given = t.strides_given = true;
  t.constant.resize(static_cast<size_t>(byte_size(type, volume(dims))));
  return graph_.add_tensor(std::move(t));
}

std::vector<TensorId> Maker::keep(Node n) {
  for (TensorId& t : n.out)
    if (t == kNew) t = inferred(n.compute);
  return graph_.node(graph_.add_node(std::move(n))).out;
}

TensorId Maker::target(const Blend& b, int64_t id) { return b.trivial() ? result(id) : inferred(compute(id)); }

TensorId Maker::before(int64_t id) {
  auto it = before_.find(id);
  if (it != before_.end()) return it->second;
  for (const Call::Argument& a : call_.arguments_)
    if (a.id == id && a.written) return before_[id] = from_memory(add_memory(a, kBeforeId + id), a.shape);
  return kNone;
}

TensorId Maker::scale(const Blend& b, TensorId value, DType compute) {
  return b.scales() ? pointwise({.mode = M::mul}, {value, (*this)[b.alpha_id()]}, compute) : value;
}

namespace {

// Integers stay exact when they are only moved.
DType copy_type(DType from, DType to, DType otherwise) {
  if (!is_integer(from) || !is_integer(to)) return otherwise;
  return from == DType::i64 || to == DType::i64 ? DType::i64 : DType::i32;
}

}  // namespace

TensorId Maker::expand(TensorId value, int64_t id) {
  DType type = graph_.tensor(value).dtype;
  // Only the sizes of what was there before count: indices need no elements.
  TensorId index = pointwise({.mode = M::gen_index}, {before(id)}, DType::i32);
  TensorId everywhere = inferred(DType::boolean);
  pointwise({.mode = M::cmp_ge}, {index, constant(0, DType::i32)}, DType::i32, everywhere);
  return pointwise({.mode = M::select}, {value, value, everywhere},
                   copy_type(type, type, type == DType::f64 ? DType::f64 : DType::f32));
}

void Maker::blend(const Blend& b, int64_t id, TensorId value) {
  DType type = compute(id);
  TensorId to = result(id);
  if (value == to) return;
  value = scale(b, value, type);
  if (!b.adds()) {
    if (!(graph_.tensor(value).dims == graph_.tensor(to).dims)) value = expand(value, id);
    if (!b.scales()) type = copy_type(graph_.tensor(value).dtype, graph_.tensor(to).dtype, type);
    pointwise({.mode = M::identity}, {value}, type, to);
    return;
  }
  // The result's memory is read and written: element by element, by the same step.
  TensorId scaled = pointwise({.mode = M::mul}, {before(id), (*this)[b.beta_id()]}, type);
  pointwise({.mode = M::add}, {value, scaled}, type, to);
}

void Maker::accumulate(int64_t id, TensorId value) {
  pointwise({.mode = M::add}, {value, before(id)}, compute(id), result(id));
}

}  // namespace tsr::capi
