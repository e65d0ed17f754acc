// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/rnn/execution.hpp"

#include <utility>

namespace tsr::cuda {

using tessera::RnnLayout;
using tessera::RnnMode;

namespace {

// As the kernels of product.cuh lay it out.
constexpr int64_t kTile = 64, kTileElements = 2 * 16 * (kTile + 4);
// And of tensor_product.cuh.
constexpr int64_t kTensorBytes = int64_t{dev::kRnnTensorStages} * 2 * dev::kRnnTensorTile * 64 * 2;

}  // namespace

void RnnExecution::run() {
  dev::RnnLengthsArgs lengths{};
  const RnnTensor& given = n_.t_.lengths;
  lengths.sequences = sequences();
  if (given.id != kNone) {
    lengths.bytes = info(given.type).bits / 8;
    lengths.given = memory_.lengths;
    lengths.given.strides[0] = given.strides[0];
  }
  launch(n_.kernels_[RnnNetwork::kLengths], 1, lengths);
  move_weights(n_.weight_, n_.weights_, n_.way_.tensor ? n_.first_bias() : 0);
  move_sequence(n_.x_, n_.sequence(0));
  forward();
  if (n_.keeps_) backward();
}

void RnnExecution::forward() {
  int64_t layers = n_.o_.layers;
  for (int64_t layer = 0; layer < layers; ++layer) {
    for_directions([&](int64_t d) { begin_forward(layer, d); }, [&](int64_t d) { end_forward(layer, d); });
    if (layer + 1 < layers) drop(RnnNetwork::kDrop, layer, sequence(layer + 1));
  }
  move_sequence(n_.y_, n_.sequence(layers));
}

template <class Begin, class End>
void RnnExecution::for_directions(const Begin& begin, const End& end) {
  for (int64_t d = 0; d < w_.directions(); ++d) {
    begin(d);
    if (!n_.paired_) end(d);
  }
  for (int64_t d = 0; n_.paired_ && d < w_.directions(); ++d) end(d);
}

void RnnExecution::begin_forward(int64_t layer, int64_t direction) {
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), inputs = w_.inputs(layer);
  int64_t state = layer * w_.directions() + direction;
  const RnnTape& tape = n_.tape(layer, direction);
  RnnPart input = w_.input(layer, direction, 0);
  if (input.rows > 0)
    multiply(RnnNetwork::kProduct, {.a = sequence(layer),
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
    skip(RnnNetwork::kSkip, direction, sequence(layer), tape.gates);
  const RnnNetwork::Direction& own = n_.directions_[direction];
  move_state(n_.h0_, state, outputs, own.h[0]);
  move_state(n_.c0_, state, hidden, own.c);
  dev::RnnStepArgs args = step_args(layer, direction);
  args.sequence = sequence(layer + 1);
  if (n_.way_.tensor)
    steps_on_tensor_cores(direction, false, args, args.h);
  else
    steps_forward(direction, args);
}

void RnnExecution::end_forward(int64_t layer, int64_t direction) {
  const RnnNetwork::Direction& own = n_.directions_[direction];
  int64_t state = layer * w_.directions() + direction;
  move_state(n_.hn_, state, w_.outputs(), own.h[n_.way_.tensor ? 0 : n_.e_.steps % 2]);
  move_state(n_.cn_, state, w_.hidden(), own.c);
}

void RnnExecution::steps_forward(int64_t direction, dev::RnnStepArgs args) {
  const RnnNetwork::Direction& own = n_.directions_[direction];
  for (int64_t k = 0; k < n_.e_.steps; ++k) {
    args.t = direction == 0 ? k : n_.e_.steps - 1 - k;
    args.h = at(own.h[k % 2]), args.next_h = at(own.h[(k + 1) % 2]);
    step(RnnNetwork::kStep, w_.hidden(), dev::kRnnWarps, args, 0);
    if (args.projects) step(RnnNetwork::kProject, w_.outputs(), dev::kRnnWarps, args, 0);
  }
}

void RnnExecution::backward() {
  size_t dy = n_.gradients_[0], dx = n_.gradients_[1];
  move_sequence(n_.dy_, dy);
  for (int64_t layer = n_.o_.layers - 1; layer >= 0; --layer) {
    for_directions([&](int64_t d) { begin_backward(layer, d, dy); }, [&](int64_t d) { end_backward(layer, d, dx); });
    if (layer > 0) drop(RnnNetwork::kDropBwd, layer - 1, at(dx));
    std::swap(dy, dx);
  }
  move_sequence(n_.dx_, dy);
  move_weights(n_.dweight_out_, n_.dweight_);
}

void RnnExecution::begin_backward(int64_t layer, int64_t direction, size_t dy) {
  const RnnNetwork::Direction& own = n_.directions_[direction];
  int64_t state = layer * w_.directions() + direction;
  move_state(n_.dhn_, state, w_.outputs(), own.dh);
  move_state(n_.dcn_, state, w_.hidden(), own.dc);
  dev::RnnStepArgs args = step_args(layer, direction);
  args.sequence = at(dy);
  if (n_.way_.tensor)
    steps_on_tensor_cores(direction, true, args, nullptr);
  else
    steps_backward(direction, args);
}

void RnnExecution::end_backward(int64_t layer, int64_t direction, size_t dx) {
  const RnnNetwork::Direction& own = n_.directions_[direction];
  int64_t state = layer * w_.directions() + direction;
  move_state(n_.dh0_, state, w_.outputs(), own.dh);
  move_state(n_.dc0_, state, w_.hidden(), own.dc);
  if (layer > 0 || n_.t_.dx.id != kNone) input_gradients(layer, direction, dx);
  if (n_.t_.dweight.id != kNone) weight_gradients(layer, direction);
}

void RnnExecution::steps_backward(int64_t direction, dev::RnnStepArgs args) {
  int64_t steps = n_.e_.steps, shared = int64_t{dev::kRnnThreads} * dev::kRnnBatch * n_.lane_bytes_;
  args.later = -1;
  for (int64_t k = steps - 1; k >= -1; --k) {
    args.t = k < 0 ? -1 : direction == 0 ? k : steps - 1 - k;
    step(RnnNetwork::kStepBwd, w_.outputs(), 32, args, shared);
    if (args.projects && k >= 0) step(RnnNetwork::kProjectBwd, w_.hidden(), 32, args, shared);
    args.later = args.t;
  }
}

// Backward there is one step more, which finds the gradient of the first state.
void RnnExecution::steps_on_tensor_cores(int64_t direction, bool backward, const dev::RnnStepArgs& args,
                                         const void* states) {
  auto which = backward ? RnnNetwork::kStepBwd : RnnNetwork::kStep;
  auto project = backward ? RnnNetwork::kProjectBwd : RnnNetwork::kProject;
  const RnnNetwork::Direction& own = n_.directions_[direction];
  const RnnShape &s = n_.shapes_[which], &p = n_.shapes_[project];
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), steps = n_.e_.steps, last = steps + (backward ? 1 : 0);
  pack_weights(which, args.recurrent_weights, own.fragments, backward ? 1 : outputs, backward ? outputs : 1);
  pack_states(s, backward ? n_.sums_ : outputs, states, own.states);
  dev::RnnRecurrenceArgs a{};
  a.step = args;
  a.reversed = backward == (direction == 0);
  auto use = [&](const RnnShape& shape, size_t fragments, int64_t units) {
    a.weights = at(fragments), a.units = units, a.chunks = shape.chunks;
    a.unit_blocks = shape.unit_blocks, a.batch_tiles = shape.batch_tiles, a.groups = shape.groups;
  };
  auto start = [&](RnnNetwork::Kernels kind, const RnnShape& shape, int64_t first, int64_t end) {
    a.first = first, a.last = end;
    pair_.of[direction] = a;
    if (n_.paired_ && direction == 0) return;
    Grid grid{shape.blocks() * (n_.paired_ ? 2 : 1), dev::kRnnThreads, shape.shared_bytes};
    grid.together = shape.resident;
    ++launches_;
    if (dry_) return;
    if (n_.paired_)
      n_.kernels_[kind]->launch(grid, stream_, pair_);
    else
      n_.kernels_[kind]->launch(grid, stream_, a);
  };
  if (!args.projects) {
    use(s, own.fragments, backward ? outputs : hidden);
    a.to_chunks = s.chunks;
    for (int i = 0; i < 2; ++i) a.from[i] = at(own.states[i]), a.to[i] = at(own.states[1 - i]);
    if (!s.resident) {
      for (int64_t k = 0; k < last; ++k) start(which, s, k, k + 1);
      return;
    }
    a.arrived = static_cast<dev::u32*>(at(own.arrived));
    if (!dry_) n_.kernels_[which]->clear(a.arrived, static_cast<size_t>(last * s.groups) * 4, stream_);
    return start(which, s, 0, last);
  }
  // The step and the projection take turns, and each leaves what the other multiplies.
  pack_weights(project, args.projection, own.projected_fragments, backward ? 1 : hidden, backward ? hidden : 1);
  pack_states(p, backward ? outputs : hidden, nullptr, own.projected_states);
  void *plain = at(own.states[0]), *projected = at(own.projected_states[0]);
  for (int64_t k = 0; k < last; ++k) {
    use(s, own.fragments, backward ? outputs : hidden);
    a.to_chunks = p.chunks, a.from[0] = a.from[1] = plain, a.to[0] = a.to[1] = projected;
    start(which, s, k, k + 1);
    if (k == steps) break;
    use(p, own.projected_fragments, backward ? hidden : outputs);
    a.to_chunks = s.chunks, a.from[0] = a.from[1] = projected, a.to[0] = a.to[1] = plain;
    start(project, p, k, k + 1);
  }
}

void RnnExecution::pack_weights(RnnNetwork::Kernels which, const void* from, size_t to, int64_t unit_stride,
                                int64_t depth_stride) {
  const RnnShape& s = n_.shapes_[which];
  bool gates = which == RnnNetwork::kStep;
  dev::RnnPackArgs a{};
  a.from = from, a.to[0] = at(to);
  a.fragments = s.weight_fragments(), a.chunks = s.chunks;
  a.units = which == RnnNetwork::kStep || which == RnnNetwork::kProjectBwd ? w_.hidden() : w_.outputs();
  a.depth = which == RnnNetwork::kProject ? w_.hidden() : which == RnnNetwork::kStepBwd ? n_.sums_ : w_.outputs();
  a.gate_stride = w_.hidden() * w_.outputs(), a.unit_stride = unit_stride, a.depth_stride = depth_stride;
  a.gates = gates ? w_.gates() : 1, a.tiles = s.tiles, a.units_each = s.units_each;
  launch_each(n_.kernels_[RnnNetwork::kPackWeights], a.fragments, a);
}

void RnnExecution::pack_states(const RnnShape& s, int64_t depth, const void* from, const size_t (&to)[2]) {
  dev::RnnPackArgs a{};
  a.from = from, a.to[0] = at(to[0]), a.to[1] = at(to[1]);
  a.fragments = s.state_fragments(), a.chunks = s.chunks;
  a.units = n_.e_.batch, a.depth = depth;
  launch_each(n_.kernels_[RnnNetwork::kPackStates], a.fragments, a);
}

void RnnExecution::input_gradients(int64_t layer, int64_t direction, size_t dx) {
  const RnnTape& tape = n_.tape(layer, direction);
  RnnPart input = w_.input(layer, direction, 0);
  int64_t inputs = w_.inputs(layer);
  if (input.rows == 0) return skip(RnnNetwork::kSkipBwd, direction, at(dx), tape.d_gates);
  multiply(RnnNetwork::kProductInput, {.a = at(tape.d_gates),
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
  auto add = [&](size_t left, int64_t left_stride, int64_t m, const void* right, int64_t n, int64_t offset) {
    multiply(RnnNetwork::kProductWeights, {.a = at(left),
                                           .b = right,
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
    add(tape.d_gates, sums, sums, sequence(layer), inputs, p.offset);
  // Of gru's last gate the recurrent part has a gradient of its own.
  add(tape.d_gates, sums, gru ? 2 * hidden : sums, at(tape.old_h), outputs, w_.recurrent(layer, direction, 0).offset);
  if (gru) add(tape.d_recurrent, hidden, hidden, at(tape.old_h), outputs, w_.recurrent(layer, direction, 2).offset);
  if (n_.o_.proj > 0)
    add(tape.projected_dh, outputs, outputs, at(tape.full_h), hidden, w_.projection(layer, direction).offset);
  RnnPart input = w_.input_bias(layer, direction, 0), recurrent = w_.recurrent_bias(layer, direction, 0);
  void *to = input.rows > 0 ? dweight(input.offset) : nullptr,
       *also = recurrent.rows > 0 ? dweight(recurrent.offset) : nullptr;
  if (to || also) sum_columns({at(tape.d_gates), to, also, n_.e_.rows, sums, gru ? 2 * hidden : sums, sums});
  if (gru && also)
    sum_columns({at(tape.d_recurrent), dweight(recurrent.offset + 2 * hidden), nullptr, n_.e_.rows, hidden, 0, hidden});
}

// --- launches
template <class Args>
void RnnExecution::launch(const std::shared_ptr<const Kernel>& kernel, int64_t blocks, const Args& args,
                          int64_t shared) {
  if (blocks == 0) return;
  ++launches_;
  if (!dry_) kernel->launch({blocks, dev::kRnnThreads, shared}, stream_, args);
}

template <class Args>
void RnnExecution::launch_each(const std::shared_ptr<const Kernel>& kernel, int64_t elements, const Args& args) {
  launch(kernel, ceil_div(elements, dev::kRnnThreads), args);
}

void RnnExecution::step(RnnNetwork::Kernels which, int64_t units, int64_t units_per_block, const dev::RnnStepArgs& args,
                        int64_t shared) {
  launch(n_.kernels_[which], ceil_div(units, units_per_block) * ceil_div(n_.e_.batch, dev::kRnnBatch), args, shared);
}

void RnnExecution::multiply(RnnNetwork::Kernels which, dev::RnnProductArgs args) {
  if (!n_.way_.tensor)
    return launch(n_.kernels_[which], ceil_div(args.m, kTile) * ceil_div(args.n, kTile), args,
                  kTileElements * n_.lane_bytes_);
  constexpr int64_t kSide = dev::kRnnTensorTile;
  int64_t tiles = ceil_div(args.m, kSide) * ceil_div(args.n, kSide);
  args.splits = n_.product_splits(args.m, args.n, args.k);
  args.parts = at(n_.parts_);
  launch(n_.kernels_[which], tiles * args.splits, args, kTensorBytes);
  if (args.splits > 1) launch_each(n_.kernels_[RnnNetwork::kAddParts], args.m * args.n, args);
}

void RnnExecution::sum_columns(const dev::RnnSumArgs& args) {
  launch(n_.kernels_[RnnNetwork::kSum], ceil_div(args.columns, 32), args, dev::kRnnThreads * n_.lane_bytes_);
}

void RnnExecution::drop(RnnNetwork::Kernels which, int64_t layer, void* rows) {
  const auto& o = n_.o_;
  if (o.phase == tessera::Phase::inference || o.dropout == 0) return;
  int64_t width = w_.inputs(layer + 1);
  dev::RnnDropArgs args{rows,         sequences(), layer, width, n_.e_.rows * width, static_cast<dev::u64>(o.seed),
                        1 - o.dropout};
  launch_each(n_.kernels_[which], args.elements, args);
}

void RnnExecution::skip(RnnNetwork::Kernels which, int64_t direction, void* x, size_t gates) {
  dev::RnnSkipArgs args{x, at(gates), w_.hidden(), w_.gates(), n_.e_.rows * w_.hidden(), direction > 0};
  launch_each(n_.kernels_[which], args.elements, args);
}

// --- memory
void* RnnExecution::sequence(int64_t layer) const {
  if (layer == 0 && n_.x_in_place_) return memory_.x;
  if (layer == n_.o_.layers && n_.y_in_place_) return memory_.y;
  return at(n_.sequence(layer));
}

const void* RnnExecution::weight(int64_t element) const {
  const void* all = n_.weights_in_place_ ? memory_.weight : at(n_.weights_);
  return static_cast<const std::byte*>(all) + element * n_.kept_bytes_;
}

const void* RnnExecution::bias(const RnnPart& p) const {
  if (p.rows == 0) return nullptr;
  if (!n_.way_.tensor) return weight(p.offset);
  return static_cast<const std::byte*>(at(n_.weights_)) + (p.offset - n_.first_bias()) * n_.lane_bytes_;
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
  a.input_bias = bias(w_.input_bias(layer, direction, 0));
  a.recurrent_bias = bias(w_.recurrent_bias(layer, direction, 0));
  a.gates = at(tape.gates), a.recurrent = at(tape.recurrent), a.old_h = at(tape.old_h), a.old_c = at(tape.old_c);
  a.d_gates = at(tape.d_gates), a.d_recurrent = at(tape.d_recurrent);
  a.full_h = at(tape.full_h), a.projected_dh = at(tape.projected_dh);
  const RnnNetwork::Direction& own = n_.directions_[direction];
  a.h = a.next_h = at(own.h[0]);
  a.c = at(own.c), a.dh = at(own.dh), a.dc = at(own.dc);
  a.sequence_stride = w_.directions() * w_.outputs(), a.sequence_first = direction * w_.outputs();
  a.clips = o.clip_min.has_value(), a.clip_nan = o.clip_nan;
  a.clip_low = o.clip_min.value_or(0), a.clip_high = o.clip_max.value_or(0);
  return a;
}

void RnnExecution::move(const RnnNetwork::Table& t, dev::RnnTableArgs args) {
  if (!t.kernel) return;
  args.tensor.data = memory_.tables[t.number].data, args.tensor.value = memory_.tables[t.number].value;
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

void RnnExecution::move_weights(const RnnNetwork::Table& t, size_t rows, int64_t first) {
  if (!t.kernel) return;
  dev::RnnTableArgs args{};
  args.rows = at(rows), args.width = args.second = 1, args.elements = w_.total() - first;
  args.base = first * t.tensor.strides[0];
  args.tensor.strides[0] = t.tensor.strides[0];
  move(t, args);
}

}  // namespace tsr::cuda
