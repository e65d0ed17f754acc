// SPDX-License-Identifier: Apache-2.0
// Each thread gathers what one element of dx, of V channels, receives: from all output elements whose
// window holds it, in their order.
#pragma once

#include "device/block.cuh"
#include "engines/cuda/resample/window.cuh"

namespace tsr::dev {

// Output elements [first, last] along one axis whose window may hold position i of x.
template <class N>
struct Readers {
  N first, last;
};
template <class N>
Readers<N> find_readers(const ResampleArgs& a, const ResampleAxis& axis, N i) {
  // With padding by the nearest element those at the border stand for all that is beyond it.
  bool low = a.pad == kPadEdge && i == 0, high = a.pad == kPadEdge && i == N(axis.x) - 1;
  const Line &f = axis.first, &e = axis.end;
  N from = (i + 1 + N(e.base)) * N(e.unit.value) - N(e.shift);
  N to = (i + 1 + N(f.base)) * N(f.unit.value) - N(f.shift) - 1;
  Readers<N> r{0, N(axis.y) - 1};
  if (!low && from > 0) r.first = divide(N(from + N(e.scale.value) - 1), e.scale);
  if (!high) {
    N last = to < 0 ? -1 : divide(to, f.scale);
    if (last < r.last) r.last = last;
  }
  return r;
}

// Taps of a window along one axis that read position i, counted within the window, and their joint weight.
template <class L, class N>
struct Share {
  N first, end;
  L weight;
};
template <class L, class N>
Share<L, N> find_share(const ResampleArgs& a, const ResampleAxis& axis, N o, N i) {
  Taps<N> t = find_taps(axis, o);
  bool edge = a.pad == kPadEdge && a.kind != kMeanExclude;
  N low = edge && i == 0 ? t.first : i, high = edge && i == N(axis.x) - 1 ? t.end : i + 1;
  low = low < t.first ? t.first : low;
  high = high > t.end ? t.end : high;
  Share<L, N> s{low - t.first, high - t.first, 0};
  if (high <= low) return s;
  switch (a.kind) {
    case kBilinear: {
      L fraction = L(t.rest) / L(axis.first.unit.value);
      for (N k = s.first; k < s.end; ++k) s.weight += k ? fraction : 1 - fraction;
      break;
    }
    case kMeanInclude:
      s.weight = L(high - low) / L(t.end - t.first);
      break;
    case kMeanExclude:
      s.weight = L(1) / L(count_inside(t, N(axis.x)));
      break;
    default:
      s.weight = 1;
  }
  return s;
}

// Does `position`, row-major in the window, name one of the taps?
template <class L, class N>
bool names(const ResampleArgs& a, i64 position, const Share<L, N>& z, const Share<L, N>& y, const Share<L, N>& x) {
  for (N d = z.first; d < z.end; ++d)
    for (N h = y.first; h < y.end; ++h) {
      i64 row = (d * N(a.axes[1].extent) + h) * N(a.axes[2].extent);
      if (position >= row + x.first && position < row + x.end) return true;
    }
  return false;
}

// I is `none` unless the maximum decides.
template <class L, class DY, class DX, class I, class N, int V, bool TOGETHER>
void resample_bwd(const ResampleArgs& a) {
  Spot<N> s = find_spot<N, V>(a, a.axes[1].x);
  if (!s.real) return;
  Readers<N> r[3];
#pragma unroll
  for (int d = 0; d < 3; ++d) r[d] = find_readers(a, a.axes[d], s.at[d]);
  L sum[V];
#pragma unroll
  for (int i = 0; i < V; ++i) sum[i] = 0;
  N plane = s.plane(a.y), index_plane = s.plane(a.index);
  for (N oz = r[0].first; oz <= r[0].last; ++oz) {
    Share<L, N> z = find_share<L>(a, a.axes[0], oz, s.at[0]);
    for (N oy = r[1].first; oy <= r[1].last; ++oy) {
      Share<L, N> y = find_share<L>(a, a.axes[1], oy, s.at[1]);
      for (N ox = r[2].first; ox <= r[2].last; ++ox) {
        Share<L, N> x = find_share<L>(a, a.axes[2], ox, s.at[2]);
        L weight = z.weight * y.weight * x.weight;
        if (weight == L(0)) continue;
        Elements<L, DY, V> dy;
        dy.template load<TOGETHER>(elements(a.y),
                                   plane + oz * N(a.y.strides[2]) + oy * N(a.y.strides[3]) + ox * N(a.y.strides[4]),
                                   a.y.strides[1]);
        weight *= L(a.alpha);
        if constexpr (kSame<I, none>) {
#pragma unroll
          for (int i = 0; i < V; ++i) sum[i] += weight * dy.lane(i);
        } else {
          Elements<i64, I, V> at;
          const void* positions = a.index_in_workspace ? a.workspace : elements(a.index);
          N place = index_plane + oz * N(a.index.strides[2]) + oy * N(a.index.strides[3]) + ox * N(a.index.strides[4]);
          at.template load<TOGETHER>(positions, place, a.index.strides[1]);
#pragma unroll
          for (int i = 0; i < V; ++i)
            if (names(a, at.lane(i), z, y, x)) sum[i] += weight * dy.lane(i);
        }
      }
    }
  }
  Vec<DX, V> out;
#pragma unroll
  for (int i = 0; i < V; ++i) out.v[i] = from_lane<DX>(sum[i]);
  store_elements<TOGETHER>(a.x.data, s.offset(a.x), a.x.strides[1], out);
}

}  // namespace tsr::dev
