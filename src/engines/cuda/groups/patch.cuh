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
  i32 plane = 0;           // where pictures have planes
  i32 channel;

  // Neighbouring blocks take neighbouring channels of the same positions.
  template <class S>
  static GroupsPlace at(const GroupsArgs& g, u32 index) {
    GroupsPlace p;
    u32 patch = index / u32(g.tiles), line = patch / u32(g.across);
    p.channel = i32(index - patch * u32(g.tiles)) * S::kChannels;
    p.column = i32(patch - line * u32(g.across)) * S::kColumns * S::kAcross.spread;
    p.image = i32(line / u32(g.down));
    p.row = i32(line - u32(p.image) * u32(g.down)) * S::kRows * S::kDown.spread;
    if constexpr (S::kDeep.taps > 1) {
      u32 image = u32(p.image) / u32(g.gradient.planes);
      p.plane = p.image - i32(image) * g.gradient.planes, p.image = i32(image);
    }
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
  static void load(char* to, const GroupsPictures& p, const GroupsPlace& place, i32 plane, i32 row, i32 column,
                   i32 channels) {
    static_assert(THREADS % CHUNKS == 0);  // a thread keeps its channels
    u32 chunk = threadIdx.x % CHUNKS;
    i32 channel = place.channel + i32(chunk) * kElements;
    bool there = channel < channels && u32(plane) < u32(p.planes);
    const T* image = static_cast<const T*>(p.data) + place.image * p.image + (there ? plane * p.plane + channel : 0);
    i32 rows = there ? p.rows : 0;
#pragma unroll 4
    for (u32 i = threadIdx.x / CHUNKS; i < ROWS * COLUMNS; i += THREADS / CHUNKS) {
      i32 r = row + i32(i / COLUMNS), c = column + i32(i % COLUMNS);
      bool inside = u32(r) < u32(rows) && u32(c) < u32(p.columns);
      const T* from = image + (inside ? i64(r) * p.row + i64(c) * p.column : 0);
      piece_load<16>(to + i * kPitch + chunk * 16, from, inside ? 16 : 0);
    }
  }
};

// PATCH_ROWS x PATCH_COLUMNS positions of the result with each pair of residues, CHUNKS times 16 bytes of channels, and
// what windows meet there.
template <class T, int CHUNKS, int PATCH_ROWS, int PATCH_COLUMNS, GroupsWindow DEEP, GroupsWindow DOWN,
          GroupsWindow ACROSS, int THREADS>
struct GroupsShape {
  using Type = T;
  static constexpr int kChunks = CHUNKS, kChannels = CHUNKS * 16 / int(sizeof(T)), kThreads = THREADS;
  static constexpr int kRows = PATCH_ROWS, kColumns = PATCH_COLUMNS, kPositions = PATCH_ROWS * PATCH_COLUMNS;
  static constexpr GroupsWindow kDeep = DEEP, kDown = DOWN, kAcross = ACROSS;
  static constexpr int kTapRows = DOWN.taps, kTapColumns = ACROSS.taps, kTaps = DOWN.taps * ACROSS.taps;
  static constexpr int kResidues = DOWN.spread * ACROSS.spread;
  using Pictures = Patch<T, CHUNKS, DOWN.met(PATCH_ROWS), ACROSS.met(PATCH_COLUMNS), THREADS>;
  using Gradient = Patch<T, CHUNKS, PATCH_ROWS, PATCH_COLUMNS, THREADS>;

  static void load_pictures(const GroupsArgs& g, const GroupsPlace& p, char* to, i32 plane = 0) {
    Pictures::load(to, g.pictures, p, plane, p.row / DOWN.spread * DOWN.stride + g.first_row,
                   p.column / ACROSS.spread * ACROSS.stride + g.first_column, g.channels);
  }
};

// Calls use(plane, where) for the planes of pictures that a plane of the result meets, and where the filter has its
// taps for them. What was read of the plane before it is not needed any more.
template <class S, class F>
void each_plane(const GroupsArgs& g, const GroupsPlace& p, const F& use) {
  constexpr GroupsWindow kDeep = S::kDeep;
  if constexpr (kDeep.taps == 1) return use(0, i64(0));
  int residue = p.plane % kDeep.spread,
      plane = p.plane / kDeep.spread * kDeep.stride + g.first_plane + kDeep.skipped(residue);
#pragma unroll 1
  for (int tap = kDeep.first_tap(residue); tap < kDeep.taps; tap += kDeep.spread, ++plane) {
    if (u32(plane) >= u32(g.pictures.planes)) continue;
    __syncthreads();
    use(plane, (g.turned_plane ? kDeep.taps - 1 - tap : tap) * g.filter_plane);
  }
}

// Where the filter has a tap.
template <class S>
i64 filter_tap(const GroupsArgs& g, int row, int column) {
  return (g.turned_row ? S::kTapRows - 1 - row : row) * g.filter_row +
         (g.turned_column ? S::kTapColumns - 1 - column : column) * g.filter_column;
}

// V values of one position and neighbouring channels; what is reduced of them is joined to `part`.
template <class C, int V>
void finish_position(const GroupsArgs& g, const typename C::Rows& r, const GroupsPlace& p, int row, int column,
                     int channel, const float (&values)[V], typename C::Partial& part) {
  if (p.row + row >= g.gradient.rows || p.column + column >= g.gradient.columns || p.channel + channel >= g.channels)
    return;
  i64 at[C::kOperands + 1];
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) {
    const i64* s = g.epilogue.operands[k].strides;
    at[k] = p.image * s[0] + (p.channel + channel) * s[1] + (p.row + row) * s[2] + (p.column + column) * s[3] +
            p.plane * s[4];
  }
  finish_values<C, V>(g.epilogue, at, r, values, part);
}

// What a block leaves of reductions over its positions. Thread t has V channels from V (t % LANES) on.
template <class C, class S, int LANES, int V>
void leave_part(const GroupsArgs& g, const GroupsPlace& p, const typename C::Partial& part) {
  auto& all = *reinterpret_cast<typename C::Partial(*)[S::kThreads]>(shared_memory());
  __syncthreads();  // what was there is read
  all[threadIdx.x] = part;
  __syncthreads();
  int channel = p.channel + int(threadIdx.x) * V;
  if (int(threadIdx.x) >= LANES || channel >= g.channels) return;
  typename C::Partial sum = all[threadIdx.x];
#pragma unroll 1
  for (int t = int(threadIdx.x) + LANES; t < S::kThreads; t += LANES) C::template join<0>(sum, all[t]);
  i64 patch = blockIdx.x / u32(g.tiles);
  static_cast<typename C::Partial*>(g.reduced.left)[patch * g.reduced.pieces + channel / V] = sum;
}

// The results of reductions.
template <class C, int V, bool LAST>
void reduce_patches(const GroupsArgs& g) {
  join_parts<C, 32, LAST>(g.epilogue, g.reduced, [&](i64, i64 piece, i64* at) {
    for (int k = 0; k < C::kOperands; ++k) at[k] = piece * V * g.epilogue.operands[k].strides[1];
  });
}

// --- gradient of the filter
// The patches of a block: every `shares`-th, of one tile of channels. PARTS blocks take the same ones for each plane of
// taps.
template <class S, int PARTS>
struct Share {
  const GroupsArgs& g;
  static constexpr u32 kBlocks = PARTS * S::kDeep.taps;
  u32 tile, number, patches;
  int deep;  // the plane of taps
  explicit Share(const GroupsArgs& args)
      : g(args),
        tile(blockIdx.x / kBlocks % u32(args.tiles)),
        number(blockIdx.x / kBlocks / u32(args.tiles)),
        patches(u32(args.images) * u32(args.gradient.planes) * u32(args.down) * u32(args.across)),
        deep(blockIdx.x / PARTS % S::kDeep.taps) {}
  GroupsPlace place(u32 patch) const { return GroupsPlace::at<S>(g, patch * u32(g.tiles) + tile); }
  void load(const GroupsPlace& p, char* pictures, char* gradient) const {
    S::load_pictures(g, p, pictures, p.plane * S::kDeep.stride + g.first_plane + deep);
    S::Gradient::load(gradient, g.gradient, p, p.plane, p.row, p.column, g.channels);
  }
  // Where the sums of a channel of results begin.
  i64 sums(int channel) const { return ((i64(number) * g.channels + channel) * S::kDeep.taps + deep) * S::kTaps; }
};

// Adds what the shares have of the sums: a block adds 32 of them, each by eight threads. SIZE: channels of a group.
template <template <int> class Code, class S, int SIZE>
void join_shares(const GroupsArgs& g) {
  using C = Code<1>;
  constexpr u32 kSums = 32, kGroups = 8;
  auto& sums = *reinterpret_cast<float(*)[kGroups][kSums]>(shared_memory());
  u32 lane = threadIdx.x % kSums, group = threadIdx.x / kSums, index = blockIdx.x * kSums + lane,
      all = u32(g.channels) * S::kDeep.taps * S::kTaps * SIZE;
  float sum = 0;
  if (index < all)
    for (u32 s = group; s < u32(g.shares); s += kGroups) sum += g.parts[i64(s) * all + index];
  sums[group][lane] = sum;
  __syncthreads();
  if (group > 0 || index >= all) return;
#pragma unroll
  for (u32 i = 1; i < kGroups; ++i) sum += sums[i][lane];
  u32 line = index / SIZE, channel = index - line * SIZE, planes = line / S::kTaps, tap = line - planes * S::kTaps,
      filter = planes / S::kDeep.taps, plane = planes - filter * S::kDeep.taps, row = tap / S::kTapColumns,
      column = tap - row * S::kTapColumns;
  if (g.turned_plane) plane = S::kDeep.taps - 1 - plane;
  if (g.turned_row) row = S::kTapRows - 1 - row;
  if (g.turned_column) column = S::kTapColumns - 1 - column;
  i64 at[C::kOperands + 1];
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) {
    const i64* s = g.epilogue.operands[k].strides;
    at[k] = filter * s[0] + channel * s[1] + row * s[2] + column * s[3] + plane * s[4];
  }
  float value[1] = {sum};
  finish_values<C, 1>(g.epilogue, at, known_to_all<C>(g.epilogue), value);
}

}  // namespace tsr::dev
