// SPDX-License-Identifier: Apache-2.0
// From memory to a tile in shared memory: a tile of an operand is EXTENT neighbours (rows of a, columns of b) by DEPTH
// inner positions. Each thread moves chunks of four elements that share what must be computed to find them.
#pragma once

#include "device/memory.cuh"
#include "engines/cuda/gemm/space.cuh"

namespace tsr::dev {

// Which elements make a chunk and which chunks neighbouring threads take. Vectors are read in one access.
enum class Access : int {
  across,         // four inner positions of a neighbour; threads take neighbours
  along,          // four inner positions of a neighbour; threads take inner positions first
  along_vector,   // likewise
  across_vector,  // four neighbours at an inner position
};

// Inner positions as both operands see them: how far they lie from the first, and what they add to positions.
template <int DEPTH>
struct InnerTable {
  i64 offset[2][DEPTH];
  i32 at[kSpatial][DEPTH];
};

// A side of the product: T as it lies in memory; POSITIONS spatial dimensions are checked against the bounds.
template <class T, Access ACCESS, int POSITIONS>
struct From {
  using Type = T;
  static constexpr Access kAccess = ACCESS;
  static constexpr int kPositions = POSITIONS;
};

template <class From, class L, int EXTENT, int DEPTH, int THREADS, bool IS_A>
class Side {
 public:
  using T = typename From::Type;
  // Rows of a tile lie so that threads which store neighbouring inner positions meet different banks.
  static constexpr int kStride = EXTENT + 4;
  static constexpr int kElements = DEPTH * kStride;

  // `find(i)` is the index along the axes of neighbour i, negative where there is none.
  template <class Find>
  void start(const Frame& f, const void* data, const Axes<kSideAxes>& neighbours, const Find& find) {
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      i64 index = find(neighbour(j)), offset = IS_A ? f.a : f.b;
      bool real = index >= 0 && chunk(j) < kTotal;
      i32 at[kSpatial] = {f.origin[0], f.origin[1], f.origin[2]};
      if (real)
        locate(neighbours, index, [&](int i, i64 here) {
          const Axis& x = neighbours.axis[i];
          offset += here * (IS_A ? x.a : x.b);
#pragma unroll
          for (int d = 0; d < kPositions; ++d) at[d] += x.dim == d ? i32(here) * x.step : 0;
        });
#pragma unroll
      for (int d = 0; d < kPositions; ++d) at_[j][d] = at[d];
      if constexpr (kPacked<T>)
        first_[j] = {real ? data : nullptr, offset};
      else
        first_[j] = real ? static_cast<const T*>(data) + offset : nullptr;
    }
  }

  // Inner positions that `table` describes; those from `left` on are zeros.
  void load(const InnerTable<DEPTH>& table, int left, const i32* bounds) {
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      int k = inner(j);
      if constexpr (kAccess == Access::along_vector || kAccess == Access::across_vector) {
        staged_[j] = {};
        if (real(j) && k < left && inside(j, table, k, bounds))
          load_vector(first_[j] + table.offset[!IS_A][k], staged_[j]);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          staged_[j].v[i] = {};
          if (real(j) && k + i < left && inside(j, table, k + i, bounds))
            staged_[j].v[i] = element(first_[j], table.offset[!IS_A][k + i]);
        }
      }
    }
  }

  void put(L* tile) const {
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      if (kTotal % THREADS != 0 && chunk(j) >= kTotal) continue;
      Vec<L, 4> x;
#pragma unroll
      for (int i = 0; i < 4; ++i) x.v[i] = lane(staged_[j].v[i]);
      L* to = tile + inner(j) * kStride + neighbour(j);
      if constexpr (kAccess == Access::across_vector)
        store_vector(to, x);
      else
        store_each(to, kStride, x);
    }
  }

 private:
  static constexpr Access kAccess = From::kAccess;
  static constexpr int kPositions = From::kPositions;
  static constexpr int kTotal = EXTENT * DEPTH / 4, kChunks = (kTotal + THREADS - 1) / THREADS;
  // Zero bits are 0 in all types but e8m0.
  static constexpr bool kAsLane = kPacked<T> || kSame<T, e8m0>;
  template <bool LANE, class A, class B>
  struct Choose {
    using Type = A;
  };
  template <class A, class B>
  struct Choose<false, A, B> {
    using Type = B;
  };
  using Staged = typename Choose<kAsLane, L, T>::Type;
  struct PackedPlace {
    const void* data;
    i64 offset;
  };
  using First = typename Choose<kPacked<T>, PackedPlace, const T*>::Type;

  static int chunk(int j) { return int(threadIdx.x) + j * THREADS; }
  static int neighbour(int j) {
    if constexpr (kAccess == Access::across) return chunk(j) % EXTENT;
    if constexpr (kAccess == Access::across_vector) return chunk(j) % (EXTENT / 4) * 4;
    return chunk(j) / (DEPTH / 4);
  }
  static int inner(int j) {
    if constexpr (kAccess == Access::across) return chunk(j) / EXTENT * 4;
    if constexpr (kAccess == Access::across_vector) return chunk(j) / (EXTENT / 4);
    return chunk(j) % (DEPTH / 4) * 4;
  }
  bool real(int j) const {
    if constexpr (kPacked<T>)
      return first_[j].data != nullptr;
    else
      return first_[j] != nullptr;
  }
  bool inside(int j, const InnerTable<DEPTH>& table, int k, const i32* bounds) const {
    bool yes = true;
#pragma unroll
    for (int d = 0; d < kPositions; ++d) yes = yes && u32(at_[j][d] + table.at[d][k]) < u32(bounds[d]);
    return yes;
  }
  static Staged element(const First& first, i64 at) {
    if constexpr (kPacked<T>)
      return load_packed<L, T>(first.data, first.offset + at);
    else if constexpr (kAsLane)
      return to_lane<L>(first[at]);
    else
      return first[at];
  }
  static L lane(Staged v) {
    if constexpr (kAsLane)
      return v;
    else
      return to_lane<L>(v);
  }

  First first_[kChunks];  // where the neighbour begins; null: there is none
  i32 at_[kChunks][kPositions + 1];
  Vec<Staged, 4> staged_[kChunks];
};

}  // namespace tsr::dev
