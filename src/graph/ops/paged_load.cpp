// SPDX-License-Identifier: Apache-2.0
// Gathers sequences from a container of pages (paged key/value caches).
#include "graph/ops/list.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::PagedLoadOptions;
using namespace slots::paged_load;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<PagedLoadOptions>(&options);
  v("size", o.size, "steps of the result; 0: those of its declared sizes, or all pages of the table");
  v("transposed", o.transposed, "the result is [b, h, d, s] instead of [b, h, s, d]");
}

void infer(Infer& ctx) {
  auto& o = ctx.edit_options<PagedLoadOptions>();
  const Tensor &pages = ctx.in(kContainer), &table = ctx.in(kTable), &y = ctx.out(0);
  ctx.check_rank(kContainer, 4, 4);
  ctx.check_rank(kTable, 4, 4);
  ctx.check_integer(kTable);
  ctx.check_integer(kSeqLen);
  ctx.check(table.dims[1] == 1 && table.dims[3] == 1, ctx.describe(kTable), " must have sizes [b,1,pages,1]");
  int64_t batch = table.dims[0], room;
  if (ctx.has(kSeqLen))
    ctx.check(ctx.in(kSeqLen).numel() == batch, ctx.describe(kSeqLen), " must hold ", batch, " lengths");
  ctx.check(!__builtin_mul_overflow(table.dims[2], pages.dims[2], &room), "the pages of ", ctx.describe(kTable),
            " hold more than 2^63 steps");
  int step_axis = o.transposed ? 3 : 2;
  if (o.size == 0 && y.dims_given && y.rank() == 4 && y.dims[step_axis] != room) o.size = y.dims[step_axis];
  ctx.check(o.size >= 0 && o.size <= room, "size ", o.size, " must be in 0..", room, ", the steps that the pages of ",
            ctx.describe(kTable), " hold");
  int64_t steps = o.size ? o.size : room;
  Dims dims = {batch, pages.dims[1], steps, pages.dims[3]};
  if (o.transposed) std::swap(dims[2], dims[3]);
  ctx.output(0, dims, pages.dtype);
}

}  // namespace

const OpSpec ops::paged_load = {
    .name = "paged_load",
    .family = Family::movement,
    .in = {{kContainer, "container"}, {kTable, "page_table"}, {kSeqLen, "seq_len", Slot::optional}},
    .out = {{"y"}},
    .defaults = PagedLoadOptions{},
    .fields = fields,
    .infer = infer,
    .formula =
        "y[b, h, s, :] = container[page_table[b, 0, s / block, 0], h, s % block, :] for s < seq_len[b], 0 beyond it "
        "and for pages "
        "outside the container; transposed: y[b, h, :, s]",
    .shapes =
        "container [pages, h, block, d], page_table [b, 1, n, 1] i32 or i64, seq_len [b, 1, 1, 1] -> y [b, h, s, d] "
        "or, transposed, "
        "[b, h, d, s]; s = size, the declared one, or n block; any type",
    .example = "c = input f32[6,2,4,8]\nt = const i32[2,1,2,1] 5,0,3,2\ny = paged_load c t\noutput y",
    .no_gradient = "pages may be read several times, and nothing adds up what would come back to them",
};

}  // namespace tsr
