// SPDX-License-Identifier: Apache-2.0
// Each thread walks over the window of one output element of V channels, which lie side by side in memory (TOGETHER) or
// not.
#pragma once

#include "device/block.cuh"
#include "engines/cuda/resample/window.cuh"

namespace tsr::dev {

// The largest value so far, and where it was. NaN counts as larger than everything; the first of equals stays.
template <class L, int V, bool INDEX>
struct Largest {
  L best[V];
  i32 at[INDEX ? V : 1];
  bool started = false;

  void start(L value) {
#pragma unroll
    for (int i = 0; i < V; ++i) best[i] = value;
    if constexpr (INDEX)
#pragma unroll
      for (int i = 0; i < V; ++i) at[i] = 0;
  }
  void take(int i, L v, i32 position) {
    if constexpr (INDEX) {
      bool better = !started || (best[i] == best[i] && !(v <= best[i]));
      best[i] = better ? v : best[i];
      at[i] = better ? position : at[i];
    } else {
      best[i] = larger(best[i], v);
    }
  }
};

constexpr int kAtOnce = 4;  // taps of a row that are loaded before they are used

// Calls f(element, k0, k1, k2, is_inside) for every tap, row-major; the element is loaded unless the tap is padding
// without one. INSIDE: only for taps that are not padding, which spares all questions.
template <class L, class X, int V, bool TOGETHER, bool INSIDE, class N, class F>
void walk_taps(const ResampleArgs& a, const Spot<N>& s, const Taps<N> (&t)[3], const F& f) {
  bool edge = a.pad == kPadEdge;
  N sizes[3], first[3], end[3];
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    sizes[d] = N(a.axes[d].x);
    first[d] = INSIDE && t[d].first < 0 ? 0 : t[d].first;
    end[d] = INSIDE && t[d].end > sizes[d] ? sizes[d] : t[d].end;
  }
  auto place = [&](N v, int d) { return (INSIDE ? v : clamp_to(v, sizes[d])) * N(a.x.strides[2 + d]); };
  for (N z = first[0]; z < end[0]; ++z)
    for (N y = first[1]; y < end[1]; ++y) {
      bool row_inside = INSIDE || (inside(z, sizes[0]) && inside(y, sizes[1]));
      N line = s.plane(a.x) + place(z, 0) + place(y, 1);
      for (N x = first[2]; x < end[2]; x += kAtOnce) {
        Elements<L, X, V> e[kAtOnce];
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u)
          if (x + u < end[2] && (INSIDE || edge || (row_inside && inside(x + u, sizes[2]))))
            e[u].template load<TOGETHER>(elements(a.x), line + place(x + u, 2), a.x.strides[1]);
#pragma unroll
        for (int u = 0; u < kAtOnce; ++u)
          if (x + u < end[2])
            f(e[u], z - t[0].first, y - t[1].first, x + u - t[2].first,
              INSIDE || (row_inside && inside(x + u, sizes[2])));
      }
    }
}

// `padding_counts`: does f want to know of padding?
template <class L, class X, int V, bool TOGETHER, class N, class F>
void each_tap(const ResampleArgs& a, const Spot<N>& s, const Taps<N> (&t)[3], bool padding_counts, const F& f) {
  if (padding_counts)
    walk_taps<L, X, V, TOGETHER, false>(a, s, t, f);
  else
    walk_taps<L, X, V, TOGETHER, true>(a, s, t, f);
}

template <class L, class X, int V, bool TOGETHER, bool INDEX, class N>
void largest(const ResampleArgs& a, const Spot<N>& s, const Taps<N> (&t)[3], L (&result)[V], i32* position) {
  Largest<L, V, INDEX> most;
  bool any = t[0].first < t[0].end && t[1].first < t[1].end && t[2].first < t[2].end;
  most.start(any ? L(-infinity()) : L(0));  // of no element: 0
  // Padding with -infinity never beats an element.
  bool padding_counts = a.pad != kPadInfinity;
  each_tap<L, X, V, TOGETHER>(a, s, t, padding_counts, [&](const Elements<L, X, V>& e, N z, N y, N x, bool real) {
    i32 here = i32((z * N(a.axes[1].extent) + y) * N(a.axes[2].extent) + x);
    bool zero = !real && a.pad == kPadZero;
#pragma unroll
    for (int i = 0; i < V; ++i) most.take(i, zero ? L(0) : e.lane(i), here);
    most.started = true;
  });
#pragma unroll
  for (int i = 0; i < V; ++i) {
    result[i] = most.best[i];
    if constexpr (INDEX) position[i] = most.at[i];
  }
}

template <class L, class X, int V, bool TOGETHER, class N>
void weighted(const ResampleArgs& a, const Spot<N>& s, const Taps<N> (&t)[3], L (&result)[V]) {
  L mean = 1, fraction[3];
  bool exclude = a.kind == kMeanExclude, linear = a.kind == kBilinear;
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    N count = exclude ? count_inside(t[d], N(a.axes[d].x)) : t[d].end - t[d].first;
    if (exclude || a.kind == kMeanInclude) mean *= L(count);
    fraction[d] = linear ? L(t[d].rest) / L(a.axes[d].first.unit.value) : L(0);
  }
  mean = L(1) / mean;
#pragma unroll
  for (int i = 0; i < V; ++i) result[i] = 0;
  bool padding_counts = !exclude && a.pad != kPadZero;
  each_tap<L, X, V, TOGETHER>(a, s, t, padding_counts, [&](const Elements<L, X, V>& e, N z, N y, N x, bool real) {
    L weight = mean;
    if (linear)
      weight = (z ? fraction[0] : 1 - fraction[0]) * (y ? fraction[1] : 1 - fraction[1]) *
               (x ? fraction[2] : 1 - fraction[2]);
    if (weight == L(0)) return;
    bool infinite = !real && a.pad == kPadInfinity;
#pragma unroll
    for (int i = 0; i < V; ++i) result[i] += weight * (infinite ? L(-infinity()) : e.lane(i));
  });
}

// Y may be `none`: only the index is wanted.
template <class L, class X, class Y, class I, class N, int V, bool TOGETHER, bool MAX>
void resample(const ResampleArgs& a) {
  Spot<N> s = find_spot<N, V>(a, a.axes[1].y);
  if (!s.real) return;
  Taps<N> t[3];
#pragma unroll
  for (int d = 0; d < 3; ++d) t[d] = find_taps(a.axes[d], s.at[d]);
  L result[V];
  i32 position[V];
  if constexpr (MAX)
    largest<L, X, V, TOGETHER, !kSame<I, none>>(a, s, t, result, position);
  else
    weighted<L, X, V, TOGETHER>(a, s, t, result);
  if constexpr (!kSame<Y, none>) {
    Vec<Y, V> out;
#pragma unroll
    for (int i = 0; i < V; ++i) out.v[i] = from_lane<Y>(L(a.alpha) * result[i]);
    store_elements<TOGETHER>(a.y.data, s.offset(a.y), a.y.strides[1], out);
  }
  if constexpr (!kSame<I, none>) {
    Vec<I, V> out;
#pragma unroll
    for (int i = 0; i < V; ++i) out.v[i] = I(position[i]);
    store_elements<TOGETHER>(a.index_in_workspace ? a.workspace : a.index.data, s.offset(a.index), a.index.strides[1],
                             out);
  }
}

}  // namespace tsr::dev
