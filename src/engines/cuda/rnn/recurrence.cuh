// SPDX-License-Identifier: Apache-2.0
// Steps on tensor cores. A block has some units (all gates of each) of some sequences: its warps share the inner
// dimension of the product of the weights with the states, add up their parts in shared memory, and then each thread
// has whole cells. Weights and states lie in memory as the fragments that a lane multiplies, so that no product needs
// more than loads of 16 bytes.
//
// Several steps run in one launch where all blocks fit on the GPU at once (`arrived`): then weights stay in shared
// memory, and a block begins a step when those with the same sequences have left their states of the step before.
#pragma once

#include "device/grid.cuh"
#include "device/ptx/mma.cuh"
#include "engines/cuda/rnn/backward.cuh"

namespace tsr::dev {

// A fragment is 16 bytes of a lane: for the left operand 16 rows by 16 of the inner dimension, for the right one 8
// columns by 32, which is a chunk.
constexpr int kFragment = 8;

// Where element k of column n lies among fragments of a right operand of so many chunks.
inline i64 in_fragments(i64 n, i64 k, i64 chunks) {
  i64 lane = n % 8 * 4 + k % 8 / 2;
  return ((n / 8 * chunks + k / kRnnChunk) * 32 + lane) * kFragment + k % kRnnChunk / 8 * 2 + k % 2;
}

template <class T>
void rnn_pack_weights(const RnnPackArgs& a) {
  i64 index = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= a.fragments) return;
  int lane = int(index % 32), step = int(index / 32 % 2);
  i64 tile = index / 64, row = tile % a.tiles * 16 + lane / 4, chunk = tile / a.tiles % a.chunks,
      block = tile / a.tiles / a.chunks;
  T* to = static_cast<T*>(a.to[0]) + index * kFragment;
#pragma unroll
  for (int e = 0; e < kFragment; ++e) {
    i64 r = row + e / 2 % 2 * 8, k = chunk * kRnnChunk + step * 16 + e / 4 * 8 + lane % 4 * 2 + e % 2;
    i64 gate = r / a.units_each, unit = block * a.units_each + r % a.units_each;
    bool exists = gate < a.gates && unit < a.units && k < a.depth;
    to[e] =
        exists ? static_cast<const T*>(a.from)[gate * a.gate_stride + unit * a.unit_stride + k * a.depth_stride] : T{};
  }
}

// States [batch][depth], or zeros, as what both steps of a pair multiply: beyond the sequences it stays 0.
template <class T>
void rnn_pack_states(const RnnPackArgs& a) {
  i64 index = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= a.fragments) return;
  int lane = int(index % 32);
  i64 tile = index / 32, n = tile / a.chunks * 8 + lane / 4;
#pragma unroll
  for (int e = 0; e < kFragment; ++e) {
    i64 k = tile % a.chunks * kRnnChunk + e / 2 * 8 + lane % 4 * 2 + e % 2;
    bool exists = a.from && n < a.units && k < a.depth;
    T v = from_lane<T>(exists ? static_cast<const float*>(a.from)[n * a.depth + k] : 0.0f);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (a.to[i]) static_cast<T*>(a.to[i])[index * kFragment + e] = v;
  }
}

// --- what a thread does with the sums of a unit: sums, then the next operand, then everything else
template <class T, int GATES>
struct RnnUnitForward : RnnCell<T, float, GATES> {
  static constexpr int kSums = GATES;
  void publish(const RnnRecurrenceArgs& a, T* to, i64 b, i64 i) const {
    bool carries = !this->exists && !a.step.projects;  // the state before
    to[in_fragments(b, i, a.to_chunks)] = from_lane<T>(carries ? this->before : this->state);
  }
};

template <class T>
struct RnnUnitProject {
  static constexpr int kSums = 1;
  bool exists;
  float before, h;
  void load(const RnnStepArgs& a, i64 b, i64 j) {
    exists = a.sequences.exists(a.t, b);
    before = static_cast<const float*>(a.h)[b * a.outputs + j];
  }
  void compute(const RnnStepArgs&, const float (&sums)[1]) { h = sums[0]; }
  void publish(const RnnRecurrenceArgs& a, T* to, i64 b, i64 j) const {
    to[in_fragments(b, j, a.to_chunks)] = from_lane<T>(exists ? h : before);
  }
  void store(const RnnStepArgs& a, i64 b, i64 j) const { settle<T>(a, b, j, exists, before, h); }
};

template <class T, int GATES>
void publish_gates(const RnnRecurrenceArgs& a, const RnnCellGradient<T, float, GATES>& cell, T* to, i64 b, i64 i) {
#pragma unroll
  for (int g = 0; g < GATES; ++g)
    to[in_fragments(b, g * a.step.hidden + i, a.to_chunks)] = from_lane<T>(cell.from_state(g));
}

template <class T, int GATES>
struct RnnUnitBackward : RnnStepGradient<T, float, GATES> {
  static constexpr int kSums = 1;
  void compute(const RnnStepArgs& a, const float (&sums)[1]) { RnnStepGradient<T, float, GATES>::compute(a, sums[0]); }
  void publish(const RnnRecurrenceArgs& a, T* to, i64 b, i64 j) const {
    if (a.step.projects)
      to[in_fragments(b, j, a.to_chunks)] = from_lane<T>(this->exists ? this->d : 0.0f);
    else
      publish_gates(a, this->cell, to, b, j);
  }
};

template <class T>
struct RnnUnitProjectBackward : RnnCellGradient<T, float, 4> {
  static constexpr int kSums = 1;
  void compute(const RnnStepArgs& a, const float (&sums)[1]) { RnnCellGradient<T, float, 4>::compute(a, sums[0]); }
  void publish(const RnnRecurrenceArgs& a, T* to, i64 b, i64 i) const { publish_gates(a, *this, to, b, i); }
};

// --- the steps. MT: groups of 16 rows of weights that a block has, NT: of 8 sequences; RESIDENT: weights stay in
// shared memory.
template <class T, class Unit, int MT, int NT, bool RESIDENT>
struct RnnRecurrence {
  static constexpr int kUnits = 16 * MT / Unit::kSums;
  // Sequences whose parts are in shared memory at once, in rounds.
  static constexpr int kRound = NT < 4 ? NT : 4, kRounds = NT / kRound, kColumns = 8 * kRound;
  static constexpr int kPitch = kColumns + 2;  // rows of neighbouring units lie in different banks
  static constexpr int kCells = kUnits * kColumns, kEach = (kCells + kRnnThreads - 1) / kRnnThreads;
  static constexpr int kPartBytes = kRnnWarps * 16 * MT * kPitch * 4;
  static constexpr int kAhead = NT >= 8 || (!RESIDENT && MT * NT >= 8) ? 2 : 4;  // chunks of a warp under way

  const RnnRecurrenceArgs& a;
  RnnStepArgs step;
  const uint4* weights;
  float* parts;
  i64 first_unit, group;
  Unit cells[kRounds][kEach];

  RnnRecurrence(const RnnRecurrenceArgs& args, u32 number) : a(args), step(args.step) {
    parts = reinterpret_cast<float*>(shared_memory());
    u32 blocks = u32(a.unit_blocks), block = number % blocks;
    group = number / blocks, first_unit = i64(block) * kUnits;
    weights = static_cast<const uint4*>(a.weights) + block * a.chunks * (MT * 64);
    if constexpr (RESIDENT) {
      uint4* kept = reinterpret_cast<uint4*>(shared_memory() + kPartBytes);
      for (i64 i = threadIdx.x; i < a.chunks * (MT * 64); i += kRnnThreads) kept[i] = weights[i];
      weights = kept;
      __syncthreads();
    }
  }

  // Calls f with the cells of the thread, their sequences and units.
  template <class F>
  void for_round(i64 tile, int round, const F& f) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      int at = threadIdx.x + e * kRnnThreads, unit = at % kUnits, column = at / kUnits;
      i64 i = first_unit + unit, b = (tile * NT + round * kRound) * 8 + column;
      if ((kCells % kRnnThreads == 0 || at < kCells) && i < a.units && b < step.sequences.batch)
        f(cells[round][e], b, i, unit, column);
    }
  }
  template <class F>
  void for_cells(i64 tile, const F& f) {
#pragma unroll
    for (int r = 0; r < kRounds; ++r) for_round(tile, r, f);
  }

  // Each warp its chunks of the inner dimension.
  void multiply(const uint4* states, float (&sums)[MT][NT][4]) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint4 right[kAhead][NT], left[kAhead][RESIDENT ? 1 : 2 * MT];
    auto fetch = [&](int place, i64 chunk) {
      if (chunk >= a.chunks) return;
#pragma unroll
      for (int j = 0; j < NT; ++j) right[place][j] = load_fresh(states + (j * a.chunks + chunk) * 32 + lane);
      if constexpr (!RESIDENT) {
#pragma unroll
        for (int i = 0; i < 2 * MT; ++i) left[place][i] = weights[(chunk * (2 * MT) + i) * 32 + lane];
      }
    };
#pragma unroll
    for (int p = 0; p < kAhead; ++p) fetch(p, warp + p * kRnnWarps);
    for (i64 first = warp; first < a.chunks; first += kAhead * kRnnWarps) {
#pragma unroll
      for (int p = 0; p < kAhead; ++p) {
        i64 chunk = first + p * kRnnWarps;
        if (chunk >= a.chunks) break;
#pragma unroll
        for (int s = 0; s < 2; ++s)
#pragma unroll
          for (int i = 0; i < MT; ++i) {
            uint4 w = RESIDENT ? weights[((chunk * MT + i) * 2 + s) * 32 + lane] : left[p][RESIDENT ? 0 : i * 2 + s];
            u32 x[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int j = 0; j < NT; ++j) {
              const uint4& v = right[p][j];
              u32 y[2] = {s == 0 ? v.x : v.z, s == 0 ? v.y : v.w};
              mma<T>(sums[i][j], x, y);
            }
          }
        fetch(p, chunk + kAhead * kRnnWarps);
      }
    }
  }

  // The sums of all warps, and with them the cells.
  void compute(i64 tile, const float (&sums)[MT][NT][4]) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      __syncthreads();  // nobody still reads parts
#pragma unroll
      for (int i = 0; i < MT; ++i)
#pragma unroll
        for (int j = 0; j < kRound; ++j)
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            float* to = parts + (warp * 16 * MT + i * 16 + h * 8 + lane / 4) * kPitch + j * 8 + lane % 4 * 2;
            const float(&from)[4] = sums[i][r * kRound + j];
            *reinterpret_cast<float2*>(to) = float2{from[h * 2], from[h * 2 + 1]};
          }
      __syncthreads();
      for_round(tile, r, [&](Unit& cell, i64, i64, int unit, int column) {
        float all[Unit::kSums];
#pragma unroll
        for (int g = 0; g < Unit::kSums; ++g) {
          const float* from = parts + (g * kUnits + unit) * kPitch + column;
          all[g] = from[0];
#pragma unroll
          for (int w = 1; w < kRnnWarps; ++w) all[g] += from[w * 16 * MT * kPitch];
        }
        cell.compute(step, all);
      });
    }
  }

  void run() {
    i64 steps = step.sequences.steps, last = a.last;
    if (a.arrived && step.sequences.starts) {  // of packed sequences these are rows: the first sequence is the longest
      i64 longest = step.sequences.lengths[0];
      last -= steps - longest, steps = longest;
    }
    for (i64 k = a.first; k < last; ++k) {
      step.t = k >= steps ? -1 : a.reversed ? steps - 1 - k : k;
      for (i64 tile = group; tile < a.batch_tiles; tile += a.groups) {
        for_cells(tile, [&](Unit& cell, i64 b, i64 i, int, int) { cell.load(step, b, i); });
        if (k > a.first && tile == group) {
          if (threadIdx.x == 0) wait_for_count(a.arrived + (k - 1) * a.groups + group, u32(a.unit_blocks));
          __syncthreads();
        }
        float sums[MT][NT][4] = {};
        multiply(static_cast<const uint4*>(a.from[k % 2]) + tile * NT * a.chunks * 32, sums);
        compute(tile, sums);
        T* to = static_cast<T*>(a.to[k % 2]);
        for_cells(tile, [&](Unit& cell, i64 b, i64 i, int, int) { cell.publish(a, to, b, i); });
        if (k + 1 < last && tile + a.groups >= a.batch_tiles) {
          __syncthreads();
          if (threadIdx.x == 0) count_up(a.arrived + k * a.groups + group);
        }
        for_cells(tile, [&](Unit& cell, i64 b, i64 i, int, int) { cell.store(step, b, i); });
      }
    }
  }
};

template <class T, class Unit, int MT, int NT, bool RESIDENT>
void rnn_recurrence(const RnnRecurrenceArgs& a) {
  RnnRecurrence<T, Unit, MT, NT, RESIDENT>(a, blockIdx.x).run();
}

// Not by an index: arguments are read from where the launch put them.
template <class T, class Unit, int MT, int NT, bool RESIDENT>
void rnn_recurrence_pair(const RnnPairArgs& a) {
  u32 half = gridDim.x / 2;
  if (blockIdx.x < half)
    RnnRecurrence<T, Unit, MT, NT, RESIDENT>(a.of[0], blockIdx.x).run();
  else
    RnnRecurrence<T, Unit, MT, NT, RESIDENT>(a.of[1], blockIdx.x - half).run();
}

}  // namespace tsr::dev
