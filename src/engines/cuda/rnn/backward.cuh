// SPDX-License-Identifier: Apache-2.0
// One step backward. A block treats 32 columns of a product for kRnnBatch sequences: its warps share the depth, then
// each takes one sequence and computes what follows.
#pragma once

#include "engines/cuda/rnn/forward.cuh"

namespace tsr::dev {

static_assert(kRnnWarps == kRnnBatch, "after the product each warp takes one sequence");

struct RnnColumn {
  i64 column, first, b;
  bool real;
};
inline RnnColumn find_column(const RnnStepArgs& a, i64 columns) {
  u32 tiles = batch_tiles(a);
  RnnColumn c;
  c.column = i64(blockIdx.x / tiles) * 32 + threadIdx.x % 32;
  c.first = i64(blockIdx.x % tiles) * kRnnBatch;
  c.b = c.first + threadIdx.x / 32;
  c.real = c.column < columns && c.b < a.sequences.batch;
  return c;
}

// sum over d of vector[d] matrix[d][column] for the thread's own sequence and column. `vector(b)` is null where a
// sequence has none. Every thread of the block takes part.
template <class L, class Vector>
L column_product(const RnnColumn& c, const L* matrix, i64 columns, i64 depth, const Vector& vector) {
  L* parts = reinterpret_cast<L*>(shared_memory());
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const L* from[kRnnBatch];
#pragma unroll
  for (int b = 0; b < kRnnBatch; ++b) from[b] = vector(c.first + b);
  L sums[kRnnBatch] = {};
  for (i64 d = warp; d < depth && c.column < columns; d += kRnnWarps) {
    L w = matrix[d * columns + c.column];
#pragma unroll
    for (int b = 0; b < kRnnBatch; ++b)
      if (from[b]) sums[b] += from[b][d] * w;
  }
  __syncthreads();  // nobody still reads the parts of a product before
#pragma unroll
  for (int b = 0; b < kRnnBatch; ++b) parts[(warp * kRnnBatch + b) * 32 + lane] = sums[b];
  __syncthreads();
  L total = 0;
#pragma unroll
  for (int w = 0; w < kRnnWarps; ++w) total += parts[(w * kRnnBatch + warp) * 32 + lane];
  return total;
}

// The gradients of unit i of sequence b in a step; loading and storing apart, as in RnnCell. S: what the gradients of
// sums are kept in, which products over all steps read.
template <class S, class L, int GATES>
struct RnnCellGradient {
  bool exists;
  L gates[GATES];             // activations, then gradients of the sums
  L recurrent;                // gru: the sum that the reset gate multiplies, then its gradient
  L before, old_c, dc, past;  // past: of the gradient of the state before, what passes by the products

  void load(const RnnStepArgs& a, i64 b, i64 i) {
    exists = a.sequences.exists(a.t, b);
    if (!exists) return;
    i64 row = a.sequences.row(a.t, b);
    const L* from = static_cast<const L*>(a.gates) + row * GATES * a.hidden + i;
#pragma unroll
    for (int g = 0; g < GATES; ++g) gates[g] = from[g * a.hidden];
    if (GATES == 4) {
      dc = static_cast<const L*>(a.dc)[b * a.hidden + i];
      old_c = static_cast<const L*>(a.old_c)[row * a.hidden + i];
    }
    if (GATES == 3) {
      recurrent = static_cast<const L*>(a.recurrent)[row * a.hidden + i];
      before = to_lane<L>(static_cast<const S*>(a.old_h)[row * a.outputs + i]);
    }
  }

  // d is the gradient of the unit's state after the step.
  void compute(const RnnStepArgs& a, L d) {
    past = 0;
    if (!exists) {
#pragma unroll
      for (int g = 0; g < GATES; ++g) gates[g] = 0;
      recurrent = 0;
      return;
    }
    L* x = gates;
    if constexpr (GATES == 1) {
      x[0] = a.mode == kCellRelu ? (x[0] > 0 ? d : L(0)) : d * (1 - x[0] * x[0]);
    } else if constexpr (GATES == 4) {
      L in = x[0], forget = x[1], fresh = x[2], out = x[3], sum = forget * old_c + in * fresh;
      L tanh_c = f_tanh(clip_cell(a, sum));
      // Where clipping replaced the state nothing flows back.
      bool replaced = a.clips && (sum != sum ? a.clip_nan : sum < L(a.clip_low) || sum > L(a.clip_high));
      L cell = (dc + d * out * (1 - tanh_c * tanh_c)) * (replaced ? L(0) : L(1));
      x[0] = cell * fresh * in * (1 - in);
      x[1] = cell * old_c * forget * (1 - forget);
      x[2] = cell * in * (1 - fresh * fresh);
      x[3] = d * tanh_c * out * (1 - out);
      dc = cell * forget;
    } else {
      L reset = x[0], update = x[1], fresh = x[2];
      L d_fresh = d * (1 - update) * (1 - fresh * fresh);
      x[0] = d_fresh * recurrent * reset * (1 - reset);
      x[1] = d * (before - fresh) * update * (1 - update);
      x[2] = d_fresh;
      recurrent = d_fresh * reset;
      past = d * update;
    }
  }

  // Of gru's last gate the recurrent part has a gradient of its own.
  L from_state(int g) const { return GATES == 3 && g == 2 ? recurrent : gates[g]; }

  // Rows of padded sequences past the length count nothing in the sums over all rows.
  void store(const RnnStepArgs& a, i64 b, i64 i) const {
    if (!exists && a.sequences.starts) return;
    i64 row = a.sequences.row(a.t, b);
#pragma unroll
    for (int g = 0; g < GATES; ++g)
      static_cast<S*>(a.d_gates)[(row * GATES + g) * a.hidden + i] = from_lane<S>(gates[g]);
    if (GATES == 3) static_cast<S*>(a.d_recurrent)[row * a.hidden + i] = from_lane<S>(recurrent);
    if (GATES == 4 && exists) static_cast<L*>(a.dc)[b * a.hidden + i] = dc;
  }
};

// The gradient of output j of the state after step t: what comes through the gates of the step that followed, and that
// of the network's output; then the gates of step t, unless a projection lies between. Without a step t (-1) the first
// state's.
template <class S, class L, int GATES>
struct RnnStepGradient {
  bool exists;
  L dh, d;
  RnnCellGradient<S, L, GATES> cell;

  void load(const RnnStepArgs& a, i64 b, i64 j) {
    exists = a.sequences.exists(a.t, b);
    dh = d = static_cast<const L*>(a.dh)[b * a.outputs + j];
    if (exists)
      d += static_cast<const L*>(a.sequence)[a.sequences.row(a.t, b) * a.sequence_stride + a.sequence_first + j];
    if (!a.projects) cell.load(a, b, j);
  }
  void compute(const RnnStepArgs& a, L from_later) {
    d += from_later;
    if (!a.projects) cell.compute(a, d);
  }
  void store(const RnnStepArgs& a, i64 b, i64 j) const {
    static_cast<L*>(a.dh)[b * a.outputs + j] = !exists ? d : a.projects ? L(0) : cell.past;
    if (a.t < 0) return;
    if (!a.projects)
      cell.store(a, b, j);
    else if (exists || !a.sequences.starts)
      static_cast<S*>(a.projected_dh)[a.sequences.row(a.t, b) * a.outputs + j] = from_lane<S>(exists ? d : L(0));
  }
};

template <class L, int GATES>
void rnn_step_bwd(const RnnStepArgs& a) {
  RnnColumn c = find_column(a, a.outputs);
  const L* weights = static_cast<const L*>(a.recurrent_weights);
  constexpr int kPlain = GATES == 3 ? 2 : GATES;  // gates whose recurrent part has no gradient of its own
  auto gates_of = [&](i64 b) -> const L* {
    if (!a.sequences.exists(a.later, b)) return nullptr;
    return static_cast<const L*>(a.d_gates) + a.sequences.row(a.later, b) * GATES * a.hidden;
  };
  L sum = column_product(c, weights, a.outputs, kPlain * a.hidden, gates_of);
  if constexpr (GATES == 3) {
    auto recurrent_of = [&](i64 b) -> const L* {
      if (!a.sequences.exists(a.later, b)) return nullptr;
      return static_cast<const L*>(a.d_recurrent) + a.sequences.row(a.later, b) * a.hidden;
    };
    sum += column_product(c, weights + 2 * a.hidden * a.outputs, a.outputs, a.hidden, recurrent_of);
  }
  if (!c.real) return;
  RnnStepGradient<L, L, GATES> gradient;
  gradient.load(a, c.b, c.column);
  gradient.compute(a, sum);
  gradient.store(a, c.b, c.column);
}

// Through the projection to the gates of step t.
template <class L>
void rnn_project_bwd(const RnnStepArgs& a) {
  RnnColumn c = find_column(a, a.hidden);
  auto vector = [&](i64 b) -> const L* {
    if (!a.sequences.exists(a.t, b)) return nullptr;
    return static_cast<const L*>(a.projected_dh) + a.sequences.row(a.t, b) * a.outputs;
  };
  L d = column_product(c, static_cast<const L*>(a.projection), a.hidden, a.outputs, vector);
  if (!c.real) return;
  RnnCellGradient<L, L, 4> cell;
  cell.load(a, c.b, c.column);
  cell.compute(a, d);
  cell.store(a, c.b, c.column);
}

}  // namespace tsr::dev
