// SPDX-License-Identifier: Apache-2.0
// Philox 4x32-10, the counter-based generator of Salmon et al. (Random123): four random words from a key and a counter,
// the same on every device and in every order of evaluation.
//
//   key     = {seed low, seed high}
//   counter = {offset low, offset high, subsequence low, subsequence high}, as in PyTorch and cuRAND
//
// A random tensor gives the element with row-major position i the word i % 4 of subsequence i / 4, see random_word().
#pragma once

#include <array>
#include <cstdint>

namespace tsr {

using PhiloxWords = std::array<uint32_t, 4>;

// Ten rounds of the block function on a plain counter and key.
constexpr PhiloxWords philox_block(PhiloxWords counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    auto high = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
    counter = {high(b) ^ counter[1] ^ key[0], static_cast<uint32_t>(b), high(a) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

constexpr PhiloxWords philox(uint64_t seed, uint64_t subsequence, uint64_t offset) {
  auto low = [](uint64_t v) { return static_cast<uint32_t>(v); };
  auto high = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  return philox_block({low(offset), high(offset), low(subsequence), high(subsequence)}, {low(seed), high(seed)});
}

// The random word of element `index` of a tensor.
constexpr uint32_t random_word(uint64_t seed, uint64_t offset, uint64_t index) {
  return philox(seed, index / 4, offset)[index % 4];
}

// [0, 1) in steps of 2^-24: the same value in f32 and f64.
constexpr double to_uniform(uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

// True with probability p: never for 0, always for 1.
constexpr bool bernoulli(uint32_t word, double p) { return to_uniform(word) < p; }

}  // namespace tsr
