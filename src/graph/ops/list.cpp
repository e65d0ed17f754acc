// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/list.hpp"

namespace tsr {

std::span<const OpSpec* const> all_ops() {
  static const OpSpec* const list[] = {
      &ops::pointwise,
      &ops::reduce,
      &ops::matmul,
      &ops::conv_fprop,
      &ops::conv_dgrad,
      &ops::conv_wgrad,
      &ops::moe_matmul,
      &ops::moe_matmul_bwd,
      &ops::causal_conv1d,
      &ops::causal_conv1d_bwd,
      &ops::b2b_causal_conv1d,
      &ops::b2b_causal_conv1d_bwd,
      &ops::resample,
      &ops::resample_bwd,
      &ops::affine_grid,
      &ops::affine_grid_bwd,
      &ops::grid_sample,
      &ops::grid_sample_bwd,
      &ops::lrn,
      &ops::lrn_bwd,
      &ops::divisive_norm,
      &ops::divisive_norm_bwd,
      &ops::gnn_agg,
      &ops::gnn_agg_bwd,
  };
  return list;
}

}  // namespace tsr
