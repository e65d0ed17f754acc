// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set. Independent chains of multiply-adds, enough to hide their latency.
#include <cstdint>

namespace tsr::TESSERA_ISA {

#if defined(__AVX512F__)
constexpr int kBytes = 64, kChains = 24;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kChains = 12;
#else
constexpr int kBytes = 16, kChains = 8;
#endif

// Returns the operations done; the sum goes to `sink` so that nothing is left out.
double multiply_add(int64_t rounds, float* sink) {
  using Vector = float __attribute__((vector_size(kBytes)));
  float start = *sink;
  Vector a = start + Vector{}, b = a, sum[kChains];
  // Each chain starts elsewhere, or the compiler would compute one for all.
  for (int c = 0; c < kChains; ++c) sum[c] = a * static_cast<float>(c);
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c) sum[c] = sum[c] * a + b;
  for (int c = 0; c < kChains; ++c)
    for (int lane = 0; lane < kBytes / 4; ++lane) *sink += sum[c][lane];
  return 2.0 * static_cast<double>(rounds) * kChains * (kBytes / 4.0);
}

}  // namespace tsr::TESSERA_ISA
