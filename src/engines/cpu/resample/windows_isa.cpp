// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace.
#include "engines/cpu/resample/windows.hpp"

#include <cstring>

namespace tsr::cpu::TESSERA_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr int kWide = 4;  // vectors of results that stay in registers while a window goes by

template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(kVectorBytes)));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class V, class T>
[[gnu::always_inline]] inline V fetch(const T* p) {
  V v;
  std::memcpy(&v, p, sizeof(V));
  return v;
}

// What a window collects, N vectors wide.
template <class T, int N, bool kIndexed>
struct Largest {
  using V = Vector<T>;
  static constexpr bool kReadsIndex = false, kWritesIndex = kIndexed;
  static constexpr int kBytes = N * kVectorBytes;
  static constexpr int kLanes = kVectorBytes / sizeof(T);
  V best[N], place[N];
  bool any = false;

  [[gnu::always_inline]] inline void take(const T* x, const T*, T, T at) {
    for (int k = 0; k < N; ++k) {
      V v = fetch<V>(x + k * kLanes);
      if (!any) {
        best[k] = v;
        if (kIndexed) place[k] = V{} + at;
        continue;
      }
      auto larger = (v > best[k]) | (v != v);
      if (kIndexed) place[k] = (larger & (best[k] == best[k])) ? V{} + at : place[k];
      best[k] = larger ? v : best[k];
    }
    any = true;
  }
  [[gnu::always_inline]] inline void finish(const WindowRow<T>& w, T* y, T* index) const {
    for (int k = 0; k < N; ++k) {
      V value = (any ? best[k] : V{} - __builtin_inff()) * w.alpha, at = any ? place[k] : V{};
      std::memcpy(y + k * kLanes, &value, sizeof(V));
      if (kIndexed) std::memcpy(index + k * kLanes, &at, sizeof(V));
    }
  }
};

template <class T, int N, bool kSelects>
struct Sum {
  using V = Vector<T>;
  static constexpr bool kReadsIndex = kSelects, kWritesIndex = false;
  static constexpr int kBytes = N * kVectorBytes;
  static constexpr int kLanes = kVectorBytes / sizeof(T);
  V sum[N] = {};

  [[gnu::always_inline]] inline void take(const T* x, const T* index, T weight, T at) {
    for (int k = 0; k < N; ++k) {
      V v = fetch<V>(x + k * kLanes);
      if (kSelects)
        sum[k] += fetch<V>(index + k * kLanes) == at ? v : V{};
      else
        sum[k] += v * weight;
    }
  }
  [[gnu::always_inline]] inline void finish(const WindowRow<T>& w, T* y, T*) const {
    for (int k = 0; k < N; ++k) {
      V value = sum[k] * w.alpha;
      std::memcpy(y + k * kLanes, &value, sizeof(V));
    }
  }
};

// Result i, lanes from `lane` on.
template <class Collector, class T>
[[gnu::always_inline]] inline void collect(const WindowRow<T>& w, int64_t i, int64_t lane) {
  Collector c;
  const WindowTap<T>*begin = w.taps + w.first[i], *end = w.taps + w.first[i + 1];
  for (const SourceRow<T>* r = w.rows; r != w.rows + w.row_count; ++r)
    for (const WindowTap<T>* t = begin; t != end; ++t) {
      int64_t p = t->source - w.origin;
      const T* x = (t->source < 0 ? w.padding : r->values + p * r->step) + lane;
      const T* index = Collector::kReadsIndex ? r->index + p * r->index_step + lane : nullptr;
      if (w.ahead != 0)
        for (int byte = 0; byte < Collector::kBytes; byte += 64)
          __builtin_prefetch(reinterpret_cast<const char*>(x + w.ahead) + byte);
      c.take(x, index, r->weight * t->weight, r->place + t->place);
    }
  T* index = Collector::kWritesIndex ? w.index + i * w.index_step + lane : nullptr;
  c.finish(w, w.y + i * w.y_step + lane, index);
}

template <class T, template <class, int, bool> class Collector, bool kOption>
void run(const WindowRow<T>& w) {
  constexpr int kLanes = kVectorBytes / sizeof(T), kNarrow = kLaneBlock / kLanes;
  for (int64_t i = 0; i < w.count; ++i) {
    int64_t lane = 0;
    for (; lane + kWide * kLanes <= w.lanes; lane += kWide * kLanes) collect<Collector<T, kWide, kOption>>(w, i, lane);
    for (; lane < w.lanes; lane += kLaneBlock)
      collect<Collector<T, kNarrow, kOption>>(w, i, lane + kLaneBlock <= w.lanes ? lane : w.lanes - kLaneBlock);
  }
}

template <class T>
void largest(const WindowRow<T>& w) {
  if (w.index)
    run<T, Largest, true>(w);
  else
    run<T, Largest, false>(w);
}

}  // namespace

extern const Windows<float> kWindows;
const Windows<float> kWindows = {largest<float>, run<float, Sum, false>, run<float, Sum, true>};
extern const Windows<double> kWideWindows;
const Windows<double> kWideWindows = {largest<double>, run<double, Sum, false>, run<double, Sum, true>};

}  // namespace tsr::cpu::TESSERA_ISA
