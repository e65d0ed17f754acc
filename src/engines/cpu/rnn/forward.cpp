// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/product/tile.hpp"
#include "engines/cpu/rnn/passes.hpp"
#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {

using tessera::RnnMode;

void ForwardPass::run() {
  for (layer_ = 0; layer_ < n_.o_.layers; ++layer_) {
    for (direction_ = 0; direction_ < w_.directions(); ++direction_) direction();
    if (layer_ + 1 < n_.o_.layers) m_.drop(layer_, n_.sequence(layer_ + 1));
  }
  m_.write_sequence(n_.t_.y, n_.sequence(n_.o_.layers));
}

// Sums of biases that are added anyway; gru keeps the recurrent bias of n apart.
void ForwardPass::read_biases() {
  float *sum = m_.at(n_.bias_), *apart = m_.at(n_.recurrent_bias_);
  int64_t hidden = w_.hidden();
  auto value = [&](const RnnPart& p, int64_t i) {
    return p.rows == 0 ? 0.0f : load<float>(n_.t_.weight.type, m_.weight(p.offset), i * n_.t_.weight.strides[0]);
  };
  for (int64_t g = 0; g < w_.gates(); ++g) {
    RnnPart input = w_.input_bias(layer_, direction_, g), recurrent = w_.recurrent_bias(layer_, direction_, g);
    bool split = n_.o_.mode == RnnMode::gru && g == 2;
    for (int64_t i = 0; i < hidden; ++i) {
      sum[g * hidden + i] = value(input, i) + (split ? 0.0f : value(recurrent, i));
      if (split) apart[i] = value(recurrent, i);
    }
  }
}

void ForwardPass::direction() {
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), state = layer_ * w_.directions() + direction_;
  m_.read_state(n_.t_.h0, state, outputs, n_.h_);
  m_.read_state(n_.t_.c0, state, hidden, n_.c_);
  read_biases();
  if (RnnPart input = w_.input(layer_, direction_, 0); input.rows > 0)
    m_.pack_right(input.offset, n_.sums_, input.columns, input.columns, 1, n_.input_weights_);
  int64_t panels = (hidden + tile().columns - 1) / tile().columns * tile().columns;
  for (int64_t g = 0; g < w_.gates(); ++g)
    m_.pack_right(w_.recurrent(layer_, direction_, g).offset, hidden, outputs, outputs, 1,
                  n_.recurrent_weights_ + static_cast<size_t>(g * panels * outputs) * sizeof(float));
  if (n_.o_.proj > 0)
    m_.pack_right(w_.projection(layer_, direction_).offset, outputs, hidden, hidden, 1, n_.projection_weights_);
  m_.pack_left(m_.at(n_.h_), outputs, n_.batch_, 0, outputs, outputs, n_.packed_h_[0]);
  auto time = [&](int64_t k) { return direction_ == 0 ? k : m_.steps() - 1 - k; };
  for (int64_t k = 0, end = 0; k < m_.steps(); ++k) {
    if (k == end) {
      int64_t rows = 0;
      while (end < m_.steps() && rows < Network::kFewRows) rows += m_.count(time(end++));
      input_products(m_.start(std::min(time(k), time(end - 1))), rows);
    }
    step(time(k), n_.packed_h_[k % 2], n_.packed_h_[(k + 1) % 2]);
  }
  m_.write_state(n_.t_.hn, state, outputs, n_.h_);
  m_.write_state(n_.t_.cn, state, hidden, n_.c_);
}

// What the inputs contribute to the gates of some rows.
void ForwardPass::input_products(int64_t row, int64_t rows) {
  base_ = n_.keeps_ ? 0 : row;
  int64_t hidden = w_.hidden(), inputs = w_.inputs(layer_), left = tile().rows, right = tile().columns;
  float* gates = m_.at(n_.tape(layer_, direction_).gates) + (row - base_) * n_.stride_;
  const float* x = m_.at(n_.sequence(layer_)) + row * inputs;
  if (w_.input(layer_, direction_, 0).rows == 0) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t g = 0; g < w_.gates(); ++g) std::copy_n(x + r * hidden, hidden, gates + r * n_.stride_ + g * hidden);
    return;
  }
  parallel_for((rows + left - 1) / left, 1, n_.threads_, [&](int64_t first, int64_t last, int) {
    for (int64_t p = first; p < last; ++p)
      m_.pack_left(x + p * left * inputs, inputs, std::min(left, rows - p * left), 0, inputs, inputs,
                   n_.packed_x_ + static_cast<size_t>(p * left * inputs) * sizeof(float));
  });
  parallel_for((n_.sums_ + right - 1) / right, 1, n_.threads_, [&](int64_t from, int64_t end, int) {
    for (int64_t first = from * right; first < std::min(n_.sums_, end * right); first += right)
      m_.multiply(rows, std::min(right, n_.sums_ - first), inputs, n_.packed_x_,
                  m_.at(n_.input_weights_) + first * inputs, gates + first, n_.stride_, false);
  });
}

void ForwardPass::step(int64_t t, size_t packed, size_t next) {
  int64_t width = tile().columns, hidden = w_.hidden();
  parallel_for((hidden + width - 1) / width, 1, n_.threads_, [&](int64_t first, int64_t last, int) {
    for (int64_t p = first; p < last; ++p) units(t, p * width, std::min(width, hidden - p * width), packed, next);
  });
  if (n_.o_.proj > 0) project(t, next);
}

// Hidden units [first, first + n) of step t, for all sequences.
void ForwardPass::units(int64_t t, int64_t first, int64_t n, size_t packed, size_t next) {
  const RnnTape& tape = n_.tape(layer_, direction_);
  const auto& o = n_.o_;
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), count = m_.count(t), row = m_.start(t);
  int64_t panels = (hidden + tile().columns - 1) / tile().columns * tile().columns;
  bool gru = o.mode == RnnMode::gru, projects = o.proj > 0;
  float* gates = m_.at(tape.gates) + (row - base_) * n_.stride_ + first;
  float* recurrent = m_.at(tape.recurrent) + (row - base_) * hidden + first;
  for (int64_t g = 0; g < w_.gates(); ++g) {
    const float* weights = m_.at(n_.recurrent_weights_) + (g * panels + first) * outputs;
    bool apart = gru && g == 2;
    m_.multiply(count, n, outputs, packed, weights, apart ? recurrent : gates + g * hidden, apart ? hidden : n_.stride_,
                !apart);
  }
  float* full = projects ? m_.at(n_.full_h_) + first : nullptr;
  if (projects && n_.keeps_) full = m_.at(tape.full_h) + row * hidden + first;
  CellRun r = n_.cell_run(n);
  for (int64_t g = 0; g < w_.gates(); ++g) r.bias[g] = m_.at(n_.bias_) + g * hidden + first;
  r.recurrent_bias = m_.at(n_.recurrent_bias_) + first;
  for (int64_t b = 0; b < count; ++b) {
    float *h = m_.at(n_.h_) + b * outputs + first, *c = m_.at(n_.c_) + b * hidden + first;
    if (n_.keeps_ && !projects) std::copy_n(h, n, m_.at(tape.old_h) + (row + b) * outputs + first);
    if (n_.keeps_ && o.mode == RnnMode::lstm) std::copy_n(c, n, m_.at(tape.old_c) + (row + b) * hidden + first);
    for (int64_t g = 0; g < w_.gates(); ++g) r.gate[g] = gates + b * n_.stride_ + g * hidden;
    r.recurrent = recurrent + b * hidden;
    r.c = c;
    r.h = projects ? full + b * hidden : h;
    if (t >= m_.length(b)) {
      if (projects) std::fill_n(r.h, n, 0.0f);
    } else if (o.mode == RnnMode::lstm) {
      cells().lstm(r);
    } else if (gru) {
      cells().gru(r);
    } else {
      (o.mode == RnnMode::relu ? cells().relu : cells().tanh)(r);
    }
    if (!projects) settle(t, b, first, n);
  }
  if (projects)
    m_.pack_left(full - first, hidden, count, first, n, hidden, n_.packed_full_);
  else
    m_.pack_left(m_.at(n_.h_), outputs, n_.batch_, first, n, outputs, next);
}

// The output of step t of sequence b, units [first, first + n).
void ForwardPass::settle(int64_t t, int64_t b, int64_t first, int64_t n) {
  int64_t outputs = w_.outputs();
  float* y = m_.at(n_.sequence(layer_ + 1)) + (m_.start(t) + b) * w_.directions() * outputs + direction_ * outputs;
  if (t < m_.length(b))
    std::copy_n(m_.at(n_.h_) + b * outputs + first, n, y + first);
  else
    std::fill_n(y + first, n, 0.0f);
}

void ForwardPass::project(int64_t t, size_t next) {
  const RnnTape& tape = n_.tape(layer_, direction_);
  int64_t width = tile().columns, hidden = w_.hidden(), outputs = w_.outputs(), count = m_.count(t);
  parallel_for((outputs + width - 1) / width, 1, n_.threads_, [&](int64_t from, int64_t end, int) {
    for (int64_t first = from * width; first < std::min(outputs, end * width); first += width) {
      int64_t n = std::min(width, outputs - first);
      float* projected = m_.at(n_.projected_) + first;
      m_.multiply(count, n, hidden, n_.packed_full_, m_.at(n_.projection_weights_) + first * hidden, projected, outputs,
                  false);
      for (int64_t b = 0; b < count; ++b) {
        float* h = m_.at(n_.h_) + b * outputs + first;
        if (n_.keeps_) std::copy_n(h, n, m_.at(tape.old_h) + (m_.start(t) + b) * outputs + first);
        if (t < m_.length(b)) std::copy_n(projected + b * outputs, n, h);
        settle(t, b, first, n);
      }
      m_.pack_left(m_.at(n_.h_), outputs, n_.batch_, first, n, outputs, next);
    }
  });
}

}  // namespace tsr::cpu
