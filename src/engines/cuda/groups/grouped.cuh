// SPDX-License-Identifier: Apache-2.0
// Convolutions in groups of SIZE channels, a multiple of 8, on tensor cores (mma.sync): a warp has 8 channels of the
// result, and of the pictures those 8 channels at a time that their group has, at one tap: a half of what a product
// sums. The halves are those of the first tap, then those of the second ...
#pragma once

#include "device/pointwise.cuh"
#include "device/ptx/matrix.cuh"
#include "device/ptx/mma.cuh"
#include "device/random.cuh"
#include "engines/cuda/groups/patch.cuh"

namespace tsr::dev {

template <class S, int SIZE>
struct Halves {
  static_assert(sizeof(typename S::Type) == 2 && SIZE % 8 == 0 && S::kChannels % SIZE == 0);
  static_assert(S::kThreads == S::kChunks * 32);
  static constexpr int kOfTap = SIZE / 8, kCount = S::kTaps * kOfTap, kProducts = (kCount + 1) / 2;
  static constexpr int kTiles = (S::kPositions + 15) / 16;  // of 16 positions

  static constexpr int tap(int half) { return half / kOfTap; }
  static constexpr int channel(int half) { return half % kOfTap * 8; }
  // From the place of a position with the group's first channel in a patch of pictures.
  static constexpr int offset(int half) {
    return S::Pictures::at(tap(half) / S::kTapColumns, tap(half) % S::kTapColumns) + channel(half) * 2;
  }
  // The group's first channel in the tile, for the warp's channels.
  static int group_start(int warp) { return warp * 8 / SIZE * SIZE; }
  static int picture_place(int position) {
    return S::Pictures::at(position / S::kColumns * S::kStrideRow, position % S::kColumns * S::kStrideColumn);
  }
};

template <template <int> class Code, class S, int SIZE>
void grouped(const GroupsArgs& g) {
  using T = typename S::Type;
  using H = Halves<S, SIZE>;
  char* patch = shared_memory();
  GroupsPlace place = GroupsPlace::at<S>(g, blockIdx.x);
  S::load_pictures(g, place, patch);
  pieces_commit();
  int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, start = H::group_start(warp);
  // The lane's column of the filter: a channel of the result.
  int out = warp * 8 + lane / 4;
  bool there = place.channel + out < g.channels;
  const T* filter =
      static_cast<const T*>(g.filter) + (place.channel + start) / SIZE * g.filter_group + (out - start) * g.filter_out;
  auto weight = [&](int half, int e) {
    if (half >= H::kCount || !there) return u32(0);
    int tap = H::tap(half), k = H::channel(half) + 2 * (lane % 4) + e;
    T w = filter[k * g.filter_in + filter_tap<S>(g, tap / S::kTapColumns, tap % S::kTapColumns)];
    return u32(reinterpret_cast<const u16&>(w));
  };
  pieces_wait<0>();
  __syncthreads();
  // Lanes 8 m to 8 m + 7 name rows of matrix m: positions 0 or 8 on, of the first half or the second.
  int row = lane % 16, second = lane / 16;
  float sum[H::kTiles][4] = {};
  const char* rows[H::kTiles];
#pragma unroll
  for (int t = 0; t < H::kTiles; ++t) {
    int position = t * 16 + row;
    rows[t] = patch + H::picture_place(position < S::kPositions ? position : 0) + start * 2;
  }
#pragma unroll
  for (int p = 0; p < H::kProducts; ++p) {
    constexpr bool kOdd = H::kCount % 2 != 0;
    u32 b[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) b[h] = weight(2 * p + h, 0) | weight(2 * p + h, 1) << 16;
    int offset = H::offset(2 * p);
    bool alone = kOdd && p == H::kProducts - 1;
    if (second && !alone) offset = H::offset(2 * p + 1);
#pragma unroll
    for (int t = 0; t < H::kTiles; ++t) {
      u32 a[4];
      matrix_load(a, rows[t] + offset);
      if (alone) a[2] = a[3] = 0;  // whatever is there would count
      mma<T>(sum[t], a, b);
    }
  }
  // By way of shared memory to neighbouring channels of a position.
  __syncthreads();
  constexpr int kPitch = S::kChannels + 8, kV = 4, kLanes = S::kChannels / kV;
  auto* staged = reinterpret_cast<float*>(shared_memory());
#pragma unroll
  for (int t = 0; t < H::kTiles; ++t)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      staged[(t * 16 + lane / 4 + i / 2 * 8) * kPitch + warp * 8 + 2 * (lane % 4) + i % 2] = sum[t][i];
  __syncthreads();
  using C = Code<kV>;
  typename C::Rows known = known_to_all<C>(g.epilogue);
#pragma unroll 2
  for (int i = int(threadIdx.x); i < S::kPositions * kLanes; i += S::kThreads) {
    int position = i / kLanes, channel = i % kLanes * kV;
    float values[kV];
#pragma unroll
    for (int v = 0; v < kV; ++v) values[v] = staged[position * kPitch + channel + v];
    finish_position<C, kV>(g, known, place, position / S::kColumns, position % S::kColumns, channel, values);
  }
}

// Gradient of the filter: rows are two halves of the pictures' channels, columns channels of the result, and positions
// are summed over.
template <class S, int SIZE>
void grouped_filter(const GroupsArgs& g) {
  using T = typename S::Type;
  using H = Halves<S, SIZE>;
  constexpr int kStage = S::Pictures::kBytes + S::Gradient::kBytes;
  char *stages = shared_memory(), *zeros = stages + 2 * kStage;
  int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, start = H::group_start(warp);
  if (threadIdx.x < 4) reinterpret_cast<u32*>(zeros)[threadIdx.x] = 0;
  float sum[H::kProducts][4] = {};
  auto load = [&](const GroupsPlace& p, int stage) {
    S::load_pictures(g, p, stages + stage * kStage);
    S::Gradient::load(stages + stage * kStage + S::Pictures::kBytes, g.gradient, p, p.row, p.column, g.channels);
  };
  auto add = [&](const GroupsPlace& p, const char* patch) {
    const char* gradient = patch + S::Pictures::kBytes;
#pragma unroll 1
    for (int t = 0; t < H::kTiles; ++t) {
      // Where there is no result the pictures may have anything: neither side counts.
      auto inside = [&](int position) {
        return position < S::kPositions && p.row + position / S::kColumns < g.gradient.rows &&
               p.column + position % S::kColumns < g.gradient.columns;
      };
      int position = t * 16 + lane % 16;
      u32 b[2];
      matrix_load<true>(b, inside(position) ? gradient + position * S::Gradient::kPitch + warp * 16 : zeros);
      // Lanes 8 m to 8 m + 7 name rows of matrix m: positions 0 or 8 on for m / 2, the first half or the second for m
      // % 2.
      position = t * 16 + lane / 16 * 8 + lane % 8;
      bool real = inside(position), second = lane / 8 % 2 != 0;
      const char* row = patch + (real ? H::picture_place(position) + start * 2 : 0);
#pragma unroll
      for (int k = 0; k < H::kProducts; ++k) {
        bool alone = 2 * k + 1 >= H::kCount;
        int offset = second && !alone ? H::offset(2 * k + 1) : H::offset(2 * k);
        u32 a[4];
        matrix_load<true>(a, real ? row + offset : zeros);
        mma<T>(sum[k], a, b);
      }
    }
  };
  Share<S, 1> share(g);
  load(share.place(share.number), 0);
  pieces_commit();
  int stage = 0;
#pragma unroll 1
  for (u32 i = share.number; i < share.patches; i += u32(g.shares)) {
    u32 next = i + u32(g.shares);
    if (next < share.patches) load(share.place(next), stage ^ 1);
    pieces_commit();
    pieces_wait<1>();
    __syncthreads();
    add(share.place(i), stages + stage * kStage);
    __syncthreads();
    stage ^= 1;
  }
  int channels = share.place(0).channel + warp * 8;
#pragma unroll
  for (int k = 0; k < H::kProducts; ++k)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      int half = 2 * k + i / 2, out = channels + 2 * (lane % 4) + i % 2;
      if (half >= H::kCount || out >= g.channels) continue;
      g.parts[((i64(share.number) * g.channels + out) * S::kTaps + H::tap(half)) * SIZE + H::channel(half) + lane / 4] =
          sum[k][i];
    }
}

}  // namespace tsr::dev
