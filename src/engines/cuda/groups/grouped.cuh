// SPDX-License-Identifier: Apache-2.0
// Convolutions in groups of SIZE channels, a multiple of 8, or 2 or 4, on tensor cores (mma.sync): a warp has 8
// channels of the result.
#pragma once

#include "device/pointwise.cuh"
#include "device/ptx/matrix.cuh"
#include "device/ptx/mma.cuh"
#include "device/random.cuh"
#include "engines/cuda/groups/patch.cuh"

namespace tsr::dev {

// Where the patch of pictures has a position, for the first tap.
template <class S>
int picture_place(int position) {
  return S::Pictures::at(position / S::kColumns * S::kDown.stride, position % S::kColumns * S::kAcross.stride);
}

// The taps of positions with the same residues.
template <class S, int ROW = 0, int COLUMN = 0>
struct ResidueTaps {
  static constexpr int kRows = S::kDown.taps_of(ROW), kColumns = S::kAcross.taps_of(COLUMN), kCount = kRows * kColumns;
  static constexpr int kPlace = S::Pictures::at(S::kDown.skipped(ROW), S::kAcross.skipped(COLUMN));
  static constexpr int kFirstRow = S::kDown.first_tap(ROW), kFirstColumn = S::kAcross.first_tap(COLUMN);
  // Tap (i, j) of these: from the place of a position in the patch, and in the filter.
  static constexpr int offset(int i, int j) { return kPlace + S::Pictures::at(i, j); }
  static i64 in_filter(const GroupsArgs& g, int i, int j) {
    return filter_tap<S>(g, kFirstRow + i * S::kDown.spread, kFirstColumn + j * S::kAcross.spread);
  }
};

// Calls use(taps) for one of all pairs of residues.
template <class S, int FIRST = 0, class F>
void use_residues(int number, const F& use) {
  if constexpr (FIRST + 1 < S::kResidues)
    if (number > FIRST) return use_residues<S, FIRST + 1>(number, use);
  use(ResidueTaps<S, FIRST / S::kAcross.spread, FIRST % S::kAcross.spread>());
}

// Of the pictures those 8 channels at a time that the group of the warp's results has, at one tap: a half of what a
// product sums. The halves are those of the first tap, then those of the second ...
template <class S, int SIZE, class TAPS = ResidueTaps<S>>
struct Halves {
  static_assert(sizeof(typename S::Type) == 2 && SIZE % 8 == 0 && S::kChannels % SIZE == 0);
  static_assert(S::kThreads == S::kChunks * 32);
  static constexpr int kOfTap = SIZE / 8, kCount = TAPS::kCount * kOfTap, kProducts = (kCount + 1) / 2;
  static constexpr int kTiles = (S::kPositions + 15) / 16;  // of 16 positions

  static constexpr int row(int half) { return half / kOfTap / TAPS::kColumns; }
  static constexpr int column(int half) { return half / kOfTap % TAPS::kColumns; }
  static constexpr int channel(int half) { return half % kOfTap * 8; }
  // From the place of a position with the group's first channel in a patch of pictures.
  static constexpr int offset(int half) { return TAPS::offset(row(half), column(half)) + channel(half) * 2; }
  // The group's first channel in the tile, for the warp's channels.
  static int group_start(int warp) { return warp * 8 / SIZE * SIZE; }
};

// A lane's column of the filter: a channel of the result.
template <class S, int SIZE>
struct FilterColumn {
  using T = typename S::Type;
  const GroupsArgs& g;
  const T* data;
  bool there;
  FilterColumn(const GroupsArgs& args, const GroupsPlace& place, i64 where) : g(args) {
    int out = place.channel + int(threadIdx.x) / 4;  // lane / 4 of the warp's 8
    data = static_cast<const T*>(g.filter) + out / SIZE * g.filter_group + out % SIZE * g.filter_out + where;
    there = out < g.channels;
  }
  // Two neighbouring channels of pictures.
  u32 pair(i64 tap, int channel) const {
    auto bits = [&](int k) { return u32(reinterpret_cast<const u16&>(data[k * g.filter_in + tap])); };
    if (!there) return 0;
    return bits(channel) | bits(channel + 1) << 16;
  }
};

// Sums of a warp, 16 positions at a time.
template <class S, int SIZE, bool WHOLE = SIZE % 8 == 0>
struct GroupProducts {
  static constexpr int kTiles = Halves<S, SIZE>::kTiles;
  float sum[kTiles][4] = {};

  explicit GroupProducts(char*) {}

  template <class TAPS>
  void multiply(const FilterColumn<S, SIZE>& filter, const char* patch, TAPS) {
    using H = Halves<S, SIZE, TAPS>;
    // Lanes 8 m to 8 m + 7 name rows of matrix m: positions 0 or 8 on, of the first half or the second.
    int lane = int(threadIdx.x) % 32, row = lane % 16, second = lane / 16;
    const char* rows[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      int position = t * 16 + row;
      rows[t] =
          patch + picture_place<S>(position < S::kPositions ? position : 0) + H::group_start(int(threadIdx.x) / 32) * 2;
    }
#pragma unroll
    for (int p = 0; p < H::kProducts; ++p) {
      bool alone = 2 * p + 1 >= H::kCount;
      auto weights = [&](int half) {
        return filter.pair(TAPS::in_filter(filter.g, H::row(half), H::column(half)), H::channel(half) + lane % 4 * 2);
      };
      u32 b[2] = {weights(2 * p), alone ? 0 : weights(2 * p + 1)};
      int offset = H::offset(2 * p);
      if (second && !alone) offset = H::offset(2 * p + 1);
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        u32 a[4];
        matrix_load(a, rows[t] + offset);
        if (alone) a[2] = a[3] = 0;  // whatever is there would count
        mma<typename S::Type>(sum[t], a, b);
      }
    }
  }
  // Calls put(position, channel, value): channels of the warp's 8.
  template <class F>
  void each(const F& put) const {
    int lane = int(threadIdx.x) % 32;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) put(t * 16 + lane / 4 + i / 2 * 8, 2 * (lane % 4) + i % 2, sum[t][i]);
  }
};

// Groups of 2 or 4 channels, 8 positions at a time: those are rows 0 to 7 of a product in one group, and rows 8 to 15
// in the next. Columns are all 8 channels of results, with the filter of their groups; those of a row's own group
// count. What a lane reads of a position at a tap of its own, 16 bytes, are parts of its rows for all groups.
template <class S, int SIZE>
struct GroupProducts<S, SIZE, false> {
  static_assert(sizeof(typename S::Type) == 2 && (SIZE == 2 || SIZE == 4) && S::kThreads == S::kChunks * 32);
  static constexpr int kTiles = (S::kPositions + 7) / 8, kPairs = 4 / SIZE;  // of groups
  static constexpr int kTaps = 16 / SIZE, kLoads = kTaps / 4;                // of a product: 4 lanes share a position
  const Vec<u32, 4>* zeros;                                                  // what taps that are not there meet
  float sum[kTiles][kPairs][4] = {};

  // Behind the channels of the first position there is room.
  explicit GroupProducts(char* patch) {
    auto* room = reinterpret_cast<Vec<u32, 4>*>(patch + S::kChunks * 16);
    if (threadIdx.x == 0) *room = {};
    zeros = room;
  }

  // Rows of taps may take the places of more where products do not get more: then lanes read neighbours.
  static constexpr int products(int rows, int columns) { return (rows * columns + kTaps - 1) / kTaps; }
  static constexpr int width(int rows, int columns) {
    int wide = (columns + 3) / 4 * 4;
    return products(rows, wide) > products(rows, columns) ? columns : wide;
  }

  template <class TAPS>
  void multiply(const FilterColumn<S, SIZE>& filter, const char* patch, TAPS) {
    constexpr int kWidth = width(TAPS::kRows, TAPS::kColumns);
    int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32;
    const char* rows[kTiles];
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      int position = t * 8 + lane / 4;
      rows[t] = patch + picture_place<S>(position < S::kPositions ? position : 0) + warp * 16;
    }
#pragma unroll
    for (int p = 0; p < products(TAPS::kRows, kWidth); ++p) {
      bool there[kLoads];
      int offsets[kLoads];
      u32 b[2] = {};
#pragma unroll
      for (int l = 0; l < kLoads; ++l) {
        int place = p * kTaps + l * 4 + lane % 4, i = place / kWidth, j = place % kWidth;
        there[l] = i < TAPS::kRows && j < TAPS::kColumns;
        offsets[l] = TAPS::offset(i, j);
        if (!there[l]) continue;
        i64 tap = TAPS::in_filter(filter.g, i, j);
        b[l] = filter.pair(tap, 0);
        if constexpr (SIZE == 4) b[1] = filter.pair(tap, 2);
      }
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        Vec<u32, 4> x[kLoads];
#pragma unroll
        for (int l = 0; l < kLoads; ++l)
          x[l] = *(there[l] ? reinterpret_cast<const Vec<u32, 4>*>(rows[t] + offsets[l]) : zeros);
#pragma unroll
        for (int m = 0; m < kPairs; ++m) {
          u32 a[4];  // of the first group and the second, then their other halves
#pragma unroll
          for (int i = 0; i < 4; ++i) a[i] = SIZE == 4 ? x[0].v[i % 2 * 2 + i / 2] : x[i / 2 % kLoads].v[m * 2 + i % 2];
          mma<typename S::Type>(sum[t][m], a, b);
        }
      }
    }
  }
  template <class F>
  void each(const F& put) const {
    int lane = int(threadIdx.x) % 32, group = lane % 4 * 2 / SIZE;
#pragma unroll
    for (int t = 0; t < kTiles; ++t)
#pragma unroll
      for (int k = 0; k < 2 * kPairs; ++k)
        if (k == group)
#pragma unroll
          for (int e = 0; e < 2; ++e) put(t * 8 + lane / 4, lane % 4 * 2 + e, sum[t][k / 2][k % 2 * 2 + e]);
  }
};

// A block has the positions of a patch with one pair of residues.
template <template <int> class Code, class S, int SIZE>
void grouped(const GroupsArgs& g) {
  char* patch = shared_memory();
  u32 number = blockIdx.x / u32(g.tiles), tile = blockIdx.x - number * u32(g.tiles);
  int residues = int(number % S::kResidues);
  GroupsPlace place = GroupsPlace::at<S>(g, number / S::kResidues * u32(g.tiles) + tile);
  GroupProducts<S, SIZE> products(patch);
  each_plane<S>(g, place, [&](int plane, i64 where) {
    S::load_pictures(g, place, patch, plane);
    pieces_commit();
    FilterColumn<S, SIZE> filter(g, place, where);
    pieces_wait<0>();
    __syncthreads();
    use_residues<S>(residues, [&](auto taps) { products.multiply(filter, patch, taps); });
  });
  // By way of shared memory to neighbouring channels of a position.
  __syncthreads();
  constexpr int kPitch = S::kChannels + 8, kV = 4, kLanes = S::kChannels / kV;
  auto* staged = reinterpret_cast<float*>(shared_memory());
  products.each([&](int position, int channel, float value) {
    staged[position * kPitch + int(threadIdx.x) / 32 * 8 + channel] = value;
  });
  __syncthreads();
  using C = Code<kV>;
  static_assert(S::kThreads % kLanes == 0);  // a thread keeps its channels
  typename C::Rows known = known_to_all<C>(g.epilogue);
  typename C::Partial part = nothing_yet<C>();
  place.row += residues / S::kAcross.spread, place.column += residues % S::kAcross.spread;
#pragma unroll 2
  for (int i = int(threadIdx.x); i < S::kPositions * kLanes; i += S::kThreads) {
    int position = i / kLanes, channel = i % kLanes * kV;
    float values[kV];
#pragma unroll
    for (int v = 0; v < kV; ++v) values[v] = staged[position * kPitch + channel + v];
    finish_position<C, kV>(g, known, place, position / S::kColumns * S::kDown.spread,
                           position % S::kColumns * S::kAcross.spread, channel, values, part);
  }
  if constexpr (C::kStages > 0) leave_part<C, S, kLanes, kV>(g, place, part);
}

// Gradient of the filter: rows are two halves of the pictures' channels, columns channels of the result, and positions
// are summed over. Of groups of 2 and 4 channels 8 channels are taken together, and sums of others are left out.
template <class S, int SIZE>
void grouped_filter(const GroupsArgs& g) {
  using T = typename S::Type;
  using H = Halves<S, (SIZE < 8 ? 8 : SIZE)>;
  constexpr int kStage = S::Pictures::kBytes + S::Gradient::kBytes;
  char *stages = shared_memory(), *zeros = stages + 2 * kStage;
  int warp = int(threadIdx.x) / 32, lane = int(threadIdx.x) % 32, start = H::group_start(warp);
  if (threadIdx.x < 4) reinterpret_cast<u32*>(zeros)[threadIdx.x] = 0;
  float sum[H::kProducts][4] = {};
  Share<S, 1> share(g);
  auto load = [&](u32 patch, int stage) {
    char* to = stages + stage * kStage;
    share.load(share.place(patch), to, to + S::Pictures::kBytes);
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
      const char* row = patch + (real ? picture_place<S>(position) + start * 2 : 0);
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
  load(share.number, 0);
  pieces_commit();
  int stage = 0;
#pragma unroll 1
  for (u32 i = share.number; i < share.patches; i += u32(g.shares)) {
    u32 next = i + u32(g.shares);
    if (next < share.patches) load(next, stage ^ 1);
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
      int half = 2 * k + i / 2, in = H::channel(half) + lane / 4, column = 2 * (lane % 4) + i % 2,
          out = channels + column;
      if (half >= H::kCount || out >= g.channels || (SIZE < 8 && in / SIZE != column / SIZE)) continue;
      g.parts[(share.sums(out) + half / H::kOfTap) * SIZE + in % SIZE] = sum[k][i];
    }
}

}  // namespace tsr::dev
