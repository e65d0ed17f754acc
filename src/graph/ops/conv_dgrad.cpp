// SPDX-License-Identifier: Apache-2.0
// Gradient of a convolution with respect to its input: every product of the forward sum goes back to its x.
#include "graph/gradient.hpp"
#include "graph/ops/conv.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using namespace slots::conv_dgrad;

void infer(Infer& ctx) {
  const Tensor &dy = ctx.in(kDy), &w = ctx.in(kW), &declared = ctx.out(0);
  ctx.check_rank(kDy, 3, 5);
  ctx.check(w.rank() == dy.rank(), ctx.describe(kW), " must have as many dimensions as ", ctx.describe(kDy));
  int spatial = dy.rank() - 2;
  check_conv_options(ctx, spatial, kC);
  bool given = declared.dims_given && declared.rank() == dy.rank() && w.dims[1] > 0;
  int64_t groups =
      open_groups(ctx, given ? std::optional(std::max<int64_t>(1, declared.dims[1] / w.dims[1])) : std::nullopt);
  auto& options = ctx.edit_options<tessera::ConvOptions>();
  if (groups != 1) options.groups = groups;
  auto o = with_defaults(options, spatial);
  Dims dx{dy.dims[0], w.dims[1] * groups};
  Ints size, smallest;
  for (int i = 0; i < spatial; ++i) {
    auto d = static_cast<size_t>(i);
    int64_t last, reach = filter_reach(ctx, w.dims[2 + i], o.dilation[d], i);
    bool fits = !__builtin_mul_overflow(dy.dims[2 + i] - 1, o.stride[d], &last) && last < int64_t{1} << 61;
    ctx.check(fits, ctx.describe(kDy), " with stride ", o.stride[d], " is too large in spatial dimension ", i);
    smallest.push_back(std::max<int64_t>(0, last + reach - o.pad[d] - o.post_pad[d]));
    size.push_back(given ? declared.dims[2 + i] : o.size.empty() ? smallest[d] : o.size[d]);
    dx.push_back(size[d]);
  }
  // A declared size becomes part of the options, so that the text form carries it.
  if (size != smallest || !o.size.empty()) options.size = size;
  Dims y = conv_output(ctx, dx, w.dims);
  ctx.check(y == dy.dims, "an input of sizes ", dx, " and ", ctx.describe(kW), " give ", y, ", but there is ",
            ctx.describe(kDy), "; option size tells the spatial size of dx where several are possible");
  ctx.check_dims(kC, dx);
  ctx.output(0, dx, ctx.node().compute, &dy);
}

double flops(const Graph& g, const Node& n) { return conv_flops(g.tensor(n.in[kDy]).dims, g.tensor(n.in[kW]).dims); }

double terms(const Graph& g, const Node& n) {
  const Dims& w = g.tensor(n.in[kW]).dims;
  return static_cast<double>(volume(w)) / static_cast<double>(std::max<int64_t>(1, g.tensor(n.out[0]).dims[1]));
}

void backward(Gradient& g) {
  TensorId d = g.d();
  tessera::ConvOptions o = conv_gradient(g, d, kC);
  if (g.wants(kDy)) g.add(kDy, g.make(ops::conv_fprop, {d, g.in(kW)}, o));
  if (g.wants(kW)) g.add(kW, g.make_sized(ops::conv_wgrad, {g.in(kDy), d}, o, g.dims(kW)));
}

}  // namespace

const OpSpec ops::conv_dgrad = {
    .name = "conv_dgrad",
    .family = Family::conv,
    .in = {{kDy, "dy"}, {kW, "w"}, {kC, "c", Slot::optional}},
    .out = {{"dx"}},
    .defaults = tessera::ConvOptions{},
    .fields = conv_fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "dx[n, g(k) + c, p stride - pad + q dilation] = alpha sum_{k, p, q} dy[n, k, p] w[k, c, q] + beta c; "
        "the gradient of conv_fprop with the same options",
    .shapes =
        "dy [n, k, ..], w [k, c / groups, ..], c like dx -> dx [n, c, ..]; spatial size by the declared output, option "
        "size, or the smallest possible; option groups tells the channels (1 unless declared); any type",
    .example =
        "dy = input f32[1,2,3,3]\nw = input f32[2,4,3,3]\ndx = conv_dgrad dy w pad=1,1 stride=2,2 size=6,6\noutput dx",
    .gradient = backward,
};

}  // namespace tsr
