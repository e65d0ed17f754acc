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

// Where states of the step go before the projection: the tape, or memory for one step.
template <class L>
L* full_states(const RnnStepArgs& a) {
  return static_cast<L*>(a.full_h) + (a.keeps ? a.sequences.row(a.t, 0) * a.hidden : 0);
}

// What a step leaves of output j of sequence b: the next state, the network's output and, kept, the state before.
template <class L>
void settle(const RnnStepArgs& a, i64 b, i64 j, bool exists, L h) {
  L before = static_cast<const L*>(a.h)[b * a.outputs + j];
  static_cast<L*>(a.next_h)[b * a.outputs + j] = exists ? h : before;
  if (!exists && a.sequences.starts) return;  // packed sequences have no such row
  i64 row = a.sequences.row(a.t, b);
  static_cast<L*>(a.sequence)[row * a.sequence_stride + a.sequence_first + j] = exists ? h : L(0);
  if (a.keeps) static_cast<L*>(a.old_h)[row * a.outputs + j] = exists ? before : L(0);
}

// Sums of the products become activations; returns the unit's state.
template <class L, int GATES>
L compute_cell(const RnnStepArgs& a, i64 b, i64 i, const L (&from_h)[GATES]) {
  i64 row = a.sequences.row(a.t, b);
  L *gates = static_cast<L*>(a.gates) + row * GATES * a.hidden + i, x[GATES], h[GATES];
  const L *input_bias = static_cast<const L*>(a.input_bias), *recurrent_bias = static_cast<const L*>(a.recurrent_bias);
#pragma unroll
  for (int g = 0; g < GATES; ++g) {
    x[g] = gates[g * a.hidden] + (input_bias ? input_bias[g * a.hidden + i] : L(0));
    h[g] = from_h[g] + (recurrent_bias ? recurrent_bias[g * a.hidden + i] : L(0));
  }
  L state;
  if constexpr (GATES == 1) {
    L s = x[0] + h[0];
    state = x[0] = a.mode == kCellRelu ? op_relu(s) : f_tanh(s);
  } else if constexpr (GATES == 4) {
    L& c = static_cast<L*>(a.c)[b * a.hidden + i];
    if (a.keeps) static_cast<L*>(a.old_c)[row * a.hidden + i] = c;
    x[0] = f_sigmoid(x[0] + h[0]), x[1] = f_sigmoid(x[1] + h[1]);
    x[2] = f_tanh(x[2] + h[2]), x[3] = f_sigmoid(x[3] + h[3]);
    c = clip_cell(a, x[1] * c + x[0] * x[2]);
    state = x[3] * f_tanh(c);
  } else {
    if (a.keeps) static_cast<L*>(a.recurrent)[row * a.hidden + i] = h[2];
    x[0] = f_sigmoid(x[0] + h[0]), x[1] = f_sigmoid(x[1] + h[1]);
    x[2] = f_tanh(x[2] + x[0] * h[2]);
    state = (1 - x[1]) * x[2] + x[1] * static_cast<const L*>(a.h)[b * a.outputs + i];
  }
#pragma unroll
  for (int g = 0; g < GATES; ++g)
    if (a.keeps) gates[g * a.hidden] = x[g];
  return state;
}

template <class L, int GATES>
void rnn_step(const RnnStepArgs& a) {
  RnnUnit u = find_unit(a, a.hidden);
  if (!u.real) return;
  L sums[GATES];
  unit_products(a, u, static_cast<const L*>(a.recurrent_weights) + u.unit * a.outputs, a.hidden * a.outputs, a.outputs,
                static_cast<const L*>(a.h), sums);
  if (!u.leads) return;
  bool exists = a.sequences.exists(a.t, u.b);
  L h = exists ? compute_cell(a, u.b, u.unit, sums) : L(0);
  if (!a.projects)
    settle(a, u.b, u.unit, exists, h);
  else if (exists || !a.sequences.starts || !a.keeps)
    full_states<L>(a)[u.b * a.hidden + u.unit] = h;
}

template <class L>
void rnn_project(const RnnStepArgs& a) {
  RnnUnit u = find_unit(a, a.outputs);
  if (!u.real) return;
  L sums[1];
  unit_products(a, u, static_cast<const L*>(a.projection) + u.unit * a.hidden, 0, a.hidden, full_states<L>(a), sums);
  if (u.leads) settle(a, u.b, u.unit, a.sequences.exists(a.t, u.b), sums[0]);
}

}  // namespace tsr::dev
