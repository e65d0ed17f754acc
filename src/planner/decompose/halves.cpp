// SPDX-License-Identifier: Apache-2.0
// Gradients of filters of f32 that may be rounded as tf32. They sum over positions, and what tensor cores sum that way
// has 16 bits. So each number becomes two of bf16: its first 8 bits, and the next 8 of what is left, where tf32 keeps
// 11 in all. Of the four products the least, of both rests, is left out. The copies have channels side by side, however
// the tensors lie, and take no more memory than they do.
#include "graph/ops/conv.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/rounding.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

using M = tessera::PointwiseMode;

// A temporary of these sizes, [.., channels, ..], with channels side by side.
TensorId channels_last(DType type, const Dims& sizes, Decomposition& d) {
  Dims lie = {sizes[0]}, strides = {1, 1};
  for (int i = 2; i < sizes.size(); ++i) lie.push_back(sizes[i]);
  lie.push_back(sizes[1]);
  Dims packed = packed_strides(lie);
  strides[0] = packed[0];
  for (int i = 2; i < sizes.size(); ++i) strides.push_back(packed[i - 1]);
  return d.reshaped(d.temporary(type, lie), sizes, strides);
}

// A tensor of twice the images, and those of them that are the first bits.
struct Halves {
  TensorId both, head;
};

Halves halve(TensorId outer, bool head_first, Decomposition& d) {
  TensorId x = d.whole(outer);
  Dims sizes = d.tensor(x).dims, twice = sizes;
  twice[0] *= 2;
  TensorId both = channels_last(DType::bf16, twice, d);
  Dims strides = d.tensor(both).strides;
  int64_t half = sizes[0] * strides[0];
  TensorId head = d.reshaped(both, sizes, strides, head_first ? 0 : half),
           rest = d.reshaped(both, sizes, strides, head_first ? half : 0);
  // A head is finite, so that infinity is one rest, not the difference of two.
  constexpr double kLargest = 0x1.fep127;
  auto apply = [&](M mode, TensorId a, TensorId b, TensorId to = kNone) { return d.apply(mode, DType::f32, a, b, to); };
  TensorId finite = apply(M::min, apply(M::max, x, d.constant(-kLargest)), d.constant(kLargest));
  apply(M::identity, finite, kNone, head);
  apply(M::sub, x, head, rest);
  d.end_stage();
  return {both, head};
}

}  // namespace

bool may_be_halved(const Graph& g, const Node& n) {
  auto takes = [&](const Tensor& t) {
    return t.dtype == DType::f32 && t.numel() > 0 && t.dims[1] % 8 == 0;  // whole 16 bytes of channels
  };
  const auto& o = attrs<tessera::ConvOptions>(n);
  return allows_tf32(n) && n.compute == DType::f32 && slot(n.in, 2) == kNone && o.beta == 0 &&
         takes(g.tensor(n.in[0])) && takes(g.tensor(n.in[1]));
}

void decompose_halves(const Region& r, const Node& n, Decomposition& d) {
  const Tensor& dw = r.graph->tensor(n.out[0]);
  // A head meets a rest, and a rest a head, in one convolution of twice the images.
  Halves dy = halve(n.in[0], true, d), x = halve(n.in[1], false, d);
  TensorId small = channels_last(DType::f32, dw.dims, d), large = d.sized(DType::f32, dw.dims);
  Node product = n;
  product.in = {dy.both, x.both}, product.out = {small};
  d.add(product);
  d.end_stage();
  product.in = {dy.head, x.head}, product.out = {large};
  d.add(product);
  d.apply(M::add, DType::f32, large, small, d.whole(n.out[0]));
  d.end_stage();
}

}  // namespace tsr
