// SPDX-License-Identifier: Apache-2.0
#include "planner/lowering.hpp"

#include <algorithm>

namespace tsr {

using tessera::PointwiseOptions;
using tessera::ReduceMode;
using M = PointwiseMode;

void Lowering::run() {
  find_split();
  find_space();
  for (NodeId id : r_.nodes) {
    const Node& n = g_.node(id);
    if (auto kept = lowered_op(n).kept) set_row_axes(n, kept(g_, n));
  }
  place_blocks();
  if (!e_.has_reduction) e_.row_axis.fill(true);
  check_outputs();
  e_.code.reserve(r_.nodes.size() * 4);
  for (NodeId n : r_.nodes) write(g_.node(n));
}

// At most one axis is cut.
void Lowering::find_split() {
  for (NodeId id : r_.nodes) {
    const Node& n = g_.node(id);
    auto split = lowered_op(n).split;
    std::optional<Split> wanted = split ? split(g_, n) : std::nullopt;
    if (!wanted) continue;
    if (split_ && !(*split_ == *wanted))
      decline(spelling(n), " cuts an axis in another way than the rest of the region");
    split_ = wanted;
  }
}

void Lowering::find_space() {
  int rank = 0;
  auto spanning = [&](NodeId n) -> const Tensor& { return g_.tensor(lowered_op(g_.node(n)).spans(g_.node(n))); };
  for (NodeId n : r_.nodes) rank = std::max(rank, spanning(n).rank());
  if (split_ && rank == kMaxRank) decline("a tensor of ", rank, " dimensions, of which one is cut into parts");
  e_.space = Dims::filled(rank + (split_ ? 1 : 0), 1);
  if (split_) {
    e_.split_axis = rank - split_->from_end;
    e_.space[e_.split_axis] = split_->parts;
    e_.space[e_.split_axis + 1] = split_->length;
  }
  for (NodeId n : r_.nodes) {
    const Tensor& t = spanning(n);
    auto b = broadcast(e_.space, e_.sizes_of(t.dims));
    if (!b) decline("tensor ", describe(t), " does not fit the region's sizes ", e_.space);
    e_.space = *b;
  }
}

// The axes of the node's first input of which nothing is kept are those of a row.
void Lowering::set_row_axes(const Node& n, const Dims& kept) {
  const Dims& x = g_.tensor(n.in[0]).dims;
  int rank = e_.space.size();
  Dims xs = e_.sizes_of(x), ks = e_.sizes_of(kept);
  std::array<bool, kMaxRank> axes{};
  for (int i = 0; i < rank; ++i) {
    axes[static_cast<size_t>(i)] = xs[i] != 1 && ks[i] == 1;
    if (xs[i] != e_.space[i] && e_.space[i] != 1)
      decline(spelling(n), " reduces ", x, " inside a region of sizes ", e_.space);
  }
  if (e_.has_reduction && axes != e_.row_axis) decline(spelling(n), " reduces other axes than the rest of the region");
  e_.row_axis = axes;
  e_.has_reduction = true;
}

// Can a warp share the work on a block, however few elements each thread takes?
static bool fits_warp(int64_t block) {
  constexpr int64_t kWarp = 32;
  return block <= kWarp && (block & (block - 1)) == 0;
}

// Blocks lie inside a row, or are the rows where nothing else is reduced and their elements lie apart in memory.
void Lowering::place_blocks() {
  const Node *quantize = nullptr, *any = nullptr;
  for (NodeId id : r_.nodes) {
    const Node& n = g_.node(id);
    LoweredOp::Blocks blocks = lowered_op(n).blocks;
    if (blocks != LoweredOp::none) any = &n;
    if (blocks == LoweredOp::reduced) quantize = &n;
  }
  if (!any) return;
  int axis = e_.split_axis + 1;
  bool& in_row = e_.row_axis[static_cast<size_t>(axis)];
  if (quantize && !e_.has_reduction) {
    const Tensor& x = g_.tensor(quantize->in[0]);
    bool apart = x.strides[x.rank() - split_->from_end] != 1;
    in_row = e_.has_reduction = apart || (gpu_ && !fits_warp(split_->length));
    if (in_row) return;
  }
  if (e_.has_reduction && !in_row) {
    if (quantize) decline(spelling(*quantize), " has blocks across the rows of the region");
    return;
  }
  e_.block_axis = axis;
  e_.block = e_.space[axis];
}

// Where an axis of a tensor lies in the space.
int Lowering::space_axis(const Node& n, int axis, int rank) const {
  int at = axis + e_.tensor_rank() - rank;
  if (at == e_.split_axis) decline(spelling(n), " counts along an axis that is cut into parts");
  return e_.split_axis >= 0 && at > e_.split_axis ? at + 1 : at;
}

bool Lowering::constant_along_rows(const Dims& d) const {
  Dims a = e_.sizes_of(d);
  for (int i = 0; i < a.size(); ++i)
    if (e_.row_axis[static_cast<size_t>(i)] && a[i] != 1) return false;
  return true;
}

// No byte of a packed tensor holds elements of two blocks.
bool Lowering::whole_bytes(const Tensor& x) const {
  int64_t each = 8 / info(x.dtype).bits;
  if (e_.block_axis < 0 || e_.block % each != 0 || !(e_.sizes_of(x.dims) == e_.space)) return false;
  Dims strides = e_.strides_of(x);
  for (int i = 0; i < strides.size(); ++i)
    if (i == e_.block_axis ? strides[i] != 1 : strides[i] % each != 0) return false;
  return true;
}

// Does a tensor lie in an order that kernels do not know? On GPUs they know that of scale factors.
bool Lowering::is_reordered(const Tensor& x) const {
  return x.reordering != Reordering::none && !(gpu_ && x.reordering == Reordering::f8_128x4);
}

// Every output holds each element of the space once, or one value for each row or block.
void Lowering::check_outputs() const {
  for (TensorId t : r_.outputs) {
    const Tensor& x = g_.tensor(t);
    if (x.ragged != kNone) decline("output ", describe(x), " is ragged");
    if (is_reordered(x)) decline("output ", describe(x), " is reordered");
    Dims a = e_.sizes_of(x.dims);
    bool full = true, row = e_.has_reduction, block = e_.block_axis >= 0;
    for (int i = 0; i < a.size(); ++i) {
      full = full && a[i] == e_.space[i];
      block = block && a[i] == (i == e_.block_axis ? 1 : e_.space[i]);
      row = row && a[i] == (e_.row_axis[static_cast<size_t>(i)] ? 1 : e_.space[i]);
    }
    if (!full && !row && !block && !(gpu_ && sums_rows(x.dims)))
      decline("output ", describe(x), " has neither the sizes ", e_.space, " of the region nor those of its rows");
    bool cut = e_.has_reduction || e_.block_axis >= 0;
    if (info(x.dtype).bits < 8 && !gpu_ && cut && !whole_bytes(x))
      decline("output ", describe(x), " packs several elements into a byte, and blocks do not fill whole bytes");
    if (info(x.dtype).vector > 1) decline("output ", describe(x), " is vectorised");
    if (is_complex(x.dtype)) decline("output ", describe(x), " is complex");
  }
  for (TensorId t : r_.inputs) {
    const Tensor& x = g_.tensor(t);
    if (x.ragged != kNone) decline("input ", describe(x), " is ragged");
    if (is_complex(x.dtype)) decline("input ", describe(x), " is complex");
    if (info(x.dtype).vector > 1) decline("input ", describe(x), " is vectorised");
    if (is_reordered(x)) decline("input ", describe(x), " is reordered");
  }
}

// Has a tensor every element of a row, and one value for all rows?
bool Lowering::sums_rows(const Dims& d) const {
  Dims a = e_.sizes_of(d);
  for (int i = 0; i < a.size(); ++i)
    if (a[i] != (e_.row_axis[static_cast<size_t>(i)] ? e_.space[i] : 1)) return false;
  return e_.has_reduction;
}

// Gives tensor `t` the sum of v over all rows. Nothing else of the region may read it.
void Lowering::define_across(TensorId t, int v) {
  if (!contains(r_.outputs, t)) return;
  if (!sums_rows(g_.tensor(t).dims)) decline("output ", describe(g_.tensor(t)), " is no sum over all rows");
  if (at(v).row || at(v).block) decline("output ", describe(g_.tensor(t)), " sums values of whole rows");
  emit({.kind = Instr::across, .lane = at(v).lane, .a = v, .tensor = t});
}

int Lowering::emit(const Instr& i) {
  e_.code.push_back(i);
  return static_cast<int>(e_.code.size()) - 1;
}

int Lowering::to_lane(int v, Lane lane) {
  if (at(v).lane == lane) return v;
  return emit({.kind = Instr::convert, .lane = lane, .row = at(v).row, .block = at(v).block, .a = v});
}

static Lane lane_of(DType t) {
  if (t == DType::f64) return Lane::f64;
  return is_integer(t) ? Lane::i64 : Lane::f32;
}

int Lowering::value(TensorId t, Lane lane) {
  auto it = values_.find(t);
  if (it == values_.end()) {
    const Tensor& x = g_.tensor(t);
    if (contains(r_.outputs, t)) decline("a sum over all rows, ", describe(x), ", is read by the region that makes it");
    Dims read = read_sizes(x);
    Instr i{.kind = Instr::load, .lane = lane_of(x.dtype), .row = constant_along_rows(read), .tensor = t};
    if (x.is_constant() && x.numel() == 1 && is_real(x.dtype)) {
      i.kind = Instr::constant;
      i.row = true;
      i.value = load<double>(x.dtype, x.constant.data(), 0);
      i.tensor = kNone;
    }
    if (!broadcast_fits(read)) decline("input ", describe(x), " does not broadcast over the region's sizes ", e_.space);
    i.block = !i.row && one_per_block(read);
    it = values_.emplace(t, emit(i)).first;
  }
  return to_lane(it->second, lane);
}

// Reordered scale factors come in whole tiles: what lies beyond the region's sizes is never read.
Dims Lowering::read_sizes(const Tensor& x) const {
  Dims sizes = x.dims;
  if (x.reordering != Reordering::f8_128x4 || x.rank() > e_.tensor_rank() || e_.split_axis < 0) return sizes;
  for (int i = std::max(0, x.rank() - 2); i < x.rank(); ++i) {
    int axis = i + e_.tensor_rank() - x.rank();
    sizes[i] = std::min(sizes[i], e_.space[axis > e_.split_axis ? axis + 1 : axis]);
  }
  return sizes;
}

bool Lowering::broadcast_fits(const Dims& d) const {
  if (d.size() > e_.tensor_rank()) return false;
  Dims a = e_.sizes_of(d);
  for (int i = 0; i < a.size(); ++i)
    if (a[i] != 1 && a[i] != e_.space[i]) return false;
  return true;
}

int Lowering::scalar(double v, Lane lane) {
  return emit({.kind = Instr::constant, .lane = lane, .row = true, .value = v});
}

int Lowering::apply(const PointwiseOptions& o, int a, int b, int c) {
  Instr i{.kind = Instr::apply, .lane = at(a).lane, .row = true, .block = true, .a = a, .b = b, .c = c, .options = o};
  for (int k : {a, b, c}) {
    if (k < 0) continue;
    i.row = i.row && at(k).row;
    i.block = i.block && (at(k).row || at(k).block);
  }
  i.block = i.block && !i.row;
  return emit(i);
}

int Lowering::apply(M mode, int a, int b, int c) {
  PointwiseOptions o;
  o.mode = mode;
  return apply(o, a, b, c);
}

int Lowering::reduce(ReduceMode mode, int a) {
  // A value that is the same for the whole row still counts once for each element.
  return emit({.kind = Instr::reduce, .lane = at(a).lane, .row = true, .a = a, .reduction = mode});
}

int Lowering::largest_of_block(int a) {
  if (e_.block_axis < 0) return reduce(ReduceMode::max, a);
  return emit({.kind = Instr::reduce, .lane = at(a).lane, .block = true, .a = a, .reduction = ReduceMode::max});
}

int Lowering::mean(int a, bool rough) {
  int sum = reduce(ReduceMode::add, a);
  e_.code[static_cast<size_t>(sum)].rough = rough;
  return over_length(sum);
}

int Lowering::over_length(int sum) {
  return apply(M::div, sum, scalar(static_cast<double>(e_.row_length()), at(sum).lane));
}

// Gives tensor `t` its value: rounded where its type is narrower than the lane, stored where it leaves the region.
void Lowering::define(TensorId t, int v) {
  if (t == kNone) return;
  const Tensor& x = g_.tensor(t);
  bool exact = (x.dtype == DType::f32 && at(v).lane == Lane::f32) || x.dtype == DType::f64 ||
               (x.dtype == DType::i64 && at(v).lane == Lane::i64);
  // Truth values of comparisons are 0 or 1 already.
  if (is_boolean(x.dtype) && at(v).kind == Instr::apply && info(at(v).options.mode).boolean) exact = true;
  if (!exact)
    v = emit(
        {.kind = Instr::round, .lane = at(v).lane, .row = at(v).row, .block = at(v).block, .a = v, .type = x.dtype});
  values_[t] = v;
  if (!contains(r_.outputs, t)) return;
  bool block = !at(v).row && one_per_block(x.dims);
  bool row = !block && e_.has_reduction && constant_along_rows(x.dims) && !full_row(x.dims);
  if (block && !at(v).block)
    decline("output ", describe(x), " has one value for each block but is computed for each element");
  if (row && !at(v).row)
    decline("output ", describe(x), " has one value for each row but is computed for each element");
  emit({.kind = Instr::store, .lane = at(v).lane, .row = row, .block = block, .a = v, .tensor = t});
}

bool Lowering::full_row(const Dims& d) const { return e_.sizes_of(d) == e_.space && e_.row_length() > 1; }

bool Lowering::one_per_block(const Dims& d) const {
  return e_.block_axis >= 0 && e_.sizes_of(d)[e_.block_axis] == 1 && e_.block > 1;
}

void Lowering::write(const Node& n) {
  if (is_complex(n.compute)) decline(spelling(n), " computes with complex numbers");
  const LoweredOp& o = lowered_op(n);
  if (!o.any_compute && !is_real(n.compute)) decline(spelling(n), " computes in ", n.compute);
  o.write(*this, n);
}

Lane Lowering::compute_lane(const Node& n) const {
  if (n.compute == DType::f64) return Lane::f64;
  if (is_integer(n.compute)) return Lane::i64;
  if (!is_boolean(n.compute)) return Lane::f32;
  // A boolean compute type says nothing about the operands: integers compare exactly, reals in their own width.
  Lane lane = Lane::i64;
  for (TensorId t : n.in) {
    if (t == kNone || !is_real(g_.tensor(t).dtype)) continue;
    if (g_.tensor(t).dtype == DType::f64) return Lane::f64;
    lane = Lane::f32;
  }
  return lane;
}

}  // namespace tsr
