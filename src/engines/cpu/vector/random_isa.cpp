// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set. The random numbers of base/philox.hpp, many blocks at a time. Written out
// again because an inline function shared with other files could come out in the wrong instruction set.
#include <cstdint>

#include "engines/cpu/vector/isa.hpp"

namespace tsr::cpu::TESSERA_ISA {
namespace {

constexpr int kGroups = 16;

// Four words for each of kGroups subsequences.
void blocks(uint64_t seed, uint64_t offset, const uint64_t* group, uint32_t (*word)[kGroups]) {
  auto low = [](uint64_t v) { return static_cast<uint32_t>(v); };
  auto high = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  for (int k = 0; k < kGroups; ++k) {
    word[0][k] = low(offset), word[1][k] = high(offset);
    word[2][k] = low(group[k]), word[3][k] = high(group[k]);
  }
  uint32_t key0 = low(seed), key1 = high(seed);
  for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9, key1 += 0xBB67AE85)
    for (int k = 0; k < kGroups; ++k) {
      uint64_t a = uint64_t{0xD2511F53} * word[0][k], b = uint64_t{0xCD9E8D57} * word[2][k];
      word[0][k] = high(b) ^ word[1][k] ^ key0, word[2][k] = high(a) ^ word[3][k] ^ key1;
      word[1][k] = low(b), word[3][k] = low(a);
    }
}

float uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace

void random(uint64_t seed, uint64_t offset, int64_t first, int64_t stride, float* y, int64_t n) {
  uint64_t group[kGroups];
  uint32_t word[4][kGroups];
  auto at = static_cast<uint64_t>(first), step = static_cast<uint64_t>(stride);
  int64_t i = 0;
  // Whole blocks of neighbours.
  for (; stride == 1 && i + 4 * (kGroups + 1) <= n;
       i += 4 * kGroups - static_cast<int64_t>(at % 4), at = at / 4 * 4 + 4 * kGroups) {
    for (uint64_t k = 0; k < kGroups; ++k) group[k] = at / 4 + k;
    blocks(seed, offset, group, word);
    float all[4 * kGroups];
    for (int k = 0; k < kGroups; ++k)
      for (int w = 0; w < 4; ++w) all[4 * k + w] = uniform(word[w][k]);
    for (auto k = static_cast<int64_t>(at % 4); k < 4 * kGroups; ++k) y[i + k - static_cast<int64_t>(at % 4)] = all[k];
  }
  for (; i < n; i += kGroups, at += kGroups * step) {
    for (uint64_t k = 0; k < kGroups; ++k) group[k] = (at + k * step) / 4;
    blocks(seed, offset, group, word);
    for (int64_t k = 0; k < kGroups && i + k < n; ++k)
      y[i + k] = uniform(word[(at + static_cast<uint64_t>(k) * step) % 4][k]);
  }
}

}  // namespace tsr::cpu::TESSERA_ISA
