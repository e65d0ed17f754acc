// SPDX-License-Identifier: Apache-2.0
// Kernels that move data, as the compiler sees them for real GPUs.
#include "expect_no_spills.hpp"

namespace tsr {
namespace {

TEST(CudaMove, Transposes) {
  for (const char* type : {"i8", "bf16", "f32", "f64", "c128"})
    expect_no_spills(cat("x = input ", type, "[300,517]; y = transpose x perm=1,0; output y"), "move_cuda");
  for (const char* type : {"i8", "bf16", "f32", "f64", "c128"})
    for (const char* size : {"[304,512]", "[300,516]"})
      expect_no_spills(cat("x = input ", type, size, "; y = transpose x perm=1,0; output y"), "move_cuda");
  for (const char* size : {"[300,517]", "[304,512]"})
    expect_no_spills(cat("x = input f32", size, "; y = transpose x perm=1,0; output y bf16"), "move_cuda");
}

TEST(CudaMove, Runs) {
  expect_no_spills("x = input bf16[300,512]; y = slice x start=3,8; output y", "move_cuda");
  expect_no_spills("x = input bf16[300,517]; y = slice x start=3,1; output y", "move_cuda");
  expect_no_spills("a = input i8[30,16]; b = input i8[30,3]; y = concat a b axis=1; output y", "move_cuda");
  expect_no_spills("x = input i4[30,16]; y = transpose x perm=1,0; output y", "move_cuda");
}

TEST(CudaMove, PackedSequences) {
  for (const char* type : {"i8", "bf16", "f32", "f64", "c128", "i4"})
    expect_no_spills(cat("o = input i32[3]; x = input ", type, "[2,4,90,64]:bshd ragged=o; ",
                         "y = transpose x perm=0,1,2,3; output y"),
                     "move_cuda");
  expect_no_spills("o = input i32[3]; x = input f32[2,4,90,64]; y = identity x; output y bf16:bshd; with y ragged=o",
                   "move_cuda");
}

TEST(CudaMove, Pages) {
  for (const char* transposed : {"false", "true"})
    expect_no_spills(cat("c = input bf16[60,4,16,64]; t = input i32[3,1,20,1]; n = input i32[3,1,1,1]; ",
                         "y = paged_load c t seq_len=n transposed=", transposed, "; output y"),
                     "move_cuda");
}

}  // namespace
}  // namespace tsr
