// SPDX-License-Identifier: Apache-2.0
// Batched matrix product. Batch dimensions broadcast; a batch size may also divide the other (grouped heads).
#include "graph/gradient.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/reshape.hpp"
#include "graph/ops/slots.hpp"

namespace tsr {
namespace {

using tessera::MatmulOptions;
using namespace slots::matmul;

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<MatmulOptions>(&options);
  v("padding_value", o.padding_value, "what c holds beyond the sizes of a batch");
  v("tf32", o.tf32, "f32 operands may be rounded to 10 bits of mantissa, as tensor cores take them");
  v("fast_sums", o.fast_sums, "sums of products of 8-bit floats may have the 14 bits that tensor cores keep");
}

// Is there a product of these two, as far as the dimensions go that it sums over?
bool fit(const Tensor& a, const Tensor& b) { return a.dims.back() == b.dims[b.rank() - 2]; }

void infer(Infer& ctx) {
  const Tensor &a = ctx.in(kA), &b = ctx.in(kB);
  ctx.check_rank(kA, 2, kMaxRank);
  ctx.check_rank(kB, 2, kMaxRank);
  ctx.check(fit(a, b), "the last size of ", ctx.describe(kA), " and the last but one of ", ctx.describe(kB),
            " must be equal, they are ", a.dims.back(), " and ", b.dims[b.rank() - 2]);
  ctx.check(a.rank() == b.rank(), ctx.describe(kA), " and ", ctx.describe(kB),
            " must have the same number of dimensions");
  int r = a.rank();
  Dims c = a.dims;
  c[r - 1] = b.dims[r - 1];
  for (int i = 0; i < r - 2; ++i) {
    int64_t x = a.dims[i], y = b.dims[i];
    ctx.check(x == y || (x != 0 && y != 0 && (x % y == 0 || y % x == 0)), ctx.describe(kA), " and ", ctx.describe(kB),
              ": batch sizes ", x, " and ", y, " of dimension ", i, " must be equal, or one a multiple of the other");
    c[i] = std::max(x, y);
    if (x == 0 || y == 0) c[i] = 0;
  }
  for (int s : {kM, kN, kK}) {
    if (!ctx.has(s)) continue;
    ctx.check_integer(s);
    ctx.check(ctx.in(s).numel() == 1 || (r > 2 && ctx.in(s).numel() == c[0]), ctx.describe(s),
              " must hold one value or one for each of the ", r > 2 ? c[0] : 1, " batches");
  }
  ctx.output(0, c, ctx.node().compute, &a);
}

double terms(const Graph& g, const Node& n) { return static_cast<double>(g.tensor(n.in[kA]).dims.back()); }

double flops(const Graph& g, const Node& n) {
  double each = is_complex(n.compute) ? 8 : 2;
  return each * static_cast<double>(g.tensor(n.out[0]).numel()) * static_cast<double>(g.tensor(n.in[kA]).dims.back());
}

void backward(Gradient& g) {
  TensorId d = g.d();
  const auto& given = g.options<MatmulOptions>();
  MatmulOptions o{.tf32 = given.tf32, .fast_sums = given.fast_sums};
  // Beyond the per-batch sizes the result is a constant: the same limits, in the roles that m, n and k have here.
  if (g.wants(kA)) g.add(kA, g.make(ops::matmul, {d, g.swap_last(g.in(kB)), g.in(kM), g.in(kK), g.in(kN)}, o));
  if (g.wants(kB)) g.add(kB, g.make(ops::matmul, {g.swap_last(g.in(kA)), d, g.in(kK), g.in(kN), g.in(kM)}, o));
}

// An operand of fewer dimensions has size 1 in those that it lacks, as operands of pointwise operations have.
void complete(Graph& g, Node& n) {
  TensorId a = slot(n.in, kA), b = slot(n.in, kB);
  if (a == kNone || b == kNone) return;
  int ranks[] = {g.tensor(a).rank(), g.tensor(b).rank()}, most = std::max(ranks[0], ranks[1]);
  if (ranks[0] < 2 || ranks[1] < 2 || !fit(g.tensor(a), g.tensor(b))) return;  // inference will say so
  for (int k : {kA, kB}) {
    if (ranks[k] == most) continue;
    TensorId& operand = n.in[static_cast<size_t>(k)];
    operand = with_ones(g, operand, 0, most - ranks[k]);
  }
}

}  // namespace

const OpSpec ops::matmul = {
    .name = "matmul",
    .family = Family::matmul,
    .in = {{kA, "a"},
           {kB, "b"},
           {kM, "m_override", Slot::optional},
           {kN, "n_override", Slot::optional},
           {kK, "k_override", Slot::optional}},
    .out = {{"c"}},
    .defaults = MatmulOptions{},
    .fields = fields,
    .infer = infer,
    .flops = flops,
    .terms = terms,
    .formula =
        "c[.., m, n] = sum_k a[.., m, k] b[.., k, n]; with overrides, batch i uses only m_i, n_i, k_i of the sizes",
    .shapes =
        "a [.., m, k], b [.., k, n] -> c [.., m, n]; batch sizes equal, 1, or one a multiple of the other; an operand "
        "of fewer dimensions has size 1 in those that it lacks; any type",
    .example = "a = input bf16[2,4,8]\nb = input bf16[2,8,3]\nc = matmul a b\noutput c bf16",
    .gradient = backward,
    .complete = complete,
};

}  // namespace tsr
