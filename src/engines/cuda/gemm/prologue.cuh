// SPDX-License-Identifier: Apache-2.0
// A side of the product that is computed on its way to the tile: generated code loads what it is made of, and gives its
// elements when they are due.
#pragma once

#include "device/epilogue.cuh"
#include "device/pointwise.cuh"
#include "device/random.cuh"
#include "engines/cuda/gemm/load.cuh"

namespace tsr::dev {

template <class From, class M, int EXTENT, int DEPTH, int THREADS, bool IS_A, bool TENSOR, template <int> class Code>
class ComputedSide : public SideShape<From, M, EXTENT, DEPTH, THREADS, IS_A, TENSOR> {
  using Shape = SideShape<From, M, EXTENT, DEPTH, THREADS, IS_A, TENSOR>;
  using Shape::kChunk, Shape::kChunks;
  using T = typename Shape::T;
  static constexpr int V = Shape::kVectors ? kChunk : 1, kParts = kChunk / V;  // elements that are computed at once
  using C = Code<V>;
  static_assert(kChunks * kParts <= 64);

 public:
  using Element = typename Shape::Element;
  static constexpr int kOperands = C::kOperands;

  // By all threads of the block: `start` gets where neighbours begin.
  template <class Args, class Find>
  void start(const Args& g, const Frame& f, const Axes<kSideAxes>& neighbours, const Find& find,
             Offsets<kOperands, EXTENT>& start) {
    e_ = &g.before[!IS_A], start_ = &start;
    rows_ = known_to_all<C>(*e_);
    i64 base[kOperands] = {};
#pragma unroll
    for (int o = 0; o < kOperands; ++o) {
#pragma unroll
      for (int d = 0; d < Shape::kPositions; ++d) base[o] += f.origin[d] * e_->operands[o].position[d];
    }
    each_axis(g.batch, i32(f.batch), [&](int i, i64 here) {
#pragma unroll
      for (int o = 0; o < kOperands; ++o) base[o] += here * e_->operands[o].batch[i];
    });
    for (int i = int(threadIdx.x); i < EXTENT; i += THREADS) {
      i64 index = find(i), sums[kOperands] = {};
      if (index >= 0)
        locate(neighbours, index, [&](int axis, i64 here) {
#pragma unroll
          for (int o = 0; o < kOperands; ++o) sums[o] += here * e_->operands[o].neighbours[axis];
        });
#pragma unroll
      for (int o = 0; o < kOperands; ++o) start.at[o][i] = base[o] + sums[o];
    }
    real_ = 0;
    this->find_chunks(f, neighbours, find, [&](int j, bool real, i64) { real_ |= u32(real) << j; });
  }

  template <class Table>
  void load(const Table& table, int from, int left, const i32* bounds, Element*) {
    there_ = 0;
#pragma unroll
    for (int j = 0; j < kChunks; ++j)
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        int k = this->inner(j) + i;
        bool exists = (real_ >> j & 1) && k < left && this->inside(j, table, from + k, bounds);
        there_ |= u64(exists) << (j * kParts + i);
        i64 at[kOperands + 1];
        locate_part(table, from + k, j, at);
        if (exists) C::load(*e_, at, loaded_[j][i]);
      }
  }

  // What does not exist is 0, whatever the code makes of nothing.
  template <class Table>
  void put(const Table& table, int from, Element* tile) const {
#pragma unroll
    for (int j = 0; j < kChunks; ++j) {
      if (this->is_idle(j)) continue;
      Vec<T, kChunk> values = {};
#pragma unroll
      for (int i = 0; i < kParts; ++i) {
        if (!(there_ >> (j * kParts + i) & 1)) continue;
        i64 at[kOperands + 1];
        locate_part(table, from + this->inner(j) + i, j, at);
        typename C::Late late;
        typename C::Kept kept;
        typename C::Sums out;
        C::store(*e_, at, loaded_[j][i], late, kept, rows_, out);
#pragma unroll
        for (int v = 0; v < V; ++v) values.v[i * V + v] = C::result(out).v[v];
      }
      this->put_chunk(tile, j, values);
    }
  }

 private:
  template <class Table>
  void locate_part(const Table& table, int k, int j, i64 (&at)[kOperands + 1]) const {
#pragma unroll
    for (int o = 0; o < kOperands; ++o) {
      if constexpr (IS_A)
        at[o] = start_->at[o][this->neighbour(j)] + table.a.at[o][k];
      else
        at[o] = start_->at[o][this->neighbour(j)] + table.b.at[o][k];
    }
  }

  const PrologueArgs* e_;
  const Offsets<kOperands, EXTENT>* start_;
  typename C::Rows rows_;
  u32 real_;   // by chunk
  u64 there_;  // by part of a chunk, of what was loaded last
  typename C::Loaded loaded_[kChunks][kParts];
};

// Inner positions from k on, as the operands of what computes a side see them.
template <int THREADS, int OPERANDS, int COUNT>
void describe_before(const Axes<kSideAxes>& inner, const PrologueArgs& e, int k, Offsets<OPERANDS, COUNT>& table) {
#pragma unroll 1
  for (int at = int(threadIdx.x); at < OPERANDS * COUNT; at += THREADS) {
    int operand = at / COUNT, number = at % COUNT;
    i64 sum = 0;
    each_axis(inner, k + number, [&](int i, i64 here) { sum += here * e.operands[operand].inner[i]; });
    table.at[operand][number] = sum;
  }
}

// Type of a side: in memory, or computed by CODE.
struct InMemory {
  template <class From, class M, int EXTENT, int DEPTH, int THREADS, bool IS_A, bool TENSOR>
  using Side = Side<From, M, EXTENT, DEPTH, THREADS, IS_A, TENSOR>;
};
template <template <int> class CODE>
struct Computed {
  template <class From, class M, int EXTENT, int DEPTH, int THREADS, bool IS_A, bool TENSOR>
  using Side = ComputedSide<From, M, EXTENT, DEPTH, THREADS, IS_A, TENSOR, CODE>;
};

}  // namespace tsr::dev
