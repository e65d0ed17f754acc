// SPDX-License-Identifier: Apache-2.0
// A tile whose warps multiply on tensor cores (device/ptx/mma.cuh), like Tile of product.cuh.
#pragma once

#include "device/ptx/matrix.cuh"
#include "device/ptx/mma.cuh"

namespace tsr::dev {

// Of a tile in shared memory, what lanes hold of 16 neighbours from `from` on, at the 32 bytes of inner positions from
// k on: r[i + 2 h] has neighbour l / 4 + 8 i and the half h of the positions.
template <class Side>
void load_sixteen(const typename Side::Element* tile, int from, int k, u32 (&r)[4]) {
  int lane = int(threadIdx.x) % 32;
  if constexpr (Side::kAlong) {
    constexpr int kHalf = 16 / sizeof(typename Side::Element);
    matrix_load(r, tile + (from + lane % 16) * Side::kStride + k + lane / 16 * kHalf);
  } else if constexpr (sizeof(typename Side::Element) == 2) {
    matrix_load<true>(r, tile + (k + lane % 8 + lane / 16 * 8) * Side::kStride + from + lane / 8 % 2 * 8);
  } else {
    static_assert(sizeof(typename Side::Element) == 4);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      r[i] = *reinterpret_cast<const u32*>(tile + (k + i / 2 * 4 + lane % 4) * Side::kStride + from + lane / 4 +
                                           i % 2 * 8);
  }
}

// HEIGHT x WIDTH elements of a block, ROWS x COLUMNS of a thread, DEPTH inner positions at a time.
template <int HEIGHT, int WIDTH, int ROWS, int COLUMNS, int DEPTH>
struct TensorTile {
  static constexpr int kHeight = HEIGHT, kWidth = WIDTH, kRows = ROWS, kColumns = COLUMNS, kDepth = DEPTH;
  static constexpr int kThreads = HEIGHT * WIDTH / (ROWS * COLUMNS);
  static constexpr int kWarpHeight = 8 * ROWS, kWarpWidth = 4 * COLUMNS;
  static_assert(HEIGHT % kWarpHeight == 0 && WIDTH % kWarpWidth == 0 && ROWS % 2 == 0 && COLUMNS % 4 == 0);

  static int first_row() { return int(threadIdx.x) / 32 / (WIDTH / kWarpWidth) * kWarpHeight; }
  static int first_column() { return int(threadIdx.x) / 32 % (WIDTH / kWarpWidth) * kWarpWidth; }
  static int row_slot() { return first_row() / kWarpHeight * 8 + int(threadIdx.x) % 32 / 4; }
  static int column_slot() { return first_column() / kWarpWidth * 4 + int(threadIdx.x) % 4; }
  static int row(int i) { return first_row() + i / 2 * 16 + i % 2 * 8 + int(threadIdx.x) % 32 / 4; }
  static int column(int j) { return first_column() + j / 2 * 8 + int(threadIdx.x) % 4 * 2 + j % 2; }

  static constexpr bool kTensor = true;
  static constexpr int kStages = 4;
  template <class K>
  static void multiply(const typename K::SideA::Element* a, const typename K::SideB::Element* b,
                       typename K::Lane (&sum)[ROWS][COLUMNS]) {
    constexpr int kEach = 32 / sizeof(typename K::SideA::Element);
    static_assert(DEPTH % kEach == 0 && sizeof(typename K::SideA::Element) == sizeof(typename K::SideB::Element));
#pragma unroll
    for (int k = 0; k < DEPTH; k += kEach) {
      u32 y[COLUMNS / 4][4];
#pragma unroll
      for (int c = 0; c < COLUMNS / 4; ++c) load_sixteen<typename K::SideB>(b, first_column() + c * 16, k, y[c]);
#pragma unroll
      for (int r = 0; r < ROWS; r += 2) {
        u32 x[4];
        load_sixteen<typename K::SideA>(a, first_row() + r * 8, k, x);
#pragma unroll
        for (int c = 0; c < COLUMNS; c += 2) {
          typename K::Lane d[4] = {sum[r][c], sum[r][c + 1], sum[r + 1][c], sum[r + 1][c + 1]};
          u32 eight[2] = {y[c / 4][c / 2 % 2], y[c / 4][c / 2 % 2 + 2]};
          mma<typename K::LeftType, typename K::RightType>(d, x, eight);
          sum[r][c] = d[0], sum[r][c + 1] = d[1], sum[r + 1][c] = d[2], sum[r + 1][c + 1] = d[3];
        }
      }
    }
  }
};

}  // namespace tsr::dev
