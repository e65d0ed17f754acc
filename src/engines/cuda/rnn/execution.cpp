// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/rnn/execution.hpp"

#include <utility>

namespace tsr::cuda {

using tessera::RnnLayout;
using tessera::RnnMode;

namespace {

// As the kernels of product.cuh lay it out.
constexpr int64_t kTile = 64, kTileElements = 2 * 16 * (kTile + 4);

}  // namespace

void RnnExecution::run() {
  dev::RnnLengthsArgs lengths{};
  const RnnTensor& given = n_.t_.lengths;
  lengths.sequences = sequences();
  if (given.id != kNone) {
    lengths.bytes = info(given.type).bits / 8;
    lengths.given.strides[0] = given.strides[0];
    if (!dry_) set_memory(lengths.given, n_.lengths_host_bytes_, a_.tensors[given.id]);
  }
  launch(n_.kernels_[RnnNetwork::kLengths], 1, lengths);
  if (!n_.weights_in_place_) move_weights(n_.weight_, n_.weights_);
  move_sequence(n_.x_, n_.sequence(0));
  forward();
  if (n_.keeps_) backward();
}

void RnnExecution::forward() {
  int64_t layers = n_.o_.layers;
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (int64_t direction = 0; direction < w_.directions(); ++direction) forward_direction(layer, direction);
    if (layer + 1 < layers) drop(layer, n_.sequence(layer + 1));
  }
  move_sequence(n_.y_, n_.sequence(layers));
}

void RnnExecution::forward_direction(int64_t layer, int64_t direction) {
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), inputs = w_.inputs(layer);
  int64_t state = layer * w_.directions() + direction;
  const RnnTape& tape = n_.tape(layer, direction);
  RnnPart input = w_.input(layer, direction, 0);
  if (input.rows > 0)
    multiply({.a = at(n_.sequence(layer)),
              .b = weight(input.offset),
              .c = at(tape.gates),
              .m = n_.e_.rows,
              .n = n_.sums_,
              .k = inputs,
              .a_m = inputs,
              .a_k = 1,
              .b_k = 1,
              .b_n = inputs,
              .c_m = n_.sums_,
              .add = false});
  else
    skip(RnnNetwork::kSkip, direction, n_.sequence(layer), tape);
  move_state(n_.h0_, state, outputs, n_.h_[0]);
  move_state(n_.c0_, state, hidden, n_.c_);
  dev::RnnStepArgs args = step_args(layer, direction);
  args.sequence = at(n_.sequence(layer + 1));
  for (int64_t k = 0; k < n_.e_.steps; ++k) {
    args.t = direction == 0 ? k : n_.e_.steps - 1 - k;
    args.h = at(n_.h_[k % 2]), args.next_h = at(n_.h_[(k + 1) % 2]);
    step(RnnNetwork::kStep, hidden, dev::kRnnWarps, args, 0);
    if (args.projects) step(RnnNetwork::kProject, outputs, dev::kRnnWarps, args, 0);
  }
  move_state(n_.hn_, state, outputs, n_.h_[n_.e_.steps % 2]);
  move_state(n_.cn_, state, hidden, n_.c_);
}

void RnnExecution::backward() {
  size_t dy = n_.gradients_[0], dx = n_.gradients_[1];
  move_sequence(n_.dy_, dy);
  for (int64_t layer = n_.o_.layers - 1; layer >= 0; --layer) {
    for (int64_t direction = 0; direction < w_.directions(); ++direction) backward_direction(layer, direction, dy, dx);
    if (layer > 0) drop(layer - 1, dx);
    std::swap(dy, dx);
  }
  move_sequence(n_.dx_, dy);
  move_weights(n_.dweight_out_, n_.dweight_);
}

void RnnExecution::backward_direction(int64_t layer, int64_t direction, size_t dy, size_t dx) {
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), steps = n_.e_.steps;
  int64_t state = layer * w_.directions() + direction;
  move_state(n_.dhn_, state, outputs, n_.dh_);
  move_state(n_.dcn_, state, hidden, n_.dc_);
  dev::RnnStepArgs args = step_args(layer, direction);
  args.sequence = at(dy);
  args.later = -1;
  int64_t shared = int64_t{dev::kRnnThreads} * dev::kRnnBatch * n_.lane_bytes_;
  for (int64_t k = steps - 1; k >= -1; --k) {
    args.t = k < 0 ? -1 : direction == 0 ? k : steps - 1 - k;
    step(RnnNetwork::kStepBwd, outputs, 32, args, shared);
    if (args.projects && k >= 0) step(RnnNetwork::kProjectBwd, hidden, 32, args, shared);
    args.later = args.t;
  }
  move_state(n_.dh0_, state, outputs, n_.dh_);
  move_state(n_.dc0_, state, hidden, n_.dc_);
  if (layer > 0 || n_.t_.dx.id != kNone) input_gradients(layer, direction, dx);
  if (n_.t_.dweight.id != kNone) weight_gradients(layer, direction);
}

void RnnExecution::input_gradients(int64_t layer, int64_t direction, size_t dx) {
  const RnnTape& tape = n_.tape(layer, direction);
  RnnPart input = w_.input(layer, direction, 0);
  int64_t inputs = w_.inputs(layer);
  if (input.rows == 0) return skip(RnnNetwork::kSkipBwd, direction, dx, tape);
  multiply({.a = at(tape.gates),
            .b = weight(input.offset),
            .c = at(dx),
            .m = n_.e_.rows,
            .n = inputs,
            .k = n_.sums_,
            .a_m = n_.sums_,
            .a_k = 1,
            .b_k = inputs,
            .b_n = 1,
            .c_m = inputs,
            .add = direction > 0});
}

void RnnExecution::weight_gradients(int64_t layer, int64_t direction) {
  const RnnTape& tape = n_.tape(layer, direction);
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), inputs = w_.inputs(layer), sums = n_.sums_;
  bool gru = n_.o_.mode == RnnMode::gru;
  // Rows of `left` against rows of `right`: columns of the first become rows of the weights.
  auto add = [&](size_t left, int64_t left_stride, int64_t m, size_t right, int64_t n, int64_t offset) {
    multiply({.a = at(left),
              .b = at(right),
              .c = dweight(offset),
              .m = m,
              .n = n,
              .k = n_.e_.rows,
              .a_m = 1,
              .a_k = left_stride,
              .b_k = n,
              .b_n = 1,
              .c_m = n,
              .add = false});
  };
  if (RnnPart p = w_.input(layer, direction, 0); p.rows > 0)
    add(tape.gates, sums, sums, n_.sequence(layer), inputs, p.offset);
  // Of gru's last gate the recurrent part has a gradient of its own.
  add(tape.gates, sums, gru ? 2 * hidden : sums, tape.old_h, outputs, w_.recurrent(layer, direction, 0).offset);
  if (gru) add(tape.recurrent, hidden, hidden, tape.old_h, outputs, w_.recurrent(layer, direction, 2).offset);
  if (n_.o_.proj > 0)
    add(tape.projected_dh, outputs, outputs, tape.full_h, hidden, w_.projection(layer, direction).offset);
  for (int64_t g = 0; g < w_.gates(); ++g) {
    const void* gate = static_cast<const std::byte*>(at(tape.gates)) + g * hidden * n_.lane_bytes_;
    bool apart = gru && g == 2;
    sum_columns(gate, sums, w_.input_bias(layer, direction, g));
    sum_columns(apart ? at(tape.recurrent) : gate, apart ? hidden : sums, w_.recurrent_bias(layer, direction, g));
  }
}

// --- launches
template <class Args>
void RnnExecution::launch(const std::shared_ptr<const Kernel>& kernel, int64_t blocks, const Args& args,
                          int64_t shared) {
  if (blocks == 0) return;
  ++launches_;
  if (!dry_) kernel->launch({blocks, dev::kRnnThreads, shared}, a_.stream, args);
}

template <class Args>
void RnnExecution::launch_each(const std::shared_ptr<const Kernel>& kernel, int64_t elements, const Args& args) {
  launch(kernel, ceil_div(elements, dev::kRnnThreads), args);
}

void RnnExecution::step(RnnNetwork::Kernels which, int64_t units, int64_t units_per_block, const dev::RnnStepArgs& args,
                        int64_t shared) {
  launch(n_.kernels_[which], ceil_div(units, units_per_block) * ceil_div(n_.e_.batch, dev::kRnnBatch), args, shared);
}

void RnnExecution::multiply(dev::RnnProductArgs args) {
  launch(n_.kernels_[RnnNetwork::kProduct], ceil_div(args.m, kTile) * ceil_div(args.n, kTile), args,
         kTileElements * n_.lane_bytes_);
}

void RnnExecution::sum_columns(const void* rows, int64_t stride, const RnnPart& to) {
  if (to.rows == 0) return;
  dev::RnnSumArgs args{rows, dweight(to.offset), n_.e_.rows, to.rows, stride};
  launch(n_.kernels_[RnnNetwork::kSum], ceil_div(to.rows, 32), args, dev::kRnnThreads * n_.lane_bytes_);
}

void RnnExecution::drop(int64_t layer, size_t rows) {
  const auto& o = n_.o_;
  if (o.phase == tessera::Phase::inference || o.dropout == 0) return;
  int64_t width = w_.inputs(layer + 1);
  dev::RnnDropArgs args{at(rows),     sequences(), layer, width, n_.e_.rows * width, static_cast<dev::u64>(o.seed),
                        1 - o.dropout};
  launch_each(n_.kernels_[RnnNetwork::kDrop], args.elements, args);
}

void RnnExecution::skip(RnnNetwork::Kernels which, int64_t direction, size_t x, const RnnTape& tape) {
  dev::RnnSkipArgs args{at(x), at(tape.gates), w_.hidden(), w_.gates(), n_.e_.rows * w_.hidden(), direction > 0};
  launch_each(n_.kernels_[which], args.elements, args);
}

// --- memory
const void* RnnExecution::weight(int64_t element) const {
  const void* all = n_.weights_in_place_ ? (dry_ ? nullptr : a_.tensors[n_.t_.weight.id]) : at(n_.weights_);
  return static_cast<const std::byte*>(all) + element * n_.lane_bytes_;
}

void* RnnExecution::dweight(int64_t element) const {
  return static_cast<std::byte*>(at(n_.dweight_)) + element * n_.lane_bytes_;
}

dev::RnnSequences RnnExecution::sequences() const {
  auto integers = [&](size_t offset) { return static_cast<dev::i64*>(at(offset)); };
  return {n_.e_.steps, n_.e_.batch, integers(n_.lengths_), n_.o_.packed ? integers(n_.starts_) : nullptr};
}

dev::RnnStepArgs RnnExecution::step_args(int64_t layer, int64_t direction) const {
  const RnnTape& tape = n_.tape(layer, direction);
  const auto& o = n_.o_;
  dev::RnnStepArgs a{};
  a.sequences = sequences();
  a.hidden = w_.hidden(), a.outputs = w_.outputs();
  a.mode = static_cast<int>(o.mode);
  a.keeps = n_.keeps_, a.projects = o.proj > 0;
  auto part = [&](const RnnPart& p) { return p.rows > 0 ? weight(p.offset) : nullptr; };
  a.recurrent_weights = part(w_.recurrent(layer, direction, 0));
  a.projection = part(w_.projection(layer, direction));
  a.input_bias = part(w_.input_bias(layer, direction, 0));
  a.recurrent_bias = part(w_.recurrent_bias(layer, direction, 0));
  a.gates = at(tape.gates), a.recurrent = at(tape.recurrent), a.old_h = at(tape.old_h), a.old_c = at(tape.old_c);
  a.full_h = at(tape.full_h), a.projected_dh = at(tape.projected_dh);
  a.c = at(n_.c_), a.dh = at(n_.dh_), a.dc = at(n_.dc_);
  a.sequence_stride = w_.directions() * w_.outputs(), a.sequence_first = direction * w_.outputs();
  a.clips = o.clip_min.has_value(), a.clip_nan = o.clip_nan;
  a.clip_low = o.clip_min.value_or(0), a.clip_high = o.clip_max.value_or(0);
  return a;
}

void RnnExecution::move(const RnnNetwork::Table& t, dev::RnnTableArgs args) {
  if (!t.kernel) return;
  if (t.tensor.id != kNone && !dry_) set_memory(args.tensor, t.host_bytes, a_.tensors[t.tensor.id]);
  launch_each(t.kernel, args.elements, args);
}

void RnnExecution::move_sequence(const RnnNetwork::Table& t, size_t rows) {
  if (!t.kernel) return;
  const Dims& strides = t.tensor.strides;
  bool batch_major = n_.o_.layout == RnnLayout::batch_major;
  dev::RnnTableArgs args{};
  args.rows = at(rows), args.width = t.tensor.dims.back(), args.elements = n_.e_.rows * args.width;
  args.tensor.strides[0] = strides[batch_major ? 1 : 0], args.tensor.strides[2] = strides.back();
  args.second = 1;
  if (!n_.o_.packed) {
    args.tensor.strides[1] = strides[batch_major ? 0 : 1];
    args.second = n_.e_.batch;
    args.lengths = sequences().lengths;
  }
  move(t, args);
}

void RnnExecution::move_state(const RnnNetwork::Table& t, int64_t state, int64_t width, size_t rows) {
  dev::RnnTableArgs args{};
  args.rows = at(rows), args.width = width, args.second = n_.e_.batch, args.elements = args.second * width;
  if (t.tensor.id != kNone) {
    args.base = state * t.tensor.strides[0];
    args.tensor.strides[1] = t.tensor.strides[1], args.tensor.strides[2] = t.tensor.strides[2];
  }
  move(t, args);
}

void RnnExecution::move_weights(const RnnNetwork::Table& t, size_t rows) {
  if (!t.kernel) return;
  dev::RnnTableArgs args{};
  args.rows = at(rows), args.width = args.second = 1, args.elements = w_.total();
  args.tensor.strides[0] = t.tensor.strides[0];
  move(t, args);
}

}  // namespace tsr::cuda
