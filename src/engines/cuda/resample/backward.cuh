// SPDX-License-Identifier: Apache-2.0
// Each thread gathers what one element of dx, of V neighbouring channels, receives: from all output elements whose
// window holds it, in their order.
#pragma once

#include "device/block.cuh"
#include "engines/cuda/resample/window.cuh"

namespace tsr::dev {

// Output elements [first, last] along one axis whose window may hold position i of x.
struct Readers {
  i64 first, last;
};
inline Readers find_readers(const ResampleArgs& a, const ResampleAxis& axis, i64 i) {
  // With padding by the nearest element those at the border stand for all that is beyond it.
  bool low = a.pad == kPadEdge && i == 0, high = a.pad == kPadEdge && i == axis.x - 1;
  const Line &f = axis.first, &e = axis.end;
  i64 from = (i + 1 + e.base) * e.unit.value - e.shift, to = (i + 1 + f.base) * f.unit.value - f.shift - 1;
  Readers r{0, axis.y - 1};
  if (!low && from > 0) r.first = quotient(from + e.scale.value - 1, e.scale, a.small);
  if (!high) {
    i64 last = to < 0 ? -1 : quotient(to, f.scale, a.small);
    if (last < r.last) r.last = last;
  }
  return r;
}

// Taps of a window along one axis that read position i, counted within the window, and their joint weight.
template <class L>
struct Share {
  i64 first, end;
  L weight;
};
template <class L>
Share<L> find_share(const ResampleArgs& a, const ResampleAxis& axis, i64 o, i64 i) {
  Taps t = find_taps(axis, o, a.small);
  bool edge = a.pad == kPadEdge && a.kind != kMeanExclude;
  i64 low = edge && i == 0 ? t.first : i, high = edge && i == axis.x - 1 ? t.end : i + 1;
  low = low < t.first ? t.first : low;
  high = high > t.end ? t.end : high;
  Share<L> s{low - t.first, high - t.first, 0};
  if (high <= low) return s;
  switch (a.kind) {
    case kBilinear: {
      L fraction = L(t.rest) / L(axis.first.unit.value);
      for (i64 k = s.first; k < s.end; ++k) s.weight += k ? fraction : 1 - fraction;
      break;
    }
    case kMeanInclude:
      s.weight = L(high - low) / L(t.end - t.first);
      break;
    case kMeanExclude:
      s.weight = L(1) / L(count_inside(t, axis.x));
      break;
    default:
      s.weight = 1;
  }
  return s;
}

// Does `position`, row-major in the window, name one of the taps?
template <class L>
bool names(const ResampleArgs& a, i64 position, const Share<L>& z, const Share<L>& y, const Share<L>& x) {
  for (i64 d = z.first; d < z.end; ++d)
    for (i64 h = y.first; h < y.end; ++h)
      for (i64 w = x.first; w < x.end; ++w)
        if ((d * a.axes[1].extent + h) * a.axes[2].extent + w == position) return true;
  return false;
}

// I is `none` unless the maximum decides.
template <class L, class DY, class DX, class I, int V>
void resample_bwd(const ResampleArgs& a) {
  Spot s = find_spot<V>(a, a.axes[1].x);
  if (!s.real) return;
  Readers r[3];
#pragma unroll
  for (int d = 0; d < 3; ++d) r[d] = find_readers(a, a.axes[d], s.at[d]);
  L sum[V];
#pragma unroll
  for (int i = 0; i < V; ++i) sum[i] = 0;
  i64 plane = offset_of(a.y, s), index_plane = offset_of(a.index, s);
  for (i64 oz = r[0].first; oz <= r[0].last; ++oz) {
    Share<L> z = find_share<L>(a, a.axes[0], oz, s.at[0]);
    for (i64 oy = r[1].first; oy <= r[1].last; ++oy) {
      Share<L> y = find_share<L>(a, a.axes[1], oy, s.at[1]);
      for (i64 ox = r[2].first; ox <= r[2].last; ++ox) {
        Share<L> x = find_share<L>(a, a.axes[2], ox, s.at[2]);
        L weight = z.weight * y.weight * x.weight;
        if (weight == L(0)) continue;
        Elements<L, DY, V> dy;
        dy.load(a.y, plane + oz * a.y.strides[2] + oy * a.y.strides[3] + ox * a.y.strides[4]);
        weight *= L(a.alpha);
        if constexpr (kSame<I, none>) {
#pragma unroll
          for (int i = 0; i < V; ++i) sum[i] += weight * dy.lane(i);
        } else {
          Vec<I, V> at;
          const void* positions = a.index_in_workspace ? a.workspace : elements(a.index);
          i64 place = index_plane + oz * a.index.strides[2] + oy * a.index.strides[3] + ox * a.index.strides[4];
          load_vector(static_cast<const I*>(positions) + place, at);
#pragma unroll
          for (int i = 0; i < V; ++i)
            if (names(a, i64(at.v[i]), z, y, x)) sum[i] += weight * dy.lane(i);
        }
      }
    }
  }
  Vec<DX, V> out;
#pragma unroll
  for (int i = 0; i < V; ++i) out.v[i] = from_lane<DX>(sum[i]);
  i64 at = offset_of(a.x, s) + s.at[0] * a.x.strides[2] + s.at[1] * a.x.strides[3] + s.at[2] * a.x.strides[4];
  store_vector(static_cast<DX*>(a.x.data) + at, out);
}

}  // namespace tsr::dev
