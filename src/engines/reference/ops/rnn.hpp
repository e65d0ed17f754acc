// SPDX-License-Identifier: Apache-2.0
// The definition of recurrent networks, forward and backward. Sequences are held padded and time-major, whatever the
// layout of the tensors; steps past a sequence's length take no part.
#pragma once

#include "engines/reference/context.hpp"
#include "graph/ops/rnn_layout.hpp"

namespace tsr::ref {

template <class R>
struct RnnProblem {
  tessera::RnnOptions options;
  RnnWeights layout;
  int64_t steps, batch;
  Ints lengths;  // valid steps of each sequence
  Array<R> x;    // [steps, batch, inputs]
  Array<R> weight, h0, c0;
  DType operand = DType::f32;  // what tensor cores may multiply states and gradients in
  uint64_t jitter = 0;         // of a moved run, which rounds them to that

  R rounded(R v) const { return round_somewhere(v, operand, jitter); }
  void round(Array<R>& x) const {
    for (R& v : x.data) v = rounded(v);
  }
};

template <class R>
struct RnnResult {
  Array<R> y, hn, cn;
};

template <class R>
struct RnnGradients {
  Array<R> dx, dh0, dc0, dweight;
};

// Reads the inputs of any of the three operations.
template <class R>
RnnProblem<R> read_rnn(const Context<R>& c, const RnnSlots& slots);
// Sequences of a tensor of the operation in the padded form, and back; nothing is there past the lengths.
template <class R>
Array<R> unpack_sequences(const RnnProblem<R>& p, const Array<R>& packed);
template <class R>
Array<R> pack_sequences(const RnnProblem<R>& p, const Array<R>& padded, const Dims& dims);

template <class R>
RnnResult<R> rnn_forward(const RnnProblem<R>& p);
// Gradients of <y, dy> + <hn, dhn> + <cn, dcn>.
template <class R>
RnnGradients<R> rnn_backward(const RnnProblem<R>& p, const Array<R>& dy, const Array<R>& dhn, const Array<R>& dcn);
// The same for a backward operation, from its inputs.
template <class R>
RnnGradients<R> rnn_backward(const Context<R>& c, const RnnProblem<R>& p, const RnnSlots& slots);

}  // namespace tsr::ref
