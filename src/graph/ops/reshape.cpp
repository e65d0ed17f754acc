// SPDX-License-Identifier: Apache-2.0
// Reshape: the same elements under other sizes, in memory order (view) or in row-major order (logical).
#include "graph/ops/reshape.hpp"

#include "graph/gradient.hpp"
#include "graph/layouts.hpp"
#include "graph/ops/declared.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::ReshapeOptions;
constexpr std::string_view kModes[] = {"view", "logical"};

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<ReshapeOptions>(&options);
  v("size", o.size, "sizes of y, of which one may be -1: what is left; left out: as y is declared");
  v("mode", o.mode, kModes, "logical: elements keep their row-major order; view: that of memory");
}

// Sizes as the option gives them; one -1 stands for whatever is left.
Dims resolve(const Infer& ctx, const Ints& size, int64_t numel) {
  Dims dims(size);
  int open = -1;
  for (int i = 0; i < dims.size(); ++i) {
    ctx.check(dims[i] >= -1 && (dims[i] != -1 || open < 0), "size ", dims,
              " may hold one -1 and otherwise no negative value");
    if (dims[i] == -1) open = i;
  }
  if (open < 0) return dims;
  dims[open] = 1;
  int64_t known = volume(dims);
  ctx.check(known > 0 && numel % known == 0, "the ", numel, " elements of ", ctx.describe(0),
            " do not divide into size ", Dims(size));
  dims[open] = numel / known;
  return dims;
}

// A view whose strides turn dimensions around keeps doing so when x has other sizes (see Graph::with_shapes); nullopt
// when y is no such view.
std::optional<Dims> turned_sizes(const Tensor& x, const Tensor& y) {
  std::vector<int> from = memory_order(x.dims, x.strides), to = memory_order(y.dims, y.strides);
  if (x.rank() != y.rank() || from.size() != to.size() || from == to) return std::nullopt;
  Dims dims = Dims::filled(y.rank(), 1);
  for (size_t i = 0; i < from.size(); ++i) dims[to[i]] = x.dims[from[i]];
  return dims;
}

void infer(Infer& ctx) {
  auto& o = ctx.edit_options<ReshapeOptions>();
  const Tensor& x = ctx.in(0);
  const Tensor y = ctx.out(0);
  std::optional<Dims> turned;
  if (o.mode == tessera::ReshapeMode::view && o.size.empty() && !y.dims_given) turned = turned_sizes(x, y);
  Dims dims = turned ? *turned : resolve(ctx, declared_sizes(ctx, o.size), x.numel());
  ctx.check(volume(dims) == x.numel(), ctx.describe(0), " has ", x.numel(), " elements, sizes ", dims, " hold ",
            volume(dims));
  ctx.output(0, dims, x.dtype);
}

void backward(Gradient& g) {
  TensorId x = g.in(0), y = g.out(0);
  auto row_major = [&](TensorId t) {
    return strides_like(g.tensor(t).dims, &g.tensor(t)) == packed_strides(g.tensor(t).dims);
  };
  bool logical = g.options<ReshapeOptions>().mode == tessera::ReshapeMode::logical;
  if (logical || (row_major(x) && row_major(y))) return g.add(0, g.reshape(g.d(), g.dims(0)));
  TensorId d = g.in_order_of(g.d(), y);
  Tensor t;
  t.dims = g.dims(0);
  t.strides = strides_like(t.dims, &g.tensor(x));
  t.dims_given = t.strides_given = true;
  g.add(0, g.make(ops::reshape, {d}, ReshapeOptions{.size = {}, .mode = tessera::ReshapeMode::view}, &t));
}

}  // namespace

TensorId with_ones(Graph& g, TensorId x, int at, int ones) {
  Ints size = g.tensor(x).dims.to_vector();
  if (g.tensor(x).numel() > 0) size[0] = -1;
  size.insert(size.begin() + at, static_cast<size_t>(ones), 1);
  Node n;
  n.op = &ops::reshape;
  n.in = {x};
  n.attrs = ReshapeOptions{.size = std::move(size)};
  return g.node(g.add_node(std::move(n))).out[0];
}

const OpSpec ops::reshape = {
    .name = "reshape",
    .family = Family::movement,
    .in = {{"x"}},
    .out = {{"y"}},
    .defaults = ReshapeOptions{},
    .fields = fields,
    .infer = infer,
    .formula =
        "logical: the i-th element of y in row-major order is the i-th of x in row-major order, whatever the strides; "
        "view: both in the order of their strides (so y may be a transposed view of x)",
    .shapes =
        "x of any sizes -> y of `size` (one -1 is filled in) or of its declared sizes, equally many elements; any type",
    .example = "x = input f32[2,3,4]\ny = reshape x size=6,-1\noutput y",
    .gradient = backward,
};

}  // namespace tsr
