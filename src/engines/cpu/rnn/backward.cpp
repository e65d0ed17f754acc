// SPDX-License-Identifier: Apache-2.0
// Gradients replace what the forward pass kept: gates become the gradients of their sums, and so does the recurrent
// part of gru.
#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/product/tile.hpp"
#include "engines/cpu/rnn/passes.hpp"
#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {

using tessera::RnnMode;

namespace {

// Calls f(first, n) for panels of columns, in parallel.
template <class F>
void each_panel(int64_t columns, int threads, const F& f) {
  int64_t width = tile().columns;
  parallel_for((columns + width - 1) / width, 1, threads, [&](int64_t from, int64_t end, int) {
    for (int64_t p = from; p < end; ++p) f(p * width, std::min(width, columns - p * width));
  });
}

}  // namespace

void BackwardPass::run() {
  // Gradients of weights, in pieces for the threads: (first, how many).
  auto each_piece = [&](const auto& f) {
    constexpr int64_t kPiece = 32 * 1024;
    if (n_.t_.dweight.id != kNone)
      parallel_for(w_.total(), kPiece, n_.threads_, [&](int64_t first, int64_t last, int) { f(first, last - first); });
  };
  each_piece([&](int64_t first, int64_t n) { std::fill_n(m_.at(n_.dweight_) + first, n, 0.0f); });
  size_t dy = n_.gradients_[0], dx = n_.gradients_[1];
  m_.read_sequence(n_.t_.dy, dy);
  for (layer_ = n_.o_.layers - 1; layer_ >= 0; --layer_) {
    for (direction_ = 0; direction_ < w_.directions(); ++direction_) direction(dy, dx);
    if (layer_ > 0) m_.drop(layer_ - 1, dx);
    std::swap(dy, dx);
  }
  m_.write_sequence(n_.t_.dx, dy);
  const RnnTensor& dw = n_.t_.dweight;
  each_piece([&](int64_t first, int64_t n) {
    kernels().store(dw.type, Lane::f32, m_.at(n_.dweight_) + first, m_.tensors[dw.id], first * dw.strides[0],
                    dw.strides[0], n);
  });
}

void BackwardPass::direction(size_t dy, size_t dx) {
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), state = layer_ * w_.directions() + direction_;
  m_.read_state(n_.t_.dhn, state, outputs, n_.dh_);
  m_.read_state(n_.t_.dcn, state, hidden, n_.dc_);
  pack_weights();
  int64_t later = -1;
  for (int64_t k = m_.steps() - 1; k >= 0; --k) {
    int64_t t = direction_ == 0 ? k : m_.steps() - 1 - k;
    state_gradients(t, later, dy);
    gate_gradients(t);
    later = t;
  }
  state_gradients(-1, later, dy);
  m_.write_state(n_.t_.dh0, state, outputs, n_.dh_);
  m_.write_state(n_.t_.dc0, state, hidden, n_.dc_);
  if (layer_ > 0 || n_.t_.dx.id != kNone) input_gradients(dx);
  if (n_.t_.dweight.id != kNone) weight_gradients();
}

void BackwardPass::pack_weights() {
  int64_t hidden = w_.hidden(), outputs = w_.outputs();
  m_.pack_right(w_.recurrent(layer_, direction_, 0).offset, outputs, 1, n_.sums_, outputs, n_.recurrent_back_);
  if (n_.o_.proj > 0)
    m_.pack_right(w_.projection(layer_, direction_).offset, hidden, 1, outputs, hidden, n_.projection_back_);
}

// The gradient of the state after step t: what came through the gates of step `later`, which followed it, and dy.
// Either may be -1: there is no such step.
void BackwardPass::state_gradients(int64_t t, int64_t later, size_t dy) {
  int64_t outputs = w_.outputs(), all = w_.directions() * outputs;
  const RnnTape& tape = n_.tape(layer_, direction_);
  each_panel(outputs, n_.threads_, [&](int64_t first, int64_t n) {
    float* dh = m_.at(n_.dh_) + first;
    if (later >= 0)
      m_.multiply(m_.count(later), n, n_.sums_, n_.packed_sums_, m_.at(n_.recurrent_back_) + first * n_.sums_, dh,
                  outputs, true);
    if (t < 0) return;
    for (int64_t b = 0; b < m_.count(t); ++b) {
      bool valid = t < m_.length(b);
      int64_t row = m_.start(t) + b;
      const float* from = m_.at(dy) + row * all + direction_ * outputs + first;
      for (int64_t j = 0; valid && j < n; ++j) dh[b * outputs + j] += from[j];
      if (n_.o_.proj == 0) continue;
      float* kept = m_.at(tape.projected_dh) + row * outputs + first;
      if (valid)
        std::copy_n(dh + b * outputs, n, kept);
      else
        std::fill_n(kept, n, 0.0f);
      if (valid) std::fill_n(dh + b * outputs, n, 0.0f);
    }
    if (n_.o_.proj > 0)
      m_.pack_left(m_.at(tape.projected_dh) + m_.start(t) * outputs, outputs, m_.count(t), first, n, outputs,
                   n_.packed_dh_);
  });
}

void BackwardPass::gate_gradients(int64_t t) {
  each_panel(w_.hidden(), n_.threads_, [&](int64_t first, int64_t n) { units(t, first, n); });
}

// Hidden units [first, first + n) of step t, for all sequences.
void BackwardPass::units(int64_t t, int64_t first, int64_t n) {
  const RnnTape& tape = n_.tape(layer_, direction_);
  const auto& o = n_.o_;
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), count = m_.count(t), row = m_.start(t);
  bool gru = o.mode == RnnMode::gru, projects = o.proj > 0;
  float* dh = (projects ? m_.at(n_.full_dh_) : m_.at(n_.dh_)) + first;
  if (projects)
    m_.multiply(count, n, outputs, n_.packed_dh_, m_.at(n_.projection_back_) + first * outputs, dh, hidden, false);
  float *gates = m_.at(tape.gates) + row * n_.stride_ + first,
        *recurrent = m_.at(tape.recurrent) + row * hidden + first;
  CellRun r = n_.cell_run(n);
  for (int64_t b = 0; b < count; ++b) {
    for (int64_t g = 0; g < w_.gates(); ++g) r.gate[g] = gates + b * n_.stride_ + g * hidden;
    r.recurrent = recurrent + b * hidden;
    if (t >= m_.length(b)) {
      for (int64_t g = 0; g < w_.gates(); ++g) std::fill_n(r.gate[g], n, 0.0f);
      if (gru) std::fill_n(r.recurrent, n, 0.0f);
      continue;
    }
    r.dh = dh + b * hidden;
    r.dc = m_.at(n_.dc_) + b * hidden + first;
    r.old_c = m_.at(tape.old_c) + (row + b) * hidden + first;
    r.old_h = m_.at(tape.old_h) + (row + b) * outputs + first;
    if (o.mode == RnnMode::lstm)
      cells().lstm_bwd(r);
    else if (gru)
      cells().gru_bwd(r);
    else
      (o.mode == RnnMode::relu ? cells().relu_bwd : cells().tanh_bwd)(r);
    if (!gru && !projects) std::fill_n(dh + b * hidden, n, 0.0f);
  }
  for (int64_t g = 0; g < w_.gates(); ++g) {
    bool apart = gru && g == 2;
    m_.pack_left((apart ? recurrent : gates + g * hidden) - g * hidden - first, apart ? hidden : n_.stride_, count,
                 g * hidden + first, n, n_.sums_, n_.packed_sums_);
  }
}

void BackwardPass::input_gradients(size_t dx) {
  const float* sums = m_.at(n_.tape(layer_, direction_).gates);
  const PlainProduct* product = (layer_ == 0 ? n_.first_ : n_.later_).dx.get();
  int64_t inputs = w_.inputs(layer_), hidden = w_.hidden();
  bool add = direction_ > 0;
  if (product)
    return product->run(sums, m_.weight(w_.input(layer_, direction_, 0).offset), m_.at(dx), inputs, add,
                        m_.workspace + n_.scratch_);
  for (int64_t r = 0; r < n_.rows_; ++r)
    for (int64_t j = 0; j < inputs; ++j) {
      float sum = add ? m_.at(dx)[r * inputs + j] : 0.0f;
      for (int64_t g = 0; g < w_.gates(); ++g) sum += sums[r * n_.stride_ + g * hidden + j];
      m_.at(dx)[r * inputs + j] = sum;
    }
}

void BackwardPass::weight_gradients() {
  const RnnTape& tape = n_.tape(layer_, direction_);
  const auto& products = layer_ == 0 ? n_.first_ : n_.later_;
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), inputs = w_.inputs(layer_);
  const float *sums = m_.at(tape.gates), *recurrent = m_.at(tape.recurrent), *old_h = m_.at(tape.old_h);
  float* dw = m_.at(n_.dweight_);
  std::byte* scratch = m_.workspace + n_.scratch_;
  if (products.dw)
    products.dw->run(sums, m_.at(n_.sequence(layer_)), dw + w_.input(layer_, direction_, 0).offset, inputs, false,
                     scratch);
  products.dr->run(sums, old_h, dw + w_.recurrent(layer_, direction_, 0).offset, outputs, false, scratch);
  if (products.dr_new)
    products.dr_new->run(recurrent, old_h, dw + w_.recurrent(layer_, direction_, 2).offset, outputs, false, scratch);
  if (products.dp)
    products.dp->run(m_.at(tape.projected_dh), m_.at(tape.full_h), dw + w_.projection(layer_, direction_).offset,
                     hidden, false, scratch);
  for (int64_t g = 0; g < w_.gates(); ++g) {
    bool apart = n_.o_.mode == RnnMode::gru && g == 2;
    sum_columns(sums + g * hidden, n_.stride_, w_.input_bias(layer_, direction_, g));
    sum_columns(apart ? recurrent : sums + g * hidden, apart ? hidden : n_.stride_,
                w_.recurrent_bias(layer_, direction_, g));
  }
}

void BackwardPass::sum_columns(const float* rows, int64_t stride, const RnnPart& to) const {
  if (to.rows == 0) return;
  float* sum = m_.at(n_.dweight_) + to.offset;
  each_panel(to.rows, n_.threads_, [&](int64_t first, int64_t n) {
    for (int64_t r = 0; r < n_.rows_; ++r)
      for (int64_t j = first; j < first + n; ++j) sum[j] += rows[r * stride + j];
  });
}

}  // namespace tsr::cpu
