// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/list.hpp"

namespace tsr {

std::span<const OpSpec* const> all_ops() {
  static const OpSpec* const list[] = {
      &ops::pointwise,
      &ops::reduce,
      &ops::reduce_by,
      &ops::matmul,
      &ops::moe_matmul,
      &ops::moe_matmul_bwd,
      &ops::conv_fprop,
      &ops::conv_dgrad,
      &ops::conv_wgrad,
      &ops::causal_conv1d,
      &ops::causal_conv1d_bwd,
      &ops::b2b_causal_conv1d,
      &ops::b2b_causal_conv1d_bwd,
      &ops::norm_fwd,
      &ops::norm_bwd,
      &ops::gen_stats,
      &ops::bn_finalize,
      &ops::bn_bwd_weights,
      &ops::lrn,
      &ops::lrn_bwd,
      &ops::divisive_norm,
      &ops::divisive_norm_bwd,
      &ops::softmax,
      &ops::softmax_bwd,
      &ops::sdpa_fwd,
      &ops::sdpa_bwd,
      &ops::rope,
      &ops::rope_bwd,
      &ops::band_mask,
      &ops::paged_load,
      &ops::resample,
      &ops::resample_bwd,
      &ops::affine_grid,
      &ops::affine_grid_bwd,
      &ops::grid_sample,
      &ops::grid_sample_bwd,
      &ops::rng,
      &ops::dropout,
      &ops::dropout_bwd,
      &ops::reshape,
      &ops::transpose,
      &ops::slice,
      &ops::concat,
      &ops::block_scale_quantize,
      &ops::block_scale_dequantize,
      &ops::rnn_fwd,
      &ops::rnn_bwd_data,
      &ops::rnn_bwd_weights,
      &ops::ctc_loss,
      &ops::gnn_agg,
      &ops::gnn_agg_bwd,
  };
  return list;
}

}  // namespace tsr
