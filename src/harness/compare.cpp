// SPDX-License-Identifier: Apache-2.0
#include "harness/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "engines/reference/reference.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/rounding.hpp"
#include "graph/passes/recognise.hpp"
#include "graph/pointwise_modes.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

double most_terms(const Graph& g) {
  double n = 1;
  for (NodeId i = 0; i < g.node_count(); ++i)
    if (g.node(i).op->terms) n = std::max(n, g.node(i).op->terms(g, g.node(i)));
  return n;
}

// All nodes that contribute to a tensor.
std::set<NodeId> contributors(const Graph& g, TensorId t) {
  std::vector<TensorId> open = {t};
  std::set<NodeId> seen;
  while (!open.empty()) {
    NodeId n = g.producer(open.back());
    open.pop_back();
    if (n == kNone || !seen.insert(n).second) continue;
    for (TensorId r : node_reads(g, g.node(n))) open.push_back(r);
  }
  return seen;
}

// Integers are exact anyway.
bool at_least_f64(const Node& n) {
  return is_integer(n.compute) || n.compute == DType::f64 || n.compute == DType::c128;
}

// A function of real numbers with jumps: moving its inputs would tell nothing about rounding.
bool has_steps(const Graph& g, const Node& n) {
  using M = PointwiseMode;
  if (n.op == &ops::argmax || n.op == &ops::top_k) return true;
  if (n.op != &ops::pointwise) return false;
  M m = attrs<tessera::PointwiseOptions>(n).mode;
  bool steps = (m >= M::cmp_eq && m <= M::cmp_le) || m == M::floor || m == M::ceil || m == M::mod || m == M::floor_mod;
  return steps &&
         std::any_of(n.in.begin(), n.in.end(), [&](TensorId t) { return t != kNone && is_real(g.tensor(t).dtype); });
}

// Every value becomes the neighbouring f32 on a random side.
void move_values(DType type, void* data, int64_t n, uint64_t draw, uint64_t stream) {
  for (int64_t i = 0; i < n; ++i) {
    double v = load<double>(type, data, i);
    if (!std::isfinite(v)) continue;
    bool down = random_uniform(draw, stream, static_cast<uint64_t>(i)) < 0.5;
    store(type, data, i, static_cast<double>(std::nextafter(static_cast<float>(v), down ? -INFINITY : INFINITY)));
  }
}

// Complex numbers are compared as pairs of reals.
struct Elements {
  DType type;
  int64_t count;
  Elements(const Tensor& t, int64_t n) : type(t.dtype), count(n) {
    if (type == DType::c64) type = DType::f32, count = 2 * n;
    if (type == DType::c128) type = DType::f64, count = 2 * n;
  }
};

double largest_input(const Graph& g, const GraphBuffers& buffers) {
  double m = 0;
  for (TensorId t : g.inputs()) {
    if (!is_real(g.tensor(t).dtype)) continue;
    for (int64_t i = 0; i < buffers.elements(t); ++i) {
      double v = std::fabs(load<double>(g.tensor(t).dtype, buffers.buffer(t).data(), i));
      if (std::isfinite(v)) m = std::max(m, v);
    }
  }
  return m;
}

bool is_poison(DType t, const std::byte* data, int64_t i) {
  int bits = info(t).bits;
  if (bits < 8) return false;
  auto bytes = static_cast<size_t>(bits / 8);
  const std::byte* p = data + static_cast<size_t>(i) * bytes;
  return std::all_of(p, p + bytes, [](std::byte b) { return b == std::byte{0xff}; });
}

// Smallest positive spacing of a type; u never drops below it. Engines may flush subnormal f32 and bf16.
double smallest_spacing(DType t) {
  if (!is_real(t)) return 0;
  return t == DType::f32 || t == DType::bf16 ? 0x1p-126 : smallest(t);
}

std::string place(const Tensor& t, int64_t i) {
  // Names the logical index when the memory is packed, the raw element otherwise.
  if (!(t.strides == packed_strides(t.dims)) || t.ragged != kNone || is_complex(t.dtype))
    return "element " + std::to_string(i);
  Dims index = t.dims;
  for (int d = t.rank() - 1; d >= 0; --d) index[d] = i % t.dims[d], i /= t.dims[d];
  return to_string(index);
}

std::string compare_tensor(const Graph& g, TensorId id, double terms, const Oracle& oracle,
                           const GraphBuffers& actual) {
  const Tensor& t = g.tensor(id);
  Elements e(t, actual.elements(id));
  const std::byte *wide = oracle.wide.buffer(id).data(), *narrow = oracle.narrow.buffer(id).data(),
                  *got = actual.buffer(id).data();
  std::vector<const std::byte*> others = {narrow, oracle.unrounded.buffer(id).data()};
  for (const GraphBuffers& b : oracle.recognised) others.push_back(b.buffer(id).data());
  std::set<NodeId> nodes = contributors(g, id);
  bool moves = std::none_of(nodes.begin(), nodes.end(), [&](NodeId n) { return has_steps(g, g.node(n)); });
  if (moves)
    for (const GraphBuffers& b : oracle.nearby) others.push_back(b.buffer(id).data());
  auto report = [&](int64_t i, const std::string& rest) {
    return cat("output ", describe(t), " at ", place(t, i), ": got ", print_number(load<double>(e.type, got, i)),
               ", the oracle says ", print_number(load<double>(e.type, wide, i)), rest);
  };
  bool exact = !is_real(e.type);
  double error = 0, largest = 0;
  int64_t narrow_differs = 0, differs = 0, first = -1;
  for (int64_t i = 0; i < e.count; ++i) {
    double w = load<double>(e.type, wide, i), n = load<double>(e.type, narrow, i);
    if (exact) narrow_differs += w != n;
    if (!std::isfinite(w)) continue;
    largest = std::max(largest, std::fabs(w));
    for (const std::byte* run : others)
      if (double v = load<double>(e.type, run, i); std::isfinite(v)) error = std::max(error, std::fabs(v - w));
  }
  bool f64 = (t.dtype == DType::f64 || t.dtype == DType::c128) &&
             std::all_of(nodes.begin(), nodes.end(), [&](NodeId n) { return at_least_f64(g.node(n)); });
  double base = 2 * error + 4 * 0x1p-23 * std::sqrt(terms) * largest;
  // Moved runs show what comes of rounded products.
  double lost = 0;
  for (NodeId n : nodes) lost = std::max(lost, moves ? 0 : lost_of_products(g, g.node(n)));
  base += 2 * lost * largest;
  if (f64)
    base = 8 * error * 0x1p-29 + 64 * 0x1p-52 * std::sqrt(terms) * std::max(largest, largest_input(g, oracle.wide));
  for (int64_t i = 0; i < e.count; ++i) {
    double w = load<double>(e.type, wide, i), a = load<double>(e.type, got, i);
    if (is_poison(e.type, wide, i)) {
      // Not part of the tensor (a gap between strides, a step past a sequence): nobody may write there. In 8 bits the
      // poison is a NaN like any other.
      bool same = info(e.type).bits == 8 && std::isnan(w) && std::isnan(a);
      if (!is_poison(e.type, got, i) && !same) return report(i, "; this memory must not be written");
      continue;
    }
    if (exact) {
      if (load<int64_t>(e.type, wide, i) == load<int64_t>(e.type, got, i)) continue;
      if (std::fabs(a - w) > 1) return report(i, ", integers must agree");
      ++differs;
      if (first < 0) first = i;
      continue;
    }
    if (std::isnan(w) || std::isnan(a)) {
      if (std::isnan(w) != std::isnan(a)) return report(i, "");
      continue;
    }
    if (a == w) continue;
    double u = epsilon(e.type) * std::fabs(std::isinf(w) ? 0 : w) + smallest_spacing(e.type);
    // An overflow to infinity is fine where a finite neighbour would be: compare with the largest finite value.
    double difference = std::isinf(a) || std::isinf(w) ? INFINITY : std::fabs(a - w);
    if (!(difference <= base + u))
      return report(i, cat(", difference ", print_number(difference), " > tolerance ", print_number(base + u)));
  }
  if (differs > 2 * narrow_differs)
    return report(first, cat(", ", differs, " elements differ, ", 2 * narrow_differs, " may"));
  return "";
}

// Runs the definitions of `g` on the buffers of `source`, whose stored tensors it has under the same unique ids.
template <class R>
void evaluate(const Graph& source, const Graph& g, GraphBuffers& buffers, uint64_t jitter = 0) {
  buffers.poison_outputs();
  auto given = buffers.table();
  std::vector<void*> table(static_cast<size_t>(g.tensor_count()), nullptr);
  for (TensorId t = 0; t < source.tensor_count(); ++t)
    if (TensorId same = given[static_cast<size_t>(t)] ? g.find_uid(source.tensor(t).uid) : kNone; same != kNone)
      table[static_cast<size_t>(same)] = given[static_cast<size_t>(t)];
  ref::evaluate_graph<R>(g, table.data(), jitter);
}

}  // namespace

Oracle::Oracle(const Graph& g, const DataSpec& spec) : Oracle(g, GraphBuffers(g, spec)) {}

Oracle::Oracle(const Graph& source, const GraphBuffers& inputs) : wide(inputs), narrow(inputs), unrounded(inputs) {
  std::shared_ptr<const Graph> meant = with_cleared_padding(std::make_shared<Graph>(source));
  const Graph& g = *meant;
  evaluate<double>(source, g, wide);
  evaluate<float>(source, g, narrow);
  // Engines may keep virtual tensors wider than declared.
  Graph wider = g;
  for (TensorId t = 0; t < g.tensor_count(); ++t)
    if (g.producer(t) != kNone && !g.tensor(t).stored && is_real(g.tensor(t).dtype) &&
        info(g.tensor(t).dtype).bits == 16)
      wider.edit(t).dtype = DType::f32;
  evaluate<double>(source, wider, unrounded);
  for (uint64_t draw = 1; draw <= 3; ++draw) {
    nearby.push_back(inputs);
    Graph moved = g;
    for (TensorId t = 0; t < g.tensor_count(); ++t) {
      if (g.producer(t) != kNone || (g.tensor(t).dtype != DType::f32 && g.tensor(t).dtype != DType::f64)) continue;
      bool constant = g.tensor(t).is_constant();
      TensorId given = constant ? kNone : source.find_uid(g.tensor(t).uid);
      int64_t n = constant ? g.tensor(t).numel() : nearby.back().elements(given);
      void* data = constant ? static_cast<void*>(moved.edit(t).constant.data()) : nearby.back().buffer(given).data();
      move_values(g.tensor(t).dtype, data, n, draw, static_cast<uint64_t>(t));
    }
    evaluate<float>(source, moved, nearby.back(), draw);
  }
  auto given = std::make_shared<Graph>(source);
  std::shared_ptr<const Graph> shorter = recognise(given);
  for (uint64_t draw = 1; draw <= 3 && shorter != given; ++draw) {
    recognised.push_back(inputs);
    evaluate<float>(source, *shorter, recognised.back(), draw);
  }
}

std::string compare(const Graph& g, const Oracle& oracle, const GraphBuffers& actual) {
  double terms = most_terms(g);
  for (TensorId id : g.outputs())
    if (std::string s = compare_tensor(g, id, terms, oracle, actual); !s.empty()) return s;
  return "";
}

}  // namespace tsr
