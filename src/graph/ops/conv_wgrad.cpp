// SPDX-License-Identifier: Apache-2.0
// Gradient of a convolution with respect to its filter: every product of the forward sum goes back to its w.
#include "graph/gradient.hpp"
#include "graph/ops/conv.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using namespace slots::conv_wgrad;

void infer(Infer& ctx) {
  const Tensor &dy = ctx.in(kDy), &x = ctx.in(kX), &declared = ctx.out(0);
  ctx.check_rank(kDy, 3, 5);
  ctx.check(x.rank() == dy.rank(), ctx.describe(kX), " must have as many dimensions as ", ctx.describe(kDy));
  int spatial = dy.rank() - 2;
  check_conv_options(ctx, spatial, kC);
  auto& o = ctx.edit_options<tessera::ConvOptions>();
  bool given = declared.dims_given && declared.rank() == dy.rank() && declared.dims[1] > 0;
  ctx.check(given || !o.size.empty(),
            "the size of the filter is open: give option size or declare the output with its sizes");
  int64_t groups = open_groups(ctx, given ? std::optional(x.dims[1] / declared.dims[1]) : std::nullopt);
  ctx.check(groups > 0 && x.dims[1] % groups == 0, ctx.describe(kX), ": its channels must be a multiple of the ",
            groups, " groups");
  // What the author declared becomes part of the options: the filter keeps its size when the other sizes change.
  if (given) o.size = Ints(declared.dims.begin() + 2, declared.dims.end());
  if (groups != 1) o.groups = groups;
  Dims dw{dy.dims[1], x.dims[1] / groups};
  for (int64_t s : o.size) dw.push_back(s);
  Dims y = conv_output(ctx, x.dims, dw);
  ctx.check(y == dy.dims, ctx.describe(kX), " and a filter of sizes ", dw, " give ", y, ", but there is ",
            ctx.describe(kDy));
  ctx.check_dims(kC, dw);
  ctx.output(0, dw, ctx.node().compute, &x);
}

double flops(const Graph& g, const Node& n) { return conv_flops(g.tensor(n.in[kDy]).dims, g.tensor(n.out[0]).dims); }

double terms(const Graph& g, const Node& n) {
  const Dims& dy = g.tensor(n.in[kDy]).dims;
  return static_cast<double>(volume(dy)) / static_cast<double>(std::max<int64_t>(1, dy[1]));
}

void backward(Gradient& g) {
  TensorId d = g.d();
  tessera::ConvOptions o = conv_gradient(g, d, kC);
  if (g.wants(kDy)) g.add(kDy, g.make(ops::conv_fprop, {g.in(kX), d}, o));
  if (g.wants(kX)) g.add(kX, g.make_sized(ops::conv_dgrad, {g.in(kDy), d}, o, g.dims(kX)));
}

}  // namespace

const OpSpec ops::conv_wgrad = {
    .name = "conv_wgrad",
    .family = Family::conv,
    .in = {{kDy, "dy"}, {kX, "x"}, {kC, "c", Slot::optional}},
    .out = {{"dw"}},
    .defaults = tessera::ConvOptions{},
    .fields = conv_fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "dw[k, c, q] = alpha sum_{n, p} dy[n, k, p] x[n, g(k) + c, p stride - pad + q dilation] + beta c[k, c, q]; "
        "the gradient of conv_fprop with the same options",
    .shapes =
        "dy [n, k, ..], x [n, c, ..], c like dw -> dw [k, c / groups, ..]; the filter's spatial size and the groups "
        "come "
        "from options size and groups or from the declared output; any type",
    .example =
        "dy = input f32[1,2,3,3]\nx = input f32[1,4,6,6]\ndw = conv_wgrad dy x pad=1,1 stride=2,2 size=3,3\noutput dw",
    .gradient = backward,
};

}  // namespace tsr
