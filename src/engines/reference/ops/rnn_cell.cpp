// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/rnn_cell.hpp"

#include <algorithm>
#include <cmath>

namespace tsr::ref {
namespace {

using tessera::RnnMode;
using tessera::RnnOptions;

template <class R>
R sigmoid(R x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

}  // namespace

template <class R>
R RnnCell<R>::clip(R c, R& inside) const {
  const RnnOptions& o = p_.options;
  inside = 1;
  if (!o.clip_min) return c;
  auto low = static_cast<R>(*o.clip_min), high = static_cast<R>(*o.clip_max);
  if (std::isnan(c)) {
    inside = o.clip_nan ? 0 : 1;
    return o.clip_nan ? low : c;
  }
  inside = c >= low && c <= high ? 1 : 0;
  return std::clamp(c, low, high);
}

template <class R>
void RnnCell<R>::forward(const R* x, int64_t t, int64_t b, std::vector<R>& h, std::vector<R>& c,
                         RnnTape<R>& tape) const {
  std::vector<R> operand;  // of the products: the state as tensor cores may take it
  for (R v : h) operand.push_back(p_.rounded(v));
  for (int64_t j = 0; j < outputs_; ++j) tape.h.at(t, b, j) = operand[static_cast<size_t>(j)];
  for (int64_t i = 0; i < hidden_; ++i) tape.c.at(t, b, i) = c[static_cast<size_t>(i)];
  std::vector<R> next(static_cast<size_t>(hidden_));
  for (int64_t i = 0; i < hidden_; ++i) {
    auto u = static_cast<size_t>(i);
    R from_x[4] = {}, from_h[4] = {};
    for (int64_t g = 0; g < w_.gates(); ++g) {
      from_x[g] = skips_input() ? x[i] : row_times(w_.input(layer_, direction_, g), i, x);
      from_x[g] += bias(w_.input_bias(layer_, direction_, g), i);
      from_h[g] = row_times(w_.recurrent(layer_, direction_, g), i, operand.data());
      from_h[g] += bias(w_.recurrent_bias(layer_, direction_, g), i);
    }
    auto gate = [&](int64_t g) -> R& { return tape.gates.at(t, b, g, i); };
    auto sum = [&](int64_t g) { return from_x[g] + from_h[g]; };
    switch (p_.options.mode) {
      case RnnMode::relu:
        next[u] = gate(0) = sum(0) < 0 ? R(0) : sum(0);
        break;
      case RnnMode::tanh:
        next[u] = gate(0) = std::tanh(sum(0));
        break;
      case RnnMode::lstm:
        gate(0) = sigmoid(sum(0));
        gate(1) = sigmoid(sum(1));
        gate(2) = std::tanh(sum(2));
        gate(3) = sigmoid(sum(3));
        c[u] = clip(gate(1) * c[u] + gate(0) * gate(2), tape.inside.at(t, b, i));
        tape.next_c.at(t, b, i) = c[u];
        next[u] = gate(3) * std::tanh(c[u]);
        break;
      case RnnMode::gru:
        gate(0) = sigmoid(sum(0));
        gate(1) = sigmoid(sum(1));
        tape.recurrent_n.at(t, b, i) = from_h[2];
        gate(2) = std::tanh(from_x[2] + gate(0) * from_h[2]);
        next[u] = (1 - gate(1)) * gate(2) + gate(1) * h[u];
        break;
    }
  }
  RnnPart projection = w_.projection(layer_, direction_);
  if (projection.rows == 0)
    h = next;
  else
    for (R& v : next) v = p_.rounded(v);
  for (int64_t j = 0; j < projection.rows; ++j) h[static_cast<size_t>(j)] = row_times(projection, j, next.data());
}

template <class R>
void RnnCell<R>::gate_gradients(int64_t t, int64_t b, const RnnTape<R>& tape, std::vector<R>& dh, std::vector<R>& dc,
                                Array<R>& da, Array<R>& db, Array<R>& dweight) const {
  auto gate = [&](int64_t g, int64_t i) { return tape.gates.at(t, b, g, i); };
  RnnPart projection = w_.projection(layer_, direction_);
  std::vector<R> before_projection = dh;
  if (projection.rows > 0) {
    for (R& v : dh) v = p_.rounded(v);
    before_projection.assign(static_cast<size_t>(hidden_), 0);
    for (int64_t j = 0; j < projection.rows; ++j)
      for (int64_t i = 0; i < hidden_; ++i) {
        int64_t at = projection.offset + j * hidden_ + i;
        before_projection[static_cast<size_t>(i)] += p_.weight[at] * dh[static_cast<size_t>(j)];
        dweight[at] += dh[static_cast<size_t>(j)] * p_.rounded(gate(3, i) * std::tanh(tape.next_c.at(t, b, i)));
      }
  }
  std::fill(dh.begin(), dh.end(), R(0));
  for (int64_t i = 0; i < hidden_; ++i) {
    auto u = static_cast<size_t>(i);
    R d = before_projection[u];
    switch (p_.options.mode) {
      case RnnMode::relu:
        da.at(0, i) = gate(0, i) > 0 ? d : R(0);
        break;
      case RnnMode::tanh:
        da.at(0, i) = d * (1 - gate(0, i) * gate(0, i));
        break;
      case RnnMode::lstm: {
        R in = gate(0, i), forget = gate(1, i), fresh = gate(2, i), out = gate(3, i);
        R tanh_c = std::tanh(tape.next_c.at(t, b, i));
        R cell = (dc[u] + d * out * (1 - tanh_c * tanh_c)) * tape.inside.at(t, b, i);
        da.at(0, i) = cell * fresh * in * (1 - in);
        da.at(1, i) = cell * tape.c.at(t, b, i) * forget * (1 - forget);
        da.at(2, i) = cell * in * (1 - fresh * fresh);
        da.at(3, i) = d * tanh_c * out * (1 - out);
        dc[u] = cell * forget;
        break;
      }
      case RnnMode::gru: {
        R reset = gate(0, i), update = gate(1, i), fresh = gate(2, i);
        R d_fresh = d * (1 - update) * (1 - fresh * fresh);
        da.at(0, i) = d_fresh * tape.recurrent_n.at(t, b, i) * reset * (1 - reset);
        da.at(1, i) = d * (tape.h.at(t, b, i) - fresh) * update * (1 - update);
        da.at(2, i) = d_fresh;
        dh[u] = d * update;
        break;
      }
    }
    for (int64_t g = 0; g < w_.gates(); ++g) db.at(g, i) = da.at(g, i);
    if (p_.options.mode == RnnMode::gru) db.at(2, i) *= gate(0, i);
  }
}

template <class R>
void RnnCell<R>::backward(const R* x, int64_t t, int64_t b, const RnnTape<R>& tape, std::vector<R>& dh,
                          std::vector<R>& dc, R* dx, Array<R>& dweight) const {
  Array<R> da(Dims{w_.gates(), hidden_}), db = da;
  gate_gradients(t, b, tape, dh, dc, da, db, dweight);
  p_.round(da), p_.round(db);
  for (int64_t g = 0; g < w_.gates(); ++g) {
    RnnPart input = w_.input(layer_, direction_, g), recurrent = w_.recurrent(layer_, direction_, g);
    RnnPart input_bias = w_.input_bias(layer_, direction_, g),
            recurrent_bias = w_.recurrent_bias(layer_, direction_, g);
    for (int64_t i = 0; i < hidden_; ++i) {
      R a = da.at(g, i), r = db.at(g, i);
      if (skips_input()) dx[i] += a;
      for (int64_t j = 0; input.rows > 0 && j < input.columns; ++j) {
        dweight[input.offset + i * input.columns + j] += a * x[j];
        dx[j] += a * p_.weight[input.offset + i * input.columns + j];
      }
      for (int64_t j = 0; j < outputs_; ++j) {
        dweight[recurrent.offset + i * outputs_ + j] += r * tape.h.at(t, b, j);
        dh[static_cast<size_t>(j)] += r * p_.weight[recurrent.offset + i * outputs_ + j];
      }
      if (input_bias.rows > 0) dweight[input_bias.offset + i] += a;
      if (recurrent_bias.rows > 0) dweight[recurrent_bias.offset + i] += r;
    }
  }
}

template class RnnCell<double>;
template class RnnCell<float>;

}  // namespace tsr::ref
