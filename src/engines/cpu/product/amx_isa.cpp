// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace; only AVX-512 has anything here. A
// block of C stays in four tiles of AMX while the inner dimension runs: tiles 0 to 3 are its quarters, 4 and 5 rows of
// A, 6 and 7 columns of B. The assembler knows the instructions, whatever the compiler's target.
#include "engines/cpu/product/tile.hpp"

#if defined(__AVX512F__)
#include <cstring>

namespace tsr::cpu::TESSERA_ISA {
namespace {

constexpr int64_t kSide = kRowWords;  // rows of a tile, and words of a row
constexpr int64_t kRowBytes = 4 * kSide;
constexpr int64_t kRows = 2 * kSide, kColumns = 2 * kSide;
// Results, which are read and written again after so many words, take as long as 16 steps of the inner dimension.
constexpr int64_t kDepth = 1024, kPanels = 4;

struct alignas(64) Config {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// The tiles of a thread belong to whoever sets them up.
void enter() {
  static constexpr Config kConfig;
  asm volatile("ldtilecfg %0" ::"m"(kConfig));
}
void leave() { asm volatile("tilerelease"); }

template <int Tile>
[[gnu::always_inline]] inline void load(const void* from, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
[[gnu::always_inline]] inline void store(void* to, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
[[gnu::always_inline]] inline void zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
}

// Tile C += A * B. Of bf16, subnormal elements count as 0.
struct Pairs {
  using Element = Bf16;
  template <int C, int A, int B>
  [[gnu::always_inline]] static inline void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
  }
};
template <bool LeftSigned, bool RightSigned>
struct Fours {
  using Element = Byte;
  template <int C, int A, int B>
  [[gnu::always_inline]] static inline void multiply() {
    if constexpr (LeftSigned && RightSigned)
      asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
    else if constexpr (LeftSigned)
      asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
    else if constexpr (RightSigned)
      asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
    else
      asm volatile("tdpbuud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
  }
};

// A quarter of C at (i, j), if the block has it.
template <int I, int J, bool More, bool Wide, class F>
[[gnu::always_inline]] inline void quarter(const F& f) {
  if constexpr ((I == 0 || More) && (J == 0 || Wide)) f.template operator()<2 * I + J, I, J>();
}
template <bool More, bool Wide, class F>
[[gnu::always_inline]] inline void quarters(const F& f) {
  quarter<0, 0, More, Wide>(f);
  quarter<0, 1, More, Wide>(f);
  quarter<1, 0, More, Wide>(f);
  quarter<1, 1, More, Wide>(f);
}

// One step of the inner dimension: rows of A kRowBytes apart, rows of B `stride` bytes apart.
template <class Step, bool More, bool Wide>
[[gnu::always_inline]] inline void step(const void* a, const void* b, int64_t stride) {
  load<4>(a, kRowBytes);
  load<6>(b, stride);
  if constexpr (More) load<5>(static_cast<const char*>(a) + kSide * kRowBytes, kRowBytes);
  if constexpr (Wide) load<7>(static_cast<const char*>(b) + kRowBytes, stride);
  quarters<More, Wide>([]<int C, int I, int J>() { Step::template multiply<C, 4 + I, 6 + J>(); });
}

// m rows, more than kSide if `More`; n columns, more than kSide if `Wide`.
template <class Step, bool More, bool Wide>
void block(int64_t m, int64_t n, int64_t k, const void* at, int64_t lda, const void* bt, int64_t ldb,
           SumOf<typename Step::Element>* c, int64_t ldc, bool accumulate) {
  using Sum = SumOf<typename Step::Element>;
  const auto *a = static_cast<const char*>(at), *b = static_cast<const char*>(bt);
  constexpr int64_t kM = More ? kRows : kSide, kN = Wide ? kColumns : kSide;
  // Tiles are stored whole: where C has fewer rows or columns, beside it.
  bool whole = m == kM && n == kN;
  alignas(64) Sum beside[kM * kN];
  Sum* sums = whole ? c : beside;
  int64_t stride = whole ? ldc : kN;
  if (whole && accumulate)
    quarters<More, Wide>([&]<int C, int I, int J>() {
      load<C>(sums + I * kSide * stride + J * kSide, stride * static_cast<int64_t>(sizeof(Sum)));
    });
  else
    quarters<More, Wide>([]<int C, int, int>() { zero<C>(); });
  int64_t p = 0;
  for (; p + kSide <= k; p += kSide, a += lda * kRowBytes, b += kSide * ldb * 4) step<Step, More, Wide>(a, b, ldb * 4);
  if (p < k) {  // a part of a tile, with zeros around it
    alignas(64) char left[kM * kRowBytes] = {}, right[kSide * kN * 4] = {};
    for (int64_t i = 0; i < m; ++i)
      std::memcpy(left + i * kRowBytes, a + i * kRowBytes, static_cast<size_t>(k - p) * 4);
    for (int64_t q = 0; q < k - p; ++q) std::memcpy(right + q * kN * 4, b + q * ldb * 4, kN * 4);
    step<Step, More, Wide>(left, right, kN * 4);
  }
  quarters<More, Wide>([&]<int C, int I, int J>() {
    store<C>(sums + I * kSide * stride + J * kSide, stride * static_cast<int64_t>(sizeof(Sum)));
  });
  if (whole) return;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = (accumulate ? c[i * ldc + j] : Sum(0)) + beside[i * kN + j];
}

template <class Step>
void multiply(int64_t m, int64_t n, int64_t k, const typename Step::Element* at, int64_t lda,
              const typename Step::Element* b, int64_t ldb, SumOf<typename Step::Element>* c, int64_t ldc,
              bool accumulate) {
  constexpr int64_t kWord = kGroup<typename Step::Element>;
  for (int64_t j = 0; j < n; j += kColumns)
    for (int64_t i = 0; i < m; i += kRows) {
      int64_t rows = m - i < kRows ? m - i : kRows, columns = n - j < kColumns ? n - j : kColumns;
      auto f = rows > kSide ? (columns > kSide ? block<Step, true, true> : block<Step, true, false>)
                            : (columns > kSide ? block<Step, false, true> : block<Step, false, false>);
      f(rows, columns, k, at + i * kSide * kWord, lda, b + j * kWord, ldb, c + i * ldc + j, ldc, accumulate);
    }
}

template <class Step>
constexpr PanelTile<typename Step::Element> tiles() {
  return {kRows, kColumns, multiply<Step>, true, 0, kDepth, kPanels, enter, leave};
}
template <bool RightSigned, bool Same>
constexpr PanelTile<Byte> kBytes = tiles<Fours<RightSigned == Same, RightSigned>>();

}  // namespace

extern const NarrowTiles kAmxTiles;
const NarrowTiles kAmxTiles = {
    tiles<Pairs>(), {{kBytes<false, false>, kBytes<false, true>}, {kBytes<true, false>, kBytes<true, true>}}};

}  // namespace tsr::cpu::TESSERA_ISA
#endif
