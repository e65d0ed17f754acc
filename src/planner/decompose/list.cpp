// SPDX-License-Identifier: Apache-2.0
// Every decomposition, one line each. Where a device is named, the other one has an engine for it, or no use.
#include "planner/decompose/list.hpp"

#include "graph/ops/list.hpp"

namespace tsr {

using namespace ops;

std::span<const DecompositionRule> all_decompositions() {
  constexpr auto anywhere = DecompositionRule::anywhere, cpu = DecompositionRule::cpu, gpu = DecompositionRule::gpu;
  // clang-format off
  static const DecompositionRule list[] = {
      {"movements", {}, gpu, nullptr, nullptr, decompose_movements},
      {"norm_gradient", {&norm_bwd}, anywhere, sums_across_rows, check_real, decompose_norm_gradient},
      {"rope", {&rope, &rope_bwd}, cpu, nullptr, check_real, decompose_rope},
      {"causal_conv", {&causal_conv1d}, cpu, has_few_taps, check_real, decompose_causal_conv},
      {"shifted_mask", {&band_mask}, anywhere, has_lengths, check_real, decompose_shifted_mask},
      {"affine_grid", {&affine_grid, &affine_grid_bwd}, anywhere, nullptr, check_real, decompose_affine_grid},
      {"normal_numbers", {&rng}, anywhere, is_normal, check_plain, decompose_normal_numbers},
      {"reduce_by", {&reduce_by}, anywhere, nullptr, check_real, decompose_reduce_by},
      {"converted_copies", {&transpose, &slice, &concat, &reshape}, cpu, converts, check_plain, decompose_copies},
      {"runs", {&reduce}, anywhere, reduces_runs, check_single, decompose_runs},
      {"scale_tiles", {&block_scale_quantize, &block_scale_dequantize}, cpu, has_tiled_scale, check_single,
       decompose_scale_tiles},
      {"scale_tiles", {&block_scale_quantize}, gpu, pads_tiles, check_single, decompose_scale_tiles},
      {"short_block", {&block_scale_dequantize}, anywhere, has_short_block, check_single, decompose_short_block},
      {"box_norm", {&lrn, &lrn_bwd, &divisive_norm, &divisive_norm_bwd}, cpu, nullptr, check_plain,
       decompose_box_norm},
      {"tensor_layout", {&conv_fprop, &conv_dgrad, &conv_wgrad, &matmul}, gpu, wants_tensor_layout, check_plain,
       decompose_tensor_layout, true},
      {"few_channels", {&conv_fprop, &conv_wgrad}, gpu, has_few_channels, check_plain, decompose_few_channels, true},
      {"turned_filter", {&conv_dgrad}, gpu, has_few_filters, check_plain, decompose_turned_filter, true},
      {"halves", {&conv_wgrad}, gpu, may_be_halved, check_plain, decompose_halves},
      {"winograd", {&conv_fprop, &conv_dgrad, &conv_wgrad}, anywhere, is_three_by_three, check_real,
       decompose_winograd, true, true},
      {"fourier", {&conv_fprop, &conv_dgrad, &conv_wgrad}, anywhere, has_several_taps, check_real, decompose_fourier,
       true, true},
      {"narrow_attention", {&sdpa_fwd, &sdpa_bwd}, gpu, has_narrow_operands, check_single, decompose_narrow_attention},
  };
  // clang-format on
  return list;
}

}  // namespace tsr
