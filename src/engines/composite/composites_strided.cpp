// SPDX-License-Identifier: Apache-2.0
#include "engines/composite/composites_strided.hpp"

#include <algorithm>

#include "engines/copies/copies.hpp"
#include "graph/ops/block_scale.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;

Reason check_rank(const Node& n, size_t rank) {
  if (rank <= kMaxRank) return Reason::yes();
  return Reason::no(spelling(n), " falls into ", rank, " dimensions; at most ", kMaxRank);
}

Reason check_tensor(const Tensor& t) {
  if (t.ragged != kNone) return Reason::no("tensor ", describe(t), " is ragged");
  if (info(t.dtype).vector > 1) return Reason::no("tensor ", describe(t), " is vectorised");
  if (t.is_constant() && t.numel() > 1) return Reason::no("tensor ", describe(t), " is a constant of many elements");
  return Reason::yes();
}

// --- movements
bool converts(const Graph& g, const Node& n) {
  if (n.op->family != Family::movement || is(n, "paged_load")) return false;
  DType type = g.tensor(n.out[0]).dtype;
  return std::any_of(n.in.begin(), n.in.end(), [&](TensorId t) { return g.tensor(t).dtype != type; });
}

// What holds every value of a type.
DType wide(DType t) { return t == DType::f64 ? DType::f64 : is_integer(t) ? DType::i64 : DType::f32; }

Reason convert(const Graph& g, const Node& n, Composite& c) {
  for (const auto* list : {&n.in, &n.out})
    for (TensorId t : *list)
      if (info(g.tensor(t).dtype).bits < 8)
        return Reason::no("tensor ", describe(g.tensor(t)), " packs elements into bytes");
  std::vector<Copy> copies;
  if (Reason why = copies_of(g, n, &copies); !why) return why;
  for (const Copy& copy : copies) {
    std::vector<CopyAxis> axes = merged(copy.axes);
    if (Reason why = check_rank(n, axes.size()); !why) return why;
    Dims dims, from, to;
    for (const CopyAxis& a : axes) dims.push_back(a.size), from.push_back(a.from), to.push_back(a.to);
    c.apply(M::identity, wide(g.tensor(copy.source).dtype), c.view(g, copy.source, dims, from, copy.from), kNone,
            c.view(g, n.out[0], dims, to, copy.to));
    c.end_stage();
  }
  return Reason::yes();
}

// --- reductions
bool reduces_runs(const Graph& g, const Node& n) {
  if (!is(n, "reduce") || (n.in.size() > 1 && n.in[1] != kNone)) return false;
  const Dims &x = g.tensor(n.in[0]).dims, &y = g.tensor(n.out[0]).dims;
  for (int i = 0; i < x.size(); ++i)
    if (y[i] != 1 && y[i] != x[i]) return true;
  return false;
}

// A dimension of runs is two: the runs, and the neighbours in each.
Reason reduce_runs(const Graph& g, const Node& n, Composite& c) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  auto runs = [&](int i) { return y.dims[i] != 1 && y.dims[i] != x.dims[i]; };
  int rank = x.rank();
  for (int i = 0; i < x.rank(); ++i) rank += runs(i) ? 1 : 0;
  if (Reason why = check_rank(n, static_cast<size_t>(rank)); !why) return why;
  Dims from, from_strides, to, to_strides;
  for (int i = 0; i < x.rank(); ++i) {
    int64_t run = runs(i) ? x.dims[i] / y.dims[i] : 1;
    from.push_back(x.dims[i] / run), from_strides.push_back(x.strides[i] * run);
    to.push_back(y.dims[i]), to_strides.push_back(y.strides[i]);
    if (!runs(i)) continue;
    from.push_back(run), from_strides.push_back(x.strides[i]);
    to.push_back(1), to_strides.push_back(1);
  }
  Node plain = n;
  plain.attrs = tessera::ReduceOptions{.mode = attrs<tessera::ReduceOptions>(n).mode};
  plain.in = {c.view(g, n.in[0], from, from_strides)};
  plain.out = {c.view(g, n.out[0], to, to_strides)};
  c.add(plain);
  return Reason::yes();
}

// --- scale factors
TensorId scale_of(const Node& n) {
  if (is(n, "block_scale_dequantize")) return n.in[1];
  return is(n, "block_scale_quantize") ? n.out[1] : kNone;
}

bool has_tiled_scale(const Graph& g, const Node& n) {
  TensorId scale = scale_of(n);
  return scale != kNone && g.tensor(scale).reordering == Reordering::f8_128x4;
}

// Does it also write factors of blocks that do not exist?
bool pads_tiles(const Graph& g, const Node& n) {
  if (!is(n, "block_scale_quantize") || !has_tiled_scale(g, n)) return false;
  return !(scale_sizes(g.tensor(n.in[0]).dims, scale_lengths(g, n), Reordering::none) == g.tensor(n.out[1]).dims);
}

// Factors that lie in the order of their dimensions instead; sizes are whole tiles.
struct OrderedScale {
  OrderedScale(const Tensor& scale, Composite& c)
      : dims(scale.dims), strides(packed_strides(dims)), memory(c.temporary(scale.dtype, dims)) {}
  // The factors that a tensor of blocks has.
  TensorId part(const Dims& sizes, Composite& c) const { return c.reshaped(memory, sizes, strides); }
  Dims dims, strides;
  TensorId memory;
};

void copy(TensorId from, TensorId to, Composite& c) {
  c.apply(M::identity, DType::f32, from, kNone, to);
  c.end_stage();
}

// What lies beyond the blocks is 0, rounded to the type of the factors.
void clear(const OrderedScale& s, Composite& c) {
  TensorId zero = c.temporary(c.tensor(s.memory).dtype, {1});
  copy(c.constant(DType::f32, 0), zero, c);
  copy(c.reshaped(zero, s.dims, Dims::filled(s.dims.size(), 0)), c.reshaped(s.memory, s.dims, s.strides), c);
}

// Copies between tiles and the order of dimensions, a quarter of each tile's rows at a time: whole tiles would take
// more loops than kernels have.
void copy_tiles(const Graph& g, TensorId scale, int cut, const OrderedScale& ordered, bool into_tiles, Composite& c) {
  Dims sizes, strides;
  int quarters = scale_axes(g.tensor(scale), cut, sizes, strides);
  Dims plain = packed_strides(sizes);
  int64_t count = sizes[quarters];
  sizes[quarters] = 1;
  for (int64_t i = 0; i < count; ++i) {
    TensorId tiled = c.view(g, scale, sizes, strides, i * strides[quarters]);
    TensorId straight = c.reshaped(ordered.memory, sizes, plain, i * plain[quarters]);
    copy(into_tiles ? straight : tiled, into_tiles ? tiled : straight, c);
  }
}

Reason order_scale(const Region& r, const Node& n, Composite& c) {
  const Graph& g = *r.graph;
  TensorId id = scale_of(n);
  const Tensor &x = g.tensor(n.in[0]), &scale = g.tensor(id);
  constexpr size_t kMoreAxes = 3;  // rows are cut into three, columns into two
  if (Reason why = check_rank(n, static_cast<size_t>(scale.rank()) + kMoreAxes); !why) return why;
  Dims lengths = scale_lengths(g, n), sizes = scale_sizes(x.dims, lengths, Reordering::none);
  int cut = block_axis(lengths);
  OrderedScale ordered(scale, c);
  Node plain = n;
  if (is(n, "block_scale_dequantize")) {
    copy_tiles(g, id, cut, ordered, false, c);
    plain.in = {c.whole(g, n.in[0]), ordered.part(sizes, c)};
    plain.out = {c.whole(g, n.out[0])};
    c.add(plain);
    return Reason::yes();
  }
  auto wanted = [&](TensorId t) { return std::find(r.outputs.begin(), r.outputs.end(), t) != r.outputs.end(); };
  if (!(sizes == scale.dims)) clear(ordered, c);
  plain.in = {c.whole(g, n.in[0])};
  plain.out = {wanted(n.out[0]) ? c.whole(g, n.out[0]) : kNew, ordered.part(sizes, c)};
  c.add(plain);
  c.end_stage();
  if (wanted(id)) copy_tiles(g, id, cut, ordered, true, c);
  return Reason::yes();
}

// --- blocks of which the last is short
struct Blocks {
  Blocks(const Graph& g, const Node& n) : lengths(scale_lengths(g, n)), axis(block_axis(lengths)) {
    const Dims& x = g.tensor(n.in[0]).dims;
    length = lengths[axis], whole = x[axis] / length, rest = x[axis] % length;
    single = std::count(lengths.begin(), lengths.end(), 1) >= lengths.size() - 1;
  }
  Dims lengths;
  int axis;
  int64_t length, whole, rest;  // elements of a block, whole blocks, elements behind them
  bool single;                  // one dimension is cut
};

bool has_short_block(const Graph& g, const Node& n) {
  if (!is(n, "block_scale_dequantize") || has_tiled_scale(g, n) || g.tensor(n.in[0]).numel() == 0) return false;
  Blocks b(g, n);
  return b.single && b.rest != 0;
}

// Blocks and their elements as two axes, from the block `first` on: the scale has one value for all elements of a
// block.
void multiply_blocks(const Graph& g, const Node& n, const Blocks& b, int64_t first, int64_t count, int64_t length,
                     Composite& c) {
  auto part = [&](TensorId id, int64_t per_block) {
    const Tensor& t = g.tensor(id);
    Dims dims, strides;
    for (int i = 0; i < t.rank(); ++i) {
      if (i == b.axis) dims.push_back(count), strides.push_back(t.strides[i] * per_block);
      dims.push_back(i == b.axis ? (per_block == 1 ? 1 : length) : t.dims[i]), strides.push_back(t.strides[i]);
    }
    return c.view(g, id, dims, strides, first * per_block * t.strides[b.axis]);
  };
  tessera::PointwiseOptions o{.mode = M::mul};
  o.alpha1 = attrs<tessera::BlockScaleOptions>(n).neg_scale ? -1 : 1;
  c.apply(o, n.compute, {part(n.in[0], b.length), part(n.in[1], 1)}, part(n.out[0], b.length));
  c.end_stage();
}

Reason split_blocks(const Graph& g, const Node& n, Composite& c) {
  Blocks b(g, n);
  if (Reason why = check_rank(n, static_cast<size_t>(g.tensor(n.in[0]).rank()) + 1); !why) return why;
  for (TensorId id : {n.in[0], n.out[0]}) {
    const Tensor& t = g.tensor(id);
    if (b.whole * b.length * t.strides[b.axis] * info(t.dtype).bits % 8 != 0)
      return Reason::no("the last block of ", describe(t), " starts inside a byte");
  }
  if (b.whole > 0) multiply_blocks(g, n, b, 0, b.whole, b.length, c);
  multiply_blocks(g, n, b, b.whole, 1, b.rest, c);
  return Reason::yes();
}

}  // namespace

bool is_strided(const Graph& g, const Node& n, DeviceKind device) {
  if (reduces_runs(g, n) || has_short_block(g, n)) return true;
  if (device == DeviceKind::cpu) return converts(g, n) || has_tiled_scale(g, n);
  return pads_tiles(g, n);
}

Reason stride(const Region& r, const Node& n, Composite& c) {
  const Graph& g = *r.graph;
  for (const auto* list : {&n.in, &n.out})
    for (TensorId t : *list)
      if (t != kNone)
        if (Reason why = check_tensor(g.tensor(t)); !why) return why;
  if (converts(g, n)) return convert(g, n, c);
  if (reduces_runs(g, n)) return reduce_runs(g, n, c);
  if (has_short_block(g, n)) return split_blocks(g, n, c);
  return order_scale(r, n, c);
}

}  // namespace tsr
