// SPDX-License-Identifier: Apache-2.0
// The thread that asks the copy engine for pieces of both operands.
#pragma once

#include "device/cluster.cuh"
#include "device/ptx/barrier.cuh"
#include "device/ptx/copy.cuh"
#include "device/ring.cuh"
#include "engines/cuda/wgmma/positions.cuh"
#include "engines/cuda/wgmma/tile.cuh"

namespace tsr::dev {

// A piece of an operand, COUNT rows or columns of it, each 128 bytes of the inner dimension. Where elements follow each
// other across that, pieces of 64 come one after the other. `blocks`: of the cluster that get it; 0: this one.
template <bool ACROSS, int COUNT, int DEPTH>
void fetch(char* place, const TensorMap* map, int first, int inner, int batch, u64* full, u32 blocks) {
  auto load = [&](char* to, int x, int y) {
    if (blocks)
      tensor_load_multicast<3>(to, map, {x, y, batch}, full, blocks);
    else
      tensor_load<3>(to, map, {x, y, batch}, full);
  };
  if constexpr (ACROSS) {
#pragma unroll
    for (int i = 0; i < COUNT / 64; ++i) load(place + i * DEPTH * 128, first + 64 * i, inner);
  } else {
    load(place, inner, first);
  }
}

inline void fetch_window(char* to, const TensorMap* map, const WgmmaWindow& w, const WindowPlace& p,
                         const WindowStep& s, u64* full) {
  window_load(to, map, {s.channel, p.column * w.step[0] + w.first[0], p.row * w.step[1] + w.first[1], p.picture},
              {s.moved[0], s.moved[1]}, full);
}
inline void fetch_patch(char* to, const TensorMap* map, const WgmmaWindow& w, const PatchPlace& p, const WindowStep& s,
                        int group, u64* full) {
  int at[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) at[i] = p.at[i] * w.step[i] + w.first[i] + s.moved[i];
  tensor_load<5>(to, map, {s.channel, at[0], at[1], at[2] + group, p.at[3] + w.picture}, full);
}

// Of the filter's gradient: 64 positions of results, and of pictures at the taps and channels of a tile.
template <class T, bool EXISTS>
struct PositionWalk {
  const WgmmaArgs& a;
  const WgmmaWindow& w = a.rows[0].window;
  static constexpr int kPieces = T::kColumns / 64;
  int row, inner, group;
  PatchPlace patch;
  WindowPlace position{w, 0}, depth{w, T::kDepth};
  WindowStep pieces[kPieces];

  PositionWalk(const WgmmaArgs& args, const TilePlace& tile) : a(args) {
    row = tile.row * T::kRows, inner = tile.first_step * T::kDepth, group = tile.batch;
    if constexpr (T::kPatches)
      patch = PatchPlace(w, tile.first_step);
    else
      position = WindowPlace(w, inner);
#pragma unroll
    for (int i = 0; i < kPieces; ++i) {
      // Beyond the last tap: some pictures, which nobody keeps the sums of.
      int piece = tile.column * kPieces + i;
      pieces[i] = WindowStep(w, piece < a.taps * w.channel_tiles ? piece : 0, 64);
    }
  }
  void fetch_next(char* place, u64* full) {
    char* to = place + T::kABytes;
    if constexpr (T::kPatches) {
#pragma unroll
      for (int i = 0; i < T::kRows / 64; ++i)
        tensor_load<5>(place + i * T::kDepth * 128, &a.a,
                       {row + 64 * i, patch.at[0], patch.at[1], patch.at[2] + group, patch.at[3]}, full);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) fetch_patch(to + i * T::kDepth * 128, &a.b, w, patch, pieces[i], group, full);
      patch.next(w);
    } else {
      fetch<true, T::kRows, T::kDepth>(place, &a.a, row, inner, 0, full, 0);
#pragma unroll
      for (int i = 0; i < kPieces; ++i) fetch_window(to + i * T::kDepth * 128, &a.b, w, position, pieces[i], full);
      position.move(w, depth), inner += T::kDepth;
    }
  }
};
// Other products have none.
template <class T>
struct PositionWalk<T, false> {
  PositionWalk(const WgmmaArgs&, const TilePlace&) {}
};

template <class T>
void produce(const WgmmaArgs& a, char* ring, u64* full, u64* empty, int cluster, int clusters) {
  int rank = T::kCluster > 1 ? cluster_rank() : 0;
  constexpr int kPart = T::kOwn / T::kCluster;
  constexpr u32 kAll = T::kCluster > 1 ? (1u << T::kCluster) - 1 : 0;
  RingPlace at;
  int tiles = tiles_of(a);
  for (int tile = cluster; tile < tiles; tile += clusters) {
    TilePlace p = place_of(a, tile);
    const WgmmaWindow& window = a.rows[p.kind].window;
    int first = p.row * T::kCluster + rank, column = p.column * T::kOwn + rank * kPart;
    PatchPlace patches[T::kConsumers];
    WindowPlace position(window, T::kWindow == Windowed::left && !T::kPatches ? first * T::kRows : 0);
    if constexpr (T::kPatchRows)
      for (int i = 0; i < T::kConsumers; ++i) patches[i] = PatchPlace(window, first * T::kConsumers + i);
    WindowStep s;
    if constexpr (T::kWindow == Windowed::left) s = WindowStep(window, p.first_step, T::kDepth);
    PositionWalk<T, T::kWindow == Windowed::right> positions(a, p);
    for (int step = p.first_step; step < p.last_step; ++step) {
      barrier_wait_cluster(empty + at.slot, at.parity ^ 1);
      u64* ready = full + at.slot;
      barrier_expect(ready, T::kStageBytes);
      char* place = ring + at.slot * T::kStageBytes;
      int inner = step * T::kDepth, b_batch = p.batch * a.b_batches;
      if constexpr (T::kWindow == Windowed::left) {
        if constexpr (!T::kPatches) fetch_window(place, &a.a, window, position, s, ready);
#pragma unroll
        for (int i = 0; T::kPatches && i < T::kConsumers; ++i)
          fetch_patch(place + i * 64 * 128, &a.a, window, patches[i], s, p.batch, ready);
        inner = s.channel, b_batch += s.tap;
        s.next(window, T::kDepth);
      } else if constexpr (T::kWindow == Windowed::none) {
        fetch<T::kAAcross, T::kRows, T::kDepth>(place, &a.a, first * T::kRows, inner, p.batch * a.a_batches, ready, 0);
      }
      char* right = place + T::kABytes + rank * kPart * 128;
      if constexpr (T::kWindow == Windowed::right)
        positions.fetch_next(place, ready);
      else
        fetch<T::kBAcross, kPart, T::kDepth>(right, &a.b, column, inner, b_batch, ready, kAll);
      if constexpr (T::kPaired)
        fetch<T::kBAcross, kPart, T::kDepth>(right + T::kOwn * 128, &a.b_too, column, inner, b_batch, ready, kAll);
      at.next<T::kStages>();
    }
  }
  // Blocks of a cluster end together: another one's products may still free places here.
  if constexpr (T::kCluster > 1)
    for (int i = 0; i < T::kStages; ++i) {
      barrier_wait_cluster(empty + at.slot, at.parity ^ 1);
      at.next<T::kStages>();
    }
}

}  // namespace tsr::dev
