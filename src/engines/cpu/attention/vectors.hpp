// SPDX-License-Identifier: Apache-2.0
// Vector loops of attention. Scores lie in tiles [keys][width]: a lane is a query, so that maxima, sums and
// exponentials run straight down the keys. vectors_isa.cpp is compiled once for each instruction set; vectors() picks
// the best.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.hpp"

namespace tsr::cpu::attention {

constexpr int64_t kVectorLanes = 16;  // widths of tiles are multiples of this

// Rows of memory that will be read soon; none where `data` is null.
struct Soon {
  const std::byte* data = nullptr;
  int64_t rows = 0, stride = 0, bytes = 0;
};

struct Vectors {
  // Scores become exp(s - max) with the maximum so far; sum counts them. What was summed up before is to be multiplied
  // by `factor`; false when all factors are 1.
  bool (*softmax)(int64_t keys, int64_t width, float* s, float* max, float* sum, float* factor);
  // s = exp(s - shift) * factor, by lane; -inf gives 0 whatever the shift.
  void (*probabilities)(int64_t keys, int64_t width, float* s, const float* shift, const float* factor);
  // dp = p * (dp - delta) * factor, 0 where p is 0.
  void (*gradient)(int64_t keys, int64_t width, const float* p, float* dp, const float* delta, float factor);
  // Scores outside of keys [first, last) of their lane become -inf.
  void (*mask)(int64_t keys, int64_t width, float* s, const int32_t* first, const int32_t* last);
  // s += slope * (key + shift), by lane.
  void (*alibi)(int64_t keys, int64_t width, float* s, const float* slope, const int32_t* shift);
  void (*add)(int64_t n, float* y, const float* x);
  void (*multiply)(int64_t n, float* y, const float* x);
  void (*scale)(int64_t n, float* y, float factor);
  // Rows of o times one factor each.
  void (*scale_rows)(int64_t rows, int64_t columns, float* o, int64_t ld, const float* factor);
  // s[key*width + row] = sum of k[key*ldk + i] * q[row*ldq + i], i < d: for a few rows, where tiles would be empty.
  // Meanwhile memory fetches what comes next.
  void (*dots)(int64_t keys, int64_t rows, int64_t d, const float* k, int64_t ldk, const float* q, int64_t ldq,
               float* s, int64_t width, const Soon& soon, const Soon& sooner);
  // y[i] = 1 where the upper 24 bits of random_word(seed, offset, first + i) are below the threshold, otherwise 0.
  void (*keep)(uint64_t seed, uint64_t offset, uint64_t first, int64_t n, uint32_t threshold, float* y);
  // c[i*ldc + j] = scale * sum over p of a[i*lda + p] * b's number p of column j; b holds pairs of numbers, [k/2][n].
  // Products and sums are those of f32, twice as many at a time. n is a multiple of 32, k is even. For
  // processors that has_bf16() tells.
  void (*multiply_bf16)(int64_t m, int64_t n, int64_t k, const uint16_t* a, int64_t lda, const uint32_t* b, float* c,
                        int64_t ldc, float scale);
  // Rows of bf16 as f32.
  void (*widen_bf16)(int64_t rows, int64_t columns, const uint16_t* x, int64_t stride, float* y, int64_t ld);
  // What y becomes in an 8-bit float with a sign.
  void (*round_fp8)(int64_t n, float* y, DType type);
  // Largest magnitude, NaN when there is one.
  float (*max_abs)(int64_t n, const float* x);
  // No NaN and no infinity among rows of `columns` numbers.
  bool (*finite)(int64_t rows, int64_t columns, const float* x, int64_t ld);
};

const Vectors& vectors();
bool has_bf16();

}  // namespace tsr::cpu::attention
