// SPDX-License-Identifier: Apache-2.0
// Gradient of resample: each element of dy goes back to where its value came from.
#include "graph/ops/list.hpp"
#include "graph/ops/resample.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::ResampleMode;
using tessera::ResampleOptions;
using namespace slots::resample_bwd;

// The smallest size whose window count is `count`.
int64_t smallest_size(const ResampleOptions& o, int64_t count, int d) {
  auto k = static_cast<size_t>(d);
  Ratio w = o.window[k], s = o.stride[k], p = o.pad[k], q = o.post_pad[k];
  int64_t common = w.den * p.den * q.den;
  int64_t rest = w.num * p.den * q.den - p.num * w.den * q.den - q.num * w.den * p.den;
  return std::max<int64_t>(0, ceil_div((count - 1) * s.num * common + rest * s.den, common * s.den));
}

void infer(Infer& ctx) {
  const Tensor &dy = ctx.in(kDy), &declared = ctx.out(0);
  ctx.check_rank(kDy, 3, 5);
  ctx.check(!is_complex(dy.dtype), ctx.describe(kDy), " must hold real numbers or integers");
  int spatial = dy.rank() - 2;
  check_resample_options(ctx, spatial);
  auto& options = ctx.edit_options<ResampleOptions>();
  auto o = with_defaults(options, spatial);
  ctx.check(o.mode != ResampleMode::max_pool || ctx.has(kX) || ctx.has(kIndex), "mode max_pool needs input index or x");
  ctx.check(o.mode == ResampleMode::max_pool || !ctx.has(kIndex), "input index is for mode max_pool");
  ctx.check_dims(kY, dy.dims);
  ctx.check_dims(kIndex, dy.dims);
  ctx.check_type(kIndex, {DType::i8, DType::i32, DType::i64});
  for (int d = 0; d < spatial; ++d) check_resample_range(ctx, o, dy.dims[2 + d], d);
  Dims dx{dy.dims[0], dy.dims[1]};
  if (ctx.has(kX)) {
    const Dims& x = ctx.in(kX).dims;
    ctx.check(x.size() == dy.rank() && x[0] == dx[0] && x[1] == dx[1], ctx.describe(kX),
              " must have the first two sizes of ", ctx.describe(kDy));
    dx = x;
  } else {
    bool given = declared.dims_given && declared.rank() == dy.rank();
    Ints size, smallest;
    for (int d = 0; d < spatial; ++d) {
      smallest.push_back(smallest_size(o, dy.dims[2 + d], d));
      size.push_back(given ? declared.dims[2 + d] : o.size.empty() ? smallest.back() : o.size[static_cast<size_t>(d)]);
      dx.push_back(size.back());
    }
    // A declared size becomes part of the options, so that the text form carries it.
    if (size != smallest || !o.size.empty()) options.size = size;
  }
  for (int d = 0; d < spatial; ++d)
    ctx.check(dx[2 + d] > 0 || dy.dims[2 + d] == 0, "dx would have size 0 in dimension ", 2 + d, " though ",
              ctx.describe(kDy), " has elements");
  ctx.output(0, dx, ctx.node().compute, &dy);
}

double terms(const Graph& g, const Node& n) {
  const Tensor& dy = g.tensor(n.in[kDy]);
  auto o = with_defaults(attrs<ResampleOptions>(n), dy.rank() - 2);
  double positions = 1;
  for (int d = 0; d < dy.rank() - 2; ++d) positions *= static_cast<double>(window_extent(o, d));
  auto elements = static_cast<double>(std::max<int64_t>(1, g.tensor(n.out[0]).numel()));
  return std::max(1.0, positions * static_cast<double>(dy.numel()) / elements);
}

}  // namespace

const OpSpec ops::resample_bwd = {
    .name = "resample_bwd",
    .family = Family::resample,
    .in = {{kDy, "dy"}, {kX, "x", Slot::optional}, {kY, "y", Slot::optional}, {kIndex, "index", Slot::optional}},
    .out = {{"dx"}},
    .defaults = ResampleOptions{},
    .fields = resample_fields,
    .infer = infer,
    .terms = terms,
    .formula =
        "dx = alpha (d resample / d x)^T dy; max_pool sends dy to the element that index names, or to the first "
        "maximum of "
        "the window when only x is given; y is not needed and ignored",
    .shapes =
        "dy [n, c, ..], x and y of the forward operation, index like dy (i8, i32 or i64) -> dx [n, c, ..] with the "
        "spatial "
        "size of x, of the declared output, of option size, or the smallest possible; real and integer types",
    .example =
        "x = input f32[1,2,6,6]\ndy = input f32[1,2,3,3]\n"
        "dx = resample_bwd dy x=x mode=max_pool window=3,3 stride=2,2 pad=1,1\noutput dx",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
