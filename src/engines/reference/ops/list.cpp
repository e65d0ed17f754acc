// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {

std::span<const Definition> definitions() {
  static constexpr Definition kList[] = {
      {"pointwise", pointwise<double>, pointwise<float>},
      {"reduce", reduce<double>, reduce<float>},
      {"matmul", matmul<double>, matmul<float>},
      {"norm_fwd", norm_fwd<double>, norm_fwd<float>},
      {"norm_bwd", norm_bwd<double>, norm_bwd<float>},
      {"gen_stats", gen_stats<double>, gen_stats<float>},
      {"bn_finalize", bn_finalize<double>, bn_finalize<float>},
      {"bn_bwd_weights", bn_bwd_weights<double>, bn_bwd_weights<float>},
      {"rnn_fwd", rnn_fwd<double>, rnn_fwd<float>},
      {"rnn_bwd_data", rnn_bwd_data<double>, rnn_bwd_data<float>},
      {"rnn_bwd_weights", rnn_bwd_weights<double>, rnn_bwd_weights<float>},
      {"ctc_loss", ctc_loss<double>, ctc_loss<float>},
      {"reshape", reshape<double>, reshape<float>},
      {"transpose", transpose<double>, transpose<float>},
      {"slice", slice<double>, slice<float>},
      {"concat", concat<double>, concat<float>},
      {"softmax", softmax<double>, softmax<float>},
      {"softmax_bwd", softmax_bwd<double>, softmax_bwd<float>},
      {"reduce_by", reduce_by<double>, reduce_by<float>},
      {"rng", rng<double>, rng<float>},
      {"dropout", dropout<double>, dropout<float>},
      {"dropout_bwd", dropout_bwd<double>, dropout_bwd<float>},
      {"block_scale_quantize", block_scale_quantize<double>, block_scale_quantize<float>},
      {"block_scale_dequantize", block_scale_dequantize<double>, block_scale_dequantize<float>},
      {"rope", rope<double>, rope<float>},
      {"rope_bwd", rope_bwd<double>, rope_bwd<float>},
      {"band_mask", band_mask<double>, band_mask<float>},
      {"paged_load", paged_load<double>, paged_load<float>},
      {"sdpa_fwd", sdpa_fwd<double>, sdpa_fwd<float>},
      {"sdpa_bwd", sdpa_bwd<double>, sdpa_bwd<float>},
      {"conv_fprop", conv_fprop<double>, conv_fprop<float>},
      {"conv_dgrad", conv_dgrad<double>, conv_dgrad<float>},
      {"conv_wgrad", conv_wgrad<double>, conv_wgrad<float>},
      {"moe_matmul", moe_matmul<double>, moe_matmul<float>},
      {"moe_matmul_bwd", moe_matmul_bwd<double>, moe_matmul_bwd<float>},
      {"causal_conv1d", causal_conv1d<double>, causal_conv1d<float>},
      {"causal_conv1d_bwd", causal_conv1d_bwd<double>, causal_conv1d_bwd<float>},
      {"b2b_causal_conv1d", b2b_causal_conv1d<double>, b2b_causal_conv1d<float>},
      {"b2b_causal_conv1d_bwd", b2b_causal_conv1d_bwd<double>, b2b_causal_conv1d_bwd<float>},
      {"resample", resample<double>, resample<float>},
      {"resample_bwd", resample_bwd<double>, resample_bwd<float>},
      {"affine_grid", affine_grid<double>, affine_grid<float>},
      {"affine_grid_bwd", affine_grid_bwd<double>, affine_grid_bwd<float>},
      {"grid_sample", grid_sample<double>, grid_sample<float>},
      {"grid_sample_bwd", grid_sample_bwd<double>, grid_sample_bwd<float>},
      {"lrn", lrn<double>, lrn<float>},
      {"lrn_bwd", lrn_bwd<double>, lrn_bwd<float>},
      {"divisive_norm", divisive_norm<double>, divisive_norm<float>},
      {"divisive_norm_bwd", divisive_norm_bwd<double>, divisive_norm_bwd<float>},
      {"gnn_agg", gnn_agg<double>, gnn_agg<float>},
      {"gnn_agg_bwd", gnn_agg_bwd<double>, gnn_agg_bwd<float>},
  };
  return kList;
}

const Definition* find_definition(std::string_view op) {
  for (const Definition& d : definitions())
    if (d.op == op) return &d;
  return nullptr;
}

}  // namespace tsr::ref
