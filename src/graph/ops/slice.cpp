// SPDX-License-Identifier: Apache-2.0
// Slice: every stride-th element between start and limit of each dimension.
#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::SliceOptions;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<SliceOptions>(&options);
  v("start", o.start);
  v("limit", o.limit);
  v("stride", o.stride);
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<SliceOptions>();
  const Tensor& x = ctx.in(0);
  auto value = [&](const Ints& v, std::string_view name, int i, int64_t fallback) {
    if (v.empty()) return fallback;
    ctx.check(static_cast<int>(v.size()) == x.rank(), name, " ", Dims(v), " must hold one value for each of the ",
              x.rank(), " dimensions of ", ctx.describe(0));
    return v[static_cast<size_t>(i)];
  };
  Dims dims = x.dims;
  for (int i = 0; i < x.rank(); ++i) {
    int64_t start = value(o.start, "start", i, 0), limit = value(o.limit, "limit", i, x.dims[i]),
            stride = value(o.stride, "stride", i, 1);
    ctx.check(start >= 0 && start <= limit && limit <= x.dims[i], "start ", start, " and limit ", limit,
              " of dimension ", i, " must satisfy 0 <= start <= limit <= ", x.dims[i]);
    ctx.check(stride > 0, "stride ", stride, " of dimension ", i, " must be positive");
    dims[i] = (limit - start) / stride + ((limit - start) % stride != 0);
  }
  ctx.output(0, dims, x.dtype, &x);
}

}  // namespace

const OpSpec ops::slice = {
    .name = "slice",
    .family = Family::movement,
    .in = {{"x"}},
    .out = {{"y"}},
    .defaults = SliceOptions{},
    .fields = fields,
    .infer = infer,
    .formula = "y[i_0, i_1, ..] = x[start_0 + stride_0 i_0, start_1 + stride_1 i_1, ..]",
    .shapes =
        "x of any sizes -> y with size ceil((limit - start) / stride) in each dimension; start defaults to 0, limit to "
        "the size, "
        "stride to 1; any type",
    .example = "x = input f32[2,5,4]\ny = slice x start=0,1,0 limit=2,5,4 stride=1,2,1\noutput y",
};

}  // namespace tsr
