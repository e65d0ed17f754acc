// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/list.hpp"

namespace tsr {

std::span<const OpSpec* const> all_ops() {
  static const OpSpec* const list[] = {
      &ops::pointwise,
      &ops::reduce,
      &ops::matmul,
      &ops::norm_fwd,
      &ops::norm_bwd,
      &ops::gen_stats,
      &ops::bn_finalize,
      &ops::bn_bwd_weights,
      &ops::rnn_fwd,
      &ops::rnn_bwd_data,
      &ops::rnn_bwd_weights,
      &ops::ctc_loss,
      &ops::reshape,
      &ops::transpose,
      &ops::slice,
      &ops::concat,
  };
  return list;
}

}  // namespace tsr
