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
class Collector : public Result<T> {
 public:
  explicit Collector(const ProductShape& s) : shape(s), c(static_cast<size_t>(s.batches * s.rows * s.columns), NAN) {}
  bool place(void* const*, ResultTile<T>&) const override { return false; }
  int64_t depth(void* const*, int64_t, int64_t depth) const override { return depth; }
  void finish(void* const*, const ResultTile<T>& t, std::byte*) const override {
    for (int64_t i = 0; i < t.rows; ++i)
      for (int64_t j = 0; j < t.columns; ++j) {
        T& to = c[static_cast<size_t>((t.batch * shape.rows + t.row + i) * shape.columns + t.column + j)];
        EXPECT_TRUE(std::isnan(to));
        to = t.at[i * t.stride + j];
      }
  }

  ProductShape shape;
  mutable std::vector<T> c;
};

template <class T>
void check(const ProductShape& s, const Dims& share, const ProductOptions& options) {
  SCOPED_TRACE(::testing::Message() << s.batches << " batches of " << s.rows << "x" << s.columns << "x" << s.depth
                                    << ", packed " << options.packed_bytes << ", stream " << options.stream);
  int64_t matrices = s.batches / share[0];
  std::vector<float> a(static_cast<size_t>(s.batches * s.rows * s.depth + 1)),
      b(static_cast<size_t>(matrices * s.depth * s.columns + 1));
  for (size_t i = 0; i < a.size(); ++i) a[i] = number(static_cast<int64_t>(i));
  for (size_t i = 0; i < b.size(); ++i) b[i] = number(static_cast<int64_t>(i) + 5);
  StridedOperand<T> left(0, DType::f32, {s.batches}, {1}, {s.rows * s.depth}, Axes(s.rows, s.depth), Axes(s.depth, 1));
  StridedOperand<T> right(1, DType::f32, {s.batches}, share, {s.depth * s.columns}, Axes(s.columns, 1),
                          Axes(s.depth, s.columns));
  Product<T> product(s, left, right, options);
  std::vector<std::byte> workspace(product.workspace_bytes() + 256, std::byte{0xff});
  void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 255) / 256 * 256);
  void* tensors[] = {a.data(), b.data()};
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
                                {2, 3, 4, 0}})
    for (int64_t bytes : {int64_t{32} << 20, int64_t{200000}, int64_t{1000}})
      for (auto stream : {ProductOptions::automatic, ProductOptions::left, ProductOptions::right})
        for (bool whole_rows : {false, true}) {
          ProductOptions o{0, whole_rows, stream, 2, bytes};
          check<float>(s, {1}, o);
          check<double>(s, {1}, o);
          if (s.batches % 2 == 0) check<float>(s, {s.batches / 2}, o);
        }
}

}  // namespace
}  // namespace tsr::cpu
