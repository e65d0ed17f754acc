// SPDX-License-Identifier: Apache-2.0
// Spatial transformers: grids from affine maps, and images sampled at the places of a grid.
#pragma once

#include "device/block.cuh"
#include "device/cut.cuh"
#include "device/elements.cuh"
#include "engines/cuda/special/sampling_args.cuh"

namespace tsr::dev {

// A place of the grid, or a pixel.
struct Point {
  i64 at[3];
  i64 offset(const Operand& o, int first) const {
    return at[0] * o.strides[first] + at[1] * o.strides[first + 1] + at[2] * o.strides[first + 2];
  }
};
inline Point find_point(i64 index, const Divisor (&sizes)[3]) {
  Point p;
#pragma unroll
  for (int d = 2; d >= 0; --d) p.at[d] = cut(index, sizes[d]);
  return p;
}

// The cell of the image that a place falls into. Its corners are numbered by bits: bit d is set at the upper side of
// axis d.
template <class L>
struct Cell {
  bool exists = true;
  i64 low[3];
  L fraction[3], half[3];

  // The corner's pixel; false where it is outside.
  bool corner(const SamplingArgs& a, int bits, Point& p) const {
    bool in = exists;
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      p.at[d] = low[d] + (bits >> d & 1);
      in = in && p.at[d] >= 0 && p.at[d] < a.image[d];
    }
    return in;
  }
  L weight(int bits) const {
    L w = 1;
#pragma unroll
    for (int d = 0; d < 3; ++d) w *= bits >> d & 1 ? fraction[d] : 1 - fraction[d];
    return w;
  }
  // Of the weight, by the coordinate of axis `by`.
  L slope(int bits, int by) const {
    L w = 1;
#pragma unroll
    for (int d = 0; d < 3; ++d) {
      bool up = bits >> d & 1;
      w *= d == by ? (up ? half[d] : -half[d]) : (up ? fraction[d] : 1 - fraction[d]);
    }
    return w;
  }
};

template <class L, class G>
Cell<L> find_cell(const SamplingArgs& a, i64 n, const Point& place) {
  Cell<L> c;
  i64 at = n * a.grid.strides[0] + place.offset(a.grid, 1);
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    c.low[d] = 0;
    c.fraction[d] = c.half[d] = 0;
    if (d < 3 - a.spatial) continue;
    // The last axis comes first.
    L coordinate = read<L, G>(a.grid, at + (2 - d) * a.grid.strides[4]);
    c.half[d] = L(a.image[d] - 1) / 2;
    L p = (coordinate + 1) * c.half[d];
    // Written so that a NaN counts as outside.
    if (!(p > L(-1) && p < L(a.image[d]))) {
      c.exists = false;
      continue;
    }
    L low = kSame<L, float> ? L(floorf(float(p))) : L(floor(double(p)));
    c.low[d] = i64(low);
    c.fraction[d] = p - low;
  }
  return c;
}

template <class L, class X, class G, class Y>
void grid_sample(const SamplingArgs& a) {
  i64 rest = i64(blockIdx.x) * blockDim.x + threadIdx.x, c, place;
  if (rest >= a.batch * a.channels * a.all_places) return;
  if (a.channels_last) {
    c = cut(rest, a.channel_count);
    place = cut(rest, a.place_count);
  } else {
    place = cut(rest, a.place_count);
    c = cut(rest, a.channel_count);
  }
  Point at = find_point(place, a.places);
  Cell<L> cell = find_cell<L, G>(a, rest, at);
  L sum = 0;
#pragma unroll
  for (int bits = 0; bits < 8; ++bits) {
    Point p;
    if (cell.corner(a, bits, p))
      sum += cell.weight(bits) * read<L, X>(a.x, rest * a.x.strides[0] + c * a.x.strides[1] + p.offset(a.x, 2));
  }
  write<Y>(a.y, rest * a.y.strides[0] + c * a.y.strides[1] + at.offset(a.y, 2), sum);
}

// dx: a block owns a piece of the image of a few channels. It looks at all places of the grid in their order, lists
// those that touch the piece, and adds what they give; each of its threads owns a channel and every fourth pixel.
template <class L, class G, class DY, class DX>
void grid_sample_dx(const SamplingArgs& a) {
  constexpr int kGroups = kPieceThreads / kPieceChannels, kWarps = kPieceThreads / 32;
  L* sums = reinterpret_cast<L*>(shared_memory());  // [pixel][channel]
  i64* list = reinterpret_cast<i64*>(sums + kPiecePixels * kPieceChannels);
  int* counts = reinterpret_cast<int*>(list + kPieceThreads);
  i64 block = blockIdx.x, piece = block % a.pieces;
  block /= a.pieces;
  i64 first_channel = block % a.channel_pieces * kPieceChannels, n = block / a.channel_pieces;
  i64 first = piece * kPiecePixels;
  int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  int channel = thread % kPieceChannels, group = thread / kPieceChannels;
  bool works = first_channel + channel < a.channels;
  for (int i = thread; i < kPiecePixels * kPieceChannels; i += kPieceThreads) sums[i] = 0;
  __syncthreads();  // other threads own them from now on
  for (i64 base = 0; base < a.all_places; base += kPieceThreads) {
    bool touches = false;
    if (base + thread < a.all_places) {
      Cell<L> cell = find_cell<L, G>(a, n, find_point(base + thread, a.places));
      for (int bits = 0; bits < 8; ++bits) {
        Point p;
        if (!cell.corner(a, bits, p)) continue;
        i64 pixel = (p.at[0] * a.image[1] + p.at[1]) * a.image[2] + p.at[2] - first;
        touches = touches || (pixel >= 0 && pixel < kPiecePixels);
      }
    }
    unsigned hits = __ballot_sync(0xffffffffu, touches);
    if (lane == 0) counts[warp] = __popc(hits);
    __syncthreads();
    int before = 0, total = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) before += counts[w];
      total += counts[w];
    }
    if (touches) list[before + __popc(hits & ((1u << lane) - 1))] = base + thread;
    __syncthreads();
    for (int k = 0; k < total; ++k) {
      Point place = find_point(list[k], a.places);
      Cell<L> cell = find_cell<L, G>(a, n, place);
      if (!works) continue;
      L d = read<L, DY>(a.y, n * a.y.strides[0] + (first_channel + channel) * a.y.strides[1] + place.offset(a.y, 2));
      for (int bits = 0; bits < 8; ++bits) {
        Point p;
        if (!cell.corner(a, bits, p)) continue;
        i64 pixel = (p.at[0] * a.image[1] + p.at[1]) * a.image[2] + p.at[2] - first;
        if (pixel >= 0 && pixel < kPiecePixels && pixel % kGroups == group)
          sums[pixel * kPieceChannels + channel] += cell.weight(bits) * d;
      }
    }
    __syncthreads();  // the list is used again
  }
  for (int i = group; i < kPiecePixels; i += kGroups) {
    if (!works || first + i >= a.all_pixels) continue;
    Point p = find_point(first + i, a.pixels);
    write<DX>(a.dx, n * a.dx.strides[0] + (first_channel + channel) * a.dx.strides[1] + p.offset(a.dx, 2),
              sums[i * kPieceChannels + channel]);
  }
}

template <class L, class X, class G, class DY, class DG>
void grid_sample_dgrid(const SamplingArgs& a) {
  i64 rest = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (rest >= a.batch * a.all_places) return;
  Point place = find_point(cut(rest, a.place_count), a.places);
  Cell<L> cell = find_cell<L, G>(a, rest, place);
  L sum[3] = {0, 0, 0};
  for (i64 c = 0; c < a.channels && cell.exists; ++c) {
    L d = read<L, DY>(a.y, rest * a.y.strides[0] + c * a.y.strides[1] + place.offset(a.y, 2));
    for (int bits = 0; bits < 8; ++bits) {
      Point p;
      if (!cell.corner(a, bits, p)) continue;
      L v = read<L, X>(a.x, rest * a.x.strides[0] + c * a.x.strides[1] + p.offset(a.x, 2));
#pragma unroll
      for (int axis = 0; axis < 3; ++axis) sum[axis] += cell.slope(bits, axis) * v * d;
    }
  }
  i64 at = rest * a.dgrid.strides[0] + place.offset(a.dgrid, 1);
#pragma unroll
  for (int axis = 0; axis < 3; ++axis)
    if (axis >= 3 - a.spatial) write<DG>(a.dgrid, at + (2 - axis) * a.dgrid.strides[4], sum[axis]);
}

// Coordinate j of a place of the regular grid over [-1, 1]: last axis first, then 1.
template <class L>
L regular(const SamplingArgs& a, const Point& place, int j) {
  L u = 1;
#pragma unroll
  for (int d = 0; d < 3; ++d)
    if (j < a.spatial && d == 2 - j) {
      i64 size = a.places[d].value;
      u = size > 1 ? -1 + 2 * L(place.at[d]) / L(size - 1) : L(0);
    }
  return u;
}

template <class L, class T, class G>
void affine_grid(const SamplingArgs& a) {
  i64 rest = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (rest >= a.batch * a.all_places) return;
  Point place = find_point(cut(rest, a.place_count), a.places);
  for (int k = 0; k < a.spatial; ++k) {
    L sum = 0;
    for (int j = 0; j <= a.spatial; ++j)
      sum += read<L, T>(a.theta, rest * a.theta.strides[0] + k * a.theta.strides[1] + j * a.theta.strides[2]) *
             regular<L>(a, place, j);
    write<G>(a.grid, rest * a.grid.strides[0] + place.offset(a.grid, 1) + k * a.grid.strides[4], sum);
  }
}

// A block sums one element of dtheta.
template <class L, class G, class T, int THREADS>
void affine_grid_bwd(const SamplingArgs& a) {
  int j = int(blockIdx.x % (a.spatial + 1)), k = int(blockIdx.x / (a.spatial + 1) % a.spatial);
  i64 n = blockIdx.x / (a.spatial + 1) / a.spatial;
  L sum = 0;
  for (i64 i = threadIdx.x; i < a.all_places; i += THREADS) {
    Point place = find_point(i, a.places);
    i64 at = n * a.grid.strides[0] + place.offset(a.grid, 1) + k * a.grid.strides[4];
    sum += read<L, G>(a.grid, at) * regular<L>(a, place, j);
  }
  sum = group_reduce<Add, THREADS>(sum, reinterpret_cast<L*>(shared_memory()));
  if (threadIdx.x == 0)
    write<T>(a.theta, n * a.theta.strides[0] + k * a.theta.strides[1] + j * a.theta.strides[2], sum);
}

}  // namespace tsr::dev
