// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes. Reduced axes stay, with size 1 (or a declared divisor). With group offsets, rows of axis 1
// are reduced group by group.
#include <set>

#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::ReduceOptions;
constexpr std::string_view kModes[] = {"add", "mul", "min", "max", "amax", "avg", "norm1", "norm2", "mul_no_zeros"};

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<ReduceOptions>(&options);
  v("mode", o.mode, kModes, "as the name of the operation says");
  v("axes", o.axes, "that are reduced; left out: those in which y has size 1, or all");
  v("deterministic", o.deterministic, "no engine whose result depends on timing");
  v("runs", o.runs, "instead of axes: how many neighbours of each dimension are reduced; 0: all");
}

// Declared sizes tell what is reduced: 1 all of a dimension, another divisor runs of neighbours (heads that share a
// gradient). Kept as options, because declared sizes do not survive Graph::with_shapes. Dimensions of size 1, which may
// have other sizes then, are not reduced; where there is no other, the last one is.
void from_declared(const Tensor& x, const Tensor& y, ReduceOptions& o) {
  bool runs = false;
  for (int i = 0; i < x.rank(); ++i) runs = runs || (y.dims[i] != 1 && y.dims[i] != x.dims[i]);
  if (runs && !o.axes.empty()) return;
  int last = -1;
  std::set<int64_t> axes;
  for (int64_t a : o.axes) axes.insert(normalize_axis(a, x.rank()));
  for (int i = 0; i < x.rank(); ++i) {
    bool divides = y.dims[i] > 1 && x.dims[i] % y.dims[i] == 0, whole = y.dims[i] == 1 && x.dims[i] != 1;
    if (y.dims[i] == 1) last = i;
    if (runs)
      o.runs.push_back(whole ? 0 : divides ? x.dims[i] / y.dims[i] : 1);
    else if (whole)
      axes.insert(i);
  }
  if (!runs && axes.empty() && last >= 0) axes.insert(last);
  if (axes.size() != o.axes.size()) o.axes.assign(axes.begin(), axes.end());
}

void infer(Infer& ctx) {
  auto& o = ctx.edit_options<ReduceOptions>();
  const Tensor& x = ctx.in(0);
  ctx.check(!is_complex(x.dtype) || o.mode == tessera::ReduceMode::add || o.mode == tessera::ReduceMode::mul ||
                o.mode == tessera::ReduceMode::avg,
            ctx.describe(0), ": complex numbers can be reduced by add, mul and avg only");
  Dims dims = x.dims;
  if (ctx.has(1)) {
    // Group g covers rows [offset[g], offset[g+1]) of axis 1; the last one ends at its end.
    ctx.check_integer(1);
    ctx.check(x.rank() >= 2 && x.dims[0] == 1, ctx.describe(0),
              " must have size 1 in dimension 0 for a grouped reduction");
    ctx.check(ctx.in(1).numel() >= 1, ctx.describe(1), " must hold at least one offset");
    dims[0] = ctx.in(1).numel();
    dims[1] = 1;
    for (int64_t a : o.axes) dims[static_cast<int>(normalize_axis(a, x.rank()))] = a == 0 ? dims[0] : 1;
  } else {
    const Tensor& y = ctx.out(0);
    bool declared = o.runs.empty() && y.dims_given && y.rank() == x.rank();
    if (declared) from_declared(x, y, o);
    ctx.check(o.runs.empty() || (o.axes.empty() && static_cast<int>(o.runs.size()) == x.rank()), "runs ", Dims(o.runs),
              " must hold one length for each of the ", x.rank(), " dimensions of ", ctx.describe(0),
              " and excludes axes");
    for (int64_t a : o.axes) dims[static_cast<int>(normalize_axis(a, x.rank()))] = 1;
    for (int i = 0; i < static_cast<int>(o.runs.size()); ++i) {
      int64_t run = o.runs[static_cast<size_t>(i)];
      ctx.check(run >= 0 && (run == 0 || x.dims[i] % run == 0), "runs ", Dims(o.runs), ": size ", x.dims[i],
                " of dimension ", i, " is no multiple of ", run);
      dims[i] = run == 0 ? 1 : x.dims[i] / run;
    }
    if (o.axes.empty() && o.runs.empty() && !declared) dims = Dims::filled(x.rank(), 1);
  }
  ctx.output(0, dims, ctx.node().compute, &x);
}

double terms(const Graph& g, const Node& n) {
  auto out = static_cast<double>(g.tensor(n.out[0]).numel());
  return out > 0 ? static_cast<double>(g.tensor(n.in[0]).numel()) / out : 1;
}

double flops(const Graph& g, const Node& n) { return static_cast<double>(g.tensor(n.in[0]).numel()); }

// What remains of y's gradient where x is one of the elements that gave y; equal ones share it.
TensorId of_extremes(Gradient& g, TensorId d, TensorId x, const Ints& axes) {
  TensorId chosen = g.apply(PointwiseMode::cmp_eq, x, g.out(0));
  TensorId count = g.sum_over(g.select(chosen, g.number(1), g.number(0)), axes);
  return g.select(chosen, g.over(d, count), g.number(0));
}

// Product of the others: with one zero only that element has a gradient, with two none.
TensorId of_product(Gradient& g, TensorId d, const ReduceOptions& o) {
  ReduceOptions others = o;
  others.mode = tessera::ReduceMode::mul_no_zeros;
  TensorId x = g.in(0), zero = g.number(0), is_zero = g.compare(PointwiseMode::cmp_eq, x, 0);
  TensorId zeros = g.sum_over(g.select(is_zero, g.number(1), zero), o.axes);
  TensorId product = g.times(d, g.make(ops::reduce, {x}, others));
  TensorId at_zero = g.select(g.compare(PointwiseMode::cmp_eq, zeros, 1), product, zero);
  TensorId elsewhere = g.select(g.compare(PointwiseMode::cmp_eq, zeros, 0), g.over(product, x), zero);
  return g.select(is_zero, at_zero, elsewhere);
}

// Every element of d, repeated over the run that it stands for.
TensorId repeat_runs(Gradient& g, TensorId d, const Ints& runs) {
  Dims x = g.dims(0);
  for (int i = 0; i < x.size(); ++i) {
    if (runs[static_cast<size_t>(i)] <= 1) continue;
    // [.., y_i, ..] -> [.., y_i, 1, ..] -> [.., y_i, run, ..] -> [.., x_i, ..]
    Dims before = g.tensor(d).dims, apart, after = before;
    for (int k = 0; k < before.size(); ++k) {
      apart.push_back(before[k]);
      if (k == i) apart.push_back(1);
    }
    after[i] = x[i];
    d = g.reshape(d, apart);
    std::vector<TensorId> copies(static_cast<size_t>(runs[static_cast<size_t>(i)]), d);
    d = g.reshape(g.make(ops::concat, copies, tessera::ConcatOptions{.axis = i + 1}), after);
  }
  return d;
}

void backward(Gradient& g) {
  using M = tessera::ReduceMode;
  auto o = g.options<ReduceOptions>();
  if (g.has(1)) g.refuse(0, "there is no rule for groups of rows");
  bool runs = !o.runs.empty();
  if (runs && o.mode != M::add && o.mode != M::avg) g.refuse(0, "runs of neighbours have rules for add and avg only");
  TensorId x = g.in(0), y = g.out(0), d = g.narrow_d();
  if (!runs && o.axes.empty())
    for (int i = 0; i < g.dims(0).size(); ++i) o.axes.push_back(i);
  TensorId zero = g.number(0);
  auto sign = [&] { return g.minus(g.compare(PointwiseMode::cmp_gt, x, 0), g.compare(PointwiseMode::cmp_lt, x, 0)); };
  switch (o.mode) {
    case M::add:
      break;
    case M::avg: {  // counted in the graph, so that it serves other sizes
      o.mode = M::add;
      d = g.over(d, g.make(ops::reduce, {g.filled(1, x)}, o));
      break;
    }
    case M::min:
    case M::max:
      d = of_extremes(g, d, x, o.axes);
      break;
    case M::amax:
      d = g.times(of_extremes(g, d, g.apply(PointwiseMode::abs, x), o.axes), sign());
      break;
    case M::norm1:
      d = g.times(d, sign());
      break;
    case M::norm2:
      d = g.select(g.compare(PointwiseMode::cmp_eq, y, 0), zero, g.over(g.times(d, x), y));
      break;
    case M::mul:
      d = of_product(g, d, o);
      break;
    case M::mul_no_zeros:
      d = g.select(g.compare(PointwiseMode::cmp_eq, x, 0), zero, g.over(g.times(d, y), x));
      break;
  }
  if (runs) d = repeat_runs(g, g.expand(d, y), o.runs);
  g.add(0, d);
}

}  // namespace

const OpSpec ops::reduce = {
    .name = "reduce",
    .family = Family::reduction,
    .in = {{"x"}, {"group_offset", Slot::optional}},
    .out = {{"y"}},
    .defaults = ReduceOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula = "y = sum, product, min, max, max |x|, mean, sum |x|, sqrt(sum x^2) or product of non-zeros over `axes`",
    .shapes =
        "x of any rank -> y with reduced axes of size 1, or as declared: a divisor of the size reduces runs of "
        "neighbours; any type; "
        "integers are exact",
    .example = "x = input f32[2,3,4]\ny = reduce_max x axes=1,2\noutput y",
    .modes = kModes,
    .mode_prefix = "reduce_",
    .gradient = backward,
    .aliases = {{"sum", "add"}, {"mean", "avg"}},
};

}  // namespace tsr
