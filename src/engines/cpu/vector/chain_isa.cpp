// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set. Runs chains: the running value of a strip, kWide vectors, stays in registers
// from step to step.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/dtype_table.hpp"
#include "engines/cpu/vector/isa.hpp"

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace tsr::cpu::TESSERA_ISA {
namespace {

#include "engines/cpu/vector/vectors.inc"
// Need the vectors.
#include "engines/cpu/vector/minifloats.inc"
#include "engines/cpu/vector/vector_math.inc"
#include "engines/cpu/vector/vector_memory.inc"
// Needs the functions.
#include "engines/cpu/vector/modes.inc"

using tessera::ReduceMode;

template <bool Whole>
TESSERA_INLINE F32 fetch_one(Format f, const char* p, int lanes) {
  switch (f) {
    case Format::bf16:
      return bfloat_to_float(__builtin_convertvector((read<U16, Whole>(p, lanes)), U32));
    case Format::f16:
      return half_to_float(__builtin_convertvector((read<U16, Whole>(p, lanes)), U32));
    case Format::e8m0:
      return e8m0_to_float(widen(read<U8, Whole>(p, lanes)));
    case Format::i32:
      return __builtin_convertvector((read<I32, Whole>(p, lanes)), F32);
    case Format::i8:
      return __builtin_convertvector(__builtin_convertvector((read<I8, Whole>(p, lanes)), I32), F32);
    case Format::u8:
      return __builtin_convertvector((I32)widen(read<U8, Whole>(p, lanes)), F32);
    case Format::boolean:
      return truth<F32>((I32)widen(read<U8, Whole>(p, lanes)) != 0);
    default:
      return read<F32, Whole>(p, lanes);
  }
}

template <int W, bool Whole>
TESSERA_INLINE void fetch(Format f, const char* p, int64_t at, int lanes, const F32* v, F32* out) {
  auto all = [&](Format as) __attribute__((always_inline)) {
    unrolled<W>([&](auto k) __attribute__((always_inline)) {
      out[k] = fetch_one<Whole>(as, p + (at + k * kLanes) * format_bytes(as), lanes);
    });
  };
  switch (f) {
    case Format::same:
      unrolled<W>([&](auto k) __attribute__((always_inline)) { out[k] = v[k]; });
      return;
    case Format::scalar: {
      float one;
      std::memcpy(&one, p, sizeof one);
      unrolled<W>([&](auto k) __attribute__((always_inline)) { out[k] = splat<F32>(one); });
      return;
    }
    case Format::f32:
      return all(Format::f32);
    case Format::bf16:
      return all(Format::bf16);
    case Format::f16:
      return all(Format::f16);
    case Format::e8m0:
      return all(Format::e8m0);
    case Format::i32:
      return all(Format::i32);
    case Format::i8:
      return all(Format::i8);
    case Format::u8:
      return all(Format::u8);
    case Format::boolean:
      return all(Format::boolean);
    default:
      bool known = with_minifloat(
          minifloat_type(f), [&]<size_t Row>() __attribute__((always_inline)) {
            unrolled<W>([&](auto k) __attribute__((always_inline)) {
              out[k] = minifloat_to_float<Row>(widen(read<U8, Whole>(p + at + k * kLanes, lanes)));
            });
          });
      if (!known) __builtin_unreachable();
  }
}

TESSERA_INLINE bool aligned(const void* p, size_t bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; }

// Past the caches, to an aligned address.
template <class V>
TESSERA_INLINE void stream_one(V v, char* p) {
#if defined(__AVX2__)
  if constexpr (sizeof v == 64) {
#if defined(__AVX512F__)
    return _mm512_stream_ps(reinterpret_cast<float*>(p), (__m512)v);
#endif
  } else if constexpr (sizeof v == 32) {
    return _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
  } else if constexpr (sizeof v == 16) {
    return _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v);
  }
#endif
  std::memcpy(p, &v, sizeof v);
}

// W vectors to memory, past the caches where `stream` says so and the address allows.
template <int W, bool Whole, class F>
TESSERA_INLINE void keep_as(char* p, bool stream, int64_t at, int lanes, int64_t bytes, const F& value) {
  char* to = p + at * bytes;
  if (Whole && stream && aligned(to, static_cast<size_t>(kLanes * bytes)))
    unrolled<W>([&](auto k) __attribute__((always_inline)) { stream_one(value(k), to + k * kLanes * bytes); });
  else
    unrolled<W>([&](auto k) __attribute__((always_inline)) { write<Whole>(value(k), to + k * kLanes * bytes, lanes); });
}

template <int W, bool Whole>
TESSERA_INLINE void keep(const ChainStep& s, char* p, int64_t at, int lanes, const F32* v) {
  auto words = [&](auto bits) __attribute__((always_inline)) {
    keep_as<W, Whole>(
        p, s.stream, at, lanes,
        2, [&](auto k) __attribute__((always_inline)) { return __builtin_convertvector(bits(v[k]), U16); });
  };
  auto bytes = [&](auto bits) __attribute__((always_inline)) {
    keep_as<W, Whole>(
        p, s.stream, at, lanes, 1, [&](auto k) __attribute__((always_inline)) { return narrow(bits(v[k])); });
  };
  switch (s.third_format) {
    case Format::bf16:
      return words([](F32 x) __attribute__((always_inline)) { return float_to_bfloat(x); });
    case Format::f16:
      return words([](F32 x) __attribute__((always_inline)) { return float_to_half(x); });
    case Format::e8m0:
      return bytes([](F32 x) __attribute__((always_inline)) { return float_to_e8m0(x); });
    default:
      with_minifloat(
          minifloat_type(s.third_format), [&]<size_t Row>() __attribute__((always_inline)) {
            bytes([](F32 x) __attribute__((always_inline)) { return float_to_minifloat<Row>(x); });
          });
  }
}

// As they read back from a narrower float.
template <int W>
TESSERA_INLINE void round(Format f, F32* v) {
  auto each = [&](auto rounded) __attribute__((always_inline)) {
    unrolled<W>([&](auto k) __attribute__((always_inline)) { v[k] = rounded(v[k]); });
  };
  switch (f) {
    case Format::bf16:
      return each([](F32 x) __attribute__((always_inline)) { return bfloat_to_float(float_to_bfloat(x)); });
    case Format::f16:
      return each([](F32 x) __attribute__((always_inline)) { return half_to_float(float_to_half(x)); });
    case Format::e8m0:
      return each([](F32 x) __attribute__((always_inline)) { return e8m0_to_float(float_to_e8m0(x)); });
    default:
      with_minifloat(
          minifloat_type(f), [&]<size_t Row>() __attribute__((always_inline)) {
            each([](F32 x)
                     __attribute__((always_inline)) { return minifloat_to_float<Row>(float_to_minifloat<Row>(x)); });
          });
  }
}

// NaN wins.
TESSERA_INLINE F32 combine(ReduceMode mode, F32 a, F32 x) {
  if (mode == ReduceMode::max) return pick(x != x, x, vmax(x, a));
  if (mode == ReduceMode::min) return pick(x != x, x, vmin(x, a));
  return a + x;
}

TESSERA_INLINE float start_of(ReduceMode mode) {
  return mode == ReduceMode::max ? -__builtin_inff() : mode == ReduceMode::min ? __builtin_inff() : 0.0f;
}

// Into one vector of partial results for the whole strip, or into one for each of its vectors (side by side).
template <int W, bool Whole, class F>
TESSERA_INLINE void reduce(ReduceMode mode, char* p, bool side_by_side, int64_t at, int lanes, const F& value) {
  auto into = [&](char* to, F32 x) __attribute__((always_inline)) {
    // Lanes beyond the end keep what they have.
    write<Whole>(combine(mode, read<F32, Whole>(to, lanes), x), to, lanes);
  };
  if (side_by_side)
    return unrolled<W>([&](auto k) __attribute__((always_inline)) { into(p + (at + k * kLanes) * 4, value(k)); });
  F32 x[W];
  unrolled<W>([&](auto k) __attribute__((always_inline)) { x[k] = value(k); });
  if constexpr (W == 8)
    unrolled<4>([&](auto k) __attribute__((always_inline)) { x[k] = combine(mode, x[k], x[k + 4]); });
  if constexpr (W >= 4) {
    x[0] = combine(mode, x[0], x[2]), x[1] = combine(mode, x[1], x[3]);
    x[0] = combine(mode, x[0], x[1]);
  }
  into(p, x[0]);
}

TESSERA_INLINE F32 scalar_at(const char* p) {
  float one;
  std::memcpy(&one, p, sizeof one);
  return splat<F32>(one);
}

// One of the most frequent steps, known when this is compiled.
template <ChainStep::Kind K, int W, bool Whole>
TESSERA_INLINE void known_step(const ChainStep& s, const ChainArgs& g, int64_t at, int lanes, F32* v) {
  auto each = [&](auto f) __attribute__((always_inline)) { unrolled<W>(f); };
  auto pointer = [&](int slot) { return static_cast<char*>(g.slots[slot]); };
  auto f32_at = [&](int slot, int k) __attribute__((always_inline)) {
    return read<F32, Whole>(pointer(slot) + (at + k * kLanes) * 4, lanes);
  };
  auto with_scalar = [&](auto f) __attribute__((always_inline)) {
    F32 one = scalar_at(pointer(s.slot));
    each([&](auto k) __attribute__((always_inline)) { v[k] = f(v[k], one); });
  };
  auto with_f32 = [&](auto f) __attribute__((always_inline)) {
    each([&](auto k) __attribute__((always_inline)) { v[k] = f(v[k], f32_at(s.slot, k)); });
  };
  auto collect = [&](ReduceMode mode, auto value) __attribute__((always_inline)) {
    reduce<W, Whole>(mode, pointer(s.third), g.side_by_side, at, lanes, value);
  };
  if constexpr (K == ChainStep::take_f32) {
    each([&](auto k) __attribute__((always_inline)) { v[k] = f32_at(s.slot, k); });
  } else if constexpr (K == ChainStep::add_scalar) {
    with_scalar([](F32 x, F32 b) { return x + b; });
  } else if constexpr (K == ChainStep::sub_scalar) {
    with_scalar([](F32 x, F32 b) { return x - b; });
  } else if constexpr (K == ChainStep::mul_scalar) {
    with_scalar([](F32 x, F32 b) { return x * b; });
  } else if constexpr (K == ChainStep::add_f32) {
    with_f32([](F32 x, F32 b) { return x + b; });
  } else if constexpr (K == ChainStep::sub_f32) {
    with_f32([](F32 x, F32 b) { return x - b; });
  } else if constexpr (K == ChainStep::mul_f32) {
    with_f32([](F32 x, F32 b) { return x * b; });
  } else if constexpr (K == ChainStep::mul_add_f32) {
    each([&](auto k) __attribute__((always_inline)) { v[k] = v[k] * f32_at(s.slot, k) + f32_at(s.third, k); });
  } else if constexpr (K == ChainStep::exp_f32) {
    each([&](auto k) __attribute__((always_inline)) { v[k] = f_exp(v[k]); });
  } else if constexpr (K == ChainStep::keep_f32 || K == ChainStep::stream_f32) {
    keep_as<W, Whole>(
        pointer(s.third), K == ChainStep::stream_f32, at, lanes,
        4, [&](auto k) __attribute__((always_inline)) { return v[k]; });
  } else if constexpr (K == ChainStep::reduce_max) {
    collect(
        ReduceMode::max, [&](auto k) __attribute__((always_inline)) { return v[k]; });
  } else if constexpr (K == ChainStep::reduce_add) {
    collect(
        ReduceMode::add, [&](auto k) __attribute__((always_inline)) { return v[k]; });
  } else if constexpr (K == ChainStep::reduce_square) {
    collect(
        ReduceMode::add, [&](auto k) __attribute__((always_inline)) { return v[k] * v[k]; });
  } else {
    static_assert(K == ChainStep::prefetch);
    for (int64_t b = 0; b < W * kLanes * format_bytes(s.third_format); b += 64)
      __builtin_prefetch(pointer(s.third) + at * format_bytes(s.third_format) + b, 0, 2);
  }
}

// Strips of W vectors from element `at` to `end`; a single vector may be `lanes` long only.
template <int W, bool Whole>
int64_t strips(const ChainArgs& g, int64_t at, int64_t end, int lanes) {
  F32 v[W], w[W];
  auto each = [&](auto f) __attribute__((always_inline)) { unrolled<W>(f); };
  each([&](auto k) __attribute__((always_inline)) { v[k] = w[k] = F32{}; });
  for (; at + (Whole ? W * kLanes : lanes) <= end; at += W * kLanes)
    for (const ChainStep *s = g.steps, *last = s + g.count; s != last; ++s) {
      auto pointer = [&](int slot) { return static_cast<char*>(g.slots[slot]); };
      switch (s->kind) {
        case ChainStep::take_f32:
          known_step<ChainStep::take_f32, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::add_scalar:
          known_step<ChainStep::add_scalar, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::sub_scalar:
          known_step<ChainStep::sub_scalar, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::mul_scalar:
          known_step<ChainStep::mul_scalar, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::add_f32:
          known_step<ChainStep::add_f32, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::sub_f32:
          known_step<ChainStep::sub_f32, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::mul_f32:
          known_step<ChainStep::mul_f32, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::mul_add_f32:
          known_step<ChainStep::mul_add_f32, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::keep_f32:
          known_step<ChainStep::keep_f32, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::stream_f32:
          known_step<ChainStep::stream_f32, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::exp_f32:
          known_step<ChainStep::exp_f32, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::reduce_max:
          known_step<ChainStep::reduce_max, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::reduce_add:
          known_step<ChainStep::reduce_add, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::reduce_square:
          known_step<ChainStep::reduce_square, W, Whole>(*s, g, at, lanes, v);
          continue;
        case ChainStep::prefetch:
          known_step<ChainStep::prefetch, W, Whole>(*s, g, at, lanes, v);
          continue;
        default:
          break;
      }
      if (s->format != Format::none)
        fetch<W, Whole>(s->format, s->slot < 0 ? nullptr : pointer(s->slot), at, lanes, v, w);
      if (s->swapped) each([&](auto k) __attribute__((always_inline)) { std::swap(v[k], w[k]); });
      if (s->scaled) each([&](auto k) __attribute__((always_inline)) { v[k] *= s->alpha1, w[k] *= s->alpha2; });
      switch (s->kind) {
        case ChainStep::take:
          each([&](auto k) __attribute__((always_inline)) { v[k] = w[k]; });
          break;
        case ChainStep::apply:
          real_mode<F32>(
              s->mode, *s,
              [&](auto f) __attribute__((always_inline)) {
                each([&](auto k) __attribute__((always_inline)) { v[k] = f(v[k]); });
              },
              [&](auto f) __attribute__((always_inline)) {
                each([&](auto k) __attribute__((always_inline)) { v[k] = f(v[k], w[k]); });
              });
          break;
        case ChainStep::select:
        case ChainStep::select_by: {
          F32 u[W];
          fetch<W, Whole>(s->third_format, pointer(s->third), at, lanes, v, u);
          if (s->kind == ChainStep::select)
            each([&](auto k) __attribute__((always_inline)) { v[k] = pick(u[k] != 0.0f, v[k], w[k]); });
          else
            each([&](auto k) __attribute__((always_inline)) { v[k] = pick(v[k] != 0.0f, w[k], u[k]); });
          break;
        }
        case ChainStep::round:
          round<W>(s->third_format, v);
          break;
        case ChainStep::keep:
          keep<W, Whole>(*s, pointer(s->third), at, lanes, v);
          break;
        case ChainStep::reduce: {
          auto one = [&](auto k) __attribute__((always_inline)) { return v[k]; };
          if (s->reduction == ReduceMode::max)
            reduce<W, Whole>(ReduceMode::max, pointer(s->third), g.side_by_side, at, lanes, one);
          else if (s->reduction == ReduceMode::min)
            reduce<W, Whole>(ReduceMode::min, pointer(s->third), g.side_by_side, at, lanes, one);
          else
            reduce<W, Whole>(ReduceMode::add, pointer(s->third), g.side_by_side, at, lanes, one);
          break;
        }
        default:
          break;
      }
    }
  return at;
}

// A chain of exactly these steps, perhaps behind prefetches, without a decision inside the loop. Moves `at` to where it
// stopped.
template <ChainStep::Kind... K>
bool known_chain(const ChainArgs& g, int64_t& at) {
  constexpr ChainStep::Kind kKinds[] = {K...};
  int ahead = 0;
  while (ahead < g.count && g.steps[ahead].kind == ChainStep::prefetch) ++ahead;
  if (g.count - ahead != static_cast<int>(sizeof...(K)) || g.side_by_side) return false;
  for (int i = ahead; i < g.count; ++i)
    if (g.steps[i].kind != kKinds[i - ahead]) return false;
  for (; at + kWide * kLanes <= g.n; at += kWide * kLanes) {
    F32 v[kWide] = {};
    for (int i = 0; i < ahead; ++i) known_step<ChainStep::prefetch, kWide, true>(g.steps[i], g, at, kLanes, v);
    const ChainStep* s = g.steps + ahead;
    (known_step<K, kWide, true>(*s++, g, at, kLanes, v), ...);
  }
  return true;
}

// The passes of softmax and of norms over f32 rows.
void known_chains(const ChainArgs& g, int64_t& at) {
  using S = ChainStep;
  (void)(known_chain<S::take_f32, S::sub_scalar, S::exp_f32, S::keep_f32, S::reduce_add>(g, at) ||
         known_chain<S::take_f32, S::reduce_max>(g, at) ||
         known_chain<S::take_f32, S::mul_scalar, S::stream_f32>(g, at) ||
         known_chain<S::take_f32, S::mul_scalar, S::keep_f32>(g, at) ||
         known_chain<S::take_f32, S::reduce_add>(g, at) ||
         known_chain<S::take_f32, S::sub_scalar, S::reduce_add, S::reduce_square>(g, at) ||
         known_chain<S::take_f32, S::sub_scalar, S::sub_scalar, S::mul_scalar, S::mul_add_f32, S::stream_f32>(g, at) ||
         known_chain<S::take_f32, S::sub_scalar, S::sub_scalar, S::mul_scalar, S::mul_add_f32, S::keep_f32>(g, at) ||
         known_chain<S::take_f32, S::reduce_square>(g, at) ||
         known_chain<S::take_f32, S::mul_scalar, S::mul_f32, S::stream_f32>(g, at));
}

// Elements up to the first aligned address of a streamed result.
int64_t head([[maybe_unused]] const ChainArgs& g) {
#if defined(__AVX2__)
  for (const ChainStep *s = g.steps, *end = s + g.count; s != end; ++s) {
    if (!s->stream) continue;
    int64_t bytes = format_bytes(s->third_format), line = kLanes * bytes;
    auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(g.slots[s->third]) % static_cast<uintptr_t>(line));
    return past % bytes ? 0 : (line - past) % line / bytes;
  }
#endif
  return 0;
}

void run_row(const ChainArgs& g) {
  if (g.n < kLanes) return (void)strips<1, false>(g, 0, g.n, static_cast<int>(g.n));  // the code of a row
  int64_t at = head(g);
  if (at > 0 && at < g.n)
    (void)strips<1, false>(g, 0, at, static_cast<int>(at));
  else
    at = 0;
  known_chains(g, at);
  at = strips<kWide, true>(g, at, g.n, kLanes);
  at = strips<1, true>(g, at, g.n, kLanes);
  if (at < g.n) (void)strips<1, false>(g, at, g.n, static_cast<int>(g.n - at));
}

}  // namespace

void run_chain(const ChainArgs& g) {
  run_row(g);
  for (int64_t r = 1; r < g.rows; ++r) {
    for (int k = 0; k < g.slot_count; ++k) g.slots[k] = static_cast<char*>(g.slots[k]) + g.row_steps[k];
    run_row(g);
  }
}

// Adds what a reduction collected over some blocks to its running value and starts anew.
void drain(ReduceMode mode, float* partials, double& total) {
  Half part[2];
  std::memcpy(part, partials, sizeof part);
  if (mode == ReduceMode::add) {
    WideHalf sums = __builtin_convertvector(part[0], WideHalf) + __builtin_convertvector(part[1], WideHalf);
    double sum = 0;
    for (int i = 0; i < kLanes / 2; ++i) sum += sums[i];
    total += sum;
  } else {
    // NaN wins.
    bool max = mode == ReduceMode::max;
    Half x = part[0], y = part[1];
    Half best = ((max ? x > y : x < y) | (x != x)) ? x : y;
    for (int i = 0; i < kLanes / 2; ++i) {
      double v = static_cast<double>(best[i]);
      total = (max ? v > total : v < total) || v != v ? v : total;
    }
  }
  F32 start = splat<F32>(start_of(mode));
  std::memcpy(partials, &start, sizeof start);
}

}  // namespace tsr::cpu::TESSERA_ISA
