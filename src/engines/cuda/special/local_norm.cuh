// SPDX-License-Identifier: Apache-2.0
// Normalisation by the energy in a box around each element; one thread for each. N is i32 or i64, as offsets need it.
#pragma once

#include "device/cut.cuh"
#include "device/elements.cuh"
#include "device/pointwise.cuh"
#include "engines/cuda/special/local_norm_args.cuh"

namespace tsr::dev {

// An element, and the part of its box that is inside.
template <class N>
struct BoxSpot {
  N index, at[kNormAxes], low[kNormAxes], high[kNormAxes];  // [low, high]
  bool real;

  N offset(const Operand& o) const {
    N sum = 0;
#pragma unroll
    for (int d = 0; d < kNormAxes; ++d) sum += at[d] * N(o.strides[d]);
    return sum;
  }
};

// `swapped`: the elements whose box holds this one.
template <class N>
BoxSpot<N> find_box(const LocalNormArgs& a, bool swapped) {
  i64 thread = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  BoxSpot<N> s;
  s.real = thread < a.elements;
  if (!s.real) return s;
  s.index = N(thread);
  N rest = s.index;
#pragma unroll
  for (int d = kNormAxes - 1; d >= 0; --d) {
    s.at[d] = cut(rest, a.sizes[d]);
    N low = s.at[d] - N(swapped ? a.after[d] : a.before[d]), high = s.at[d] + N(swapped ? a.before[d] : a.after[d]);
    s.low[d] = low < 0 ? 0 : low;
    s.high[d] = high >= N(a.sizes[d].value) ? N(a.sizes[d].value) - 1 : high;
  }
  return s;
}

// Calls f with the offsets in two tensors of each element of the box.
template <int D = 0, class N, class F>
void each_in_box(const BoxSpot<N>& s, const Operand& p, const Operand& q, N at_p, N at_q, const F& f) {
  if constexpr (D == kNormAxes)
    f(at_p, at_q);
  else
    for (N i = s.low[D]; i <= s.high[D]; ++i)
      each_in_box<D + 1>(s, p, q, N(at_p + i * N(p.strides[D])), N(at_q + i * N(q.strides[D])), f);
}

template <class L, class X, class M, class N>
L centred(const LocalNormArgs& a, N at_x, N at_mean) {
  L v = read<L, X>(a.x, at_x);
  if constexpr (!kSame<M, none>) v -= read<L, M>(a.mean, at_mean);
  return v;
}

// k + alpha / count sum v^2
template <class L, class X, class M, class N>
L energy(const LocalNormArgs& a, const BoxSpot<N>& s) {
  L sum = 0;
  each_in_box(s, a.x, a.mean, N(0), N(0), [&](N at_x, N at_mean) {
    L v = centred<L, X, M>(a, at_x, at_mean);
    sum += v * v;
  });
  return L(a.k) + L(a.alpha) * sum;
}

template <class L, class X, class M, class Y, class N>
void local_norm(const LocalNormArgs& a) {
  BoxSpot<N> s = find_box<N>(a, false);
  if (!s.real) return;
  L v = centred<L, X, M>(a, s.offset(a.x), s.offset(a.mean));
  write<Y>(a.out, s.offset(a.out), v * op_pow(energy<L, X, M>(a, s), L(-a.beta)));
}

// --- gradient: first what each element contributes to its neighbours, then their sums
template <class L, class X, class M, class DY, class N>
void local_norm_pulls(const LocalNormArgs& a) {
  BoxSpot<N> s = find_box<N>(a, false);
  if (!s.real) return;
  L v = centred<L, X, M>(a, s.offset(a.x), s.offset(a.mean)), e = energy<L, X, M>(a, s);
  L *scale = static_cast<L*>(a.workspace), *pull = scale + a.elements;
  scale[s.index] = op_pow(e, L(-a.beta));
  pull[s.index] = read<L, DY>(a.dy, s.offset(a.dy)) * v * op_pow(e, L(-a.beta - 1));
}

template <class L, class X, class M, class DY, class DX, class DM, class N>
void local_norm_bwd(const LocalNormArgs& a) {
  BoxSpot<N> s = find_box<N>(a, true);
  if (!s.real) return;
  const L *scale = static_cast<const L*>(a.workspace), *pull = scale + a.elements;
  L sum = 0;
  each_in_box(s, a.packed, a.packed, N(0), N(0), [&](N at, N) { sum += pull[at]; });
  L v = centred<L, X, M>(a, s.offset(a.x), s.offset(a.mean));
  L d = read<L, DY>(a.dy, s.offset(a.dy)) * scale[s.index] - L(2 * a.alpha * a.beta) * v * sum;
  if constexpr (!kSame<DX, none>) write<DX>(a.out, s.offset(a.out), d);
  if constexpr (!kSame<DM, none>) write<DM>(a.dmean, s.offset(a.dmean), -d);
}

}  // namespace tsr::dev
