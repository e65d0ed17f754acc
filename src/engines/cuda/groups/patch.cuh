// SPDX-License-Identifier: Apache-2.0
// Patches of pictures in shared memory: CHUNKS times 16 bytes of channels at each of ROWS x COLUMNS positions. What
// lies beside the picture is 0.
#pragma once

#include "device/block.cuh"
#include "device/epilogue.cuh"
#include "device/ptx/pieces.cuh"
#include "engines/cuda/groups/args.cuh"

namespace tsr::dev {

// Where a block works.
struct GroupsPlace {
  i32 image, row, column;  // of the result
  i32 channel;

  // Neighbouring blocks take neighbouring channels of the same positions.
  template <class S>
  static GroupsPlace at(const GroupsArgs& g, u32 index) {
    GroupsPlace p;
    u32 patch = index / u32(g.tiles), line = patch / u32(g.across);
    p.channel = i32(index - patch * u32(g.tiles)) * S::kChannels;
    p.column = i32(patch - line * u32(g.across)) * S::kColumns;
    p.image = i32(line / u32(g.down));
    p.row = i32(line - u32(p.image) * u32(g.down)) * S::kRows;
    return p;
  }
};

template <class T, int CHUNKS, int ROWS, int COLUMNS, int THREADS>
struct Patch {
  static constexpr int kElements = 16 / int(sizeof(T));
  // Neighbouring positions begin in different banks.
  static constexpr int kPitch = CHUNKS * 16 + 16, kBytes = ROWS * COLUMNS * kPitch;

  static constexpr int at(int row, int column) { return (row * COLUMNS + column) * kPitch; }

  // Asks for the patch; the thread's own part comes with its pieces.
  static void load(char* to, const GroupsPictures& p, const GroupsPlace& place, i32 row, i32 column, i32 channels) {
    constexpr int kPieces = ROWS * COLUMNS * CHUNKS;
    const T* image = static_cast<const T*>(p.data) + place.image * p.image + place.channel;
#pragma unroll 4
    for (int i = int(threadIdx.x); i < kPieces; i += THREADS) {
      int chunk = i % CHUNKS, position = i / CHUNKS, r = row + position / COLUMNS, c = column + position % COLUMNS;
      bool inside = u32(r) < u32(p.rows) && u32(c) < u32(p.columns) && place.channel + chunk * kElements < channels;
      const T* from = inside ? image + r * p.row + c * p.column + chunk * kElements : image;
      piece_load<16>(to + position * kPitch + chunk * 16, from, inside ? 16 : 0);
    }
  }
};

// PATCH_ROWS x PATCH_COLUMNS positions of the result, CHUNKS times 16 bytes of channels, and what windows meet there.
template <class T, int CHUNKS, int PATCH_ROWS, int PATCH_COLUMNS, int TAP_ROWS, int TAP_COLUMNS, int STRIDE_ROW,
          int STRIDE_COLUMN, int THREADS>
struct GroupsShape {
  using Type = T;
  static constexpr int kChunks = CHUNKS, kChannels = CHUNKS * 16 / int(sizeof(T)), kThreads = THREADS;
  static constexpr int kRows = PATCH_ROWS, kColumns = PATCH_COLUMNS, kPositions = PATCH_ROWS * PATCH_COLUMNS;
  static constexpr int kTapRows = TAP_ROWS, kTapColumns = TAP_COLUMNS, kTaps = TAP_ROWS * TAP_COLUMNS;
  static constexpr int kStrideRow = STRIDE_ROW, kStrideColumn = STRIDE_COLUMN;
  using Pictures = Patch<T, CHUNKS, (PATCH_ROWS - 1) * STRIDE_ROW + TAP_ROWS,
                         (PATCH_COLUMNS - 1) * STRIDE_COLUMN + TAP_COLUMNS, THREADS>;
  using Gradient = Patch<T, CHUNKS, PATCH_ROWS, PATCH_COLUMNS, THREADS>;

  static void load_pictures(const GroupsArgs& g, const GroupsPlace& p, char* to) {
    Pictures::load(to, g.pictures, p, p.row * STRIDE_ROW + g.first_row, p.column * STRIDE_COLUMN + g.first_column,
                   g.channels);
  }
};

// Where the filter has a tap.
template <class S>
i64 filter_tap(const GroupsArgs& g, int row, int column) {
  return (g.turned_row ? S::kTapRows - 1 - row : row) * g.filter_row +
         (g.turned_column ? S::kTapColumns - 1 - column : column) * g.filter_column;
}

// V values of one position and neighbouring channels.
template <class C, int V>
void finish_position(const GroupsArgs& g, const typename C::Rows& r, const GroupsPlace& p, int row, int column,
                     int channel, const float (&values)[V]) {
  if (p.row + row >= g.gradient.rows || p.column + column >= g.gradient.columns || p.channel + channel >= g.channels)
    return;
  i64 at[C::kOperands + 1];
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) {
    const i64* s = g.epilogue.operands[k].strides;
    at[k] = p.image * s[0] + (p.channel + channel) * s[1] + (p.row + row) * s[2] + (p.column + column) * s[3];
  }
  finish_values<C, V>(g.epilogue, at, r, values);
}

// --- gradient of the filter
// The patches of a block: every `shares`-th, of one tile of channels. PARTS blocks take the same ones.
template <class S, int PARTS>
struct Share {
  const GroupsArgs& g;
  u32 tile, number, patches;
  explicit Share(const GroupsArgs& args)
      : g(args),
        tile(blockIdx.x / PARTS % u32(args.tiles)),
        number(blockIdx.x / PARTS / u32(args.tiles)),
        patches(u32(args.images) * u32(args.down) * u32(args.across)) {}
  GroupsPlace place(u32 patch) const { return GroupsPlace::at<S>(g, patch * u32(g.tiles) + tile); }
};

// Adds what the shares have of the sums: a block adds 32 of them, each by eight threads. SIZE: channels of a group.
template <template <int> class Code, class S, int SIZE>
void join_shares(const GroupsArgs& g) {
  using C = Code<1>;
  constexpr u32 kSums = 32, kGroups = 8;
  auto& sums = *reinterpret_cast<float(*)[kGroups][kSums]>(shared_memory());
  u32 lane = threadIdx.x % kSums, group = threadIdx.x / kSums, index = blockIdx.x * kSums + lane,
      all = u32(g.channels) * S::kTaps * SIZE;
  float sum = 0;
  if (index < all)
    for (u32 s = group; s < u32(g.shares); s += kGroups) sum += g.parts[i64(s) * all + index];
  sums[group][lane] = sum;
  __syncthreads();
  if (group > 0 || index >= all) return;
#pragma unroll
  for (u32 i = 1; i < kGroups; ++i) sum += sums[i][lane];
  u32 line = index / SIZE, channel = index - line * SIZE, filter = line / S::kTaps, tap = line - filter * S::kTaps,
      row = tap / S::kTapColumns, column = tap - row * S::kTapColumns;
  if (g.turned_row) row = S::kTapRows - 1 - row;
  if (g.turned_column) column = S::kTapColumns - 1 - column;
  i64 at[C::kOperands + 1];
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) {
    const i64* s = g.epilogue.operands[k].strides;
    at[k] = filter * s[0] + channel * s[1] + row * s[2] + column * s[3];
  }
  float value[1] = {sum};
  finish_values<C, 1>(g.epilogue, at, known_to_all<C>(g.epilogue), value);
}

}  // namespace tsr::dev
