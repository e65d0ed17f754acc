// SPDX-License-Identifier: Apache-2.0
#include "engines/composite/composites_generated.hpp"

#include <numbers>

namespace tsr {
namespace {

using M = tessera::PointwiseMode;
using tessera::PointwiseOptions;

PointwiseOptions mode(M m) {
  PointwiseOptions o;
  o.mode = m;
  return o;
}

// Positions along an axis of tensor `of`.
TensorId positions(TensorId of, int axis, DType type, Composite& c) {
  PointwiseOptions o = mode(M::gen_index);
  o.axis = axis;
  return c.apply(o, type, {of});
}

// --- band_mask with lengths
enum MaskIn { kX, kFill, kSeqQ, kSeqKv, kCuSeqQ, kCuSeqKv, kLeft, kShiftRight };

bool has_lengths(const Node& n) {
  return is(n, "band_mask") && (slot(n.in, kSeqQ) != kNone || slot(n.in, kCuSeqQ) != kNone);
}

// One number for each batch, from a list of lengths (or of one for all) or of their running sums.
TensorId lengths(const Graph& g, TensorId given, TensorId sums, int64_t batch, Composite& c) {
  const Tensor& t = g.tensor(given != kNone ? given : sums);
  int64_t stride = 0;
  for (int d = 0; d < t.rank(); ++d)
    if (t.dims[d] > 1) stride = t.strides[d];
  auto list = [&](TensorId id, int64_t first) {
    return c.view(g, id, {batch, 1, 1, 1}, {stride, 0, 0, 0}, first * stride);
  };
  if (given != kNone) return list(given, 0);
  return c.apply(M::sub, DType::f64, list(sums, 1), list(sums, 0));
}

void shifted_mask(const Graph& g, const Node& n, Composite& c) {
  const Tensor& x = g.tensor(n.in[kX]);
  TensorId shift = c.temporary(DType::f64, {x.dims[0], 1, 1, 1});
  TensorId kv = lengths(g, slot(n.in, kSeqKv), slot(n.in, kCuSeqKv), x.dims[0], c);
  c.apply(M::sub, DType::f64, kv, lengths(g, slot(n.in, kSeqQ), slot(n.in, kCuSeqQ), x.dims[0], c), shift);
  c.end_stage();
  // Positions that are exact in f32 need nothing wider.
  DType exact = x.dims[2] + x.dims[3] < (1 << 24) ? DType::f32 : DType::f64;
  auto add = [&](M m, TensorId a, TensorId b) { return c.apply(m, exact, a, b); };
  auto one = [&](size_t i) { return c.view(g, n.in[i], {1, 1, 1, 1}, {0, 0, 0, 0}); };
  TensorId from = c.whole(g, n.in[kX]), row = positions(from, 2, exact, c), column = positions(from, 3, exact, c);
  PointwiseOptions compare = mode(attrs<tessera::BandMaskOptions>(n).compare);
  TensorId keep = kNone;
  if (slot(n.in, kLeft) != kNone) {
    keep = c.apply(compare, exact, {add(M::sub, add(M::add, column, one(kLeft)), shift), row});
  } else {
    row = add(M::add, row, shift);
    if (slot(n.in, kShiftRight) != kNone) row = add(M::add, row, one(kShiftRight));
    keep = c.apply(compare, exact, {row, column});
  }
  c.apply(mode(M::select), n.compute, {from, one(kFill), keep}, c.whole(g, n.out[0]));
}

// --- affine_grid and its gradient
// Coordinate k of the regular grid over [-1, 1], for all of a tensor [n, (d,) h, w, ..]; coordinates count from the
// last dimension on. kNone where it is 1 everywhere.
TensorId regular_place(const Dims& grid, int k, TensorId of, DType type, Composite& c) {
  int axis = grid.size() - 2 - k;
  if (axis < 1) return kNone;
  TensorId at = positions(of, axis, type, c);
  if (grid[axis] == 1) return at;
  TensorId twice = c.apply(M::mul, type, at, c.constant(type, 2));
  TensorId part = c.apply(M::div, type, twice, c.constant(type, static_cast<double>(grid[axis] - 1)));
  return c.apply(M::sub, type, part, c.constant(type, 1));
}

DType wide(const Node& n) { return n.compute == DType::f64 ? DType::f64 : DType::f32; }

// Column k of theta [n, rows, columns], as the last dimension of the grid.
TensorId theta_column(const Graph& g, TensorId theta, const Dims& grid, int k, Composite& c) {
  const Tensor& t = g.tensor(theta);
  Dims dims = Dims::filled(grid.size(), 1), strides = Dims::filled(grid.size(), 0);
  int last = grid.size() - 1;
  dims[0] = grid[0], dims[last] = grid[last], strides[0] = t.strides[0], strides[last] = t.strides[1];
  return c.view(g, theta, dims, strides, k * t.strides[2]);
}

void affine_grid(const Graph& g, const Node& n, Composite& c) {
  const Dims& grid = g.tensor(n.out[0]).dims;
  DType type = wide(n);
  int coordinates = static_cast<int>(grid.back());
  // A tensor of the grid's sizes, for its positions alone.
  TensorId sizes = c.view(g, n.in[0], grid, Dims::filled(grid.size(), 0));
  TensorId sum = kNone;
  for (int k = 0; k < coordinates; ++k) {
    TensorId place = regular_place(grid, k, sizes, type, c);
    TensorId product = c.apply(M::mul, type, theta_column(g, n.in[0], grid, k, c), place);
    sum = sum == kNone ? product : c.apply(M::add, type, sum, product);
  }
  c.apply(M::add, type, sum, theta_column(g, n.in[0], grid, coordinates, c), c.whole(g, n.out[0]));
}

void affine_grid_gradient(const Graph& g, const Node& n, Composite& c) {
  const Dims& grid = g.tensor(n.in[0]).dims;
  DType type = wide(n);
  for (int k = 0; k <= static_cast<int>(grid.back()); ++k) {
    TensorId slopes = c.whole(g, n.in[0]), place = regular_place(grid, k, slopes, type, c);
    Node sum;
    sum.op = &op("reduce");
    sum.attrs = tessera::ReduceOptions{};
    sum.in = {place == kNone ? slopes : c.apply(M::mul, type, slopes, place)};
    sum.out = {theta_column(g, n.out[0], grid, k, c)};
    sum.compute = type;
    sum.compute_given = true;
    c.add(sum);
    c.end_stage();
  }
}

// --- normal random numbers
bool is_normal(const Node& n) {
  return is(n, "rng") && attrs<tessera::RngOptions>(n).distribution == tessera::Distribution::normal;
}

// Box and Muller: two uniform numbers make two normal ones.
void normal_numbers(const Graph& g, const Node& n, Composite& c) {
  const auto& o = attrs<tessera::RngOptions>(n);
  const Tensor& y = g.tensor(n.out[0]);
  DType type = y.dtype == DType::f64 ? DType::f64 : DType::f32;
  int64_t count = y.numel(), pairs = (count + 1) / 2;
  TensorId uniform = c.temporary(DType::f32, {2 * pairs});
  tessera::RngOptions numbers;
  numbers.distribution = tessera::Distribution::uniform;
  numbers.seed = o.seed, numbers.offset = o.offset;
  numbers.size = {2 * pairs};
  Node draw = n;
  draw.attrs = numbers;
  for (TensorId& t : draw.in)
    if (t != kNone) t = c.whole(g, t);
  draw.out = {uniform};
  c.add(draw);
  c.end_stage();
  bool dense = y.strides == packed_strides(y.dims);
  TensorId line = dense ? c.view(g, n.out[0], {count}, {1}) : c.temporary(type, {count});
  for (int64_t odd : {0, 1}) {
    Dims half = {odd ? count / 2 : pairs};
    auto apply = [&](M m, TensorId a, TensorId b = kNone, TensorId to = kNone) { return c.apply(m, type, a, b, to); };
    auto number = [&](double v) { return c.constant(type, v); };
    TensorId u = c.reshaped(uniform, half, {2}), v = c.reshaped(uniform, half, {2}, 1);
    TensorId radius = apply(M::sqrt, apply(M::mul, apply(M::log, apply(M::sub, number(1), u)), number(-2)));
    TensorId turn = apply(odd ? M::sin : M::cos, apply(M::mul, v, number(2 * std::numbers::pi)));
    TensorId spread = apply(M::mul, apply(M::mul, radius, turn), number(o.stddev));
    apply(M::add, spread, number(o.mean), c.reshaped(line, half, {2}, odd));
    c.end_stage();
  }
  if (!dense) c.apply(M::identity, type, c.reshaped(line, y.dims, packed_strides(y.dims)), kNone, c.whole(g, n.out[0]));
}

}  // namespace

bool is_generated(const Node& n) { return has_lengths(n) || is_normal(n) || n.op->name.starts_with("affine_grid"); }

void generate(const Graph& g, const Node& n, Composite& c) {
  if (has_lengths(n)) return shifted_mask(g, n, c);
  if (is_normal(n)) return normal_numbers(g, n, c);
  return is(n, "affine_grid") ? affine_grid(g, n, c) : affine_grid_gradient(g, n, c);
}

}  // namespace tsr
