// SPDX-License-Identifier: Apache-2.0
// Which place each input and output of an operation has, once for all that read or make nodes. The operation's own file
// gives each slot its name, under its place (Slot::place).
#pragma once

namespace tsr::slots {

namespace matmul {
enum In : int { kA, kB, kM, kN, kK };
}  // namespace matmul

namespace moe_matmul {
enum In : int { kToken, kWeight, kOffset, kIndex, kKs };
}  // namespace moe_matmul

namespace moe_matmul_bwd {
enum In : int { kDoutput, kToken, kOffset };
}  // namespace moe_matmul_bwd

namespace conv_fprop {
enum In : int { kX, kW, kC };
}  // namespace conv_fprop

namespace conv_dgrad {
enum In : int { kDy, kW, kC };
}  // namespace conv_dgrad

namespace conv_wgrad {
enum In : int { kDy, kX, kC };
}  // namespace conv_wgrad

namespace causal_conv1d_bwd {
enum In : int { kX, kWeight, kDy, kBias };
}  // namespace causal_conv1d_bwd

namespace b2b_causal_conv1d {
enum In : int { kX, kProj, kMixer, kSkip };
}  // namespace b2b_causal_conv1d

namespace b2b_causal_conv1d_bwd {
enum In : int { kX, kProj, kMixer, kSkip, kY, kDy };
}  // namespace b2b_causal_conv1d_bwd

namespace norm_fwd {
enum In : int { kX, kScale, kBias, kMean, kInvVariance, kVariance, kRunningMean, kRunningVar, kEpsilon, kMomentum };
enum Out : int { kY, kOutMean, kOutInvVariance, kNewMean, kNewVar };
}  // namespace norm_fwd

namespace norm_bwd {
enum In : int { kX, kDy, kScale, kMean, kInvVariance, kEpsilon };
enum Out : int { kDx, kDscale, kDbias };
}  // namespace norm_bwd

namespace gen_stats {
enum Out : int { kSum, kSqSum };
}  // namespace gen_stats

namespace bn_finalize {
enum In : int { kSum, kSqSum, kScale, kBias, kRunningMean, kRunningVar, kEpsilon, kMomentum, kCount };
enum Out : int { kEqScale, kEqBias, kMean, kInvStd, kNewMean, kNewVar };
}  // namespace bn_finalize

namespace bn_bwd_weights {
enum In : int { kDy, kX, kMean, kInvStd, kScale };
enum Out : int { kDscale, kDbias, kEqDyScale, kEqXScale, kEqBias };
}  // namespace bn_bwd_weights

namespace softmax {
enum In : int { kX, kSink };
enum Out : int { kY, kStats, kMax, kSumExp };
}  // namespace softmax

namespace cross_entropy {
enum In : int { kLogits, kTarget };
enum Out : int { kLoss, kStats };
}  // namespace cross_entropy

namespace cross_entropy_bwd {
enum In : int { kLogits, kTarget, kStats, kDloss };
}  // namespace cross_entropy_bwd

namespace gather {
enum In : int { kX, kIndex };
}  // namespace gather

namespace scatter_add {
enum In : int { kUpdates, kIndex, kX };
}  // namespace scatter_add

namespace top_k {
enum Out : int { kValues, kIndices };
}  // namespace top_k

namespace band_mask {
enum In : int { kX, kFill, kSeqQ, kSeqKv, kCuSeqQ, kCuSeqKv, kLeft, kShiftRight };
}  // namespace band_mask

namespace paged_load {
enum In : int { kContainer, kTable, kSeqLen };
}  // namespace paged_load

namespace resample_bwd {
enum In : int { kDy, kX, kY, kIndex };
}  // namespace resample_bwd

namespace dropout {
enum In : int { kX, kSeed, kOffset };
}  // namespace dropout

namespace block_scale_dequantize {
enum In : int { kX, kScale };
}  // namespace block_scale_dequantize

namespace rnn_fwd {
enum In : int { kX, kWeight, kH0, kC0, kLengths };
enum Out : int { kY, kHn, kCn };
}  // namespace rnn_fwd

namespace rnn_bwd_data {
enum Out : int { kDx, kDh0, kDc0 };
}  // namespace rnn_bwd_data

namespace ctc_loss {
enum In : int { kLogits, kLabels, kLabelLengths, kInputLengths };
enum Out : int { kCosts, kGradients };
}  // namespace ctc_loss

namespace gnn_agg {
enum In : int { kOffsets, kIndices, kNode, kEdge, kConcat, kMap };
}  // namespace gnn_agg

namespace gnn_agg_bwd {
enum In : int { kDy, kOffsets, kIndices, kMap, kPositions };
enum Out : int { kDnode, kDedge, kDconcat };
}  // namespace gnn_agg_bwd

}  // namespace tsr::slots
