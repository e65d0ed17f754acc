// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/product/tile.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tsr::cpu {
namespace {

// Small whole numbers, so that sums are exact in any order.
float number(int64_t i) { return static_cast<float>((i * 7919) % 13 - 6); }

template <class T>
void check_every_size(const BasicTile<T>& tile) {
  constexpr T kMark = 12345;
  for (int64_t m : {1, 3, 6, 12, 13, 25})
    for (int64_t n : {1, 7, 16, 31, 32, 33, 70})
      for (int64_t k : {0, 1, 5, 64}) {
        int64_t lda = m + 2, ldb = (n + tile.columns - 1) / tile.columns * tile.columns, ldc = n + 3;
        std::vector<T> a(static_cast<size_t>(k * lda + 1)), b(static_cast<size_t>(k * ldb + 1)),
            c(static_cast<size_t>(m * ldc), kMark);
        for (size_t i = 0; i < a.size(); ++i) a[i] = number(static_cast<int64_t>(i));
        for (size_t i = 0; i < b.size(); ++i) b[i] = number(static_cast<int64_t>(i) + 5);
        std::vector<T> rows(static_cast<size_t>(m * (k + 1)));  // the same left operand, row-major
        for (int64_t i = 0; i < m; ++i)
          for (int64_t p = 0; p < k; ++p)
            rows[static_cast<size_t>(i * (k + 1) + p)] = a[static_cast<size_t>(p * lda + i)];
        for (bool accumulate : {false, true}) {
          tile.multiply(m, n, k, a.data(), lda, b.data(), ldb, c.data(), ldc, accumulate);
          std::vector<T> d(c.size(), kMark);
          tile.multiply_rows(m, n, k, rows.data(), k + 1, b.data(), ldb, d.data(), ldc, false);
          if (accumulate) tile.multiply_rows(m, n, k, rows.data(), k + 1, b.data(), ldb, d.data(), ldc, true);
          ASSERT_EQ(c, d) << m << "x" << n << "x" << k;
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < ldc; ++j) {
              T want = 0;
              for (int64_t p = 0; p < k; ++p)
                want += a[static_cast<size_t>(p * lda + i)] * b[static_cast<size_t>(p * ldb + j % ldb)];
              if (j >= n)
                want = kMark;
              else if (accumulate)
                want *= 2;
              ASSERT_EQ(c[static_cast<size_t>(i * ldc + j)], want)
                  << m << "x" << n << "x" << k << " at " << i << "," << j;
            }
        }
      }
}

TEST(Tile, MultipliesEverySizeAndTouchesNothingElse) {
  check_every_size(tile());
  check_every_size(wide_tile());
}

TEST(Tile, Transposes) {
  for (int64_t rows : {1, 12, 15, 16, 33})
    for (int64_t columns : {1, 16, 20}) {
      std::vector<float> from(static_cast<size_t>(rows * 40)), to(static_cast<size_t>(columns * 50), -1.0f);
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
      tile().transpose(rows, columns, from.data(), 40, to.data(), 50);
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = 0; i < 50; ++i)
          ASSERT_EQ(to[static_cast<size_t>(j * 50 + i)], i < rows ? from[static_cast<size_t>(i * 40 + j)] : -1.0f);
    }
}

}  // namespace
}  // namespace tsr::cpu
