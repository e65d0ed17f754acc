// SPDX-License-Identifier: Apache-2.0
// A block of products by warpgroups: its shape and shared memory, and which tiles of the result it has.
#pragma once

#include "device/epilogue.cuh"
#include "device/types.cuh"
#include "engines/cuda/wgmma/args.cuh"

namespace tsr::dev {

// A: type of the operands' elements; C: of the results that leave in boxes. ACROSS: an operand's elements follow each
// other across the inner dimension. STAGES: places of the ring. BLOCKS: on a multiprocessor. STAGED: the operand of the
// generated code that leaves in boxes, -1: none. CLIPS: nothing else is stored, and boxes end with the result: beyond
// it anything may be computed, without a branch. WINDOW: the operand that is pictures which a window walks over.
// PATCHES: its positions are not one dimension of the result. PARTS: sums are left in the workspace. REDUCED: what the
// generated code reduces. PROMOTES: sums of a step are added up outside the tensor cores, which keep only some 14 bits
// of those of 8-bit floats. TURNS: warpgroups do not share a tile but take turns, so that one multiplies while another
// stores. PAIRED: two products have the same left operand, and the same code behind them: a tile has some columns of
// one, and then those of the other.
enum class Windowed { none, left, right };
template <class A, class C, bool A_ACROSS, bool B_ACROSS, int ROWS, int COLUMNS, int STAGES, int CLUSTER, int BLOCKS,
          int STAGED, bool CLIPS, Windowed WINDOW, bool PATCHES, bool PARTS, Reduced REDUCED, bool PROMOTES, bool TURNS,
          bool PAIRED>
struct WgmmaTile {
  using Out = C;
  static constexpr int kStaged = STAGED;
  static constexpr bool kClips = CLIPS, kPatches = PATCHES, kParts = PARTS, kTurns = TURNS;
  static constexpr bool kPatchRows = PATCHES && WINDOW == Windowed::left;
  static constexpr Windowed kWindow = WINDOW;
  static constexpr Reduced kReduced = REDUCED;
  static constexpr bool kAAcross = A_ACROSS, kBAcross = B_ACROSS;
  static constexpr int kRows = ROWS, kColumns = COLUMNS, kStages = STAGES, kCluster = CLUSTER;
  static constexpr bool kPaired = PAIRED;
  static constexpr int kOwn = PAIRED ? COLUMNS / 2 : COLUMNS;  // columns of the result
  static constexpr int kBlocks = BLOCKS;
  static constexpr int kDepth = 128 / sizeof(A);  // elements of a swizzled row
  static constexpr bool kPromotes = PROMOTES;
  static constexpr int kConsumers = ROWS / 64;
  // Of 64 rows, that a warpgroup has of a tile; warpgroups that have the same tile.
  static constexpr int kStrips = TURNS ? kConsumers : 1, kTogether = TURNS ? 1 : kConsumers;
  static_assert(!TURNS || (kConsumers == 2 && !PARTS && !kPromotes));
  static_assert(!PAIRED || (!PARTS && !TURNS && WINDOW == Windowed::none));
  static constexpr int kABytes = ROWS * 128, kBBytes = COLUMNS * 128, kStageBytes = kABytes + kBBytes;
  // Results leave in boxes of 64 rows by 128 or 64 bytes, two of which each warpgroup has.
  static constexpr int kChunkRow = kOwn * sizeof(C) % 128 == 0 ? 128 : 64;
  static constexpr int kChunk = kChunkRow / sizeof(C), kChunkBytes = 64 * kChunkRow;
  static constexpr int kRingBytes = STAGES * kStageBytes,
                       kOutBytes = PARTS || WINDOW == Windowed::right ? 0 : kConsumers * 2 * kChunkBytes;
  static constexpr int kSharedBytes = kRingBytes + kOutBytes + 2 * STAGES * 8;
};

// A tile of the result, and the steps along the inner dimension that its split takes.
struct TilePlace {
  int kind, row, column, batch, split, first_step, last_step;
};

inline int tiles_of(const WgmmaArgs& a, int kind) { return a.rows[kind].tiles * a.column_tiles * a.batches * a.splits; }
inline int tiles_of(const WgmmaArgs& a) {
  int n = 0;
  for (int i = 0; i < a.kinds; ++i) n += tiles_of(a, i);
  return n;
}
// Tiles of one split are walked first, and those of neighbouring rows and columns: they find each other's operands in
// the cache.
inline TilePlace place_of(const WgmmaArgs& a, int index) {
  int kind = 0;
  for (; kind + 1 < a.kinds && index >= tiles_of(a, kind); ++kind) index -= tiles_of(a, kind);
  const WgmmaArgs::Rows& all = a.rows[kind];
  int per_batch = all.tiles * a.column_tiles, number = index / per_batch, rest = index - number * per_batch;
  int split = number / a.batches, batch = number - split * a.batches;
  int per_group = a.group * a.column_tiles, group = rest / per_group, first = group * a.group;
  int rows = all.tiles - first < a.group ? all.tiles - first : a.group;
  rest -= group * per_group;
  auto step = [&](int s) { return int(i64(s) * all.steps / a.splits); };
  return {kind, first + rest % rows, rest / rows, batch, split, step(split), step(split + 1)};
}

}  // namespace tsr::dev
