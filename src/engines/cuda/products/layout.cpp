// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/products/layout.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace tsr::cuda {
namespace {

constexpr int kVector = 4;

bool aligned(const Tensor& t, int count) {
  int64_t bytes = info(t.dtype).bits / 8, unit = std::min<int64_t>(16, bytes * count);
  return bytes > 0 && (!t.stored || t.alignment % unit == 0);
}

bool are_multiples(const ProductLoops& list, int side, size_t from, int count) {
  for (size_t i = from; i < list.size(); ++i)
    if (list[i].side[side] % count != 0) return false;
  return true;
}

size_t at(int i) { return static_cast<size_t>(i); }

// A stride of an operand of a prologue. Where an axis is cut into parts, moves are whole parts or stay within one
// (cut_axes).
int64_t stride_of(const Expr& e, const OperandPlan& o, const Move& m) {
  if (m.axis < 0) return 0;
  if (m.axis != e.split_axis) return m.times * o.strides[m.axis + (e.split_axis >= 0 && m.axis > e.split_axis ? 1 : 0)];
  int64_t length = e.space[e.split_axis + 1];
  return m.times % length == 0 ? m.times / length * o.strides[m.axis] : m.times * o.strides[m.axis + 1];
}

}  // namespace

Epilogue::ResultAxes result_axes(const Problem& p) {
  Epilogue::ResultAxes axes;
  for (const ProductAxis& x : p.rows) axes.rows.push_back(x.out);
  for (const ProductAxis& x : p.columns) axes.columns.push_back(x.out);
  for (const ProductAxis& x : p.batch)
    if (x.size > 1) axes.batches.push_back(x.out);  // one group of a convolution is no batch
  return axes;
}

ProductLayout::ProductLayout(const Graph& g, const Problem& p, const Epilogue& epilogue, ProductForm form,
                             const Prologues& prologues)
    : g_(g), p_(p), epilogue_(epilogue), form_(form), prologues_(prologues) {
  batch_ = merged(p.batch);
  rows_ = merged(p.rows);
  columns_ = merged(p.columns);
  inner_ = merged(p.inner);
  // Vectors must not reach beyond an axis; residues change the sizes of positions, and each has bounds of its own.
  bool steady = !columns_.empty() && ((p.residues == 1 && form != ProductForm::flat) || columns_[0].dim < 0);
  int most = form == ProductForm::tensor_tiles ? 2 : kVector;  // neighbours among a thread's sums
  vector_ = steady && columns_[0].size % most == 0 ? most : 1;
}

ProductLoops ProductLayout::merged(const AxisList& list) const {
  ProductLoops out;
  const Dims &a = g_.tensor(p_.a).strides, &b = g_.tensor(p_.b).strides;
  bool routed = p_.moe && &list == &p_.rows;  // a row may read any token
  for (const ProductAxis& x : list) {
    if (x.size == 1 && !routed && (x.dim < 0 || p_.residues == 1)) continue;
    ProductLoop next{x.size, {x.a.stride(a), x.b.stride(b)}, {}, {}, x.step, x.dim};
    for (int side : {0, 1}) {
      if (!prologues_[at(side)]) continue;
      const Prologue& before = *prologues_[at(side)];
      for (const OperandPlan& o : before.operands())
        next.before[side].push_back(stride_of(before.expr(), o, side == 0 ? x.a : x.b));
      next.side[side] = next.before[side][before.lead_number()];
    }
    for (const OperandPlan& o : epilogue_.operands())
      next.epilogue.push_back(x.out < 0 ? 0 : o.strides[x.out] * x.times);
    bool merges = !out.empty() && x.dim < 0 && out.back().dim < 0;
    auto continues = [&](int64_t outer, int64_t inner) { return outer == inner * out.back().size; };
    for (int i = 0; merges && i < 2; ++i) merges = continues(next.side[i], out.back().side[i]);
    for (size_t k = 0; merges && k < next.epilogue.size(); ++k)
      merges = continues(next.epilogue[k], out.back().epilogue[k]);
    for (int side : {0, 1})
      for (size_t k = 0; merges && k < next.before[side].size(); ++k)
        merges = continues(next.before[side][k], out.back().before[side][k]);
    if (merges)
      out.back().size *= next.size;
    else
      out.push_back(std::move(next));
  }
  return out;
}

Reason ProductLayout::check() const {
  auto limit = [](const ProductLoops& list, std::string_view name, size_t most) {
    return list.size() <= most
               ? Reason::yes()
               : Reason::no("the product has ", list.size(), " axes of ", name, ", the limit is ", most);
  };
  if (Reason why = limit(batch_, "batches", dev::kBatchAxes); !why) return why;
  if (Reason why = limit(rows_, "rows", dev::kSideAxes); !why) return why;
  if (Reason why = limit(columns_, "columns", dev::kSideAxes); !why) return why;
  return limit(inner_, "the inner dimension", dev::kSideAxes);
}

// Can an operand be read `count` elements at once along rows or columns, or along the inner dimension?
bool ProductLayout::vectors_along(int side, const ProductLoops& along, int count) const {
  const Tensor& t = g_.tensor(side == 0 ? p_.a : p_.b);
  if (!aligned(t, count) || t.dtype == DType::e8m0 || along.empty() || along[0].side[side] != 1) return false;
  bool meets = p_.positions > 0 && p_.rows_meet == (side == 0);
  // The run of memory that the first axes make together.
  int64_t run = 1;
  size_t axes = 0;
  for (; axes < along.size() && along[axes].side[side] == run; ++axes) {
    if (along[axes].dim >= 0 && (meets || p_.residues > 1)) break;
    run *= along[axes].size;
  }
  if (axes == 0 || run % count != 0) return false;
  for (int d = 0; meets && d < p_.positions; ++d)
    if (t.strides[p_.position_axis[d]] % count != 0) return false;
  if (p_.moe && side == 1 && p_.moe->expert_step % count != 0) return false;
  const ProductLoops& neighbours = side == 0 ? rows_ : columns_;
  const ProductLoops& other = &along == &inner_ ? neighbours : inner_;
  return are_multiples(along, side, axes, count) && are_multiples(other, side, 0, count) &&
         are_multiples(batch_, side, 0, count);
}

// Can what computes an operand take `count` elements at once? Its operands then lie as they may along one loop.
bool ProductLayout::computed_along(int side, const ProductLoops& along, int count) const {
  return !along.empty() && along[0].dim < 0 && along[0].side[side] == 1 && along[0].size % count == 0;
}

ProductLayout::Access ProductLayout::access(int side) const {
  const ProductLoops& neighbours = side == 0 ? rows_ : columns_;
  // Ranges of experts and sizes that arrive at execution begin and end anywhere.
  bool any_rows = side == 0 && p_.moe && p_.moe->mode != dev::kExpertGradient;
  bool any_depth = p_.depth_limit != kNone || (p_.moe && p_.moe->mode == dev::kExpertGradient);
  bool tensor = form_ == ProductForm::tensor_tiles;
  int64_t bits = info(g_.tensor(side == 0 ? p_.a : p_.b).dtype).bits;  // of what is multiplied
  // Tensor cores multiply bytes that lie along the inner dimension.
  bool bytes = tensor && is_integer(g_.tensor(p_.a).dtype) && is_integer(g_.tensor(p_.b).dtype);
  for (int count : {8, 4}) {
    if (count > kVector && (!tensor || bits > 16)) continue;
    auto can = prologues_[at(side)] ? &ProductLayout::computed_along : &ProductLayout::vectors_along;
    if (!any_rows && !bytes && (this->*can)(side, neighbours, count)) return {"across_vector", count, true};
    if (!any_depth && (this->*can)(side, inner_, count)) return {"along_vector", count, true};
  }
  if (inner_.empty() || neighbours.empty()) return {inner_.empty() ? "across" : "along", kVector, false};
  int64_t inside = std::abs(inner_[0].side[side]), across = std::abs(neighbours[0].side[side]);
  return {inside != 0 && (across == 0 || inside < across) ? "along" : "across", kVector, false};
}

const ProductLoop* ProductLayout::chunk_loop(int side) const {
  Access a = access(side);
  if (!a.vectors) return nullptr;
  const ProductLoops& neighbours = side == 0 ? rows_ : columns_;
  return a.name == std::string_view("across_vector") ? &neighbours[0] : &inner_[0];
}

int64_t ProductLayout::position_stride(int side, size_t operand, int dim) const {
  const Prologue& before = *prologues_[at(side)];
  if (dim >= p_.positions || p_.rows_meet != (side == 0)) return 0;
  return stride_of(before.expr(), before.operands()[operand], {p_.position_axis[dim]});
}

OperandPlan::Access ProductLayout::prologue_access(int side, size_t k) const {
  const Prologue& before = *prologues_[at(side)];
  const OperandPlan& o = before.operands()[k];
  const ProductLoop* chunk = chunk_loop(side);
  if (!chunk || o.tensor == kNone) return OperandPlan::strided;
  if (chunk->before[side][k] == 0) return OperandPlan::same;
  const Tensor& t = before.graph().tensor(o.tensor);
  int64_t bits = info(t.dtype).bits, unit = std::min<int64_t>(16, bits * access(side).chunk / 8);
  if (chunk->before[side][k] != 1 || o.columns || unit == 0 || (t.stored && t.alignment % unit != 0))
    return OperandPlan::strided;
  int64_t each = std::max<int64_t>(1, unit * 8 / bits);
  for (const ProductLoops* list : {&batch_, side == 0 ? &rows_ : &columns_, &inner_})
    for (const ProductLoop& loop : *list)
      if (&loop != chunk && loop.before[side][k] % each != 0) return OperandPlan::strided;
  for (int d = 0; d < dev::kSpatial; ++d)
    if (position_stride(side, k, d) % each != 0) return OperandPlan::strided;
  return OperandPlan::vector;
}

std::vector<OperandPlan::Access> ProductLayout::prologue_access(int side) const {
  std::vector<OperandPlan::Access> all;
  for (size_t k = 0; k < prologues_[at(side)]->operands().size(); ++k) all.push_back(prologue_access(side, k));
  return all;
}

const char* ProductLayout::lie(int side) const {
  const Tensor& t = g_.tensor(side == 0 ? p_.a : p_.b);
  if (columns_.empty() || columns_[0].side[side] == 0) return "same";
  bool vectors = vector_ > 1 && columns_[0].side[side] == 1 && aligned(t, kVector) &&
                 are_multiples(columns_, side, 1, kVector) && are_multiples(rows_, side, 0, kVector) &&
                 are_multiples(inner_, side, 0, kVector);
  for (int d = 0; side == 0 && d < p_.positions; ++d)
    vectors = vectors && t.strides[p_.position_axis[d]] % kVector == 0;
  return vectors ? "vector" : "strided";
}

OperandPlan::Access ProductLayout::epilogue_access(size_t k) const {
  const OperandPlan& o = epilogue_.operands()[k];
  if (columns_.empty() || o.tensor == kNone) return OperandPlan::strided;
  int64_t stride = columns_[0].epilogue[k];
  if (stride == 0 && o.kind == Instr::load) return OperandPlan::same;
  if (stride != 1 || vector_ == 1 || !aligned(epilogue_.tensor(o), vector_)) return OperandPlan::strided;
  for (const ProductLoops* list : {&batch_, &rows_, &columns_})
    for (size_t i = list == &columns_ ? 1 : 0; i < list->size(); ++i)
      if ((*list)[i].epilogue[k] % vector_ != 0) return OperandPlan::strided;
  return OperandPlan::vector;
}

std::vector<OperandPlan::Access> ProductLayout::epilogue_access() const {
  std::vector<OperandPlan::Access> all;
  for (size_t k = 0; k < epilogue_.operands().size(); ++k) all.push_back(epilogue_access(k));
  return all;
}

Reason computed_strides(const Prologue& p, int side, const ProductLoop& neighbours, const ProductLoop& inner,
                        const ProductLoop& batch, const Move& along, int64_t chunk, std::vector<ComputedStrides>* to) {
  const Expr& e = p.expr();
  int64_t length = e.split_axis < 0 ? 0 : e.space[e.split_axis + 1];
  if (length && (along.axis != e.split_axis || length < chunk || (length & (length - 1)) != 0))
    return Reason::no("blocks of ", length,
                      " elements that share a value, not along the inner dimension or no power of 2");
  for (size_t k = 0; k < p.operands().size(); ++k) {
    int64_t inside = inner.before[side][k];
    ComputedStrides s{neighbours.before[side][k], inside, batch.before[side][k], inside};
    if (length) {
      const Dims& strides = p.operands()[k].strides;
      int64_t parts = strides[e.split_axis], within = strides[e.split_axis + 1];
      if (within == 0)
        s.inner = parts, s.shift = std::countr_zero(static_cast<uint64_t>(length));
      else if (parts != within * length)
        return Reason::no("blocks of ", describe(p.graph().tensor(p.result())), " do not follow each other in memory");
    }
    to->push_back(s);
  }
  return Reason::yes();
}

}  // namespace tsr::cuda
