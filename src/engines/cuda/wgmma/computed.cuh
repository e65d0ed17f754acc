// SPDX-License-Identifier: Apache-2.0
// Products of operands that are computed on their way. The copy engine brings the largest tensor that an operand is
// made of into a ring of its own; a warpgroup takes it from there, reads what else it needs, and puts what generated
// code gives into the ring of the product, as the copy engine would have. An operand that lies in memory still comes
// straight to that.
#pragma once

#include "engines/cuda/wgmma/product.cuh"

namespace tsr::dev {

// COUNT rows or columns of a tile, V elements at once, whose memory has BITS each: along the inner dimension, or
// ACROSS it.
template <template <int> class CODE, int V, bool ACROSS, int BITS>
struct WgmmaComputed {
  static constexpr bool kComputed = true;

  template <int COUNT, int DEPTH>
  class Side {
    using C = CODE<V>;
    using E = WgmmaPrologue;
    static constexpr int kChunks = COUNT * DEPTH / V / 128;

   public:
    static constexpr int kRawBytes = COUNT * DEPTH * BITS / 8;

    explicit Side(const E& e) : e_(e), known_(known_to_all<C>(e)) {}
    void fetch_raw(char* to, const TilePlace& p, int first, int inner, u64* full) const {
      int batch = p.batch * e_.batches;
      if constexpr (ACROSS)
        tensor_load<3>(to, &e_.raw, {first * BITS / e_.unit, inner, batch}, full);
      else
        tensor_load<3>(to, &e_.raw, {inner * BITS / e_.unit, first, batch}, full);
    }

    // From `raw` to the place of a tile that begins with row or column `first` of `count`. What is not there is 0.
    void put(const char* raw, char* place, int batch, int first, int count, int from, int depth) const {
      constexpr int kAtOnce = ACROSS ? 2 : 4;  // what registers hold
#pragma unroll kAtOnce
      for (int j = 0; j < kChunks; ++j) {
        int n = neighbour(j), k = inner(j);
        typename C::Sums out = {};
        if (first + n < count && from + k < depth) {
          i64 at[C::kOperands + 1];
#pragma unroll
          for (int o = 0; o < C::kOperands; ++o)
            at[o] = i64(batch) * e_.operands[o].batch + i64(first + n) * e_.operands[o].neighbour +
                    i64((from + k) >> e_.operands[o].shift) * e_.operands[o].inner;
          typename C::Loaded x;
          typename C::Late late;
          typename C::Kept kept;
          C::take(raw + (ACROSS ? k * COUNT + n : n * DEPTH + k) * BITS / 8, x);
          C::load(e_, at, x);
          C::store(e_, at, x, late, kept, known_, out);
        }
        auto values = C::result(out);
        using T = decltype(&values.v[0]);
        int byte = k * int(sizeof(values.v[0]));
        auto to = [&](int row) { return reinterpret_cast<T>(place + row * 128 + (byte ^ row % 8 * 16)); };
        if constexpr (ACROSS) {
#pragma unroll
          for (int v = 0; v < V; ++v) *to(n + v) = values.v[v];
        } else {
          store_vector(to(n), values);
        }
      }
    }

   private:
    // Threads take neighbouring elements of what came, and different banks of where it goes.
    static int neighbour(int j) {
      int q = int(threadIdx.x) % 128 + 128 * j;
      if constexpr (ACROSS) return (q / 32 % (COUNT / V / 2) * 2 + q % 2) * V;
      return q / (DEPTH / V);
    }
    static int inner(int j) {
      int q = int(threadIdx.x) % 128 + 128 * j;
      if constexpr (ACROSS) return q / 32 / (COUNT / V / 2) * 16 + q % 32 / 2;
      return q % (DEPTH / V) * V;
    }

    const E& e_;
    typename C::Rows known_;
  };
};

// The copy engine brings it as it is.
struct WgmmaCopied {
  static constexpr bool kComputed = false;

  template <int COUNT, int DEPTH>
  struct Side {
    static constexpr int kRawBytes = 0;
    explicit Side(const WgmmaPrologue&) {}
    void fetch_raw(char*, const TilePlace&, int, int, u64*) const {}
    void put(const char*, char*, int, int, int, int, int) const {}
  };
};

// The steps of a block's tiles, one after the other.
struct StepWalk {
  int tile, step;
  TilePlace place;
  StepWalk(const WgmmaArgs& a) : tile(blockIdx.x) { enter(a); }
  bool there(const WgmmaArgs& a) const { return tile < tiles_of(a); }
  void next(const WgmmaArgs& a) {
    if (++step < place.last_step) return;
    tile += gridDim.x;
    enter(a);
  }

 private:
  void enter(const WgmmaArgs& a) {
    if (!there(a)) return;
    place = place_of(a, tile);
    step = place.first_step;
  }
};

// By a warpgroup.
template <class T, class A, class B>
void produce_computed(const WgmmaComputedArgs& a, char* ring, u64* full, u64* empty, char* raw, u64* raw_full) {
  using Left = typename A::template Side<T::kRows, T::kDepth>;
  using Right = typename B::template Side<T::kColumns, T::kDepth>;
  constexpr int kRaw = Left::kRawBytes + Right::kRawBytes;
  constexpr int kCopied = (A::kComputed ? 0 : T::kABytes) + (B::kComputed ? 0 : T::kBBytes);
  constexpr int kBarrier = 1 + T::kConsumers;  // of the warpgroup
  bool asks = threadIdx.x % 128 == 0;
  Left left(a.before[0]);
  Right right(a.before[1]);
  auto fetch_raw = [&](const StepWalk& s, int slot) {
    char* to = raw + slot * kRaw;
    barrier_expect(raw_full + slot, kRaw);
    left.fetch_raw(to, s.place, s.place.row * T::kRows, s.step * T::kDepth, raw_full + slot);
    right.fetch_raw(to + Left::kRawBytes, s.place, s.place.column * T::kColumns, s.step * T::kDepth, raw_full + slot);
  };
  StepWalk ahead(a);
  for (int i = 0; asks && i < kWgmmaRawStages && ahead.there(a); ++i, ahead.next(a)) fetch_raw(ahead, i);
  RingPlace at, from;
  for (StepWalk s(a); s.there(a); s.next(a)) {
    const TilePlace& p = s.place;
    int row = p.row * T::kRows, column = p.column * T::kColumns, inner = s.step * T::kDepth;
    char *place = ring + at.slot * T::kStageBytes, *came = raw + from.slot * kRaw;
    u64* ready = full + at.slot;
    barrier_wait(empty + at.slot, at.parity ^ 1);
    if (kCopied > 0 && asks) {
      barrier_expect(ready, kCopied);
      if constexpr (!A::kComputed)
        fetch<T::kAAcross, T::kRows, T::kDepth>(place, &a.a, row, inner, p.batch * a.a_batches, ready, 0);
      if constexpr (!B::kComputed)
        fetch<T::kBAcross, T::kColumns, T::kDepth>(place + T::kABytes, &a.b, column, inner, p.batch * a.b_batches,
                                                   ready, 0);
    }
    barrier_wait(raw_full + from.slot, from.parity);
    left.put(came, place, p.batch, row, a.rows[0].count, inner, a.depth);
    right.put(came + Left::kRawBytes, place + T::kABytes, p.batch, column, a.columns, inner, a.depth);
    fence_for_copies();
    barrier_arrive(ready);
    named_sync(kBarrier, 128);  // all have read what came
    if (asks && ahead.there(a)) {
      fetch_raw(ahead, from.slot);
      ahead.next(a);
    }
    at.next<T::kStages>();
    from.next<kWgmmaRawStages>();
  }
}

template <class T, class Product, template <int> class Code, int V, class A, class B>
void wgmma_computed(const WgmmaComputedArgs& a) {
  static_assert(T::kCluster == 1 && T::kBlocks == 1 && T::kWindow == Windowed::none && !T::kTurns);
  constexpr int kRaw =
      A::template Side<T::kRows, T::kDepth>::kRawBytes + B::template Side<T::kColumns, T::kDepth>::kRawBytes;
  char *ring = shared_memory(), *raw = ring + T::kRingBytes, *out = raw + kWgmmaRawStages * kRaw;
  auto& barriers = *reinterpret_cast<RingBarriers<T::kStages>*>(out + T::kOutBytes);
  u64 *full = barriers.full, *empty = barriers.empty, *raw_full = reinterpret_cast<u64*>(&barriers + 1);
  if (threadIdx.x == 0) {
    barriers.start(128 + (A::kComputed && B::kComputed ? 0 : 1), T::kConsumers);
    for (int i = 0; i < kWgmmaRawStages; ++i) barrier_init(raw_full + i, 1);
    barriers_ready();
  }
  __syncthreads();
  wait_for_previous();
  if (threadIdx.x >= 128 * T::kConsumers) {
    if constexpr (T::kColumns > 128) registers_fewer<72>();
    produce_computed<T, A, B>(a, ring, full, empty, raw, raw_full);
  } else {
    if constexpr (T::kColumns > 128) registers_more<216>();
    consume<T, Product, Code<V>, V>(a, ring, full, empty, out, blockIdx.x, gridDim.x);
  }
}

}  // namespace tsr::dev
