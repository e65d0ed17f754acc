// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/norm_shape.hpp"

#include <algorithm>
#include <cmath>

namespace tsr {
namespace {

using tessera::NormMode;
using tessera::NormOptions;

constexpr std::string_view kModes[] = {"layer", "instance", "batch", "group", "rms", "ada_layer"};

bool by_channel(NormMode m) { return m == NormMode::instance || m == NormMode::batch || m == NormMode::group; }

Dims with_rank(const Dims& d, int rank) {
  Dims r = Dims::filled(rank, 1);
  for (int i = 0; i < d.size(); ++i) r[rank - d.size() + i] = d[i];
  return r;
}

// Layer, rms and adaptive layer norm: is each axis normalised?
std::vector<bool> normalized_axes(const NormOptions& o, const Dims& x, const Dims* scale, const Dims* stats) {
  int rank = x.size(), first = o.mode == NormMode::ada_layer ? 1 : 0;
  std::vector<bool> axes(static_cast<size_t>(rank), false);
  auto found = [&] { return std::find(axes.begin(), axes.end(), true) != axes.end(); };
  for (int64_t a : o.axes) axes[static_cast<size_t>(normalize_axis(a, rank))] = true;
  if (found()) return axes;
  for (int d = first; scale && d < rank; ++d) axes[static_cast<size_t>(d)] = with_rank(*scale, rank)[d] != 1;
  if (found()) return axes;
  for (int d = first; stats && d < rank; ++d) axes[static_cast<size_t>(d)] = (*stats)[d] == 1 && x[d] != 1;
  if (found()) return axes;
  for (int d = std::min(1, rank - 1); d < rank; ++d) axes[static_cast<size_t>(d)] = true;
  return axes;
}

int slot_of(const Node& n, std::string_view name) {
  for (size_t i = 0; i < n.op->in.size(); ++i)
    if (n.op->in[i].name == name) return static_cast<int>(i);
  return -1;
}

// Sizes of the first of these inputs that is there.
const Dims* first_dims(const Graph& g, const Node& n, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (int s = slot_of(n, name); s >= 0 && n.in[static_cast<size_t>(s)] != kNone)
      return &g.tensor(n.in[static_cast<size_t>(s)]).dims;
  return nullptr;
}

void check_params(const Infer& ctx, int slot, const NormShape& shape) {
  NormMode mode = ctx.options<NormOptions>().mode;
  const Dims& x = ctx.in(0).dims;
  ctx.check(with_rank(ctx.in(slot).dims, x.size()) == shape.params, ctx.describe(slot), " must have sizes ",
            shape.params);
  for (int d = 0; d < x.size(); ++d) {
    int64_t size = shape.params[d];
    ctx.check(size == 1 || size == x[d], ctx.describe(slot), ": size ", size, " of dimension ", d, " must be 1 or ",
              x[d]);
    bool may_vary = by_channel(mode) ? d > 0 : shape.stats[d] == 1 || (mode == NormMode::ada_layer && d == 0);
    ctx.check(size == 1 || may_vary, ctx.describe(slot), " must be 1 in dimension ", d, ", which is not normalised");
  }
  if (mode == NormMode::batch)
    ctx.check(shape.params[1] == x[1], ctx.describe(slot), " must have ", x[1], " channels in dimension 1");
  if (mode == NormMode::ada_layer)
    ctx.check(shape.params[0] == x[0], ctx.describe(slot), " must have a row for each of the ", x[0],
              " batches in dimension 0");
}

}  // namespace

std::span<const std::string_view> norm_modes() { return kModes; }

NormShape norm_shape(const NormOptions& o, const Dims& x, const Dims* scale, const Dims* stats) {
  int rank = x.size();
  NormShape s{Dims::filled(rank, 1), Dims::filled(rank, 1)};
  if (by_channel(o.mode)) {
    s.params[1] = x[1];
    if (o.mode == NormMode::batch) {
      // Per activation when scale has spatial sizes, per channel otherwise.
      if (scale || stats) s.params = with_rank(scale ? *scale : *stats, rank);
      s.stats = s.params;
    } else {
      s.stats[0] = x[0];
      s.stats[1] = o.mode == NormMode::group ? o.groups : x[1];
    }
    return s;
  }
  std::vector<bool> normalized = normalized_axes(o, x, scale, stats);
  for (int d = 0; d < rank; ++d) (normalized[static_cast<size_t>(d)] ? s.params : s.stats)[d] = x[d];
  if (o.mode == NormMode::ada_layer) s.params[0] = x[0];
  if (scale) s.params = with_rank(*scale, rank);
  return s;
}

NormShape norm_shape(const Graph& g, const Node& n) {
  return norm_shape(attrs<NormOptions>(n), g.tensor(n.in[0]).dims, first_dims(g, n, {"scale", "bias"}),
                    first_dims(g, n, {"mean", "inv_variance"}));
}

void check_scalar(const Infer& ctx, int slot) {
  if (ctx.has(slot))
    ctx.check(ctx.in(slot).numel() == 1, ctx.describe(slot), " must hold one value, it holds ", ctx.in(slot).numel());
}

NormShape check_norm(const Infer& ctx) {
  const auto& o = ctx.options<NormOptions>();
  const Dims& x = ctx.in(0).dims;
  ctx.check_rank(0, by_channel(o.mode) || o.mode == NormMode::ada_layer ? 2 : 1, kMaxRank);
  for (int i = 0; i < ctx.in_count(); ++i)
    if (ctx.has(i))
      ctx.check(is_real(ctx.in(i).dtype), ctx.describe(i), " must have a floating-point type, it has ",
                ctx.in(i).dtype);
  ctx.check(o.eps >= 0 && std::isfinite(o.eps), "eps=", o.eps, " must be finite and not negative");
  ctx.check(o.axes.empty() || !by_channel(o.mode), "axes apply to layer, rms and ada_layer norms only");
  for (int64_t a : o.axes)
    ctx.check(a >= -x.size() && a < x.size(), "axis ", a, " is not a dimension of ", ctx.describe(0));
  ctx.check(o.groups == 1 || o.mode == NormMode::group, "groups=", o.groups, " applies to group_norm only");
  if (o.mode == NormMode::group)
    ctx.check(o.groups >= 1 && x[1] % o.groups == 0, "groups=", o.groups, " must divide the ", x[1], " channels of ",
              ctx.describe(0));
  if (int s = slot_of(ctx.node(), "epsilon"); s >= 0) check_scalar(ctx, s);
  if (o.mode == NormMode::ada_layer) (void)ctx.in(slot_of(ctx.node(), "scale"));
  bool full_rank = by_channel(o.mode) || o.mode == NormMode::ada_layer;
  for (std::string_view name : {"scale", "bias"})
    if (int s = slot_of(ctx.node(), name); s >= 0) ctx.check_rank(s, full_rank ? x.size() : 1, x.size());
  for (std::string_view name : {"mean", "inv_variance", "variance"})
    if (int s = slot_of(ctx.node(), name); s >= 0) ctx.check_rank(s, x.size(), x.size());
  NormShape shape = norm_shape(ctx.graph(), ctx.node());
  for (std::string_view name : {"scale", "bias"})
    if (int s = slot_of(ctx.node(), name); s >= 0 && ctx.has(s)) check_params(ctx, s, shape);
  if (o.mode == NormMode::rms)
    if (int s = slot_of(ctx.node(), "mean"); ctx.has(s)) ctx.error(ctx.describe(s), ": rms_norm has no mean");
  for (std::string_view name : {"mean", "inv_variance", "variance"})
    if (int s = slot_of(ctx.node(), name); s >= 0) ctx.check_dims(s, shape.stats);
  return shape;
}

double norm_terms(const Graph& g, const Node& n) {
  NormShape s = norm_shape(g, n);
  auto fewest = static_cast<double>(std::min(volume(s.stats), volume(s.params)));
  return fewest > 0 ? static_cast<double>(g.tensor(n.in[0]).numel()) / fewest : 1;
}

}  // namespace tsr
