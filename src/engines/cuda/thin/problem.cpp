// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/thin/problem.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engines/cuda/thin/args.cuh"
#include "graph/ops/list.hpp"
#include "planner/prologue.hpp"

namespace tsr::cuda {
namespace {

constexpr int64_t kMostRows = 32, kBytes = 16;  // that are read at a time
constexpr int64_t kEight = 8;                   // elements that are computed at once

bool is_whole(int64_t stride, int64_t bits) { return stride >= 0 && stride * bits % (8 * kBytes) == 0; }

Reason check_node(const Graph& g, const Node& n, const Region& r) {
  if (n.compute != DType::f32) return Reason::no(spelling(n), " computes in ", n.compute);
  for (size_t i = 2; i < n.in.size(); ++i)
    if (n.in[i] != kNone) return Reason::no(spelling(n), " has sizes that arrive at execution");
  for (TensorId t : r.outputs)
    if (const Tensor& y = g.tensor(t); info(y.dtype).bits < 8)
      return Reason::no("output ", describe(y), " has less than a byte for each element");
  return Reason::yes();
}

Reason check_memory(const Tensor& t) {
  if (t.reordering != Reordering::none || t.ragged != kNone || t.on_host())
    return Reason::no("input ", describe(t), " is no plain memory of the device");
  if (t.stored && t.alignment % kBytes != 0)
    return Reason::no("input ", describe(t), " is aligned to ", t.alignment, " bytes, pieces need ", kBytes);
  return Reason::yes();
}

// The elements of a tensor follow each other along the inner dimension, from row to row in whole pieces.
Reason check_pieces(const Tensor& t, int64_t inner, int64_t pitch) {
  if (inner != 1)
    return Reason::no("elements of input ", describe(t), " do not follow each other along the inner dimension");
  if (!is_whole(pitch, info(t.dtype).bits))
    return Reason::no("input ", describe(t), " has a stride of ", pitch, " elements, pieces need multiples of ", kBytes,
                      " bytes");
  return Reason::yes();
}

// Operands that all elements share which are computed at once are loaded once.
std::vector<OperandPlan::Access> access_of(const ThinComputed& c) {
  std::vector<OperandPlan::Access> all;
  for (size_t k = 0; k < c.strides.size(); ++k) {
    bool in_memory = c.prologue.operands()[k].tensor != kNone;
    all.push_back(k == c.prologue.lead_number()         ? OperandPlan::given
                  : in_memory && c.strides[k].step == 0 ? OperandPlan::same
                                                        : OperandPlan::strided);
  }
  return all;
}

}  // namespace

int ThinProblem::row_blocks() const {
  return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(ceil_div(row_count, int64_t{8}))));
}

int64_t steps_of(const ThinProblem& m, const ThinChoice& c) {
  int64_t warps = int64_t{c.cluster} * dev::kThinWarps, steps = ceil_div(m.depth, 4 * m.elements());
  return std::max<int64_t>(1, ceil_div(steps, warps));
}
int64_t shared_bytes_of(const ThinProblem& m, const ThinChoice& c) {
  constexpr int64_t kRing = int64_t{dev::kThinStages} * 2 * dev::kThinThreads * dev::kThinPiece;
  int64_t rows = int64_t{8} * m.row_blocks(), sums = rows * dev::kThinColumns * 4;
  int64_t inner = steps_of(m, c) * dev::kThinWarps * 4 * m.elements();
  return kRing + sums * dev::thin_buffers(m.row_blocks()) * dev::kThinWarps + rows * inner * 2;
}
int64_t blocks_of(const ThinProblem& m, const ThinChoice& c, const Device& d) {
  return std::min(ceil_div(m.column_count, int64_t{dev::kThinColumns}), int64_t{d.units / c.cluster}) * c.cluster;
}

namespace {

// Not measured: what decoding reaches with as much under way, what instructions take, and barriers.
double modelled_seconds(const ThinProblem& m, const ThinChoice& c, const Region& r, const Device& d) {
  constexpr double kMemory = 0.8, kAround = 3e-6, kBarrier = 0.3e-6, kMeeting = 1e-6;
  constexpr double kLanes = 128, kSharedBytes = 128;  // of a multiprocessor, in a clock
  constexpr double kOwn = 6;  // instructions for an element of a column, beside what computes it
  auto real = [](int64_t v) { return static_cast<double>(v); };
  double blocks = real(blocks_of(m, c, d)), clock = d.rates.f32 / d.units / (2 * kLanes);
  int64_t all_units = ceil_div(m.column_count, int64_t{dev::kThinColumns});
  double units = std::ceil(real(all_units) * c.cluster / blocks);  // of a block
  double instructions = kOwn + (m.computed ? real(static_cast<int64_t>(m.computed->prologue.expr().code.size())) : 0);
  double elements = real(dev::kThinColumns * m.depth) / c.cluster;  // of a unit
  double clocks = elements * std::max(instructions / kLanes, real(m.row_blocks()) / kSharedBytes);
  // What waits at barriers computes nothing, but memory goes on. Few blocks cannot ask for all that it gives.
  double busy = std::min(d.bytes_per_second * kMemory, 1.4 * d.bytes_per_second * blocks / d.units);
  double bytes = region_limits(r, d).memory * d.bytes_per_second / real(all_units) * blocks / c.cluster;
  double unit = std::max(bytes / busy, clocks / clock + kBarrier + (c.cluster > 1 ? kMeeting : 0));
  // Every block reads the rows, from the cache.
  double rows = blocks / c.cluster * real(m.row_count * m.depth) * 2 / (1.3 * d.bytes_per_second);
  return d.step_seconds + kAround + rows + units * unit;
}

}  // namespace

std::vector<ThinChoice> choices_of(const ThinProblem& m, const Region& r, const Device& d) {
  constexpr int kClusterArch = 90;
  std::vector<ThinChoice> list;
  for (int cluster : {1, 2, 4, 8}) {
    ThinChoice c{cluster, 0};
    if ((cluster > 1 && d.arch < kClusterArch) || cluster > d.units || shared_bytes_of(m, c) > d.shared_bytes) continue;
    c.seconds = modelled_seconds(m, c, r, d);
    list.push_back(c);
    if (steps_of(m, c) == 1) break;  // more would have nothing to do
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const ThinChoice& x, const ThinChoice& y) { return x.seconds < y.seconds; });
  return list;
}

std::optional<ThinProblem> find_thin(const Region& r, const Device& d, Reason* why) {
  auto decline = [&](Reason reason) {
    *why = std::move(reason);
    return std::nullopt;
  };
  const Graph& g = *r.graph;
  auto found = std::find_if(r.nodes.begin(), r.nodes.end(), [&](NodeId n) { return g.node(n).op == &ops::matmul; });
  if (found == r.nodes.end()) return decline(Reason::no("the region has no matrix product"));
  const Node& n = g.node(*found);
  CutRegion cut;
  if (Reason reason = cut_prologues(r, *found, &cut); !reason) return decline(reason);
  if (Reason reason = check_node(g, n, r); !reason) return decline(reason);
  Problem p = matmul_problem(g, n);
  size_t few = 0, many = 1;
  if (p.row_count() > p.column_count()) turn(p), std::swap(few, many);
  if (p.row_count() > kMostRows)
    return decline(Reason::no(spelling(n), " has ", p.row_count(), " rows, the limit is ", kMostRows));
  if (p.row_count() == 0 || p.depth() == 0) return decline(Reason::no(spelling(n), " is empty"));
  const Tensor &rows = g.tensor(n.in[few]), &columns = g.tensor(n.in[many]);
  if ((rows.dtype != DType::bf16 && rows.dtype != DType::f16) || columns.dtype != rows.dtype)
    return decline(Reason::no(spelling(n), " of ", rows.dtype, " and ", columns.dtype, ", not both bf16 or f16"));
  if (!cut.before[few].nodes.empty()) return decline(Reason::no("work before the operand of few rows"));
  if (Reason reason = check_memory(rows); !reason) return decline(reason);
  Expr follows;
  if (Reason reason = lower_epilogue(cut.rest, *found, &follows); !reason) return decline(reason);
  if (follows.has_reduction) return decline(Reason::no("what follows ", spelling(n), " reduces"));
  ThinProblem m{.epilogue = Epilogue(cut.rest, *found, follows, DType::f32, p.scaling),
                .computed = std::nullopt,
                .type = rows.dtype,
                .rows = n.in[few],
                .columns = n.in[many]};
  if (Reason reason = m.epilogue.check(dev::ThinEpilogue::kOperands); !reason) return decline(reason);
  if (!cut.before[many].nodes.empty()) {
    const Prologue& computed = m.computed.emplace(ThinComputed{Prologue(cut.before[many]), {}, {}}).prologue;
    if (Reason reason = computed.check(dev::ThinPrologue::kOperands); !reason) return decline(reason);
    m.columns = computed.lead().tensor, m.bits = info(computed.lead().type).bits;
    if (m.bits != 4 && m.bits != 8 && m.bits != 16)
      return decline(Reason::no("input ", describe(g.tensor(m.columns)), " has ", m.bits, " bits for each element"));
  }
  const Tensor& read = g.tensor(m.columns);
  if (Reason reason = check_memory(read); !reason) return decline(reason);
  ProductLayout memory(g, p, m.epilogue, ProductForm::tensor_tiles,
                       {nullptr, m.computed ? &m.computed->prologue : nullptr});
  for (const ProductLoops* list : {&memory.batch(), &memory.rows(), &memory.columns(), &memory.inner()})
    if (list->size() > (list == &memory.batch() ? 0 : 1))
      return decline(
          Reason::no("the product has batches, or rows or columns in dimensions that are not one in memory"));
  // Of a dimension of size 1 strides do not matter.
  ProductLoop one;
  one.side[0] = one.side[1] = 0;
  one.epilogue.resize(m.epilogue.operands().size(), 0);
  if (m.computed) one.before[1].resize(m.computed->prologue.operands().size(), 0);
  auto only = [&](const ProductLoops& list) { return list.empty() ? one : list[0]; };
  ProductLoop row = only(memory.rows()), column = only(memory.columns()), inner = only(memory.inner());
  m.row_count = row.size, m.column_count = column.size, m.depth = inner.size;
  if (m.depth % m.elements() != 0)
    return decline(Reason::no(spelling(n), " sums ", m.depth, " products, pieces of columns have ", m.elements()));
  if (Reason reason = check_pieces(rows, inner.side[0], row.side[0]); !reason) return decline(reason);
  if (Reason reason = check_pieces(read, inner.side[1], column.side[1]); !reason) return decline(reason);
  m.row_pitch = row.side[0] * 2, m.column_pitch = column.side[1] * m.bits / 8;
  for (size_t k = 0; k < m.epilogue.operands().size(); ++k) m.strides.push_back({row.epilogue[k], column.epilogue[k]});
  if (m.computed) {
    ThinComputed& c = *m.computed;
    if (Reason reason = computed_strides(c.prologue, 1, column, inner, one, p.inner[0].b, kEight, &c.strides); !reason)
      return decline(reason);
    c.access = access_of(c);
  }
  constexpr int64_t kMost = int64_t{1} << 30;
  for (int64_t size : {m.column_count, m.depth})
    if (size > kMost) return decline(Reason::no("a dimension of ", size, " elements, the limit is ", kMost));
  if (choices_of(m, r, d).empty())
    return decline(Reason::no(m.row_count, " rows of ", m.depth, " elements do not fit the ", d.shared_bytes,
                              " bytes of shared memory, of a cluster neither"));
  *why = Reason::yes();
  return m;
}

}  // namespace tsr::cuda
