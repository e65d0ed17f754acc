// SPDX-License-Identifier: Apache-2.0
// One step of one layer of a recurrent network in one direction, and its gradient.
#pragma once

#include "engines/reference/ops/rnn.hpp"

namespace tsr::ref {

// What the backward pass needs of one layer in one direction. First sizes: steps, batch.
template <class R>
struct RnnTape {
  Array<R> gates;        // [.., gates, hidden] after the activation
  Array<R> h, c;         // [.., outputs], [.., hidden]: states before the step
  Array<R> next_c;       // [.., hidden]: cell state after the step
  Array<R> inside;       // [.., hidden]: 0 where clipping replaced the cell state, 1 elsewhere
  Array<R> recurrent_n;  // [.., hidden]: R_n h + bR_n of gru
};

// One layer in one direction: its weights and the sizes of everything.
template <class R>
class RnnCell {
 public:
  RnnCell(const RnnProblem<R>& p, int64_t layer, int64_t direction)
      : p_(p), w_(p.layout), layer_(layer), direction_(direction), hidden_(w_.hidden()), outputs_(w_.outputs()) {}

  int64_t state() const { return layer_ * w_.directions() + direction_; }  // index into h0, c0, hn, cn
  // The k-th step of a sequence in the order of this direction.
  int64_t time(int64_t k, int64_t length) const { return direction_ == 0 ? k : length - 1 - k; }

  RnnTape<R> make_tape() const {
    int64_t t = p_.steps, b = p_.batch;
    Array<R> cell(Dims{t, b, hidden_});
    return {Array<R>(Dims{t, b, w_.gates(), hidden_}), Array<R>(Dims{t, b, outputs_}), cell, cell, cell, cell};
  }

  // Replaces the states h and c by the next ones.
  void forward(const R* x, int64_t t, int64_t b, std::vector<R>& h, std::vector<R>& c, RnnTape<R>& tape) const;
  // dh and dc are gradients of the states after the step; they become those before it. dx and dweight grow.
  void backward(const R* x, int64_t t, int64_t b, const RnnTape<R>& tape, std::vector<R>& dh, std::vector<R>& dc, R* dx,
                Array<R>& dweight) const;

 private:
  // Row i of a matrix times v, 0 for a matrix that does not exist.
  R row_times(const RnnPart& m, int64_t i, const R* v) const {
    R sum = 0;
    for (int64_t j = 0; m.rows > 0 && j < m.columns; ++j) sum += p_.weight[m.offset + i * m.columns + j] * v[j];
    return sum;
  }
  R bias(const RnnPart& b, int64_t i) const { return b.rows > 0 ? p_.weight[b.offset + i] : R(0); }
  bool skips_input() const { return layer_ == 0 && p_.options.input == tessera::RnnInput::skip; }
  R clip(R c, R& inside) const;
  // Gradients of the sums a and b before the activations, from those of the states; dh becomes the part of the gradient
  // of h that does not go through R.
  void gate_gradients(int64_t t, int64_t b, const RnnTape<R>& tape, std::vector<R>& dh, std::vector<R>& dc,
                      Array<R>& da, Array<R>& db, Array<R>& dweight) const;

  const RnnProblem<R>& p_;
  const RnnWeights& w_;
  int64_t layer_, direction_, hidden_, outputs_;
};

}  // namespace tsr::ref
