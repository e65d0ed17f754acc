// SPDX-License-Identifier: Apache-2.0
// One function for each type of operation: `translate_` adds its nodes, `check_` refuses what finalizing refuses. What
// they share: looking at descriptors.
#pragma once

#include "capi/backend/graph_builder.hpp"
#include "capi/types.hpp"

namespace tsr::capi {

using Attr = cudnnBackendAttributeName_t;

// translate_pointwise.cpp
void translate_pointwise(const Descriptor& op, GraphBuilder& to);
void translate_reduction(const Descriptor& op, GraphBuilder& to);
void check_reduction(Descriptor& op);
tessera::PointwiseMode pointwise_mode(cudnnPointwiseMode_t mode);
// translate_product.cpp
void translate_matmul(const Descriptor& op, GraphBuilder& to);
void check_matmul(Descriptor& op);
void translate_moe(const Descriptor& op, GraphBuilder& to);
void translate_moe_bwd(const Descriptor& op, GraphBuilder& to);
void check_moe_bwd(Descriptor& op);
// translate_conv.cpp
void translate_conv_fwd(const Descriptor& op, GraphBuilder& to);
void translate_conv_bwd_data(const Descriptor& op, GraphBuilder& to);
void translate_conv_bwd_filter(const Descriptor& op, GraphBuilder& to);
// translate_resample.cpp
void translate_resample_fwd(const Descriptor& op, GraphBuilder& to);
void translate_resample_bwd(const Descriptor& op, GraphBuilder& to);
// translate_norm.cpp
void translate_norm_fwd(const Descriptor& op, GraphBuilder& to);
void translate_norm_bwd(const Descriptor& op, GraphBuilder& to);
void translate_gen_stats(const Descriptor& op, GraphBuilder& to);
void translate_bn_finalize(const Descriptor& op, GraphBuilder& to);
void translate_bn_bwd_weights(const Descriptor& op, GraphBuilder& to);
// translate_peer_norm.cpp: norms of a batch that several devices share
void translate_peer_norm_fwd(const Descriptor& op, GraphBuilder& to);
void translate_peer_norm_bwd(const Descriptor& op, GraphBuilder& to);
// translate_move.cpp
void translate_reshape(const Descriptor& op, GraphBuilder& to);
void check_reshape(Descriptor& op);
void translate_transpose(const Descriptor& op, GraphBuilder& to);
void check_transpose(Descriptor& op);
void translate_slice(const Descriptor& op, GraphBuilder& to);
void check_slice(Descriptor& op);
void translate_concat(const Descriptor& op, GraphBuilder& to);
void translate_paged_load(const Descriptor& op, GraphBuilder& to);
void translate_rng(const Descriptor& op, GraphBuilder& to);
void translate_quantize(const Descriptor& op, GraphBuilder& to);
void translate_dequantize(const Descriptor& op, GraphBuilder& to);
// translate_score.cpp
void translate_softmax(const Descriptor& op, GraphBuilder& to);
void check_softmax(Descriptor& op);
void translate_band_mask(const Descriptor& op, GraphBuilder& to);
void check_band_mask(Descriptor& op);
void translate_rope_fwd(const Descriptor& op, GraphBuilder& to);
void translate_rope_bwd(const Descriptor& op, GraphBuilder& to);
void check_rope_fwd(Descriptor& op);
void check_rope_bwd(Descriptor& op);
// translate_attention.cpp
void translate_sdpa_fwd(const Descriptor& op, GraphBuilder& to);
void translate_sdpa_bwd(const Descriptor& op, GraphBuilder& to);
// check_attention.cpp
void check_sdpa_fwd(Descriptor& op);

// The descriptor of an attribute that must be there.
const Descriptor& part_of(const Descriptor& op, Attr name);
Dims dims_of(const Descriptor& tensor);
cudnnDataType_t type_of(const Descriptor& tensor);
// "Y of ..SOFTMAX..: tensor 5 FLOAT [2,3]", and the same in messages.
std::string part_text(const Descriptor& op, Attr name);
inline auto describe(const Descriptor& op, Attr name) {
  return Lazy{[&op, name] { return part_text(op, name); }};
}
// A list with one value for each dimension, of an attribute that must have that many.
Ints ints_of(const Descriptor& op, Attr name, int count);

// What finalizing refuses by the name of tensors: other sizes than these, other element types than those of another
// tensor, more than one element. Attributes that are not set pass.
void check_dims(const Descriptor& op, Attr name, const Dims& allowed);
void check_same_type(const Descriptor& op, Attr name, Attr like);
void check_one_element(const Descriptor& op, Attr name);

// f64 for tensors of doubles, otherwise f32: operations that do not tell what to compute in.
DType compute_for(const GraphBuilder& g, TensorId x);

}  // namespace tsr::capi
