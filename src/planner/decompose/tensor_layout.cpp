// SPDX-License-Identifier: Apache-2.0
// Products and convolutions whose operands do not lie as tensor cores take them, by way of copies that do: channels of
// pictures side by side, and whatever is not of 16 bits side by side along the inner dimension. The gradient of a
// filter sums over positions, which never lie so: there 8-bit floats become 16-bit ones, which is exact. Pointwise work
// behind a convolution is done in its layout, too, so that nothing but the results is copied back.
#include <map>

#include "graph/ops/list.hpp"
#include "graph/ops/rounding.hpp"
#include "planner/decompose/list.hpp"

namespace tsr {
namespace {

constexpr int kChannels = 1;

// What an operand is multiplied as.
DType multiplied(const Node& n, const Tensor& t) {
  return n.op == &ops::conv_wgrad && is_real(t.dtype) && info(t.dtype).bits == 8 ? DType::bf16 : t.dtype;
}

// The dimension of an operand whose elements must be neighbours; of one that may lie either way, that which does.
int fastest(const Node& n, size_t operand, const Tensor& t) {
  if (n.op == &ops::matmul) {
    int inner = operand == 0 ? t.rank() - 1 : t.rank() - 2, other = 2 * t.rank() - 3 - inner;
    return info(t.dtype).bits == 16 && t.strides[inner] != 1 && t.strides[other] == 1 ? other : inner;
  }
  if (n.op != &ops::conv_dgrad || operand == 0) return kChannels;
  // A filter, which is summed over. The copy engine brings whole 16 bytes: few channels are no row of its own.
  bool either = info(t.dtype).bits == 16 && t.strides[0] != 1 && t.dims[kChannels] % 8 == 0;
  return either ? kChannels : 0;
}

bool side_by_side(const Tensor& t, int dim) { return t.dims[dim] == 1 || t.strides[dim] == 1; }

class TensorLayout {
 public:
  TensorLayout(const Region& r, const Node& product, Decomposition& d)
      : g_(*r.graph), r_(r), product_(product), d_(d) {}

  void write() {
    Node product = product_;
    for (size_t i = 0; i < 2; ++i) {
      const Tensor& x = g_.tensor(product_.in[i]);
      int dim = fastest(product_, i, x);
      DType type = multiplied(product_, x);
      bool stays = side_by_side(x, dim) && type == x.dtype;
      product.in[i] = stays ? d_.whole(product_.in[i]) : copied(product_.in[i], type, dim);
    }
    for (size_t i = 1; i < r_.nodes.size(); ++i)
      for (TensorId t : g_.node(r_.nodes[i]).in)
        if (contains(r_.inputs, t) && !here_.count(t) && lies_otherwise(t))
          here_[t] = copied(t, g_.tensor(t).dtype, kChannels);
    d_.add_region(r_, product, here_, [&](TensorId t) {
      const Tensor& y = g_.tensor(t);
      return lies_otherwise(t) ? turned(y, y.dtype, kChannels) : d_.whole(t);
    });
    for (TensorId t : r_.outputs)
      if (lies_otherwise(t)) copy(g_.tensor(t).dtype, here_.at(t), d_.whole(t));
  }

 private:
  // Does a tensor lie otherwise than the results of the convolution, whose sizes it has?
  bool lies_otherwise(TensorId t) const {
    const Tensor& x = g_.tensor(t);
    return product_.op != &ops::matmul && x.dims == g_.tensor(product_.out[0]).dims && !side_by_side(x, kChannels);
  }

  TensorId copied(TensorId t, DType type, int dim) {
    const Tensor& x = g_.tensor(t);
    TensorId to = turned(x, type, dim);
    copy(x.dtype, d_.whole(t), to);
    return to;
  }

  // A temporary of the same sizes, `dim` fastest.
  TensorId turned(const Tensor& t, DType type, int dim) {
    Dims dims, strides = t.dims;
    for (int i = 0; i < t.rank(); ++i)
      if (i != dim) dims.push_back(t.dims[i]);
    dims.push_back(t.dims[dim]);
    Dims packed = packed_strides(dims);
    for (int i = 0; i < t.rank(); ++i) strides[i] = i == dim ? 1 : packed[i < dim ? i : i - 1];
    return d_.reshaped(d_.temporary(type, dims), t.dims, strides);
  }

  void copy(DType type, TensorId from, TensorId to) {
    d_.apply(tessera::PointwiseMode::identity, wide_type(type), from, kNone, to);
    d_.end_stage();
  }

  const Graph& g_;
  const Region& r_;
  const Node& product_;
  Decomposition& d_;
  std::map<TensorId, TensorId> here_;  // what stands for a tensor of the region
};

}  // namespace

bool wants_tensor_layout(const Graph& g, const Node& n) {
  const Tensor& y = g.tensor(n.out[0]);
  if (y.numel() == 0) return false;
  bool apart = n.op != &ops::matmul && !side_by_side(y, kChannels);
  for (size_t i = 0; i < 2; ++i) {
    const Tensor& t = g.tensor(n.in[i]);
    int bits = info(multiplied(n, t)).bits, dim = fastest(n, i, t);
    bool takes = bits == 8 || bits == 16 || (t.dtype == DType::f32 && allows_tf32(n));
    // Tensor cores multiply it, and the copy engine can bring it.
    if (!takes || t.dims[dim] * bits % 128 != 0 || t.numel() == 0) return false;
    apart = apart || !side_by_side(t, dim) || multiplied(n, t) != t.dtype;
  }
  for (size_t i = 2; i < n.in.size(); ++i)
    if (n.in[i] != kNone) return false;
  return apart && n.compute != DType::f64;
}

void decompose_tensor_layout(const Region& r, const Node& n, Decomposition& d) { TensorLayout(r, n, d).write(); }

}  // namespace tsr
