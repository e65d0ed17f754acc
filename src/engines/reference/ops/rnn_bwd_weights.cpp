// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"
#include "engines/reference/ops/rnn.hpp"

namespace tsr::ref {

template <class R>
void rnn_bwd_weights(const Context<R>& c) {
  RnnProblem<R> p = read_rnn(c, kRnnBwdWeightsSlots);
  c.out(0, rnn_backward(c, p, kRnnBwdWeightsSlots).dweight);
}

TESSERA_REFERENCE(rnn_bwd_weights);

}  // namespace tsr::ref
