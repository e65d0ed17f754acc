// SPDX-License-Identifier: Apache-2.0
// Every operation: one file in this folder defines it, one line here names it. The order is that of the documentation.
#pragma once

#include "graph/op.hpp"

namespace tsr::ops {

extern const OpSpec pointwise;
extern const OpSpec reduce;
extern const OpSpec reduce_by;
extern const OpSpec matmul;
extern const OpSpec moe_matmul;
extern const OpSpec moe_matmul_bwd;
extern const OpSpec conv_fprop;
extern const OpSpec conv_dgrad;
extern const OpSpec conv_wgrad;
extern const OpSpec causal_conv1d;
extern const OpSpec causal_conv1d_bwd;
extern const OpSpec b2b_causal_conv1d;
extern const OpSpec b2b_causal_conv1d_bwd;
extern const OpSpec norm_fwd;
extern const OpSpec norm_bwd;
extern const OpSpec gen_stats;
extern const OpSpec bn_finalize;
extern const OpSpec bn_bwd_weights;
extern const OpSpec lrn;
extern const OpSpec lrn_bwd;
extern const OpSpec divisive_norm;
extern const OpSpec divisive_norm_bwd;
extern const OpSpec softmax;
extern const OpSpec softmax_bwd;
extern const OpSpec sdpa_fwd;
extern const OpSpec sdpa_bwd;
extern const OpSpec rope;
extern const OpSpec rope_bwd;
extern const OpSpec band_mask;
extern const OpSpec paged_load;
extern const OpSpec resample;
extern const OpSpec resample_bwd;
extern const OpSpec affine_grid;
extern const OpSpec affine_grid_bwd;
extern const OpSpec grid_sample;
extern const OpSpec grid_sample_bwd;
extern const OpSpec rng;
extern const OpSpec dropout;
extern const OpSpec dropout_bwd;
extern const OpSpec reshape;
extern const OpSpec transpose;
extern const OpSpec slice;
extern const OpSpec concat;
extern const OpSpec block_scale_quantize;
extern const OpSpec block_scale_dequantize;
extern const OpSpec rnn_fwd;
extern const OpSpec rnn_bwd_data;
extern const OpSpec rnn_bwd_weights;
extern const OpSpec ctc_loss;
extern const OpSpec gnn_agg;
extern const OpSpec gnn_agg_bwd;

}  // namespace tsr::ops
