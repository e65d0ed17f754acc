// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/list.hpp"
#include "engines/reference/ops/rnn.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {
namespace {

using namespace slots::rnn_fwd;

}  // namespace

template <class R>
void rnn_fwd(const Context<R>& c) {
  RnnProblem<R> p = read_rnn(c, kRnnFwdSlots);
  RnnResult<R> r = rnn_forward(p);
  c.out(kY, pack_sequences(p, r.y, c.out_tensor(kY).dims));
  c.out(kHn, r.hn);
  c.out(kCn, r.cn);
}

TESSERA_REFERENCE(rnn_fwd);

}  // namespace tsr::ref
