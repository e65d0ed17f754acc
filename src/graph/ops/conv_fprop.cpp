// SPDX-License-Identifier: Apache-2.0
// Convolution with one to three spatial dimensions, grouped up to depthwise.
#include "graph/gradient.hpp"
#include "graph/ops/conv.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using namespace slots::conv_fprop;

void infer(Infer& ctx) {
  const Tensor &x = ctx.in(kX), &w = ctx.in(kW);
  ctx.check_rank(kX, 3, 5);
  ctx.check(w.rank() == x.rank(), ctx.describe(kW), " must have as many dimensions as ", ctx.describe(kX));
  check_conv_options(ctx, x.rank() - 2, kC);
  ctx.check(ctx.options<tessera::ConvOptions>().size.empty(),
            "option size is for the gradients; y's sizes follow from x and w");
  Dims y = conv_output(ctx, x.dims, w.dims);
  ctx.check_dims(kC, y);
  ctx.output(0, y, ctx.node().compute, &x);
}

double flops(const Graph& g, const Node& n) { return conv_flops(g.tensor(n.out[0]).dims, g.tensor(n.in[kW]).dims); }

double terms(const Graph& g, const Node& n) {
  const Dims& w = g.tensor(n.in[kW]).dims;
  return static_cast<double>(volume(w)) / static_cast<double>(std::max<int64_t>(1, w[0]));
}

void backward(Gradient& g) {
  TensorId d = g.d();
  tessera::ConvOptions o = conv_gradient(g, d, kC);
  if (g.wants(kX)) g.add(kX, g.make_sized(ops::conv_dgrad, {d, g.in(kW)}, o, g.dims(kX)));
  if (g.wants(kW)) g.add(kW, g.make_sized(ops::conv_wgrad, {d, g.in(kX)}, o, g.dims(kW)));
}

}  // namespace

const OpSpec ops::conv_fprop = {
    .name = "conv_fprop",
    .family = Family::conv,
    .in = {{kX, "x"}, {kW, "w"}, {kC, "c", Slot::optional}},
    .out = {{"y"}},
    .defaults = tessera::ConvOptions{},
    .fields = conv_fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "y[n, k, p] = alpha sum_{c, q} x[n, g(k) + c, p stride - pad + q dilation] w[k, c, q] + beta c[n, k, p]; "
        "g(k) is the first channel of k's group, terms outside x are left out; mode convolution reads w[k, c, taps - 1 "
        "- q]",
    .shapes =
        "x [n, c, ..], w [k, c / groups, ..], c like y -> y [n, k, (size + pad + post_pad - (taps - 1) dilation - 1) "
        "/ stride + 1 ..]; 1 to 3 spatial dimensions; any type, i8 accumulates in i32",
    .example = "x = input f32[1,4,6,6]\nw = input f32[2,4,3,3]\ny = conv_fprop x w pad=1,1 stride=2,2\noutput y",
    .gradient = backward,
};

}  // namespace tsr
