// SPDX-License-Identifier: Apache-2.0
// Every operation: one file in this folder defines it, one line here names it. The order is that of the documentation.
#pragma once

#include "graph/op.hpp"

namespace tsr::ops {

extern const OpSpec pointwise;
extern const OpSpec reduce;
extern const OpSpec matmul;
extern const OpSpec norm_fwd;
extern const OpSpec norm_bwd;
extern const OpSpec gen_stats;
extern const OpSpec bn_finalize;
extern const OpSpec bn_bwd_weights;
extern const OpSpec rnn_fwd;
extern const OpSpec rnn_bwd_data;
extern const OpSpec rnn_bwd_weights;
extern const OpSpec ctc_loss;
extern const OpSpec reshape;
extern const OpSpec transpose;
extern const OpSpec slice;
extern const OpSpec concat;

}  // namespace tsr::ops
