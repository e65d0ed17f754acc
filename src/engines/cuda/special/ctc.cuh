// SPDX-License-Identifier: Apache-2.0
// CTC: sums of exponentials of every row of logits, then a block for each sequence walks over time forward and back,
// then the gradients of every row.
#pragma once

#include "device/block.cuh"
#include "device/elements.cuh"
#include "device/pointwise.cuh"
#include "engines/cuda/special/ctc_args.cuh"

namespace tsr::dev {

// The workspace. Numbers first, they need the larger alignment.
template <class L>
struct CtcMemory {
  L* row_sums;         // [step][sequence] log of the sum of exponentials
  L* log_probability;  // [sequence]
  L* reach;            // [step][state] log-probability of having come there; later how probable the state is
  L* leave;            // [2][state] of what follows a step
  i32* label;          // [state]
  i32* next;           // [state] the next state of the same label, -1 after the last
  i32* leads;          // [state] no state before has its label
  i32* first;          // [sequence] its first state
  i32* count;          // [sequence] its states
};
template <class L>
CtcMemory<L> ctc_memory(const CtcArgs& a) {
  CtcMemory<L> m;
  m.row_sums = static_cast<L*>(a.workspace);
  m.log_probability = m.row_sums + a.steps * a.batch;
  m.reach = m.log_probability + a.batch;
  m.leave = m.reach + a.steps * a.states;
  m.label = reinterpret_cast<i32*>(m.leave + 2 * a.states);
  m.next = m.label + a.states;
  m.leads = m.next + a.states;
  m.first = m.leads + a.states;
  m.count = m.first + a.batch;
  return m;
}

inline i64 within(i64 v, i64 low, i64 high) { return v < low ? low : v > high ? high : v; }

inline i64 input_length(const CtcArgs& a, i64 n) {
  return within(read_integer(a.input_lengths, a.input_lengths_bytes, n * a.input_lengths.strides[0]), 0, a.steps);
}

template <class L>
L log_add(L a, L b) {
  if (a == -L(infinity())) return b;
  if (b == -L(infinity())) return a;
  return a > b ? a + f_log1p(f_exp(b - a)) : b + f_log1p(f_exp(a - b));
}

// A warp for each row of logits.
template <class L, class X>
void ctc_row_sums(const CtcArgs& a) {
  i64 row = (i64(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (row >= a.steps * a.batch) return;
  i64 at = row / a.batch * a.logits.strides[0] + row % a.batch * a.logits.strides[1];
  L most = Max::identity<L>();
  for (i64 c = lane; c < a.classes; c += 32) most = Max::join(most, read<L, X>(a.logits, at + c * a.logits.strides[2]));
  most = warp_reduce<Max>(most);
  L sum = 0;
  for (i64 c = lane; c < a.classes; c += 32) {
    L x = read<L, X>(a.logits, at + c * a.logits.strides[2]);
    sum += x == most ? L(1) : f_exp(x - most);
  }
  sum = warp_reduce<Add>(sum);
  L result = most + f_log(sum);
  // Infinities: none but -inf, one +inf, or several, which no sum defines.
  if (most == L(infinity()) && sum > L(1)) result = L(not_a_number());
  if (most == -L(infinity())) result = most;
  if (lane == 0) ctc_memory<L>(a).row_sums[row] = result;
}

template <class L, class X>
L log_probability_of(const CtcArgs& a, const CtcMemory<L>& m, i64 t, i64 n, i64 label) {
  L x = read<L, X>(a.logits, t * a.logits.strides[0] + n * a.logits.strides[1] + label * a.logits.strides[2]);
  return a.log_probs ? x : x - m.row_sums[t * a.batch + n];
}

// The states of sequence n: where they start among all, how many there are, and what they emit.
template <class L>
void list_states(const CtcArgs& a, const CtcMemory<L>& m, i64 n) {
  auto labels_of = [&](i64 k, i64 room) {
    return within(read_integer(a.label_lengths, a.label_lengths_bytes, k * a.label_lengths.strides[0]), 0, room);
  };
  i64 before = 0;
  for (i64 k = 0; a.flat && k < n; ++k) before += labels_of(k, a.room - before);
  i64 length = labels_of(n, a.room - before), count = 2 * length + 1;
  i64 first = a.flat ? 2 * before + n : n * (2 * a.room + 1);
  if (threadIdx.x == 0) m.first[n] = i32(first), m.count[n] = i32(count);
  for (i64 s = threadIdx.x; s < count; s += blockDim.x) {
    i64 k = s / 2, at = a.flat ? (before + k) * a.labels.strides[0] : n * a.labels.strides[0] + k * a.labels.strides[1];
    i64 label = s % 2 == 0 ? a.blank : within(read_integer(a.labels, a.labels_bytes, at), 0, a.classes - 1);
    m.label[first + s] = i32(label);
  }
}

// Links states of equal labels. Blanks are every other state.
template <class L>
void link_states(const CtcMemory<L>& m, i64 first, i64 count) {
  for (i64 s = threadIdx.x; s < count; s += blockDim.x) {
    i64 next = s + 2, before = s - 2;
    if (s % 2 == 1) {
      while (next < count && m.label[first + next] != m.label[first + s]) next += 2;
      while (before >= 0 && m.label[first + before] != m.label[first + s]) before -= 2;
    }
    m.next[first + s] = next < count ? i32(next) : -1;
    m.leads[first + s] = before < 0;
  }
}

// A block for each sequence. Threads share the states of a step.
template <class L, class X, class C>
void ctc_lattice(const CtcArgs& a) {
  CtcMemory<L> m = ctc_memory<L>(a);
  i64 n = blockIdx.x, steps = input_length(a, n);
  list_states(a, m, n);
  __syncthreads();
  i64 first = m.first[n], states = m.count[n];
  const i32* label = m.label + first;
  const L never = -L(infinity());
  // From state s - 2 a path may jump to s when that skips a blank between two different labels.
  auto may_skip = [&](i64 s) { return s >= 2 && s % 2 == 1 && label[s] != label[s - 2]; };
  for (i64 t = 0; t < steps; ++t) {
    L *now = m.reach + t * a.states + first, *last = now - a.states;
    for (i64 s = threadIdx.x; s < states; s += blockDim.x) {
      L from = t == 0 ? (s < 2 ? L(0) : never) : last[s];
      if (t > 0 && s >= 1) from = log_add(from, last[s - 1]);
      if (t > 0 && may_skip(s)) from = log_add(from, last[s - 2]);
      now[s] = from == never ? from : from + log_probability_of<L, X>(a, m, t, n, label[s]);
    }
    __syncthreads();
  }
  // Without any step only the empty label sequence is possible.
  L total = steps == 0 && states == 1 ? L(0) : never;
  const L* ends = m.reach + (steps - 1) * a.states + first;
  for (i64 s = states >= 2 ? states - 2 : 0; s < states && steps > 0; ++s) total = log_add(total, ends[s]);
  if (threadIdx.x == 0) {
    m.log_probability[n] = total;
    if constexpr (!kSame<C, none>)
      write<C>(a.costs, n * a.costs.strides[0], total == never && a.zero_infinity ? L(0) : -total);
  }
  if (!a.with_gradients || total == never) return;  // the same for all threads
  link_states(m, first, states);
  for (i64 t = steps - 1; t >= 0; --t) {
    __syncthreads();  // all have read what is written over now
    L *now = m.leave + t % 2 * a.states + first, *reach = m.reach + t * a.states + first;
    const L* after = m.leave + (t + 1) % 2 * a.states + first;
    for (i64 s = threadIdx.x; s < states; s += blockDim.x) {
      L leave = never;
      if (t + 1 == steps) leave = s + 2 >= states ? L(0) : never;
      for (i64 to = s; t + 1 < steps && to < states && to <= s + 2; ++to)
        if ((to < s + 2 || may_skip(to)) && after[to] != never)
          leave = log_add(leave, after[to] + log_probability_of<L, X>(a, m, t + 1, n, label[to]));
      now[s] = leave;
      reach[s] = f_exp(reach[s] + leave - total);
    }
  }
}

// A warp for each row of gradients: first every class, then those that the labels name.
template <class L, class X, class G>
void ctc_gradients(const CtcArgs& a) {
  CtcMemory<L> m = ctc_memory<L>(a);
  i64 row = (i64(blockIdx.x) * blockDim.x + threadIdx.x) / 32, t = row / a.batch, n = row % a.batch;
  int lane = threadIdx.x % 32;
  if (row >= a.steps * a.batch) return;
  bool real = t < input_length(a, n) && m.log_probability[n] != -L(infinity());
  auto base = [&](i64 c) { return a.log_probs ? L(0) : f_exp(log_probability_of<L, X>(a, m, t, n, c)); };
  i64 at = t * a.gradients.strides[0] + n * a.gradients.strides[1];
  for (i64 c = lane; c < a.classes; c += 32)
    write<G>(a.gradients, at + c * a.gradients.strides[2], real ? base(c) : L(0));
  __syncwarp();
  i64 first = m.first[n], states = m.count[n];
  for (i64 s = lane; real && s < states; s += 32) {
    if (!m.leads[first + s]) continue;
    L sum = base(m.label[first + s]);
    for (i64 k = s; k >= 0; k = m.next[first + k]) sum -= m.reach[t * a.states + first + k];
    write<G>(a.gradients, at + m.label[first + s] * a.gradients.strides[2], sum);
  }
}

}  // namespace tsr::dev
