// SPDX-License-Identifier: Apache-2.0
// A 64-bit FNV-1a hash: keys of caches and checksums of serialised text. Not cryptographic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tsr {

inline uint64_t hash_text(std::string_view text, uint64_t seed = 0xcbf29ce484222325ull) {
  uint64_t h = seed;
  for (unsigned char c : text) h = (h ^ c) * 0x100000001b3ull;
  return h;
}

inline std::string hex(uint64_t v) {
  std::string s(16, '0');
  for (int i = 15; i >= 0; --i, v >>= 4) s[static_cast<size_t>(i)] = "0123456789abcdef"[v & 15];
  return s;
}

}  // namespace tsr
