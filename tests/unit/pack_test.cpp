// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/product/pack.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "engines/cpu/product/tile.hpp"

namespace tsr::cpu {
namespace {

template <class T>
T element(int64_t i) {
  T x{};
  auto bits = static_cast<uint32_t>(i * 40503 + 1);
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

template <class T>
bool same(const T& a, const T& b, uint8_t flip) {
  unsigned char p[sizeof(T)], q[sizeof(T)];
  std::memcpy(p, &a, sizeof a), std::memcpy(q, &b, sizeof b);
  for (size_t i = 0; i < sizeof(T); ++i)
    if (p[i] != (q[i] ^ flip)) return false;
  return true;
}

// Packs matrices of some sizes, from some inner position of the panels on, and reads every element of the panels.
template <class T>
void check_places(DType type, int64_t width, bool rows, uint8_t flip) {
  constexpr int64_t kFirst = 5, kWhole = 192, kInner = 1, kApart = 3;
  const T mark = element<T>(-77);
  for (int64_t n : {1, 3, 37, 90})
    for (int64_t depth : {1, 2, 5, 64, 131})
      for (int64_t from : {0, 1, 4, 31, 33, 61})
        for (bool along : {false, true})
          for (int64_t step : {kInner, kApart}) {
            int64_t stride = along ? step : depth * step, inner = along ? n * step : step;
            std::vector<T> m(static_cast<size_t>(n * depth * step));
            for (size_t i = 0; i < m.size(); ++i) m[i] = element<T>(static_cast<int64_t>(i));
            int64_t panels = (kFirst + n + width - 1) / width;
            std::vector<T> memory(static_cast<size_t>(panels * width * kWhole), mark);
            Panels<T> all{memory.data(), width, width * kWhole, 0, flip, rows};
            pack<T>({type, m.data(), 0, n, stride, depth, inner}, all.from(from), kFirst);
            for (int64_t i = 0; i < panels * width; ++i)
              for (int64_t p = 0; p < kWhole; ++p) {
                int64_t j = i - kFirst, k = p - from;
                bool packed = j >= 0 && j < n && k >= 0 && k < depth;
                T want = packed ? m[static_cast<size_t>(j * stride + k * inner)] : mark;
                ASSERT_TRUE(same(*all.place(i, p), want, packed ? flip : uint8_t{0}))
                    << n << " x " << depth << " from " << from << ", element " << i << ", " << p;
              }
          }
}

TEST(Pack, PutsEveryElementInItsPlaceAndNothingElse) {
  for (int64_t width : {6, 32}) check_places<float>(DType::f32, width, false, 0);
  if (!has_bf16_products() && !has_byte_products()) GTEST_SKIP() << "the processor multiplies no narrow numbers";
  for (bool rows : {false, true})
    for (int64_t width : {12, 32}) {
      check_places<Bf16>(DType::bf16, width, rows, 0);
      for (uint8_t flip : {0, 0x80}) check_places<Byte>(DType::u8, width, rows, flip);
    }
}

}  // namespace
}  // namespace tsr::cpu
