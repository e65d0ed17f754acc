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

// Attributes, by the descriptor they belong to.
enum class Attr : int {
  pointwise_mode = 0,
  pointwise_math_prec = 1,
  pointwise_nan_propagation = 2,
  pointwise_relu_lower_clip = 3,
  pointwise_relu_upper_clip = 4,
  pointwise_relu_lower_clip_slope = 5,
  pointwise_elu_alpha = 6,
  pointwise_softplus_beta = 7,
  pointwise_swish_beta = 8,
  pointwise_axis = 9,

  convolution_comp_type = 100,
  convolution_conv_mode = 101,
  convolution_dilations = 102,
  convolution_filter_strides = 103,
  convolution_post_paddings = 104,
  convolution_pre_paddings = 105,
  convolution_spatial_dims = 106,

  engine_global_index = 1301,
  engine_numerical_note = 1303,

  enginecfg_engine = 300,

  engineheur_mode = 200,
  engineheur_operation_graph = 201,
  engineheur_results = 202,

  execution_plan_engine_config = 401,
  execution_plan_workspace_size = 402,

  operation_convolution_forward_alpha = 700,
  operation_convolution_forward_beta = 701,
  operation_convolution_forward_conv_desc = 702,
  operation_convolution_forward_w = 703,
  operation_convolution_forward_x = 704,
  operation_convolution_forward_y = 705,

  operation_convolution_bwd_filter_alpha = 712,
  operation_convolution_bwd_filter_beta = 713,
  operation_convolution_bwd_filter_conv_desc = 714,
  operation_convolution_bwd_filter_dw = 715,
  operation_convolution_bwd_filter_x = 716,
  operation_convolution_bwd_filter_dy = 717,

  operation_convolution_bwd_data_alpha = 706,
  operation_convolution_bwd_data_beta = 707,
  operation_convolution_bwd_data_conv_desc = 708,
  operation_convolution_bwd_data_w = 709,
  operation_convolution_bwd_data_dx = 710,
  operation_convolution_bwd_data_dy = 711,

  operation_pointwise_pw_descriptor = 750,
  operation_pointwise_xdesc = 751,
  operation_pointwise_bdesc = 752,
  operation_pointwise_ydesc = 753,
  operation_pointwise_alpha1 = 754,
  operation_pointwise_alpha2 = 755,
  operation_pointwise_dxdesc = 756,
  operation_pointwise_dydesc = 757,
  operation_pointwise_tdesc = 758,

  operation_genstats_mode = 770,
  operation_genstats_math_prec = 771,
  operation_genstats_xdesc = 772,
  operation_genstats_sumdesc = 773,
  operation_genstats_sqsumdesc = 774,

  operationgraph_handle = 800,
  operationgraph_ops = 801,

  variant_pack_unique_ids = 1000,
  variant_pack_data_pointers = 1001,
  variant_pack_workspace = 1003,

  tensor_byte_alignment = 900,
  tensor_data_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_unique_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  tensor_reordering_mode = 909,
  tensor_ragged_offset_desc = 913,
  tensor_ragged_offset_multiplier = 914,

  matmul_comp_type = 1500,
  matmul_padding_value = 1503,

  operation_matmul_adesc = 1520,
  operation_matmul_bdesc = 1521,
  operation_matmul_cdesc = 1522,
  operation_matmul_desc = 1523,
  operation_matmul_gemm_m_override_desc = 1525,
  operation_matmul_gemm_n_override_desc = 1526,
  operation_matmul_gemm_k_override_desc = 1527,

  operation_bn_finalize_stats_mode = 780,
  operation_bn_finalize_math_prec = 781,
  operation_bn_finalize_y_sum_desc = 782,
  operation_bn_finalize_y_sq_sum_desc = 783,
  operation_bn_finalize_scale_desc = 784,
  operation_bn_finalize_bias_desc = 785,
  operation_bn_finalize_prev_running_mean_desc = 786,
  operation_bn_finalize_prev_running_var_desc = 787,
  operation_bn_finalize_updated_running_mean_desc = 788,
  operation_bn_finalize_updated_running_var_desc = 789,
  operation_bn_finalize_saved_mean_desc = 790,
  operation_bn_finalize_saved_inv_std_desc = 791,
  operation_bn_finalize_eq_scale_desc = 792,
  operation_bn_finalize_eq_bias_desc = 793,
  operation_bn_finalize_accum_count_desc = 794,
  operation_bn_finalize_epsilon_desc = 795,
  operation_bn_finalize_exp_averate_factor_desc = 796,

  reduction_operator = 1600,
  reduction_comp_type = 1601,
  reduction_is_deterministic = 1602,

  operation_reduction_xdesc = 1610,
  operation_reduction_ydesc = 1611,
  operation_reduction_desc = 1612,
  operation_reduction_group_offset_desc = 1613,

  operation_bn_bwd_weights_math_prec = 1620,
  operation_bn_bwd_weights_mean_desc = 1621,
  operation_bn_bwd_weights_invstd_desc = 1622,
  operation_bn_bwd_weights_bn_scale_desc = 1623,
  operation_bn_bwd_weights_x_desc = 1624,
  operation_bn_bwd_weights_dy_desc = 1625,
  operation_bn_bwd_weights_dbn_scale_desc = 1626,
  operation_bn_bwd_weights_dbn_bias_desc = 1627,
  operation_bn_bwd_weights_eq_dy_scale_desc = 1628,
  operation_bn_bwd_weights_eq_x_scale_desc = 1629,
  operation_bn_bwd_weights_eq_bias = 1630,

  resample_mode = 1700,
  resample_comp_type = 1701,
  resample_spatial_dims = 1702,
  resample_post_paddings = 1703,
  resample_pre_paddings = 1704,
  resample_strides = 1705,
  resample_window_dims = 1706,
  resample_nan_propagation = 1707,
  resample_padding_mode = 1708,

  operation_resample_fwd_xdesc = 1710,
  operation_resample_fwd_ydesc = 1711,
  operation_resample_fwd_idxdesc = 1712,
  operation_resample_fwd_alpha = 1713,
  operation_resample_fwd_beta = 1714,
  operation_resample_fwd_desc = 1716,

  operation_resample_bwd_dxdesc = 1720,
  operation_resample_bwd_dydesc = 1721,
  operation_resample_bwd_idxdesc = 1722,
  operation_resample_bwd_alpha = 1723,
  operation_resample_bwd_beta = 1724,
  operation_resample_bwd_desc = 1725,
  operation_resample_bwd_xdesc = 1726,
  operation_resample_bwd_ydesc = 1727,

  operation_concat_axis = 1800,
  operation_concat_input_descs = 1801,
  operation_concat_inplace_index = 1802,
  operation_concat_output_desc = 1803,

  operation_norm_fwd_mode = 2000,
  operation_norm_fwd_phase = 2001,
  operation_norm_fwd_xdesc = 2002,
  operation_norm_fwd_mean_desc = 2003,
  operation_norm_fwd_inv_variance_desc = 2004,
  operation_norm_fwd_scale_desc = 2005,
  operation_norm_fwd_bias_desc = 2006,
  operation_norm_fwd_epsilon_desc = 2007,
  operation_norm_fwd_exp_avg_factor_desc = 2008,
  operation_norm_fwd_input_running_mean_desc = 2009,
  operation_norm_fwd_input_running_var_desc = 2010,
  operation_norm_fwd_output_running_mean_desc = 2011,
  operation_norm_fwd_output_running_var_desc = 2012,
  operation_norm_fwd_ydesc = 2013,

  operation_norm_bwd_mode = 2100,
  operation_norm_bwd_xdesc = 2101,
  operation_norm_bwd_mean_desc = 2102,
  operation_norm_bwd_inv_variance_desc = 2103,
  operation_norm_bwd_dydesc = 2104,
  operation_norm_bwd_scale_desc = 2105,
  operation_norm_bwd_dscale_desc = 2107,
  operation_norm_bwd_dbias_desc = 2108,
  operation_norm_bwd_dxdesc = 2109,

  operation_reshape_xdesc = 2200,
  operation_reshape_ydesc = 2201,
  operation_reshape_mode = 2202,

  rng_distribution = 2300,
  rng_normal_dist_mean = 2301,
  rng_normal_dist_standard_deviation = 2302,
  rng_uniform_dist_maximum = 2303,
  rng_uniform_dist_minimum = 2304,
  rng_bernoulli_dist_probability = 2305,

  operation_rng_ydesc = 2310,
  operation_rng_seed = 2311,
  operation_rng_desc = 2312,
  operation_rng_offset_desc = 2313,

  operation_paged_cache_load_container_desc = 1950,
  operation_paged_cache_load_ydesc = 1951,
  operation_paged_cache_load_sequence_desc = 1952,
  operation_paged_cache_load_page_table_desc = 1953,

  operation_block_scale_quantize_xdesc = 2500,
  operation_block_scale_quantize_ydesc = 2501,
  operation_block_scale_quantize_scale_desc = 2502,
  operation_block_scale_quantize_math_prec = 2503,
  operation_block_scale_quantize_block_size = 2504,

  operation_block_scale_dequantize_xdesc = 2600,
  operation_block_scale_dequantize_scale_desc = 2601,
  operation_block_scale_dequantize_ydesc = 2602,
  operation_block_scale_dequantize_math_prec = 2603,
  operation_block_scale_dequantize_block_size = 2604,
  operation_block_scale_dequantize_neg_scale = 2605,

  operation_sdpa_fwd_qdesc = 2800,
  operation_sdpa_fwd_kdesc = 2801,
  operation_sdpa_fwd_vdesc = 2802,
  operation_sdpa_fwd_odesc = 2803,
  operation_sdpa_fwd_statsdesc = 2804,
  operation_sdpa_fwd_scaledesc = 2805,
  operation_sdpa_fwd_block_mask_desc = 2806,
  operation_sdpa_fwd_page_table_kdesc = 2807,
  operation_sdpa_fwd_page_table_vdesc = 2808,
  operation_sdpa_fwd_seq_len_qdesc = 2809,
  operation_sdpa_fwd_seq_len_kvdesc = 2810,
  operation_sdpa_fwd_subgraph = 2811,
  operation_sdpa_fwd_subgraph_input_uid = 2812,
  operation_sdpa_fwd_subgraph_output_uid = 2813,
  operation_sdpa_fwd_softmax_desc = 2814,
  operation_sdpa_fwd_dropout_seed_desc = 2815,
  operation_sdpa_fwd_dropout_offset_desc = 2816,
  operation_sdpa_fwd_dropout_rng_dump_desc = 2817,
  operation_sdpa_fwd_dropout_probability = 2818,
  operation_sdpa_fwd_cu_seq_len_qdesc = 2820,
  operation_sdpa_fwd_cu_seq_len_kvdesc = 2821,
  operation_sdpa_fwd_descale_qdesc = 2822,
  operation_sdpa_fwd_descale_kdesc = 2823,
  operation_sdpa_fwd_descale_vdesc = 2824,
  operation_sdpa_fwd_descale_sdesc = 2825,
  operation_sdpa_fwd_scale_sdesc = 2826,
  operation_sdpa_fwd_scale_odesc = 2827,
  operation_sdpa_fwd_amax_sdesc = 2828,
  operation_sdpa_fwd_amax_odesc = 2829,

  operation_moe_grouped_matmul_mode = 2900,
  operation_moe_grouped_matmul_math_prec = 2901,
  operation_moe_grouped_matmul_token_desc = 2902,
  operation_moe_grouped_matmul_weight_desc = 2903,
  operation_moe_grouped_matmul_first_token_offset_desc = 2904,
  operation_moe_grouped_matmul_output_desc = 2905,
  operation_moe_grouped_matmul_token_index_desc = 2906,
  operation_moe_grouped_matmul_token_ks_desc = 2907,
  operation_moe_grouped_matmul_top_k = 2908,

  operation_diagonal_band_mask_xdesc = 3000,
  operation_diagonal_band_mask_seq_len_kvdesc = 3001,
  operation_diagonal_band_mask_seq_len_qdesc = 3002,
  operation_diagonal_band_mask_left_bound_desc = 3003,
  operation_diagonal_band_mask_shift_right_bound_desc = 3004,
  operation_diagonal_band_mask_bdesc = 3005,
  operation_diagonal_band_mask_ydesc = 3006,
  operation_diagonal_band_mask_comparison_mode = 3007,
  operation_diagonal_band_mask_cu_seq_len_kvdesc = 3008,
  operation_diagonal_band_mask_cu_seq_len_qdesc = 3009,

  operation_softmax_xdesc = 3100,
  operation_softmax_ydesc = 3101,
  operation_softmax_stats_desc = 3102,
  operation_softmax_max_desc = 3103,
  operation_softmax_sum_exp_desc = 3104,
  operation_softmax_sink_desc = 3105,
  operation_softmax_stats_log2 = 3106,

  operation_transpose_xdesc = 3200,
  operation_transpose_ydesc = 3201,
  operation_transpose_permutation = 3202,

  operation_slice_xdesc = 3300,
  operation_slice_ydesc = 3301,
  operation_slice_start_indices = 3302,
  operation_slice_limit_indices = 3303,
  operation_slice_strides = 3304,

  operation_moe_grouped_matmul_bwd_math_prec = 2951,
  operation_moe_grouped_matmul_bwd_token_desc = 2952,
  operation_moe_grouped_matmul_bwd_dweight_desc = 2953,
  operation_moe_grouped_matmul_bwd_first_token_offset_desc = 2954,
  operation_moe_grouped_matmul_bwd_doutput_desc = 2955,

  operation_rope_fwd_xdesc = 3400,
  operation_rope_fwd_ydesc = 3401,
  operation_rope_fwd_freqsdesc = 3402,
  operation_rope_fwd_output_scale = 3403,
  operation_rope_fwd_rope_dim = 3404,

  operation_rope_bwd_dydesc = 3410,
  operation_rope_bwd_dxdesc = 3411,
  operation_rope_bwd_freqsdesc = 3412,
  operation_rope_bwd_output_scale = 3413,
  operation_rope_bwd_rope_dim = 3414,
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
  byte_boolean = 22
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
