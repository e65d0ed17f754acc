// SPDX-License-Identifier: Apache-2.0
// Between the tensors of a recurrent network and rows in the workspace.
#pragma once

#include "device/elements.cuh"
#include "device/random.cuh"
#include "engines/cuda/rnn/args.cuh"

namespace tsr::dev {

// One block: the lengths first, since the starts are sums of them.
inline void rnn_lengths(const RnnLengthsArgs& a) {
  const RnnSequences& s = a.sequences;
  for (i64 b = threadIdx.x; b < s.batch; b += blockDim.x) {
    i64 n = a.bytes ? read_integer(a.given, a.bytes, b * a.given.strides[0]) : s.steps;
    s.lengths[b] = n < 0 ? 0 : n > s.steps ? s.steps : n;
  }
  __syncthreads();
  for (i64 t = threadIdx.x; s.starts && t <= s.steps; t += blockDim.x) {
    i64 rows = 0;
    for (i64 b = 0; b < s.batch; ++b) rows += s.lengths[b] < t ? s.lengths[b] : t;
    s.starts[t] = rows < s.steps ? rows : s.steps;  // lengths that do not add up must not lead outside
  }
}

// Where an element of the rows lies in the tensor, and whether it exists there.
struct RnnPlace {
  i64 index, offset;
  bool real, exists;
};
inline RnnPlace find_place(const RnnTableArgs& a) {
  RnnPlace p;
  p.index = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  p.real = p.index < a.elements;
  if (!p.real) return p;
  i64 row = p.index / a.width, j = p.index - row * a.width, first = row / a.second, second = row - first * a.second;
  p.offset = a.base + first * a.tensor.strides[0] + second * a.tensor.strides[1] + j * a.tensor.strides[2];
  p.exists = !a.lengths || first < a.lengths[second];
  return p;
}

// L: what is computed in, S: what rows are kept in.
template <class L, class S, class T>
void rnn_read(const RnnTableArgs& a) {
  RnnPlace p = find_place(a);
  if (!p.real) return;
  L v = 0;
  if constexpr (!kSame<T, none>)
    if (p.exists) v = read<L, T>(a.tensor, p.offset);
  static_cast<S*>(a.rows)[p.index] = from_lane<S>(v);
}

template <class L, class S, class T>
void rnn_write(const RnnTableArgs& a) {
  RnnPlace p = find_place(a);
  if (p.real) write<T>(a.tensor, p.offset, p.exists ? to_lane<L>(static_cast<const S*>(a.rows)[p.index]) : L(0));
}

// Multiplies a layer's output with its dropout mask, whose elements are counted over the padded form.
template <class L, class S>
void rnn_drop(const RnnDropArgs& a) {
  i64 index = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= a.elements) return;
  const RnnSequences& s = a.sequences;
  i64 row = index / a.width, steps = s.steps, padded = row;
  if (s.starts) {
    i64 t = 0, end = s.steps;  // the last t whose start is not beyond the row
    while (end - t > 1) {
      i64 middle = (t + end) / 2;
      if (s.starts[middle] <= row)
        t = middle;
      else
        end = middle;
    }
    padded = t * s.batch + row - s.starts[t];
    steps = s.lengths[0];
  }
  i64 element = (a.layer * steps * s.batch + padded) * a.width + index % a.width;
  bool keeps = double(uniform_at(a.seed, 0, u64(element))) < a.keep;
  S& v = static_cast<S*>(a.rows)[index];
  v = from_lane<S>(to_lane<L>(v) * (keeps ? L(1) / (L(1) - L(1 - a.keep)) : L(0)));
}

template <class L, class S>
void rnn_skip(const RnnSkipArgs& a) {
  i64 index = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= a.elements) return;
  i64 row = index / a.hidden, i = index - row * a.hidden;
  L* gates = static_cast<L*>(a.gates) + row * a.count * a.hidden + i;
  for (i64 g = 0; g < a.count; ++g) gates[g * a.hidden] = to_lane<L>(static_cast<const S*>(a.x)[index]);
}

template <class L, class S>
void rnn_skip_bwd(const RnnSkipArgs& a) {
  i64 index = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= a.elements) return;
  i64 row = index / a.hidden, i = index - row * a.hidden;
  const S* gates = static_cast<const S*>(a.gates) + row * a.count * a.hidden + i;
  L& dx = static_cast<L*>(a.x)[index];
  L sum = a.add ? dx : L(0);
  for (i64 g = 0; g < a.count; ++g) sum += to_lane<L>(gates[g * a.hidden]);
  dx = sum;
}

}  // namespace tsr::dev
