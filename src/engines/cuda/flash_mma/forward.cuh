// SPDX-License-Identifier: Apache-2.0
// Attention forward by products of warps (mma.sync, compute capability 8.0 and later). A block has a tile of rows, the
// queries of all heads that share keys; a warp has 16 or 32 of them, whose scores, weights and results stay in its
// registers. Keys and values of the next step come while this one's are multiplied.
#pragma once

#include "engines/cuda/flash_mma/tile.cuh"
#include "engines/cuda/scores/results.cuh"
#include "engines/cuda/scores/softmax.cuh"

namespace tsr::dev::attention {

// The tile as this warp sees it.
template <class T, class O>
struct FlashMmaSteps {
  const FlashMmaArgs& a;
  FlashMmaMemory<T>& m;
  const FlashMmaWork& w;
  const ScoreFactors<float>& f;
  float exponent;  // what makes a score an exponent of 2
  RowPair r[T::kParts];
  float o[T::kParts][T::kColumns / 2];

  static int first_row() { return threadIdx.x / 32 * kWarpRows * T::kParts; }

  void begin() {
#pragma unroll
    for (int part = 0; part < T::kParts; ++part) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        Row<float> row = row_of(part, i);
        r[part].first[i] = row.first, r[part].last[i] = row.last;
        r[part].max[i] = -infinity(), r[part].sum[i] = 0.0f;
      }
#pragma unroll
      for (int i = 0; i < T::kColumns / 2; ++i) o[part][i] = 0.0f;
    }
  }

  void step(int n) {
    auto& stage = m.stages[n % kFlashStages];
    float s[T::kParts][T::kKeys / 2] = {};
    multiply_rows<typename T::In, T::kDepth>(m.queries[first_row()], stage.keys[0], s);
    bool masked = kChangesScores<O> || n < w.full_first || n >= w.full_end;
    i32 key = n * T::kKeys;
    u32 p[T::kParts][T::kKeys / 16][4];
#pragma unroll
    for (int part = 0; part < T::kParts; ++part) {
      Row<float> mine[2] = {};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if constexpr (kChangesScores<O> || O::kDrops)
          mine[i] = row_of(part, i);
        else
          mine[i].first = r[part].first[i], mine[i].last = r[part].last[i];
      }
      float factor[2];
      if (masked)
        finish_scores<O, T::kFolded, true>(a, f.score, w.b, mine, key + i32(threadIdx.x) % 4 * 2, s[part]);
      else
        finish_scores<O, T::kFolded, false>(a, f.score, w.b, mine, key + i32(threadIdx.x) % 4 * 2, s[part]);
      update_softmax(r[part], exponent, s[part], factor);
      if constexpr (O::kDrops) {
        bool second = threadIdx.x % 2;
        drop_weights<O>(a, f, w.b, second ? mine[1].head : mine[0].head, second ? mine[1].query : mine[0].query, key,
                        s[part]);
      }
      to_weights<typename T::In>(s[part], p[part]);
#pragma unroll
      for (int i = 0; i < T::kColumns / 2; ++i) o[part][i] *= factor[i / 2 % 2];
    }
    add_rows<typename T::In, T::kColumns>(p, stage.values[0], o);
  }

  // Results and statistics; queries from `end` on are none. Statistics come last, when no results take registers.
  void finish(i32 end) {
    if (a.o.data)
#pragma unroll
      for (int part = 0; part < T::kParts; ++part) {
        Row<float> mine[2] = {row_of(part, 0), row_of(part, 1)};
        store(end, mine, {finished(part, 0, mine[0]).factor, finished(part, 1, mine[1]).factor}, o[part]);
      }
#pragma unroll
    for (int part = 0; part < T::kParts; ++part)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        Row<float> row = row_of(part, i);
        FinishedRow y = finished(part, i, row);
        if (threadIdx.x % 4 == 0 && row.query < end) write_statistics(a, w.b, row.head, row.query, w.len_q, y.soft);
      }
  }

 private:
  // One of the two rows that a thread has of a part. It is found again whenever it is wanted: registers are scarce.
  Row<float> row_of(int part, int i) const {
    i32 index = w.row + first_row() + part * kWarpRows + i32(threadIdx.x) % 32 / 4 + 8 * i;
    return grouped_row<O>(a, w, again(index));
  }
  FinishedRow finished(int part, int i, const Row<float>& row) const {
    float sum = warp_reduce<Add, 4>(r[part].sum[i]);
    if (row.query >= w.len_q) return {{-infinity(), 0.0f}, 0.0f};
    return finish_softmax<T::kFolded>(f, exponent, r[part].max[i], sum,
                                      O::kSink ? read<float>(a.sink, row.head) : -infinity());
  }
  void store(i32 end, const Row<float> (&mine)[2], const float (&factor)[2], float (&sums)[T::kColumns / 2]) const {
    using Out = typename T::Out;
    i64 offset[2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      offset[i] = mine[i].query < end ? result_offset(a.o, w.b, mine[i].head, mine[i].query, w.len_q) : -1;
#pragma unroll
    for (int i = 0; i < T::kColumns / 2; ++i)
      if (factor[i / 2 % 2] == 0.0f) sums[i] = 0.0f;  // nothing was attended to; what was multiplied may be NaN
#pragma unroll
    for (int c = 0; c < T::kColumns / 32; ++c) {
      Vec<float, 4> fours[4];
      take_fours(sums, c, fours);
      i32 column = 32 * c + i32(threadIdx.x) % 4 * 8;
      each_eight(fours, [&](int i, const float(&x)[8]) {
        if (offset[i] >= 0 && column < a.dv)
          store_eight(static_cast<Out*>(a.o.data) + offset[i] + column * a.o.strides[3], a.o.strides[3], a.o_whole,
                      factor[i], x);
      });
    }
  }
};

template <class T, class O>
void flash_mma(const FlashMmaArgs& a) {
  auto& m = *reinterpret_cast<FlashMmaMemory<T>*>(shared_memory());
  ScoreFactors<float> f;
  read_score_factors<O>(a, f);
  GroupedRows rows = block_rows(a);
  // Packed sequences may have more queries than the sizes say.
  i32 end = max(a.sq, a.open_q ? rows.len_q : 0);
  for (i32 tile = rows.row; tile * T::kRows < end * a.group; tile += a.row_tiles) {
    rows.row = tile * T::kRows;
    FlashMmaWork w = work_of<T>(a, rows);
    FlashMmaSteps<T, O> steps{a, m, w, f, T::kFolded ? f.score * kLog2e : kLog2e};
    steps.begin();
    if (w.first < w.end) {
      FlashMmaFetch<T> fetch(a, m, w);
      fetch.step(w.first);
      load_queries<T::kRows, T::kDepth, T::kThreads>(a, a.q, a.d, w, m.queries[0], kPitch<T::kDepth>);
#pragma unroll 1
      for (int n = w.first; n < w.end; ++n) {
        pieces_wait<0>();
        __syncthreads();  // this step's keys and values have come, and all are done with those before
        if (n + 1 < w.end) fetch.step(n + 1);
        steps.step(n);
      }
      __syncthreads();  // all are done with this tile's
    }
    steps.finish(end);
  }
}

}  // namespace tsr::dev::attention
