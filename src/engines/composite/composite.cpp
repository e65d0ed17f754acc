// SPDX-License-Identifier: Apache-2.0
#include "engines/composite/composite.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace tsr {
namespace {

constexpr size_t kMaxTensors = 256;

}  // namespace

TensorId Composite::add_tensor(Tensor t, Bound b) {
  t.stored = t.dtype_given = t.dims_given = t.strides_given = true;
  TensorId id = graph_.add_tensor(std::move(t));
  bound_.resize(static_cast<size_t>(id) + 1);
  b.used = true;
  bound_.back() = b;
  return id;
}

TensorId Composite::view(const Graph& g, TensorId t, const Dims& dims, const Dims& strides, int64_t offset) {
  const Tensor& x = g.tensor(t);
  if (x.is_constant()) {
    Tensor copy = make_scalar_constant(x.dtype, load<double>(x.dtype, x.constant.data(), 0));
    if (volume(dims) == 1) copy.dims = dims, copy.strides = strides;  // results of constants alone have their sizes
    return graph_.add_tensor(copy);
  }
  Tensor v;
  v.dtype = x.dtype, v.dims = dims, v.strides = strides;
  int64_t bytes = offset * info(x.dtype).bits / 8;
  v.by_value = x.by_value, v.alignment = x.alignment;
  while (bytes % v.alignment != 0) v.alignment /= 2;
  return add_tensor(v, {t, bytes});
}

TensorId Composite::temporary(DType type, const Dims& dims) {
  Tensor t;
  t.dtype = type, t.dims = dims, t.strides = packed_strides(dims);
  Bound b{kNone, temporary_bytes_};
  temporary_bytes_ += (t.bytes() + 255) / 256 * 256;
  return add_tensor(t, b);
}

TensorId Composite::internal(DType type, const Dims& dims) {
  Tensor t;
  t.dtype = type, t.dims = dims;
  t.dtype_given = t.dims_given = true;
  return graph_.add_tensor(std::move(t));
}

TensorId Composite::reshaped(TensorId t, const Dims& dims, const Dims& strides, int64_t offset) {
  Tensor v;
  v.dtype = tensor(t).dtype, v.dims = dims, v.strides = strides;
  Bound b = bound_[static_cast<size_t>(t)];
  b.offset += offset * info(v.dtype).bits / 8;
  return add_tensor(v, b);
}

void Composite::add(Node n) { stages_.back().nodes.push_back(graph_.add_node(std::move(n))); }

TensorId Composite::apply(tessera::PointwiseMode mode, DType compute, TensorId a, TensorId b, TensorId to) {
  tessera::PointwiseOptions o;
  o.mode = mode;
  return apply(o, compute, b == kNone ? std::vector{a} : std::vector{a, b}, to);
}

TensorId Composite::apply(const tessera::PointwiseOptions& o, DType compute, std::vector<TensorId> in, TensorId to) {
  Node n;
  n.op = &op("pointwise");
  n.attrs = o;
  n.in = std::move(in);
  n.out = {to == kNone ? kNew : to};
  n.compute = compute;
  n.compute_given = true;
  add(n);
  return graph_.node(stages_.back().nodes.back()).out[0];
}

void Composite::end_stage(const Engine* other) {
  stages_.back().other = other;
  stages_.emplace_back();
}

Reason Composite::finish(const Engine& fused, const Device& d) {
  GraphIndex index(graph_);
  bound_.resize(static_cast<size_t>(graph_.tensor_count()));
  std::erase_if(stages_, [](const Stage& s) { return s.nodes.empty(); });
  if (bound_.size() > kMaxTensors)
    return Reason::no("it takes ", bound_.size(), " tensors, the limit is ", kMaxTensors);
  for (Stage& s : stages_) {
    s.region = make_region(graph_, index, s.nodes);
    Matched m = (s.other ? *s.other : fused).match(s.region, d);
    if (!m.ok()) return m.why;
    s.match = std::move(m.match);
    seconds_ += s.match->configs()[0].seconds;
  }
  return Reason::yes();
}

bool Composite::is_view_of(TensorId t, TensorId outer) const {
  return t != kNone && bound_[static_cast<size_t>(t)].used && bound_[static_cast<size_t>(t)].outer == outer;
}

CompositeStep::CompositeStep(std::shared_ptr<const Composite> c) : composite_(std::move(c)) {
  for (const Composite::Stage& s : composite_->stages_) steps_.push_back(s.match->build(s.match->configs()[0]));
}

// The temporaries, and what the hungriest stage needs.
size_t CompositeStep::workspace_bytes() const {
  size_t most = 0;
  for (const auto& s : steps_) most = std::max(most, s->workspace_bytes());
  return static_cast<size_t>(composite_->temporary_bytes_) + most;
}

int CompositeStep::kernels() const {
  int count = 0;
  for (const auto& s : steps_) count += s->kernels();
  return count;
}

bool CompositeStep::may_overwrite(TensorId input, TensorId output) const {
  const Composite& c = *composite_;
  bool written = false;
  for (size_t i = 0; i < steps_.size(); ++i) {
    std::set<TensorId> reads, writes;  // views that this stage has of them
    for (NodeId n : c.stages_[i].nodes) {
      for (TensorId t : node_reads(c.graph_, c.graph_.node(n)))
        if (c.is_view_of(t, input)) reads.insert(t);
      for (TensorId t : c.graph_.node(n).out)
        if (c.is_view_of(t, output)) writes.insert(t);
    }
    if (written && !reads.empty()) return false;
    written = written || !writes.empty();
    if (reads.empty() || writes.empty()) continue;
    TensorId in = *reads.begin(), out = *writes.begin();
    const Tensor &x = c.tensor(in), &y = c.tensor(out);
    bool alike = reads.size() == 1 && writes.size() == 1 && x.dims == y.dims && x.strides == y.strides &&
                 c.bound_[static_cast<size_t>(in)].offset == c.bound_[static_cast<size_t>(out)].offset;
    if (!alike || !steps_[i]->may_overwrite(in, out)) return false;
  }
  return true;
}

void CompositeStep::run(const StepArgs& args) const {
  const Composite& c = *composite_;
  std::array<void*, kMaxTensors> table;
  for (size_t i = 0; i < c.bound_.size(); ++i) {
    const Composite::Bound& b = c.bound_[i];
    table[i] = nullptr;
    const Tensor& t = c.tensor(static_cast<TensorId>(i));
    if (t.is_constant()) table[i] = const_cast<std::byte*>(t.constant.data());
    if (!b.used) continue;
    table[i] = (b.outer == kNone ? args.workspace : static_cast<std::byte*>(args.tensors[b.outer])) + b.offset;
  }
  for (const auto& s : steps_) s->run({table.data(), args.workspace + c.temporary_bytes_, args.stream});
}

Matched match_of(MadeComposite c, Config config) {
  if (!c.composite) return c.why;
  return one_way(std::move(config),
                 [composite = std::move(c.composite)] { return std::make_unique<CompositeStep>(composite); });
}

}  // namespace tsr
