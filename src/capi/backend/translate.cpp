// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/translate.hpp"

namespace tsr::capi {
namespace {

struct OperationRow {
  cudnnBackendDescriptorType_t type;
  void (*translate)(const Descriptor&, GraphBuilder&);
  void (*check)(Descriptor&) = nullptr;  // null: the graph's own checks suffice
};

void no_signals(const Descriptor& op, GraphBuilder&) {
  refuse(CUDNN_STATUS_NOT_SUPPORTED, op.describe(), ": waiting for other devices and telling them is not supported");
}

void no_band_matrices(const Descriptor& op, GraphBuilder&) {
  refuse(CUDNN_STATUS_NOT_SUPPORTED, op.describe(), ": what it computes is not published");
}

constexpr OperationRow kOperations[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, translate_conv_fwd},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, translate_conv_bwd_filter},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, translate_conv_bwd_data},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, translate_pointwise},
    {CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, translate_gen_stats},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, translate_matmul, check_matmul},
    {CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR, translate_bn_finalize},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, translate_reduction, check_reduction},
    {CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR, translate_bn_bwd_weights},
    {CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, translate_resample_fwd},
    {CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR, translate_resample_bwd},
    {CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR, translate_concat},
    {CUDNN_BACKEND_OPERATION_SIGNAL_DESCRIPTOR, no_signals},
    {CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, translate_norm_fwd},
    {CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR, translate_norm_bwd},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, translate_reshape, check_reshape},
    {CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, translate_rng},
    {CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR, translate_paged_load},
    {CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR, translate_quantize},
    {CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR, translate_dequantize},
    {CUDNN_BACKEND_OPERATION_EXPAND_BAND_MATRIX_DESCRIPTOR, no_band_matrices},
    {CUDNN_BACKEND_OPERATION_CONTRACT_BAND_MATRIX_DESCRIPTOR, no_band_matrices},
    {CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, translate_sdpa_fwd, check_sdpa_fwd},
    {CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR, translate_moe},
    {CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, translate_sdpa_bwd},
    {CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR, translate_band_mask, check_band_mask},
    {CUDNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR, translate_softmax, check_softmax},
    {CUDNN_BACKEND_OPERATION_TRANSPOSE_DESCRIPTOR, translate_transpose, check_transpose},
    {CUDNN_BACKEND_OPERATION_SLICE_DESCRIPTOR, translate_slice, check_slice},
    {CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_BWD_DESCRIPTOR, translate_moe_bwd, check_moe_bwd},
    {CUDNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR, translate_rope_fwd, check_rope_fwd},
    {CUDNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR, translate_rope_bwd, check_rope_bwd},
};

const OperationRow* find(cudnnBackendDescriptorType_t type) {
  for (const OperationRow& r : kOperations)
    if (r.type == type) return &r;
  return nullptr;
}

const char* text_of(const Descriptor& d, Attr name) {
  for (const AttributeRow& a : d.row().attributes)
    if (a.name == name) return a.text;
  return "an attribute";
}

}  // namespace

bool is_operation(cudnnBackendDescriptorType_t type) { return find(type) != nullptr; }

void translate(const Descriptor& op, GraphBuilder& to) {
  const OperationRow* r = find(op.type());
  demand(r, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, op.describe(), " is no operation");
  r->translate(op, to);
}

void check_operation(Descriptor& op) {
  const OperationRow* r = find(op.type());
  if (r && r->check) r->check(op);
}

const Descriptor& part_of(const Descriptor& op, Attr name) {
  const Descriptor* d = op.part(name);
  demand(d, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, op.describe(), ": ", text_of(op, name), " is not set");
  return *d;
}

Dims dims_of(const Descriptor& tensor) {
  Dims d(tensor.ints(CUDNN_ATTR_TENSOR_DIMENSIONS));
  auto lanes = tensor.one<int64_t>(CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1);
  if (lanes > 1) d[static_cast<int>(tensor.one<int64_t>(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, 0))] *= lanes;
  return d;
}

cudnnDataType_t type_of(const Descriptor& tensor) { return tensor.one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT); }

std::string part_text(const Descriptor& op, Attr name) {
  const Descriptor* d = op.part(name);
  return cat(text_of(op, name), " (", d ? d->text() : "not set", ")");
}

Ints ints_of(const Descriptor& op, Attr name, int count) {
  Ints v = op.ints(name);
  demand(static_cast<int>(v.size()) == count, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", text_of(op, name), " has ",
         v.size(), " values, it needs ", count);
  return v;
}

void check_dims(const Descriptor& op, Attr name, const Dims& allowed) {
  if (const Descriptor* d = op.part(name))
    demand(dims_of(*d) == allowed, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, name), " must have sizes ",
           allowed);
}

void check_same_type(const Descriptor& op, Attr name, Attr like) {
  const Descriptor *d = op.part(name), *other = op.part(like);
  if (d && other)
    demand(type_of(*d) == type_of(*other), CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, name),
           " must have the data type of ", describe(op, like));
}

void check_one_element(const Descriptor& op, Attr name) {
  if (const Descriptor* d = op.part(name))
    demand(volume(dims_of(*d)) == 1, CUDNN_STATUS_BAD_PARAM, op.describe(), ": ", describe(op, name),
           " must have one element");
}

DType compute_for(const GraphBuilder& g, TensorId x) { return g[x].dtype == DType::f64 ? DType::f64 : DType::f32; }

}  // namespace tsr::capi
