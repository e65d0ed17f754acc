// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/reference.hpp"

#include <algorithm>
#include <unordered_map>

#include "engines/reference/ops/list.hpp"
#include "graph/ragged.hpp"

namespace tsr::ref {
namespace {

constexpr size_t kAlign = 64;

// How an internal tensor is kept: packed, and wider than declared where the oracle must not round. A type narrower than
// f32 is a declaration that the value is rounded there.
template <class R>
Tensor internal_form(const Tensor& t) {
  Tensor m = t;
  if (std::is_same_v<R, double> && m.dtype == DType::f32) m.dtype = DType::f64;
  if (std::is_same_v<R, double> && m.dtype == DType::c64) m.dtype = DType::c128;
  if (info(m.dtype).vector > 1) m.dtype = DType::i8;
  m.strides = packed_strides(m.dims);
  m.ragged = kNone;
  return m;
}

// Steps that batch `b` of a ragged tensor holds.
int64_t ragged_steps(const Memory& m, int64_t b, const Ints* lengths) {
  const Tensor& t = m.tensor;
  int64_t first = load<int64_t>(m.ragged->tensor.dtype, m.ragged->data, b) * t.ragged_multiplier;
  int64_t last = load<int64_t>(m.ragged->tensor.dtype, m.ragged->data, b + 1) * t.ragged_multiplier;
  int axis = ragged_axis(t);
  int64_t step = std::max<int64_t>(1, t.strides[axis]);
  int64_t n = std::clamp<int64_t>((last - first) / step, 0, t.dims[axis]);
  if (lengths && b < static_cast<int64_t>(lengths->size())) n = std::min(n, (*lengths)[static_cast<size_t>(b)]);
  return n;
}

// Calls f(offset, position) for every element that exists: memory offset and row-major position.
template <class F>
void each_element(const Memory& m, const Ints* lengths, const F& f) {
  const Tensor& t = m.tensor;
  int64_t n = t.numel();
  if (n == 0) return;
  Dims index = Dims::filled(t.rank(), 0);
  bool ragged = m.ragged;
  int axis = ragged ? ragged_axis(t) : 0;
  int64_t batch = -1, steps = 0, base = 0;
  for (int64_t i = 0; i < n; ++i, next_index(index, t.dims)) {
    if (!ragged) {
      f(t.offset(index), i);
      continue;
    }
    if (index[0] != batch) {
      batch = index[0];
      steps = ragged_steps(m, batch, lengths);
      base = load<int64_t>(m.ragged->tensor.dtype, m.ragged->data, batch) * t.ragged_multiplier;
    }
    if (index[axis] >= steps) continue;
    Dims within = index;
    within[0] = 0;
    f(base + t.offset(within), i);
  }
}

}  // namespace

template <class T>
Array<T> read(const Memory& m, const Ints* lengths) {
  // What a packed sequence lacks has no bits set: a zero, but in e8m0 a power of two.
  constexpr std::byte kNothing[16] = {};
  Array<T> a(m.tensor.dims, m.ragged ? load<T>(m.tensor.dtype, kNothing, 0) : T{});
  each_element(m, lengths, [&](int64_t offset, int64_t i) { a[i] = load<T>(m.tensor.dtype, m.data, offset); });
  return a;
}

template <class T>
void write(const Memory& m, const Array<T>& a, const Ints* lengths) {
  if (!(a.dims == m.tensor.dims))
    fail(Status::internal_error, "the reference computed ", a.dims, " for ", describe(m.tensor));
  if constexpr (std::is_same_v<T, float>) {
    if (m.jitter != 0 && m.tensor.dtype == DType::f32) {
      each_element(m, lengths, [&](int64_t offset, int64_t i) {
        store(m.tensor.dtype, m.data, offset, neighbour(a[i], m.jitter + static_cast<uint64_t>(i)));
      });
      return;
    }
  }
  each_element(m, lengths, [&](int64_t offset, int64_t i) { store<T>(m.tensor.dtype, m.data, offset, a[i]); });
}

template Array<double> read(const Memory&, const Ints*);
template Array<float> read(const Memory&, const Ints*);
template Array<int64_t> read(const Memory&, const Ints*);
template Array<std::complex<double>> read(const Memory&, const Ints*);
template void write(const Memory&, const Array<double>&, const Ints*);
template void write(const Memory&, const Array<float>&, const Ints*);
template void write(const Memory&, const Array<int64_t>&, const Ints*);
template void write(const Memory&, const Array<std::complex<double>>&, const Ints*);

template <class R>
std::vector<Array<R>> Context<R>::call(const Subgraph& s, const std::vector<Array<R>>& params,
                                       size_t first_capture) const {
  // Parameters and results are handed over in R; everything else follows the rules of evaluate().
  const Graph& g = s.graph;
  std::vector<std::vector<std::byte>> owned(static_cast<size_t>(g.tensor_count()));
  std::vector<Memory> memories(static_cast<size_t>(g.tensor_count()));
  for (int i = 0; i < g.tensor_count(); ++i) {
    auto k = static_cast<size_t>(i);
    Memory& m = memories[k];
    m.tensor = internal_form<R>(g.tensor(i));
    bool result = std::find(s.results.begin(), s.results.end(), i) != s.results.end();
    bool param = std::find(s.params.begin(), s.params.end(), i) != s.params.end();
    if (result || param) m.tensor.dtype = std::is_same_v<R, double> ? DType::f64 : DType::f32;
    if (g.tensor(i).is_constant()) {
      m.tensor = g.tensor(i);
      m.data = const_cast<std::byte*>(g.tensor(i).constant.data());
    } else {
      owned[k].resize(static_cast<size_t>(byte_size(m.tensor.dtype, m.tensor.numel())) + 1);
      m.data = owned[k].data();
    }
  }
  for (size_t i = 0; i < s.captures.size(); ++i)
    memories[static_cast<size_t>(s.captures[i])] = memory_(n_.captures[first_capture + i]);
  for (size_t i = 0; i < params.size(); ++i) write(memories[static_cast<size_t>(s.params[i])], params[i]);
  for (NodeId n = 0; n < g.node_count(); ++n) {
    Context<R> inner(g, g.node(n), [&](TensorId t) -> const Memory& { return memories[static_cast<size_t>(t)]; });
    const Definition* d = find_definition(g.node(n).op->name);
    if constexpr (std::is_same_v<R, double>)
      d->wide(inner);
    else
      d->narrow(inner);
  }
  std::vector<Array<R>> results;
  for (TensorId r : s.results) results.push_back(read<R>(memories[static_cast<size_t>(r)]));
  return results;
}

template class Context<double>;
template class Context<float>;

template <class R>
size_t scratch_bytes(const Graph& g, const std::vector<NodeId>&, const std::vector<TensorId>& internals) {
  size_t total = 0;
  for (TensorId t : internals) {
    Tensor m = internal_form<R>(g.tensor(t));
    total += (static_cast<size_t>(m.bytes()) + kAlign) / kAlign * kAlign;
  }
  return total;
}

template <class R>
void evaluate(const Graph& g, const std::vector<NodeId>& nodes, const std::vector<TensorId>& internals,
              void* const* tensors, std::byte* scratch, uint64_t jitter) {
  std::unordered_map<TensorId, Memory> memories;
  for (TensorId t : internals) {
    Memory m{scratch, internal_form<R>(g.tensor(t)), nullptr, jitter * static_cast<uint64_t>(t + 1)};
    scratch += (static_cast<size_t>(m.tensor.bytes()) + kAlign) / kAlign * kAlign;
    memories.emplace(t, std::move(m));
  }
  std::function<const Memory&(TensorId)> memory = [&](TensorId t) -> const Memory& {
    auto [it, fresh] = memories.try_emplace(t);
    if (fresh) {
      it->second.data = tensors[t];
      it->second.tensor = g.tensor(t);
      it->second.jitter = jitter * static_cast<uint64_t>(t + 1);
      TensorId offsets = g.tensor(t).ragged;
      if (offsets != kNone) {
        const Memory& o = memory(offsets);
        memories.at(t).ragged = &o;  // references into the map stay valid when it grows
        return memories.at(t);
      }
    }
    return it->second;
  };
  for (NodeId n : nodes) {
    const Definition* d = find_definition(g.node(n).op->name);
    Context<R> context(g, g.node(n), memory);
    if constexpr (std::is_same_v<R, double>)
      d->wide(context);
    else
      d->narrow(context);
  }
}

template size_t scratch_bytes<double>(const Graph&, const std::vector<NodeId>&, const std::vector<TensorId>&);
template size_t scratch_bytes<float>(const Graph&, const std::vector<NodeId>&, const std::vector<TensorId>&);
template void evaluate<double>(const Graph&, const std::vector<NodeId>&, const std::vector<TensorId>&, void* const*,
                               std::byte*, uint64_t);
template void evaluate<float>(const Graph&, const std::vector<NodeId>&, const std::vector<TensorId>&, void* const*,
                              std::byte*, uint64_t);

template <class R>
void evaluate_graph(const Graph& g, void* const* tensors, uint64_t jitter) {
  std::vector<NodeId> nodes;
  std::vector<TensorId> internals;
  for (NodeId n = 0; n < g.node_count(); ++n) nodes.push_back(n);
  for (TensorId t = 0; t < g.tensor_count(); ++t)
    if (g.producer(t) != kNone && !g.tensor(t).stored) internals.push_back(t);
  std::vector<void*> table(tensors, tensors + g.tensor_count());
  for (TensorId t = 0; t < g.tensor_count(); ++t)
    if (g.tensor(t).is_constant()) table[static_cast<size_t>(t)] = const_cast<std::byte*>(g.tensor(t).constant.data());
  std::vector<std::byte> scratch(scratch_bytes<R>(g, nodes, internals));
  evaluate<R>(g, nodes, internals, table.data(), scratch.data(), jitter);
}

template void evaluate_graph<double>(const Graph&, void* const*, uint64_t);
template void evaluate_graph<float>(const Graph&, void* const*, uint64_t);

namespace {

class ReferenceStep : public Step {
 public:
  explicit ReferenceStep(Region r)
      : region_(std::move(r)), bytes_(scratch_bytes<double>(*region_.graph, region_.nodes, region_.internals)) {}
  size_t workspace_bytes() const override { return bytes_; }
  int kernels() const override { return static_cast<int>(region_.nodes.size()); }
  // Unlike every other step this one allocates: definitions are written for reading.
  void run(const StepArgs& a) const override {
    evaluate<double>(*region_.graph, region_.nodes, region_.internals, a.tensors, a.workspace);
  }

 private:
  Region region_;
  size_t bytes_;
};

class ReferenceEngine : public Engine {
 public:
  const EngineInfo& info() const override {
    static constexpr EngineInfo kInfo = {
        "reference", 1, DeviceKind::cpu, true, "every operation by its definition, in f64", true};
    return kInfo;
  }
  Matched match(const Region& r, const Device& d) const override {
    for (NodeId n : r.nodes)
      if (!find_definition(r.graph->node(n).op->name))
        return Reason::no(r.graph->node(n).op->name, " has no definition");
    // About 20 ns for each element touched and 2 ns for each multiply, on any processor, and 500 ns for the memory that
    // definitions allocate. Its steps start no threads; they count as if they did, so that it stays the last resort.
    double start = d.step_seconds + 500e-9;
    return one_way(region_bytes(r) / 4 * 20e-9 + region_flops(r) * 2e-9 + start,
                   [&r] { return std::make_unique<ReferenceStep>(r); });
  }
};

}  // namespace

const Engine& engine() {
  static const ReferenceEngine e;
  return e;
}

}  // namespace tsr::ref
