// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"
#include "engines/reference/ops/rnn.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using namespace slots::rnn_bwd_data;

}  // namespace

template <class R>
void rnn_bwd_data(const Context<R>& c) {
  RnnProblem<R> p = read_rnn(c, kRnnBwdDataSlots);
  RnnGradients<R> g = rnn_backward(c, p, kRnnBwdDataSlots);
  c.out(kDx, pack_sequences(p, g.dx, c.out_tensor(kDx).dims));
  c.out(kDh0, g.dh0);
  c.out(kDc0, g.dc0);
}

TESSERA_REFERENCE(rnn_bwd_data);

}  // namespace tsr::ref
