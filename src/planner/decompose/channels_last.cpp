// SPDX-License-Identifier: Apache-2.0
// Convolutions whose channels do not lie side by side, by way of copies in which they do: engines for tensor cores want
// them so.
#include "graph/ops/slots.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

constexpr int kC = slots::conv_fprop::kC;  // the old result, which is added to; of gradients the same

bool side_by_side(const Tensor& t) { return t.dims[1] == 1 || t.strides[1] == 1; }

// A temporary of the same sizes, channels fastest.
TensorId turned(const Tensor& t, Decomposition& d) {
  Dims dims = {t.dims[0]}, strides = t.dims;
  for (int i = 2; i < t.rank(); ++i) dims.push_back(t.dims[i]);
  dims.push_back(t.dims[1]);
  Dims packed = packed_strides(dims);
  strides[0] = packed[0], strides[1] = 1;
  for (int i = 2; i < t.rank(); ++i) strides[i] = packed[i - 1];
  return d.reshaped(d.temporary(t.dtype, dims), t.dims, strides);
}

void copy(DType type, TensorId from, TensorId to, Decomposition& d) {
  d.apply(tessera::PointwiseMode::identity, wide_type(type), from, kNone, to);
  d.end_stage();
}

}  // namespace

bool has_channels_apart(const Graph& g, const Node& n) {
  // What tensor cores multiply, and the copy engine can bring.
  const Tensor &a = g.tensor(n.in[0]), &b = g.tensor(n.in[1]), &y = g.tensor(n.out[0]);
  int64_t bits = info(a.dtype).bits;
  bool aligned = a.dims[1] * bits % 128 == 0 && b.dims[1] * bits % 128 == 0;
  bool apart = !side_by_side(a) || !side_by_side(b) || !side_by_side(y);
  return is_real(a.dtype) && bits == 16 && aligned && apart && slot(n.in, kC) == kNone && a.numel() > 0 &&
         y.numel() > 0;
}

void decompose_channels_last(const Region& r, const Node& n, Decomposition& d) {
  const Graph& g = *r.graph;
  Node conv = n;
  for (TensorId& t : conv.in) {
    if (t == kNone) continue;
    const Tensor& x = g.tensor(t);
    TensorId from = d.whole(t);
    t = from;
    if (side_by_side(x)) continue;
    t = turned(x, d);
    copy(x.dtype, from, t, d);
  }
  const Tensor& y = g.tensor(n.out[0]);
  TensorId to = d.whole(n.out[0]);
  conv.out[0] = side_by_side(y) ? to : turned(y, d);
  d.add(conv);
  d.end_stage();
  if (conv.out[0] != to) copy(y.dtype, conv.out[0], to, d);
}

}  // namespace tsr
