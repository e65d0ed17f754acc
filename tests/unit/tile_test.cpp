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

// Words of elements that `value` reads. Whole numbers of two digits: sums are exact, also in f32.
template <class T>
void check_narrow(const PanelTile<T>& tile, double (*left)(T), double (*right)(T)) {
  constexpr int64_t kWord = kGroup<T>;
  for (int64_t m : {1, 5, 12, 16, 25, 32, 40})
    for (int64_t n : {1, 16, 31, 32, 33, 64})
      for (int64_t k : {0, 1, 7, 16, 40}) {
        int64_t lda = tile.left_rows ? (m + tile.rows - 1) / tile.rows * tile.rows : m + 1,
                ldb = (n + tile.columns - 1) / tile.columns * tile.columns, ldc = n + 3;
        std::vector<T> a(static_cast<size_t>((k + 1) * lda * kWord)), b(static_cast<size_t>((k + 1) * ldb * kWord));
        auto fill = [](std::vector<T>& x, int64_t seed) {
          for (size_t i = 0; i < x.size(); ++i) {
            int64_t v = (static_cast<int64_t>(i) * 7919 + seed) % 256;
            if constexpr (sizeof(T) == 2)
              x[i].bits = to_bf16_bits(static_cast<double>(v - 128));
            else
              x[i].bits = static_cast<uint8_t>(v);
          }
        };
        fill(a, 3), fill(b, 100);
        std::vector<T> packed = a;
        if (tile.left_rows) {
          packed.assign(static_cast<size_t>((k + kRowWords) * lda * kWord), T{0xff});
          Panels<T> rows{packed.data(), lda, 0, 0, 0, true};
          for (int64_t i = 0; i < lda; ++i)
            for (int64_t p = 0; p < k * kWord; ++p)
              *rows.place(i, p) = a[static_cast<size_t>((p / kWord * lda + i) * kWord + p % kWord)];
        }
        if constexpr (sizeof(T) == 1)
          for (T& x : packed) x.bits ^= tile.flip;
        std::vector<SumOf<T>> c(static_cast<size_t>(m * ldc), 7);
        TileInUse<T> use(tile);
        tile.multiply(m, n, k, packed.data(), lda, b.data(), ldb, c.data(), ldc, false);
        tile.multiply(m, n, k, packed.data(), lda, b.data(), ldb, c.data(), ldc, true);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < ldc; ++j) {
            double want = 0;
            for (int64_t p = 0; p < k; ++p)
              for (int64_t e = 0; e < kWord; ++e)
                want += left(a[static_cast<size_t>((p * lda + i) * kWord + e)]) *
                        right(b[static_cast<size_t>((p * ldb + j % ldb) * kWord + e)]);
            ASSERT_EQ(c[static_cast<size_t>(i * ldc + j)], j < n ? 2 * want : 7) << m << "x" << n << "x" << k;
          }
      }
}

TEST(Tile, MultipliesPairsOfBf16) {
  if (!has_bf16_products()) GTEST_SKIP() << "the processor lacks the instruction";
  auto value = [](Bf16 x) { return static_cast<double>(from_bf16_bits(x.bits)); };
  check_narrow<Bf16>(vector_tiles().bf16, value, value);
  if (has_amx_products()) check_narrow<Bf16>(amx_tiles().bf16, value, value);
}

TEST(Tile, MultipliesBytesOfAnySign) {
  if (!has_byte_products()) GTEST_SKIP() << "the processor lacks the instruction";
  using Value = double (*)(Byte);
  Value i8 = [](Byte x) { return static_cast<double>(static_cast<int8_t>(x.bits)); };
  Value u8 = [](Byte x) { return static_cast<double>(x.bits); };
  for (DType left : {DType::i8, DType::u8})
    for (DType right : {DType::i8, DType::u8}) {
      bool is_signed = right == DType::i8, same = left == right;
      auto check = [&](const NarrowTiles& t) {
        check_narrow<Byte>(t.bytes[is_signed][same], left == DType::i8 ? i8 : u8, is_signed ? i8 : u8);
      };
      check(vector_tiles());
      if (has_amx_products()) check(amx_tiles());
    }
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
