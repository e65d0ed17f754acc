// SPDX-License-Identifier: Apache-2.0
// One step forward: a warp multiplies the states of kRnnBatch sequences with the weights of one hidden unit, then its
// first lanes compute the cell, one sequence each.
#pragma once

#include "device/block.cuh"
#include "device/pointwise.cuh"
#include "engines/cuda/rnn/args.cuh"

namespace tsr::dev {

// Which unit a warp treats, and which sequence a lane.
struct RnnUnit {
  i64 unit, first, b;  // first: of the block's sequences
  bool real, leads;    // leads: the lane has a sequence
};
// Groups of sequences; a grid counts them in 32 bits.
inline u32 batch_tiles(const RnnStepArgs& a) { return u32((a.sequences.batch + kRnnBatch - 1) / kRnnBatch); }

inline RnnUnit find_unit(const RnnStepArgs& a, i64 units) {
  u32 tiles = batch_tiles(a);
  int lane = threadIdx.x % 32;
  RnnUnit u;
  u.unit = i64(blockIdx.x / tiles) * kRnnWarps + threadIdx.x / 32;
  u.first = i64(blockIdx.x % tiles) * kRnnBatch;
  u.b = u.first + lane;
  u.real = u.unit < units;
  u.leads = lane < kRnnBatch && u.b < a.sequences.batch;
  return u;
}

// sums[g] = row g of the unit times the vector of the lane's sequence. `rows` are `apart` elements from each other.
template <class L, int ROWS>
void unit_products(const RnnStepArgs& a, const RnnUnit& u, const L* row, i64 apart, i64 length, const L* vectors,
                   L (&sums)[ROWS]) {
#pragma unroll
  for (int g = 0; g < ROWS; ++g) sums[g] = 0;
  L all[ROWS][kRnnBatch] = {};
  int lane = threadIdx.x % 32;
  bool any = false;
  const L* vector[kRnnBatch];  // null where a sequence has no such step
#pragma unroll
  for (int b = 0; b < kRnnBatch; ++b) {
    bool exists = a.sequences.exists(a.t, u.first + b);
    vector[b] = exists ? vectors + (u.first + b) * length : nullptr;
    any = any || exists;
  }
  if (!any) return;
  for (i64 j = lane; j < length; j += 32) {
    L w[ROWS];
#pragma unroll
    for (int g = 0; g < ROWS; ++g) w[g] = row[g * apart + j];
#pragma unroll
    for (int b = 0; b < kRnnBatch; ++b) {
      L v = vector[b] ? vector[b][j] : L(0);
#pragma unroll
      for (int g = 0; g < ROWS; ++g) all[g][b] += w[g] * v;
    }
  }
#pragma unroll
  for (int g = 0; g < ROWS; ++g)
#pragma unroll
    for (int b = 0; b < kRnnBatch; ++b) {
      L total = warp_reduce<Add>(all[g][b]);
      if (lane == b) sums[g] = total;
    }
}

template <class L>
L clip_cell(const RnnStepArgs& a, L c) {
  if (!a.clips) return c;
  if (c != c) return a.clip_nan ? L(a.clip_low) : c;
  return c < L(a.clip_low) ? L(a.clip_low) : c > L(a.clip_high) ? L(a.clip_high) : c;
}

// Where states of the step go before the projection: the tape, or memory for one step. S: what sequences are kept in.
template <class S>
S* full_states(const RnnStepArgs& a) {
  return static_cast<S*>(a.full_h) + (a.keeps ? a.sequences.row(a.t, 0) * a.hidden : 0);
}

// What a step leaves of output j of sequence b: the next state, the network's output and, kept, the state before.
template <class S, class L>
void settle(const RnnStepArgs& a, i64 b, i64 j, bool exists, L before, L h) {
  static_cast<L*>(a.next_h)[b * a.outputs + j] = exists ? h : before;
  if (!exists && a.sequences.starts) return;  // packed sequences have no such row
  i64 row = a.sequences.row(a.t, b);
  static_cast<S*>(a.sequence)[row * a.sequence_stride + a.sequence_first + j] = from_lane<S>(exists ? h : L(0));
  if (a.keeps) static_cast<S*>(a.old_h)[row * a.outputs + j] = from_lane<S>(exists ? before : L(0));
}

// Unit i of sequence b in a step. Loading comes apart from the rest, so that it can be under way while the step before
// ends elsewhere, and storing too, so that others need not wait for what only this unit reads again.
template <class S, class L, int GATES>
struct RnnCell {
  bool exists;
  L gates[GATES];  // sums of the input and biases, then activations
  L recurrent;     // of gru's last gate, which is multiplied before it is added: bias, then sum
  L before, old_c, c, state;

  void load(const RnnStepArgs& a, i64 b, i64 i) {
    exists = a.sequences.exists(a.t, b);
    if (!a.projects) before = static_cast<const L*>(a.h)[b * a.outputs + i];
    if (!exists) return;
    const L* from = static_cast<const L*>(a.gates) + a.sequences.row(a.t, b) * GATES * a.hidden + i;
    const L *input_bias = static_cast<const L*>(a.input_bias),
            *recurrent_bias = static_cast<const L*>(a.recurrent_bias);
#pragma unroll
    for (int g = 0; g < GATES; ++g) {
      L bias = recurrent_bias ? recurrent_bias[g * a.hidden + i] : L(0);
      bool apart = GATES == 3 && g == 2;
      gates[g] = from[g * a.hidden] + (input_bias ? input_bias[g * a.hidden + i] : L(0)) + (apart ? L(0) : bias);
      if (apart) recurrent = bias;
    }
    if (GATES == 4) old_c = static_cast<const L*>(a.c)[b * a.hidden + i];
  }

  void compute(const RnnStepArgs& a, const L (&from_h)[GATES]) {
    state = 0;
    if (!exists) return;
    L* x = gates;
#pragma unroll
    for (int g = 0; g < GATES; ++g)
      if (GATES != 3 || g < 2) x[g] += from_h[g];
    if constexpr (GATES == 1) {
      state = x[0] = a.mode == kCellRelu ? op_relu(x[0]) : f_tanh(x[0]);
    } else if constexpr (GATES == 4) {
      x[0] = f_sigmoid(x[0]), x[1] = f_sigmoid(x[1]), x[2] = f_tanh(x[2]), x[3] = f_sigmoid(x[3]);
      c = clip_cell(a, x[1] * old_c + x[0] * x[2]);
      state = x[3] * f_tanh(c);
    } else {
      recurrent += from_h[2];
      x[0] = f_sigmoid(x[0]), x[1] = f_sigmoid(x[1]);
      x[2] = f_tanh(x[2] + x[0] * recurrent);
      state = (1 - x[1]) * x[2] + x[1] * before;
    }
  }

  void store(const RnnStepArgs& a, i64 b, i64 i) const {
    i64 row = a.sequences.row(a.t, b);
    if (exists && GATES == 4) static_cast<L*>(a.c)[b * a.hidden + i] = c;
    if (exists && a.keeps) {
      if (GATES == 4) static_cast<L*>(a.old_c)[row * a.hidden + i] = old_c;
      if (GATES == 3) static_cast<L*>(a.recurrent)[row * a.hidden + i] = recurrent;
#pragma unroll
      for (int g = 0; g < GATES; ++g) static_cast<L*>(a.gates)[(row * GATES + g) * a.hidden + i] = gates[g];
    }
    if (!a.projects)
      settle<S>(a, b, i, exists, before, state);
    else if (exists || !a.sequences.starts || !a.keeps)
      full_states<S>(a)[b * a.hidden + i] = from_lane<S>(state);
  }
};

template <class L, int GATES>
void rnn_step(const RnnStepArgs& a) {
  RnnUnit u = find_unit(a, a.hidden);
  if (!u.real) return;
  L sums[GATES];
  unit_products(a, u, static_cast<const L*>(a.recurrent_weights) + u.unit * a.outputs, a.hidden * a.outputs, a.outputs,
                static_cast<const L*>(a.h), sums);
  if (!u.leads) return;
  RnnCell<L, L, GATES> cell;
  cell.load(a, u.b, u.unit);
  cell.compute(a, sums);
  cell.store(a, u.b, u.unit);
}

template <class L>
void rnn_project(const RnnStepArgs& a) {
  RnnUnit u = find_unit(a, a.outputs);
  if (!u.real) return;
  L sums[1];
  unit_products(a, u, static_cast<const L*>(a.projection) + u.unit * a.hidden, 0, a.hidden, full_states<L>(a), sums);
  if (u.leads)
    settle<L>(a, u.b, u.unit, a.sequences.exists(a.t, u.b), static_cast<const L*>(a.h)[u.b * a.outputs + u.unit],
              sums[0]);
}

}  // namespace tsr::dev
