// SPDX-License-Identifier: Apache-2.0
// Products and convolutions whose operands do not lie as tensor cores take them, by way of copies that do: channels of
// pictures side by side, and whatever is not of 16 bits side by side along the inner dimension.
#include "graph/ops/list.hpp"
#include "graph/ops/tf32.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

// The dimension of an operand whose elements must be neighbours; of one that may lie either way, that which does.
int fastest(const Node& n, size_t operand, const Tensor& t) {
  if (n.op == &ops::matmul) {
    int inner = operand == 0 ? t.rank() - 1 : t.rank() - 2, other = 2 * t.rank() - 3 - inner;
    return info(t.dtype).bits == 16 && t.strides[inner] != 1 && t.strides[other] == 1 ? other : inner;
  }
  bool filter = n.op == &ops::conv_dgrad && operand == 1;  // which is summed over
  return filter && (info(t.dtype).bits != 16 || t.strides[0] == 1) ? 0 : 1;
}

bool side_by_side(const Tensor& t, int dim) { return t.dims[dim] == 1 || t.strides[dim] == 1; }

// A temporary of the same sizes, `dim` fastest.
TensorId turned(const Tensor& t, int dim, Decomposition& d) {
  Dims dims, strides = t.dims;
  for (int i = 0; i < t.rank(); ++i)
    if (i != dim) dims.push_back(t.dims[i]);
  dims.push_back(t.dims[dim]);
  Dims packed = packed_strides(dims);
  for (int i = 0; i < t.rank(); ++i) strides[i] = i == dim ? 1 : packed[i < dim ? i : i - 1];
  return d.reshaped(d.temporary(t.dtype, dims), t.dims, strides);
}

void copy(DType type, TensorId from, TensorId to, Decomposition& d) {
  d.apply(tessera::PointwiseMode::identity, wide_type(type), from, kNone, to);
  d.end_stage();
}

// Results of convolutions have their channels side by side, too.
bool leaves_side_by_side(const Node& n, const Tensor& y) { return n.op == &ops::matmul || side_by_side(y, 1); }

}  // namespace

bool wants_tensor_layout(const Graph& g, const Node& n) {
  const Tensor& y = g.tensor(n.out[0]);
  if (y.numel() == 0) return false;
  bool apart = !leaves_side_by_side(n, y);
  for (size_t i = 0; i < 2; ++i) {
    const Tensor& t = g.tensor(n.in[i]);
    int bits = info(t.dtype).bits, dim = fastest(n, i, t);
    bool takes = bits == 8 || bits == 16 || (t.dtype == DType::f32 && allows_tf32(n));
    // Tensor cores multiply it, and the copy engine can bring it.
    if (!takes || t.dims[dim] * bits % 128 != 0 || t.numel() == 0) return false;
    apart = apart || !side_by_side(t, dim);
  }
  for (size_t i = 2; i < n.in.size(); ++i)
    if (n.in[i] != kNone) return false;
  return apart && n.compute != DType::f64;
}

void decompose_tensor_layout(const Region& r, const Node& n, Decomposition& d) {
  const Graph& g = *r.graph;
  Node product = n;
  for (size_t i = 0; i < 2; ++i) {
    const Tensor& x = g.tensor(n.in[i]);
    int dim = fastest(n, i, x);
    TensorId from = d.whole(n.in[i]);
    product.in[i] = side_by_side(x, dim) ? from : turned(x, dim, d);
    if (product.in[i] != from) copy(x.dtype, from, product.in[i], d);
  }
  const Tensor& y = g.tensor(n.out[0]);
  TensorId to = d.whole(n.out[0]);
  product.out[0] = leaves_side_by_side(n, y) ? to : turned(y, 1, d);
  d.add(product);
  d.end_stage();
  if (product.out[0] != to) copy(y.dtype, product.out[0], to, d);
}

}  // namespace tsr
