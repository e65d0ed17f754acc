// SPDX-License-Identifier: Apache-2.0
// The definition of every operation: one line here, one function in a file of this folder.
#pragma once

#include <span>

#include "engines/reference/context.hpp"

namespace tsr::ref {

template <class R>
void pointwise(const Context<R>&);
template <class R>
void reduce(const Context<R>&);
template <class R>
void matmul(const Context<R>&);
template <class R>
void norm_fwd(const Context<R>&);
template <class R>
void norm_bwd(const Context<R>&);
template <class R>
void gen_stats(const Context<R>&);
template <class R>
void bn_finalize(const Context<R>&);
template <class R>
void bn_bwd_weights(const Context<R>&);
template <class R>
void rnn_fwd(const Context<R>&);
template <class R>
void rnn_bwd_data(const Context<R>&);
template <class R>
void rnn_bwd_weights(const Context<R>&);
template <class R>
void ctc_loss(const Context<R>&);
template <class R>
void reshape(const Context<R>&);
template <class R>
void transpose(const Context<R>&);
template <class R>
void slice(const Context<R>&);
template <class R>
void concat(const Context<R>&);
template <class R>
void softmax(const Context<R>&);
template <class R>
void softmax_bwd(const Context<R>&);
template <class R>
void reduce_by(const Context<R>&);
template <class R>
void rng(const Context<R>&);
template <class R>
void dropout(const Context<R>&);
template <class R>
void dropout_bwd(const Context<R>&);
template <class R>
void block_scale_quantize(const Context<R>&);
template <class R>
void block_scale_dequantize(const Context<R>&);
template <class R>
void rope(const Context<R>&);
template <class R>
void rope_bwd(const Context<R>&);
template <class R>
void band_mask(const Context<R>&);
template <class R>
void paged_load(const Context<R>&);
template <class R>
void sdpa_fwd(const Context<R>&);
template <class R>
void sdpa_bwd(const Context<R>&);
template <class R>
void conv_fprop(const Context<R>&);
template <class R>
void conv_dgrad(const Context<R>&);
template <class R>
void conv_wgrad(const Context<R>&);
template <class R>
void moe_matmul(const Context<R>&);
template <class R>
void moe_matmul_bwd(const Context<R>&);
template <class R>
void causal_conv1d(const Context<R>&);
template <class R>
void causal_conv1d_bwd(const Context<R>&);
template <class R>
void b2b_causal_conv1d(const Context<R>&);
template <class R>
void b2b_causal_conv1d_bwd(const Context<R>&);
template <class R>
void resample(const Context<R>&);
template <class R>
void resample_bwd(const Context<R>&);
template <class R>
void affine_grid(const Context<R>&);
template <class R>
void affine_grid_bwd(const Context<R>&);
template <class R>
void grid_sample(const Context<R>&);
template <class R>
void grid_sample_bwd(const Context<R>&);
template <class R>
void lrn(const Context<R>&);
template <class R>
void lrn_bwd(const Context<R>&);
template <class R>
void divisive_norm(const Context<R>&);
template <class R>
void divisive_norm_bwd(const Context<R>&);
template <class R>
void gnn_agg(const Context<R>&);
template <class R>
void gnn_agg_bwd(const Context<R>&);

struct Definition {
  std::string_view op;
  void (*wide)(const Context<double>&);
  void (*narrow)(const Context<float>&);
};

std::span<const Definition> definitions();
const Definition* find_definition(std::string_view op);

}  // namespace tsr::ref

// Ends a definition file: both instances of its function.
#define TESSERA_REFERENCE(function)                       \
  template void function<double>(const Context<double>&); \
  template void function<float>(const Context<float>&)
