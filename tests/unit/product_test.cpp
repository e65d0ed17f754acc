// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/product/product.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engines/cpu/product/strided.hpp"

namespace tsr::cpu {
namespace {

// Small whole numbers, so that sums are exact in any order.
float number(int64_t i) { return static_cast<float>((i * 7919) % 7 - 3); }

// Collects tiles; every element must arrive once.
template <class T>
class Collector : public Result<SumOf<T>> {
  using Sum = SumOf<T>;

 public:
  explicit Collector(const ProductShape& s) : shape(s), c(static_cast<size_t>(s.batches * s.rows * s.columns), NAN) {}
  bool place(void* const*, ResultTile<Sum>&) const override { return false; }
  int64_t depth(void* const*, int64_t, int64_t depth) const override { return depth; }
  void finish(void* const*, const ResultTile<Sum>& t, std::byte*) const override {
    for (int64_t i = 0; i < t.rows; ++i)
      for (int64_t j = 0; j < t.columns; ++j) {
        double& to = c[static_cast<size_t>((t.batch * shape.rows + t.row + i) * shape.columns + t.column + j)];
        EXPECT_TRUE(std::isnan(to));
        to = static_cast<double>(t.at[i * t.stride + j]);
      }
  }

  ProductShape shape;
  mutable std::vector<double> c;
};

// Operands lie in memory as elements of `type`; `across`: the inner dimension of both comes first.
template <class T>
void check(const ProductShape& s, const Dims& share, const ProductOptions& options, DType type = DType::f32,
           bool across = false) {
  SCOPED_TRACE(::testing::Message() << s.batches << " batches of " << s.rows << "x" << s.columns << "x" << s.depth
                                    << ", packed " << options.packed_bytes << ", stream " << options.stream << ", "
                                    << name(type));
  int64_t matrices = s.batches / share[0], left_size = s.batches * s.rows * s.depth,
          right_size = matrices * s.depth * s.columns;
  std::vector<float> a(static_cast<size_t>(left_size + 1)),
      b(static_cast<size_t>(right_size + 1));  // [n][i][k], [n][k][j]
  std::vector<std::byte> left_memory(a.size() * 4), right_memory(b.size() * 4);
  for (int64_t i = 0; i < left_size; ++i) {
    a[static_cast<size_t>(i)] = number(i);
    int64_t n = i / (s.rows * s.depth), row = i / s.depth % s.rows, k = i % s.depth;
    store(type, left_memory.data(), across ? (n * s.depth + k) * s.rows + row : i, number(i));
  }
  for (int64_t i = 0; i < right_size; ++i) {
    b[static_cast<size_t>(i)] = number(i + 5);
    int64_t n = i / (s.depth * s.columns), k = i / s.columns % s.depth, column = i % s.columns;
    store(type, right_memory.data(), across ? i : (n * s.columns + column) * s.depth + k, number(i + 5));
  }
  StridedOperand<T> left(0, type, {s.batches}, {1}, {s.rows * s.depth}, Axes(s.rows, across ? 1 : s.depth),
                         Axes(s.depth, across ? s.rows : 1));
  StridedOperand<T> right(1, type, {s.batches}, share, {s.depth * s.columns}, Axes(s.columns, across ? 1 : s.depth),
                          Axes(s.depth, across ? s.columns : 1));
  Product<T> product(s, left, right, options);
  std::vector<std::byte> workspace(product.workspace_bytes() + 256, std::byte{0xff});
  void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 255) / 256 * 256);
  void* tensors[] = {left_memory.data(), right_memory.data()};
  Collector<T> result(s);
  product.run(s, tensors, static_cast<std::byte*>(aligned), result);
  for (int64_t n = 0; n < s.batches; ++n)
    for (int64_t i = 0; i < s.rows; ++i)
      for (int64_t j = 0; j < s.columns; ++j) {
        double want = 0;
        for (int64_t k = 0; k < s.depth; ++k)
          want += a[static_cast<size_t>((n * s.rows + i) * s.depth + k)] *
                  b[static_cast<size_t>((n / share[0] * s.depth + k) * s.columns + j)];
        ASSERT_EQ(result.c[static_cast<size_t>((n * s.rows + i) * s.columns + j)], want) << n << " " << i << " " << j;
      }
}

// However little may be packed at a time, every tile is computed once and right.
TEST(Product, AnySizeWithAnyWorkspace) {
  for (const ProductShape& s : {ProductShape{1, 1, 1, 1},
                                {1, 5, 300, 70},
                                {1, 300, 5, 70},
                                {1, 160, 290, 300},
                                {6, 30, 40, 20},
                                {4, 150, 70, 33},
                                {2, 20, 40, 2500},  // divided sums
                                {2, 3, 4, 0}})
    for (int64_t bytes : {int64_t{32} << 20, int64_t{200000}, int64_t{1000}})
      for (auto stream : {ProductOptions::automatic, ProductOptions::left, ProductOptions::right})
        for (bool whole_rows : {false, true}) {
          ProductOptions o{0, whole_rows, stream, 2, bytes};
          check<float>(s, {1}, o);
          check<double>(s, {1}, o);
          if (s.batches % 2 == 0) check<float>(s, {s.batches / 2}, o);
          for (bool across : {false, true}) {
            if (has_bf16_products()) check<Bf16>(s, {1}, o, DType::bf16, across);
            if (has_byte_products()) check<Byte>(s, {1}, o, DType::i8, across);
          }
        }
}

}  // namespace
}  // namespace tsr::cpu
