// SPDX-License-Identifier: Apache-2.0
// Names and numbers of cuDNN's graph interface, version 9: those that this client uses. A name here is NVIDIA's without
// its prefix, in lower case: Attr::operation_matmul_adesc is CUDNN_ATTR_OPERATION_MATMUL_ADESC.
#pragma once

namespace cudnn {

// Types of descriptors.
enum class Kind : int {
  pointwise = 0,
  convolution = 1,
  engine = 2,
  enginecfg = 3,
  engineheur = 4,
  execution_plan = 5,
  operation_convolution_forward = 10,
  operation_convolution_backward_filter = 11,
  operation_convolution_backward_data = 12,
  operation_pointwise = 13,
  operation_gen_stats = 14,
  operationgraph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  operation_matmul = 19,
  operation_bn_finalize_statistics = 20,
  reduction = 21,
  operation_reduction = 22,
  operation_bn_bwd_weights = 23,
  resample = 24,
  operation_resample_fwd = 25,
  operation_resample_bwd = 26,
  operation_concat = 27,
  operation_norm_forward = 29,
  operation_norm_backward = 30,
  operation_reshape = 31,
  rng = 32,
  operation_rng = 33,
  operation_paged_cache_load = 35,
  operation_block_scale_quantize = 36,
  operation_block_scale_dequantize = 37,
  operation_sdpa_fwd = 41,
  operation_moe_grouped_matmul = 42,
  operation_diagonal_band_mask = 44,
  operation_softmax = 45,
  operation_transpose = 46,
  operation_slice = 47,
  operation_moe_grouped_matmul_bwd = 48,
  operation_rope_fwd = 49,
  operation_rope_bwd = 50,
};

// Types of attribute values.
enum class AttrType : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  float_ = 4,
  double_ = 5,
  void_ptr = 6,
  convolution_mode = 7,
  heur_mode = 8,
  nan_propogation = 10,
  numerical_note = 11,
  pointwise_mode = 14,
  backend_descriptor = 15,
  genstats_mode = 16,
  bn_finalize_stats_mode = 17,
  reduction_operator_type = 18,
  tensor_reordering_mode = 20,
  resample_mode = 21,
  padding_mode = 22,
  int32 = 23,
  fraction = 26,
  norm_mode = 27,
  norm_fwd_phase = 28,
  rng_distribution = 29,
  moe_grouped_matmul_mode = 30,
  reshape_mode = 31
};

// Values of attributes, and the type that goes with each.
enum class DataType : int {
  float_ = 0,
  double_ = 1,
  half = 2,
  int8 = 3,
  int32 = 4,
  uint8 = 6,
  bfloat16 = 9,
  int64 = 10,
  boolean = 11,
  fp8_e4m3 = 12,
  fp8_e5m2 = 13,
  fp8_e8m0 = 15,
  fp4_e2m1 = 16,
  int4 = 17,
  uint4 = 18,
  complex_fp32 = 20,
  complex_fp64 = 21,
  byte_boolean = 22,
  fp8_e5m3 = 23
};
enum class PointwiseMode : int {
  add = 0,
  add_square = 5,
  div = 6,
  max = 3,
  min = 2,
  mod = 7,
  mul = 1,
  pow = 8,
  sub = 9,
  abs = 10,
  ceil = 11,
  cos = 12,
  exp = 13,
  floor = 14,
  log = 15,
  neg = 16,
  rsqrt = 17,
  sin = 18,
  sqrt = 4,
  tan = 19,
  erf = 20,
  identity = 21,
  reciprocal = 22,
  atan2 = 23,
  floor_mod = 24,
  relu_fwd = 100,
  tanh_fwd = 101,
  sigmoid_fwd = 102,
  elu_fwd = 103,
  gelu_fwd = 104,
  softplus_fwd = 105,
  swish_fwd = 106,
  gelu_approx_tanh_fwd = 107,
  relu_bwd = 200,
  tanh_bwd = 201,
  sigmoid_bwd = 202,
  elu_bwd = 203,
  gelu_bwd = 204,
  softplus_bwd = 205,
  swish_bwd = 206,
  gelu_approx_tanh_bwd = 207,
  cmp_eq = 300,
  cmp_neq = 301,
  cmp_gt = 302,
  cmp_ge = 303,
  cmp_lt = 304,
  cmp_le = 305,
  logical_and = 400,
  logical_or = 401,
  logical_not = 402,
  gen_index = 501,
  binary_select = 601
};
enum class ReduceMode : int {
  add = 0,
  mul = 1,
  min = 2,
  max = 3,
  amax = 4,
  avg = 5,
  norm1 = 6,
  norm2 = 7,
  mul_no_zeros = 8
};
enum class ConvMode : int { convolution = 0, cross_correlation = 1 };
enum class NanPropagation : int { propagate_nan = 1 };
enum class NormMode : int { layer = 0, instance = 1, batch = 2, group = 3, rms = 4, ada_layer = 5 };
enum class NormPhase : int { inference = 0, training = 1 };
enum class ResampleMode : int {
  nearest = 0,
  bilinear = 1,
  avgpool_include_padding = 2,
  avgpool_exclude_padding = 4,
  maxpool = 3
};
enum class PaddingMode : int { zero_pad = 0, neg_inf_pad = 1, edge_val_pad = 2 };
enum class GenStatsMode : int { sum_sqsum = 0 };
enum class BnFinalizeMode : int { training = 0, inference = 1 };
enum class RngDistribution : int { bernoulli = 0, uniform = 1, normal = 2 };
enum class MoeMode : int { none = 0, gather = 1, scatter = 2 };
enum class ReshapeMode : int { view_only = 0, logical = 1 };
enum class Reordering : int { none = 0, int8x32 = 1, f16x16 = 2, f8_128x4 = 3 };
enum class HeurMode : int { fallback = 2, a = 3 };
enum class NumericalNote : int {
  tensor_core = 0,
  down_convert_inputs = 1,
  reduced_precision_reduction = 2,
  fft = 3,
  nondeterministic = 4,
  winograd = 5,
  winograd_tile_4x4 = 6,
  winograd_tile_6x6 = 7,
  winograd_tile_13x13 = 8,
  strict_nan_prop = 9
};

constexpr AttrType attr_type(DataType) { return AttrType::data_type; }
constexpr AttrType attr_type(PointwiseMode) { return AttrType::pointwise_mode; }
constexpr AttrType attr_type(ReduceMode) { return AttrType::reduction_operator_type; }
constexpr AttrType attr_type(ConvMode) { return AttrType::convolution_mode; }
constexpr AttrType attr_type(NanPropagation) { return AttrType::nan_propogation; }
constexpr AttrType attr_type(NormMode) { return AttrType::norm_mode; }
constexpr AttrType attr_type(NormPhase) { return AttrType::norm_fwd_phase; }
constexpr AttrType attr_type(ResampleMode) { return AttrType::resample_mode; }
constexpr AttrType attr_type(PaddingMode) { return AttrType::padding_mode; }
constexpr AttrType attr_type(GenStatsMode) { return AttrType::genstats_mode; }
constexpr AttrType attr_type(BnFinalizeMode) { return AttrType::bn_finalize_stats_mode; }
constexpr AttrType attr_type(RngDistribution) { return AttrType::rng_distribution; }
constexpr AttrType attr_type(MoeMode) { return AttrType::moe_grouped_matmul_mode; }
constexpr AttrType attr_type(ReshapeMode) { return AttrType::reshape_mode; }
constexpr AttrType attr_type(Reordering) { return AttrType::tensor_reordering_mode; }
constexpr AttrType attr_type(HeurMode) { return AttrType::heur_mode; }
constexpr AttrType attr_type(NumericalNote) { return AttrType::numerical_note; }

}  // namespace cudnn
