// SPDX-License-Identifier: Apache-2.0
// Convolutions that keep channels apart, on CUDA cores: a thread has 4 channels of WIDE neighbouring columns, those of
// all residues, in a row.
#pragma once

#include "device/pointwise.cuh"
#include "device/random.cuh"
#include "engines/cuda/groups/patch.cuh"

namespace tsr::dev {

template <class S, int WIDE>
struct Strips {
  static constexpr int kVector = 4, kLanes = S::kChannels / kVector, kStrips = S::kColumns / WIDE;
  static_assert(S::kColumns % WIDE == 0 && S::kThreads == kLanes * kStrips * S::kRows * S::kDown.spread);
  static constexpr int kPitch = S::Pictures::kPitch, kBytes = kVector * int(sizeof(typename S::Type));
  static constexpr int kReach = S::kAcross.met(WIDE);  // columns that a strip meets
  static constexpr int kResults = WIDE * S::kAcross.spread;

  int lane, row, column;  // of those with the same residues
  int residue;            // of the row: warps have one mostly, and the same number of taps
  Strips() : lane(threadIdx.x % kLanes), column(threadIdx.x / kLanes % kStrips * WIDE) {
    int number = int(threadIdx.x) / kLanes / kStrips;
    residue = S::kDown.spread > 1 ? number / S::kRows : 0;
    row = number - residue * S::kRows;
  }

  static void read(const char* from, float (&to)[kVector]) {
    Vec<typename S::Type, kVector> x;
    load_vector(reinterpret_cast<const typename S::Type*>(from), x);
    unpack(x, to);
  }
  // Calls visit(value, output, tap) for what the strip's outputs meet `down` rows below the first that any tap meets.
  template <class F>
  void walk(const char* patch, int down, const F& visit) const {
    const char* from =
        patch + S::Pictures::at(row * S::kDown.stride + down, column * S::kAcross.stride) + lane * kBytes;
#pragma unroll
    for (int i = 0; i < kReach; ++i) {
      float x[kVector];
      read(from + i * kPitch, x);
#pragma unroll
      for (int o = 0; o < kResults; ++o)
        if (int tap = i * S::kAcross.spread - o * S::kAcross.stride - S::kAcross.phase;
            tap >= 0 && tap < S::kTapColumns)
          visit(x, o, tap);
    }
  }
};

template <template <int> class Code, class S, int WIDE>
void depthwise(const GroupsArgs& g) {
  using P = Strips<S, WIDE>;
  constexpr int kV = P::kVector;
  using C = Code<kV>;
  char* patch = shared_memory();
  auto* filter = reinterpret_cast<float*>(patch + S::Pictures::kBytes);  // [tap][channel]
  GroupsPlace place = GroupsPlace::at<S>(g, blockIdx.x);
  P strip;
  float sum[P::kResults][kV] = {};
  each_plane<S>(g, place, [&](int plane, i64 where) {
    S::load_pictures(g, place, patch, plane);
    pieces_commit();
    const auto* from = static_cast<const typename S::Type*>(g.filter) + place.channel * g.filter_group + where;
    for (int i = int(threadIdx.x); i < S::kTaps * S::kChannels; i += S::kThreads) {
      int tap = i / S::kChannels, channel = i % S::kChannels;
      i64 at = channel * g.filter_group + filter_tap<S>(g, tap / S::kTapColumns, tap % S::kTapColumns);
      filter[i] = place.channel + channel < g.channels ? to_lane<float>(from[at]) : 0.0f;
    }
    pieces_wait<0>();
    __syncthreads();
    int first = S::kDown.first_tap(strip.residue), skipped = S::kDown.skipped(strip.residue);
#pragma unroll(S::kTaps > 49 ? 1 : S::kTapRows)
    for (int i = 0; i * S::kDown.spread < S::kTapRows; ++i) {
      int r = first + i * S::kDown.spread;
      if (r >= S::kTapRows) break;
      float taps[S::kTapColumns][kV];
#pragma unroll
      for (int c = 0; c < S::kTapColumns; ++c) {
        const float* f = filter + (r * S::kTapColumns + c) * S::kChannels + strip.lane * kV;
#pragma unroll
        for (int v = 0; v < kV; ++v) taps[c][v] = f[v];
      }
      strip.walk(patch, skipped + i, [&](const float(&x)[kV], int o, int tap) {
#pragma unroll
        for (int v = 0; v < kV; ++v) sum[o][v] += x[v] * taps[tap][v];
      });
    }
  });
  typename C::Rows known = known_to_all<C>(g.epilogue);
  typename C::Partial part = nothing_yet<C>();
#pragma unroll
  for (int o = 0; o < P::kResults; ++o)
    finish_position<C, kV>(g, known, place, strip.row * S::kDown.spread + strip.residue,
                           strip.column * S::kAcross.spread + o, strip.lane * kV, sum[o], part);
  if constexpr (C::kStages > 0) leave_part<C, S, P::kLanes, kV>(g, place, part);
}

// Gradient of the filter: sums over a share of all patches, of TAP_ROWS rows of taps.
template <class S, int WIDE, int TAP_ROWS>
void depthwise_filter(const GroupsArgs& g) {
  using P = Strips<S, WIDE>;
  constexpr int kV = P::kVector, kParts = (S::kTapRows + TAP_ROWS - 1) / TAP_ROWS;
  char *patch = shared_memory(), *gradient = patch + S::Pictures::kBytes;
  Share<S, kParts> share(g);
  int first = int(blockIdx.x % kParts) * TAP_ROWS;
  P strip;
  float sum[TAP_ROWS][S::kTapColumns][kV] = {};
#pragma unroll 1
  for (u32 i = share.number; i < share.patches; i += u32(g.shares)) {
    GroupsPlace place = share.place(i);
    __syncthreads();  // the patch before it was read
    share.load(place, patch, gradient);
    pieces_commit();
    pieces_wait<0>();
    __syncthreads();
    // Where there is no result the pictures may have anything.
    int there = place.row + strip.row < g.gradient.rows ? g.gradient.columns - place.column - strip.column : 0;
    if (there <= 0) continue;
    float dy[WIDE][kV];
#pragma unroll
    for (int o = 0; o < WIDE; ++o)
      P::read(gradient + S::Gradient::at(strip.row, strip.column + o) + strip.lane * P::kBytes, dy[o]);
#pragma unroll
    for (int r = 0; r < TAP_ROWS; ++r) {
      if (first + r >= S::kTapRows) break;
      strip.walk(patch, first + r, [&](const float(&x)[kV], int o, int tap) {
        if (o >= there) return;
#pragma unroll
        for (int v = 0; v < kV; ++v) sum[r][tap][v] += x[v] * dy[o][v];
      });
    }
  }
  // Strips of the same channels add their sums, a row of taps at a time.
  constexpr int kStrips = S::kThreads / P::kLanes, kRow = S::kTapColumns * S::kChannels;
  auto* rows = reinterpret_cast<float*>(shared_memory());  // [strip][tap][channel]
  int channels = share.place(0).channel;
#pragma unroll
  for (int r = 0; r < TAP_ROWS; ++r) {
    __syncthreads();
#pragma unroll
    for (int c = 0; c < S::kTapColumns; ++c)
#pragma unroll
      for (int v = 0; v < kV; ++v)
        rows[int(threadIdx.x) / P::kLanes * kRow + c * S::kChannels + strip.lane * kV + v] = sum[r][c][v];
    __syncthreads();
    for (int i = int(threadIdx.x); i < kRow && first + r < S::kTapRows; i += S::kThreads) {
      float all = 0;
#pragma unroll
      for (int s = 0; s < kStrips; ++s) all += rows[s * kRow + i];
      int channel = channels + i % S::kChannels, tap = (first + r) * S::kTapColumns + i / S::kChannels;
      if (channel < g.channels) g.parts[share.sums(channel) + tap] = all;
    }
  }
}

}  // namespace tsr::dev
