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
  };
  return kList;
}

const Definition* find_definition(std::string_view op) {
  for (const Definition& d : definitions())
    if (d.op == op) return &d;
  return nullptr;
}

}  // namespace tsr::ref
