// SPDX-License-Identifier: Apache-2.0
#include "planner/decompose/list.hpp"

#include <algorithm>

#include "graph/ops/block_scale.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;

// --- scale factors in tiles
TensorId scale_of(const Node& n) { return n.op == &ops::block_scale_dequantize ? n.in[1] : n.out[1]; }

// Factors that lie in the order of their dimensions instead; sizes are whole tiles.
struct OrderedScale {
  OrderedScale(const Tensor& scale, Decomposition& d)
      : dims(scale.dims), strides(packed_strides(dims)), memory(d.temporary(scale.dtype, dims)) {}
  // The factors that a tensor of blocks has.
  TensorId part(const Dims& sizes, Decomposition& d) const { return d.reshaped(memory, sizes, strides); }
  Dims dims, strides;
  TensorId memory;
};

void copy(TensorId from, TensorId to, Decomposition& d) {
  d.apply(M::identity, DType::f32, from, kNone, to);
  d.end_stage();
}

// Copies between tiles and the order of dimensions, a quarter of each tile's rows at a time: whole tiles would take
// more loops than kernels have.
void copy_tiles(const Graph& g, TensorId scale, int cut, const OrderedScale& ordered, bool into_tiles,
                Decomposition& d) {
  Dims sizes, strides;
  int quarters = scale_axes(g.tensor(scale), cut, sizes, strides);
  Dims plain = packed_strides(sizes);
  int64_t count = sizes[quarters];
  sizes[quarters] = 1;
  for (int64_t i = 0; i < count; ++i) {
    TensorId tiled = d.view(scale, sizes, strides, i * strides[quarters]);
    TensorId straight = d.reshaped(ordered.memory, sizes, plain, i * plain[quarters]);
    copy(into_tiles ? straight : tiled, into_tiles ? tiled : straight, d);
  }
}

}  // namespace

bool has_tiled_scale(const Graph& g, const Node& n) { return g.tensor(scale_of(n)).reordering == Reordering::f8_128x4; }

bool pads_tiles(const Graph& g, const Node& n) {
  if (!has_tiled_scale(g, n)) return false;
  return !(scale_sizes(g.tensor(n.in[0]).dims, scale_lengths(g, n), Reordering::none) == g.tensor(n.out[1]).dims);
}

void decompose_scale_tiles(const Region& r, const Node& n, Decomposition& d) {
  const Graph& g = *r.graph;
  TensorId id = scale_of(n);
  const Tensor &x = g.tensor(n.in[0]), &scale = g.tensor(id);
  constexpr int kMoreAxes = 3;  // rows are cut into three, columns into two
  check_rank(n, scale.rank() + kMoreAxes);
  Dims lengths = scale_lengths(g, n), sizes = scale_sizes(x.dims, lengths, Reordering::none);
  int cut = block_axis(lengths);
  OrderedScale ordered(scale, d);
  Node plain = n;
  if (n.op == &ops::block_scale_dequantize) {
    copy_tiles(g, id, cut, ordered, false, d);
    plain.in = {d.whole(n.in[0]), ordered.part(sizes, d)};
    plain.out = {d.whole(n.out[0])};
    d.add(plain);
    return;
  }
  if (!(sizes == scale.dims)) d.clear(ordered.memory);  // what lies beyond the blocks
  plain.in = {d.whole(n.in[0])};
  plain.out = {wanted(r, n.out[0]) ? d.whole(n.out[0]) : kNew, ordered.part(sizes, d)};
  d.add(plain);
  d.end_stage();
  if (wanted(r, id)) copy_tiles(g, id, cut, ordered, true, d);
}

// --- blocks of which the last is short
namespace {

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

// Blocks and their elements as two axes, from the block `first` on: the scale has one value for all elements of a
// block.
void multiply_blocks(const Graph& g, const Node& n, const Blocks& b, int64_t first, int64_t count, int64_t length,
                     Decomposition& d) {
  auto part = [&](TensorId id, int64_t per_block) {
    const Tensor& t = g.tensor(id);
    Dims dims, strides;
    for (int i = 0; i < t.rank(); ++i) {
      if (i == b.axis) dims.push_back(count), strides.push_back(t.strides[i] * per_block);
      dims.push_back(i == b.axis ? (per_block == 1 ? 1 : length) : t.dims[i]), strides.push_back(t.strides[i]);
    }
    return d.view(id, dims, strides, first * per_block * t.strides[b.axis]);
  };
  tessera::PointwiseOptions o{.mode = M::mul};
  o.alpha1 = attrs<tessera::BlockScaleOptions>(n).neg_scale ? -1 : 1;
  d.pointwise(o, {part(n.in[0], b.length), part(n.in[1], 1)}, n.compute, part(n.out[0], b.length));
  d.end_stage();
}

}  // namespace

bool has_short_block(const Graph& g, const Node& n) {
  if (has_tiled_scale(g, n) || g.tensor(n.in[0]).numel() == 0) return false;
  Blocks b(g, n);
  return b.single && b.rest != 0;
}

void decompose_short_block(const Region& r, const Node& n, Decomposition& d) {
  const Graph& g = *r.graph;
  Blocks b(g, n);
  check_rank(n, g.tensor(n.in[0]).rank() + 1);
  for (TensorId id : {n.in[0], n.out[0]}) {
    const Tensor& t = g.tensor(id);
    if (b.whole * b.length * t.strides[b.axis] * info(t.dtype).bits % 8 != 0)
      decline("the last block of ", describe(t), " starts inside a byte");
  }
  if (b.whole > 0) multiply_blocks(g, n, b, 0, b.whole, b.length, d);
  multiply_blocks(g, n, b, b.whole, 1, b.rest, d);
}

}  // namespace tsr
