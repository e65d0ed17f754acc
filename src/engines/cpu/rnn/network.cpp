// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/rnn/network.hpp"

#include <algorithm>
#include <limits>

#include "engines/cpu/product/tile.hpp"
#include "engines/cpu/rnn/passes.hpp"

namespace tsr::cpu {
namespace {

using tessera::RnnMode;

int64_t round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }

}  // namespace

Network::Network(const tessera::RnnOptions& o, const RnnTensors& t, Pass pass, int threads)
    : o_(o), t_(t), w_(o, t.x.dims.back()), threads_(threads), keeps_(pass == Pass::backward) {
  RnnExtent e = rnn_extent(o, t);
  steps_ = e.steps, batch_ = e.batch, rows_ = e.rows;
  sums_ = w_.gates() * w_.hidden();
  stride_ = round_up(sums_, 16) + 16;
  plan_products();
  lay_out();
}

size_t Network::take(int64_t floats) {
  size_t at = bytes_;
  bytes_ += (static_cast<size_t>(floats) * sizeof(float) + 255) / 256 * 256;
  return at;
}

void Network::lay_out() {
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), layers = o_.layers, directions = w_.directions();
  int64_t left = tile().rows, right = tile().columns, batch = round_up(batch_, left);
  bool projects = o_.proj > 0, lstm = o_.mode == RnnMode::lstm, gru = o_.mode == RnnMode::gru;
  int64_t widest = std::max(w_.inputs(0), directions * outputs);
  for (int64_t l = 0; l < (keeps_ ? layers + 1 : 2); ++l)
    sequences_.push_back(take(rows_ * (keeps_ && l == 0 ? w_.inputs(0) : keeps_ ? directions * outputs : widest)));
  for (int64_t k = 0; k < (keeps_ ? layers * directions : 1); ++k) {
    RnnTape tape;
    tape.gates = take((keeps_ ? rows_ : few_rows()) * stride_);
    tape.recurrent = take(gru ? (keeps_ ? rows_ : few_rows()) * hidden : 0);
    tape.old_h = take(keeps_ ? rows_ * outputs : 0);
    tape.old_c = take(keeps_ && lstm ? rows_ * hidden : 0);
    tape.full_h = take(keeps_ && projects ? rows_ * hidden : 0);
    tape.projected_dh = take(keeps_ && projects ? rows_ * outputs : 0);
    tapes_.push_back(tape);
  }
  lengths_ = take(2 * batch_);
  starts_ = take(2 * (steps_ + 1));
  h_ = take(batch_ * outputs);
  c_ = take(batch_ * hidden);
  full_h_ = take(projects ? batch_ * hidden : 0);
  projected_ = take(projects ? batch_ * outputs : 0);
  for (size_t& p : packed_h_) p = take(batch * outputs);
  packed_full_ = take(projects ? batch * hidden : 0);
  packed_x_ = take(round_up(few_rows(), left) * widest);
  input_weights_ = take(round_up(sums_, right) * widest);
  recurrent_weights_ = take(w_.gates() * round_up(hidden, right) * outputs);
  projection_weights_ = take(projects ? round_up(outputs, right) * hidden : 0);
  bias_ = take(sums_);
  recurrent_bias_ = take(hidden);
  if (keeps_) {
    for (size_t& g : gradients_) g = take(rows_ * widest);
    dh_ = take(batch_ * outputs);
    dc_ = take(batch_ * hidden);
    full_dh_ = take(projects ? batch_ * hidden : 0);
    packed_sums_ = take(batch * sums_);
    packed_dh_ = take(projects ? batch * outputs : 0);
    recurrent_back_ = take(round_up(outputs, right) * sums_);
    projection_back_ = take(projects ? round_up(hidden, right) * outputs : 0);
    dweight_ = take(w_.total());
  }
  size_t most = 0;
  for (const Products* p : {&first_, &later_})
    for (const auto* q : {&p->dx, &p->dw, &p->dr, &p->dr_new, &p->dp})
      if (*q) most = std::max(most, (*q)->workspace_bytes());
  scratch_ = bytes_;
  bytes_ += most;
}

void Network::plan_products() {
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), step = t_.weight.strides[0];
  bool gru = o_.mode == RnnMode::gru;
  for (int64_t layer = 0; layer < std::min<int64_t>(o_.layers, 2); ++layer) {
    Products& p = layer == 0 ? first_ : later_;
    int64_t inputs = w_.inputs(layer);
    DType type = t_.weight.type;
    auto make = [&](int64_t m, int64_t n, int64_t k, PlainProduct::Matrix a, PlainProduct::Matrix b) {
      return std::make_unique<PlainProduct>(m, n, k, a, b, threads_);
    };
    constexpr DType kF32 = DType::f32;
    if (keeps_ && w_.input(layer, 0, 0).rows > 0) {
      p.dx = make(rows_, inputs, sums_, {kF32, stride_, 1}, {type, step, inputs * step});
      if (t_.dweight.id != kNone) p.dw = make(sums_, inputs, rows_, {kF32, 1, stride_}, {kF32, 1, inputs});
    }
    if (!keeps_ || t_.dweight.id == kNone) continue;
    int64_t from_gates = gru ? 2 * hidden : sums_;
    p.dr = make(from_gates, outputs, rows_, {kF32, 1, stride_}, {kF32, 1, outputs});
    if (gru) p.dr_new = make(hidden, outputs, rows_, {kF32, 1, hidden}, {kF32, 1, outputs});
    if (o_.proj > 0) p.dp = make(outputs, hidden, rows_, {kF32, 1, outputs}, {kF32, 1, hidden});
  }
}

void Network::run(void* const* tensors, std::byte* workspace) const {
  RnnMemory m(*this, tensors, workspace);
  m.read_lengths();
  m.read_sequence(t_.x, sequence(0));
  ForwardPass(m).run();
  if (keeps_) BackwardPass(m).run();
}

CellRun Network::cell_run(int64_t n) const {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  CellRun r{};
  r.n = n;
  r.clip_low = o_.clip_min ? static_cast<float>(*o_.clip_min) : -kInf;
  r.clip_high = o_.clip_max ? static_cast<float>(*o_.clip_max) : kInf;
  r.clip_nan = o_.clip_nan;
  return r;
}

}  // namespace tsr::cpu
