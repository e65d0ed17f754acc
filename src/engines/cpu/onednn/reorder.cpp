// SPDX-License-Identifier: Apache-2.0
// Elements that move and do not change: transposition, and identity between two layouts. Only the width of a type
// matters here, so that oneDNN moves types that it does not know.
#include "engines/cpu/onednn/families.hpp"
#include "engines/cpu/onednn/operands.hpp"
#include "graph/layouts.hpp"
#include "graph/op.hpp"
#include "graph/ops/list.hpp"
#include "graph/pointwise_modes.hpp"

namespace tsr::onednn {
namespace {

using tessera::PointwiseOptions;
using tessera::TransposeOptions;

bool handles(const Node& n) {
  return n.op == &ops::transpose ||
         (n.op->family == Family::pointwise && attrs<PointwiseOptions>(n).mode == PointwiseMode::identity);
}

// x with its dimensions in the order of y.
Tensor source(const Graph& g, const Node& n) {
  const Tensor& x = g.tensor(n.in[0]);
  if (n.op->family == Family::pointwise) return x;
  Tensor t = x;
  const Ints& perm = attrs<TransposeOptions>(n).perm;
  for (int i = 0; i < x.rank(); ++i) {
    auto from = static_cast<int>(perm[static_cast<size_t>(i)]);
    t.dims[i] = x.dims[from];
    t.strides[i] = x.strides[from];
  }
  return t;
}

std::optional<Type> type_of_width(DType t) {
  switch (info(t).bits) {
    case 8:
      return Type::s8;
    case 16:
      return Type::bf16;
    case 32:
      return Type::f32;
    default:
      return std::nullopt;
  }
}

Reason check(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  if (r.nodes.size() > 1) return Reason::no("oneDNN moves elements alone");
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  for (const Tensor* t : {&x, &y}) {
    if (Reason why = check_tensor(*t); !why) return why;
    if (!is_dense(*t)) return Reason::no("tensor ", describe(*t), " has gaps");
  }
  if (!type_of_width(x.dtype)) return Reason::no("input ", describe(x), " has ", info(x.dtype).bits, " bits");
  if (x.dtype != y.dtype) return Reason::no("output ", describe(y), " has another type than ", describe(x));
  if (n.op->family != Family::pointwise) return Reason::yes();
  if (attrs<PointwiseOptions>(n).alpha1 != 1) return Reason::no("identity with a factor");
  if (x.dims != y.dims) return Reason::no("identity that repeats elements");
  if (memory_order(x.dims, x.strides) == memory_order(y.dims, y.strides))
    return Reason::no("both sides have the same layout");
  return Reason::yes();
}

double seconds(const Region& r, const Device& d) { return region_bytes(r) / d.bytes_per_second; }

std::unique_ptr<Step> build(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  auto s = std::make_unique<Sequence>(r);
  auto desc = [](const Tensor& t) {
    return Desc(t.dims.to_vector(), *type_of_width(t.dtype), packed(t, t.dtype).strides.to_vector());
  };
  s->reorder(desc(source(g, n)), Sequence::at(n.in[0]), desc(g.tensor(n.out[0])), Sequence::at(n.out[0]));
  return s;
}

}  // namespace

const FamilyEntry kReorder = {handles, check, seconds, build};

}  // namespace tsr::onednn
