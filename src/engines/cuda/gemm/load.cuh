// SPDX-License-Identifier: Apache-2.0
// From memory to a tile in shared memory: a tile of an operand is EXTENT neighbours (rows of a, columns of b) by DEPTH
// inner positions. Each thread moves chunks of some elements that share what must be computed to find them.
#pragma once

#include "device/memory.cuh"
#include "device/ptx/mma.cuh"
#include "device/ptx/pieces.cuh"
#include "engines/cuda/gemm/space.cuh"

namespace tsr::dev {

// Which elements make a chunk and which chunks neighbouring threads take. Vectors are read in one access.
enum class Access : int {
  across,         // inner positions of a neighbour; threads take neighbours
  along,          // inner positions of a neighbour; threads take inner positions first
  along_vector,   // likewise
  across_vector,  // neighbours at an inner position
};

// How far places lie from the first, for each operand of what computes a side of the product (prologue.cuh).
template <int OPERANDS, int COUNT>
struct Offsets {
  i64 at[OPERANDS][COUNT];
};
template <int COUNT>
struct Offsets<0, COUNT> {};

// Inner positions as both sides see them: how far they lie from the first, and what they add to positions.
template <int COUNT, int BEFORE_A = 0, int BEFORE_B = 0>
struct InnerTable {
  static constexpr int kCount = COUNT;
  i64 offset[2][COUNT];
  i32 at[kSpatial][COUNT];
  Offsets<BEFORE_A, COUNT> a;
  Offsets<BEFORE_B, COUNT> b;
};

// A side of the product: T as it lies in memory, or as what stands before the product gives it; CHUNK of them move at
// once; POSITIONS spatial dimensions are checked against the bounds.
template <class T, Access ACCESS, int CHUNK, int POSITIONS>
struct From {
  using Type = T;
  static constexpr Access kAccess = ACCESS;
  static constexpr int kChunk = CHUNK, kPositions = POSITIONS;
};

// What a tile has of a multiplied type: f32 stands for what tensor cores round.
template <class M>
struct TileElement {
  using Type = M;
};
template <>
struct TileElement<tf32> {
  using Type = float;
};

template <bool FIRST, class A, class B>
struct Choose {
  using Type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
  using Type = B;
};

// Which elements a thread brings to which places of a tile. M: what is multiplied. Tiles for tensor cores have rows of
// inner positions, but where the tensor has neighbours side by side; others have rows of neighbours.
template <class From, class M, int EXTENT, int DEPTH, int THREADS, bool IS_A, bool TENSOR>
class SideShape {
 public:
  using T = typename From::Type;
  using Element = typename TileElement<M>::Type;
  static constexpr bool kAlong = TENSOR && From::kAccess != Access::across_vector;
  // Rows of a tile lie so that threads which load or store neighbours meet different banks.
  static constexpr int kPad = !TENSOR ? 4 : kAlong || sizeof(Element) < 4 ? 16 / int(sizeof(Element)) : 8;
  static constexpr int kStride = (kAlong ? DEPTH : EXTENT) + kPad;
  static constexpr int kElements = (kAlong ? EXTENT : DEPTH) * kStride;

 protected:
  static constexpr Access kAccess = From::kAccess;
  static constexpr bool kVectors = kAccess == Access::along_vector || kAccess == Access::across_vector;
  static constexpr int kPositions = From::kPositions, kChunk = From::kChunk;
  static constexpr int kTotal = EXTENT * DEPTH / kChunk, kChunks = (kTotal + THREADS - 1) / THREADS;

  static Element* place(Element* tile, int j) {
    return tile + (kAlong ? neighbour(j) * kStride + inner(j) : inner(j) * kStride + neighbour(j));
  }
  static int chunk(int j) { return int(threadIdx.x) + j * THREADS; }
  static bool is_idle(int j) { return kTotal % THREADS != 0 && chunk(j) >= kTotal; }
  static int neighbour(int j) {
    if constexpr (kAccess == Access::across) return chunk(j) % EXTENT;
    if constexpr (kAccess == Access::across_vector) return chunk(j) % (EXTENT / kChunk) * kChunk;
    return chunk(j) / (DEPTH / kChunk);
  }
  static int inner(int j) {
    if constexpr (kAccess == Access::across) return chunk(j) / EXTENT * kChunk;
    if constexpr (kAccess == Access::across_vector) return chunk(j) / (EXTENT / kChunk);
    return chunk(j) % (DEPTH / kChunk) * kChunk;
  }

  // `find(i)` is the index along the axes of neighbour i, negative where there is none; `use(j, real, offset)` gets
  // where that of a chunk begins.
  template <class Find, class Use>
  void find_chunks(const Frame& f, const Axes<kSideAxes>& neighbours, const Find& find, const Use& use) {
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
      use(j, real, offset);
    }
  }
  template <class Table>
  bool inside(int j, const Table& table, int k, const i32* bounds) const {
    bool yes = true;
#pragma unroll
    for (int d = 0; d < kPositions; ++d) yes = yes && u32(at_[j][d] + table.at[d][k]) < u32(bounds[d]);
    return yes;
  }

  template <class V>
  static Element multiplied(V v) {
    if constexpr (kSame<M, tf32> && kSame<T, float>)
      return round_to_tf32(v);
    else if constexpr (kSame<V, Element>)
      return v;
    else if constexpr (TENSOR)
      return from_lane<Element>(to_lane<float>(v));
    else
      return to_lane<Element>(v);
  }
  template <class V>
  static void put_chunk(Element* tile, int j, const Vec<V, kChunk>& values) {
    Vec<Element, kChunk> x;
#pragma unroll
    for (int i = 0; i < kChunk; ++i) x.v[i] = multiplied(values.v[i]);
    if constexpr (kAlong || kAccess == Access::across_vector)
      store_vector(place(tile, j), x);
    else
      store_each(place(tile, j), kStride, x);
  }

 private:
  i32 at_[kChunks][kPositions + 1];
};

// An operand that lies in memory.
template <class From, class M, int EXTENT, int DEPTH, int THREADS, bool IS_A, bool TENSOR>
class Side : public SideShape<From, M, EXTENT, DEPTH, THREADS, IS_A, TENSOR> {
  using Shape = SideShape<From, M, EXTENT, DEPTH, THREADS, IS_A, TENSOR>;
  using Shape::kChunk, Shape::kChunks, Shape::kVectors;
  using T = typename Shape::T;

 public:
  using Element = typename Shape::Element;
  static constexpr int kOperands = 0;  // that compute it

  template <class Args, class Find, class Start>
  void start(const Args& g, const Frame& f, const Axes<kSideAxes>& neighbours, const Find& find, Start&) {
    const void* data = IS_A ? g.a : g.b;
    this->find_chunks(f, neighbours, find, [&](int j, bool real, i64 offset) {
      if constexpr (kPacked<T>)
        first_[j] = {real ? data : nullptr, offset};
      else
        first_[j] = real ? static_cast<const T*>(data) + offset : nullptr;
    });
  }

  // Asks for the inner positions that `table` describes from `from` on; those from `left` on are zeros. They come to
  // registers, from which `put` takes them, or straight to the tile.
  template <class Table>
  void load(const Table& table, int from, int left, const i32* bounds, Element* tile) {
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      int k = this->inner(j), at = from + k;
      if constexpr (kStraight) {
        if (this->is_idle(j)) continue;
        bool exists = real(j) && k < left && this->inside(j, table, at, bounds);
        const T* source = exists ? first_[j] + table.offset[!IS_A][at] : first_[j];
        piece_load<kChunk * sizeof(T)>(this->place(tile, j), source, exists ? kChunk * sizeof(T) : 0);
      } else if constexpr (kVectors) {
        staged_[j] = {};
        if (real(j) && k < left && this->inside(j, table, at, bounds))
          load_vector(first_[j] + table.offset[!IS_A][at], staged_[j]);
      } else {
#pragma unroll
        for (int i = 0; i < kChunk; ++i) {
          staged_[j].v[i] = {};
          if (real(j) && k + i < left && this->inside(j, table, at + i, bounds))
            staged_[j].v[i] = element(first_[j], table.offset[!IS_A][at + i]);
        }
      }
    }
  }

  template <class Table>
  void put(const Table&, int, Element* tile) const {
    if constexpr (!kStraight) {
#pragma unroll
      for (int j = 0; j < kChunks; ++j)
        if (!this->is_idle(j)) this->put_chunk(tile, j, staged_[j]);
    }
  }

 private:
  static constexpr bool kStraight = TENSOR && kVectors && kSame<T, Element>;
  // Zero bits are 0 in all types but e8m0.
  static constexpr bool kAsLane = kPacked<T> || kSame<T, e8m0>;
  using Lane = typename Choose<TENSOR, float, Element>::Type;  // that holds elements of less than a byte
  using Staged = typename Choose<kAsLane, Lane, T>::Type;
  struct PackedPlace {
    const void* data;
    i64 offset;
  };
  using First = typename Choose<kPacked<T>, PackedPlace, const T*>::Type;

  bool real(int j) const {
    if constexpr (kPacked<T>)
      return first_[j].data != nullptr;
    else
      return first_[j] != nullptr;
  }
  static Staged element(const First& first, i64 at) {
    if constexpr (kPacked<T>)
      return load_packed<Lane, T>(first.data, first.offset + at);
    else if constexpr (kAsLane)
      return to_lane<Lane>(first[at]);
    else
      return first[at];
  }

  First first_[kChunks];  // where the neighbour begins; null: there is none
  Vec<Staged, kStraight ? 1 : kChunk> staged_[kStraight ? 1 : kChunks];
};

}  // namespace tsr::dev
