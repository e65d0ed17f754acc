// SPDX-License-Identifier: Apache-2.0
// Every operation: one file in this folder defines it, one line here names it. The order is that of the documentation.
#pragma once

#include "graph/op.hpp"

namespace tsr::ops {

extern const OpSpec pointwise;
extern const OpSpec reduce;
extern const OpSpec matmul;
extern const OpSpec conv_fprop;
extern const OpSpec conv_dgrad;
extern const OpSpec conv_wgrad;
extern const OpSpec moe_matmul;
extern const OpSpec moe_matmul_bwd;
extern const OpSpec causal_conv1d;
extern const OpSpec causal_conv1d_bwd;
extern const OpSpec b2b_causal_conv1d;
extern const OpSpec b2b_causal_conv1d_bwd;
extern const OpSpec resample;
extern const OpSpec resample_bwd;
extern const OpSpec affine_grid;
extern const OpSpec affine_grid_bwd;
extern const OpSpec grid_sample;
extern const OpSpec grid_sample_bwd;
extern const OpSpec lrn;
extern const OpSpec lrn_bwd;
extern const OpSpec divisive_norm;
extern const OpSpec divisive_norm_bwd;
extern const OpSpec gnn_agg;
extern const OpSpec gnn_agg_bwd;

}  // namespace tsr::ops
