// SPDX-License-Identifier: Apache-2.0
// Pooling and interpolation over one to three spatial dimensions.
#include "graph/ops/resample.hpp"
#include "graph/gradient.hpp"

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::ResampleMode;
using tessera::ResampleOptions;

// 1 + floor((size + pad + post_pad - window) / stride), exactly.
int64_t window_count(const ResampleOptions& o, int64_t size, int d) {
  auto k = static_cast<size_t>(d);
  Ratio w = o.window[k], s = o.stride[k], p = o.pad[k], q = o.post_pad[k];
  int64_t common = w.den * p.den * q.den;
  int64_t room = size * common + p.num * w.den * q.den + q.num * w.den * p.den - w.num * p.den * q.den;
  return room < 0 ? 0 : 1 + floor_div(room * s.den, common * s.num);
}

void infer(Infer& ctx) {
  const Tensor &x = ctx.in(0), &declared = ctx.out(0);
  ctx.check_rank(0, 3, 5);
  ctx.check(!is_complex(x.dtype), ctx.describe(0), " must hold real numbers or integers");
  int spatial = x.rank() - 2;
  check_resample_options(ctx, spatial);
  auto& options = ctx.edit_options<ResampleOptions>();
  auto o = with_defaults(options, spatial);
  bool given = declared.dims_given && declared.rank() == x.rank();
  Dims y{x.dims[0], x.dims[1]};
  Ints size, counted;
  for (int d = 0; d < spatial; ++d) {
    check_resample_range(ctx, o, x.dims[2 + d], d);
    counted.push_back(window_count(o, x.dims[2 + d], d));
    size.push_back(given ? declared.dims[2 + d] : o.size.empty() ? counted.back() : o.size[static_cast<size_t>(d)]);
    ctx.check(size.back() == 0 || x.dims[2 + d] > 0, ctx.describe(0), ": nothing can be made of size 0 of dimension ",
              2 + d);
    check_resample_range(ctx, o, size.back(), d);
    y.push_back(size.back());
  }
  // A declared size becomes part of the options, so that the text form carries it.
  if (size != counted || !o.size.empty()) options.size = size;
  ctx.output(0, y, ctx.node().compute, &x);
  if (!ctx.wants(1)) return;
  ctx.check(o.mode == ResampleMode::max_pool, "output index is for mode max_pool");
  int64_t positions = 1;
  for (int d = 0; d < spatial; ++d) positions *= window_extent(o, d);
  ctx.output(1, y, positions <= 128 ? DType::i8 : DType::i32, &x);
  DType type = ctx.out(1).dtype;
  ctx.check(type == DType::i32 || type == DType::i64 || (type == DType::i8 && positions <= 128), "output index '",
            ctx.out(1).name, "' has type ", type, "; allowed: i32, i64, and i8 for windows of up to 128 positions");
}

double terms(const Graph& g, const Node& n) {
  auto o = with_defaults(attrs<ResampleOptions>(n), g.tensor(n.in[0]).rank() - 2);
  double positions = 1;
  for (int d = 0; d < g.tensor(n.in[0]).rank() - 2; ++d) positions *= static_cast<double>(window_extent(o, d));
  return positions;
}

double flops(const Graph& g, const Node& n) { return terms(g, n) * static_cast<double>(g.tensor(n.out[0]).numel()); }

void backward(Gradient& g) {
  auto o = g.options<ResampleOptions>();
  o.size = {};  // here it would be that of x
  TensorId index = o.mode == ResampleMode::max_pool ? g.out(1) : kNone;
  g.add(0, g.make_sized(ops::resample_bwd, {g.d(), kNone, kNone, index}, o, g.dims(0)));
}

}  // namespace

const OpSpec ops::resample = {
    .name = "resample",
    .family = Family::resample,
    .in = {{"x"}},
    .out = {{"y"}, {"index", Slot::optional}},
    .defaults = ResampleOptions{},
    .fields = resample_fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "with s = o stride - pad in each dimension: nearest gives alpha x[floor(s + 1/2)]; bilinear mixes x[floor(s)] "
        "and "
        "x[floor(s) + 1] by the fraction of s; pooling gives alpha times the mean (over the whole window, or over its "
        "elements inside x: exclude) or the maximum of x[i] for s <= i < s + window; index is the place of the first "
        "maximum in the window, row-major; outside x there is 0, -infinity or the nearest element (padding); the mean "
        "of "
        "nothing is 0; a NaN is the maximum",
    .shapes =
        "x [n, c, ..] -> y [n, c, 1 + floor((size + pad + post_pad - window) / stride) .., or as declared or by option "
        "size], index like y (i8, i32 or i64); 1 to 3 spatial dimensions; real and integer types",
    .example =
        "x = input f32[1,2,6,6]\ny, index:i = resample x mode=max_pool window=3,3 stride=2,2 pad=1,1\noutput y\noutput "
        "i",
    .gradient = backward,
    .aliases = {{"max_pool", "max_pool"}, {"avg_pool", "avg_pool_include"}},
};

}  // namespace tsr
