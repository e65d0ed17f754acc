// SPDX-License-Identifier: Apache-2.0
// A region as oneDNN can run it: an anchor (matrix product, convolution) and the pointwise nodes that follow it one
// after the other, each of which becomes a post-op. oneDNN computes post-ops in f32 on the accumulators.
#pragma once

#include "engines/cpu/onednn/operands.hpp"

namespace tsr::onednn {

struct PostOp {
  dnnl::algorithm what = dnnl::algorithm::undef;
  float alpha = 0, beta = 0;
  TensorId operand = kNone;  // of binary operations
};

// How an operand repeats over the result.
enum class Spread : uint8_t { scalar, channel, full };

struct Chain {
  const Node* anchor = nullptr;
  TensorId result = kNone;
  TensorId bias = kNone;  // one value for each channel, added first
  std::vector<PostOp> ops;
};

// Reads the region; `channel` is the dimension of the result that has one bias each. `first` comes before the nodes:
// what the anchor's own options ask for.
Reason read_chain(const Region& r, int channel, const std::vector<PostOp>& first, Chain& out);

// Nothing for an operand that repeats in another way.
std::optional<Spread> spread(const Tensor& operand, const Dims& result, int channel);

// Whether oneDNN multiplies a and b with this compute type; a sum has `terms` products.
Reason check_product(const Node& n, const Tensor& a, const Tensor& b, int64_t terms);
// What a and b are read as, and what is written (the result itself may need a conversion).
struct ProductTypes {
  DType a, b, result;
};
ProductTypes product_types(const Node& n, const Tensor& a, const Tensor& b, const Tensor& result, bool has_ops);

// Modelled time of an anchor that multiplies a and b, of the arithmetic or of `bytes` moved.
double product_seconds(const Region& r, const Device& d, double bytes);

// The post-ops and, for those with operands, their arguments. `place` gives an operand's description and place.
struct Attached {
  dnnl::post_ops ops;
  std::vector<Arg> args;
};
Attached attach(const Chain& c, const std::function<Arg(TensorId)>& place);

}  // namespace tsr::onednn
