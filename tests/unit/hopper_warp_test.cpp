// SPDX-License-Identifier: Apache-2.0
// Instructions of warps and threads on the emulated GPU: products of warps, matrices to and from registers, copies of a
// thread's own, stores that add, other blocks' memory. What they compute, and the mistakes that are found.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

#include "base/dtype.hpp"
#include "device_body.hpp"
#include "expect_error.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

class HopperWarp : public testing::Test {
 protected:
  void run(const std::string& body, int threads = 32, int cluster = 1) {
    auto k = get_kernel(body_program(body), device_);
    BodyArgs args{map_, source_, out_.data()};
    k->launch({.blocks = cluster, .threads = threads, .shared_bytes = kBodyShared, .cluster = cluster}, nullptr, args);
  }
  void expect_mistake(const std::string& body, std::initializer_list<std::string> words, int threads = 32,
                      int cluster = 1) {
    expect_error([&] { run(body, threads, cluster); }, Status::execution_failed, words);
  }
  // Small whole numbers, `count` from an element on.
  void fill(DType t, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      int v = static_cast<int>(random_() % 9) - (t == DType::u8 ? 0 : 4);
      store<double>(t, in_.data(), first + i, v);
    }
  }
  // A product of a warp whose left operand is 16 rows of 32 bytes, and whose right one 8 columns, behind it.
  void expect_product(DType at, DType bt, const std::string& types, bool whole = false, bool half = false);

  Device device_ = emulated_device();
  std::mt19937 random_{5};
  alignas(16) std::array<uint32_t, 4096> in_{};
  alignas(16) std::array<uint32_t, 4096> out_{};
  const void* source_ = in_.data();
  dev::TensorMap map_{};
};

const char* const kToShared =
    "for (int i = t; i < 2048; i += blockDim.x) reinterpret_cast<u32*>(s)[i] = a.in[i];"
    "__syncthreads();\n";
const char* const kOperands =
    "u32 x[4], y[2]; matrix_load(x, s + t % 16 * 32 + t / 16 * 16);"
    "matrix_load(y, s + 512 + t % 8 * 32 + t / 8 % 2 * 16);\n";

void HopperWarp::expect_product(DType at, DType bt, const std::string& types, bool whole, bool half) {
  int depth = 256 / info(at).bits;
  fill(at, 0, 16 * depth);
  int64_t right = 512 * 8 / info(bt).bits;
  fill(bt, right, 8 * depth);
  std::string sums =
      half ? "u32 d[2] = {0x3c003c00u, 0x3c003c00u}; mma_half(d, x, y);"
           : (whole ? "i32 d[4] = {1, 1, 1, 1}; mma<" : "float d[4] = {1, 1, 1, 1}; mma<") + types + ">(d, x, y);";
  run(std::string(kToShared) + kOperands + sums + "for (int i = 0; i < int(sizeof d / 4); ++i)" +
      "memcpy(a.out + t * (sizeof d / 4) + i, &d[i], 4);");
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      double sum = 1;
      for (int k = 0; k < depth; ++k)
        sum += load<double>(at, in_.data(), i * depth + k) * load<double>(bt, in_.data(), right + j * depth + k);
      int64_t slot = (i % 8 * 4 + j / 2) * 4 + i / 8 * 2 + j % 2;
      DType dt = half ? DType::f16 : whole ? DType::i32 : DType::f32;
      ASSERT_EQ(load<double>(dt, out_.data(), slot), sum) << types << " " << i << " " << j;
    }
}

TEST_F(HopperWarp, warps_multiply_every_type) {
  expect_product(DType::f16, DType::f16, "f16");
  expect_product(DType::bf16, DType::bf16, "bf16");
  expect_product(DType::f32, DType::f32, "tf32");
  expect_product(DType::f16, DType::f16, "half", false, true);
  expect_product(DType::e4m3, DType::e5m2, "e4m3, e5m2");
  expect_product(DType::e5m2, DType::e4m3, "e5m2, e4m3");
  expect_product(DType::i8, DType::u8, "i8, u8", true);
  expect_product(DType::u8, DType::i8, "u8, i8", true);
}

TEST_F(HopperWarp, matrices_turn_on_their_way) {
  for (size_t i = 0; i < in_.size(); ++i) in_[i] = static_cast<uint32_t>(2 * i | (2 * i + 1) << 16);
  run(std::string(kToShared) +
      "u32 r[4]; matrix_load<true>(r, s + t * 16); for (int i = 0; i < 4; ++i) a.out[t * 4 + i] = r[i];"
      "matrix_store<true>(s + 4096 + t * 16, r); __syncwarp();"
      "for (int i = 0; i < 4; ++i) a.out[128 + t * 4 + i] = reinterpret_cast<u32*>(s + 4096)[t * 4 + i];");
  for (uint32_t l = 0; l < 32; ++l)
    for (uint32_t m = 0; m < 4; ++m) {
      uint32_t row = l % 4 * 2, at = m * 64 + row * 8 + l / 4;
      EXPECT_EQ(out_[l * 4 + m], at | (at + 8) << 16);
      EXPECT_EQ(out_[128 + l * 4 + m], in_[l * 4 + m]);
    }
}

TEST_F(HopperWarp, pieces_come_when_they_are_waited_for) {
  std::iota(in_.begin(), in_.end(), 1u);
  run("u32* x = reinterpret_cast<u32*>(s); piece_load<16>(x + 4 * t, a.in + 4 * t); pieces_commit();\n"
      "piece_load<8>(x + 128 + 2 * t, a.in + 2 * t, 4); pieces_commit();\n"
      "a.out[t] = x[4 * t]; pieces_wait<1>(); a.out[32 + t] = x[4 * t + 3]; a.out[64 + t] = x[128 + 2 * t];\n"
      "pieces_wait<0>(); a.out[96 + t] = x[128 + 2 * t]; a.out[128 + t] = x[129 + 2 * t];");
  for (uint32_t l = 0; l < 32; ++l) {
    EXPECT_EQ(out_[l], ~0u);
    EXPECT_EQ(out_[32 + l], 4 * l + 4);
    EXPECT_EQ(out_[64 + l], ~0u);
    EXPECT_EQ(out_[96 + l], 2 * l + 1);
    EXPECT_EQ(out_[128 + l], 0u);
  }
}

TEST_F(HopperWarp, pieces_arrive_at_barriers) {
  std::iota(in_.begin(), in_.end(), 1u);
  run("if (t == 0) { barrier_init(b, 32); barriers_ready(); } __syncthreads(); u32* x = reinterpret_cast<u32*>(s);\n"
      "piece_load<4>(x + t, a.in + t); pieces_arrive(b); barrier_wait(b, 0); a.out[t] = x[31 - t];");
  for (uint32_t l = 0; l < 32; ++l) EXPECT_EQ(out_[l], 32 - l);
}

TEST_F(HopperWarp, barriers_take_several_arrivals_and_are_asked) {
  run("if (t == 0) { barrier_init(b, 33); barriers_ready(); } __syncthreads();\n"
      "if (t == 0) { a.out[0] = barrier_passed(b, 0); barrier_announce(b, 16); bulk_load(s, a.in, 16, b); }\n"
      "if (t < 2) barrier_arrive_many(b, 16); else if (t == 2) barrier_arrive(b);\n"
      "while (!barrier_passed(b, 0)) {} __syncthreads(); if (t == 0) { barrier_end(b); a.out[1] = 7; }");
  EXPECT_EQ(out_[0], 0u);
  EXPECT_EQ(out_[1], 7u);
}

TEST_F(HopperWarp, asking_a_barrier_is_not_waiting) {
  std::string body = "if (t == 0) { barrier_init(b, 40); barriers_ready(); } __syncthreads();\n";
  run(body + "a.out[t] = barrier_passed(b, 0) ? 1 : 2;");
  for (size_t l = 0; l < 32; ++l) EXPECT_EQ(out_[l], 2u);
  expect_mistake(body + "while (!barrier_passed(b, 0)) {}",
                 {"wait for each other for ever", "32 threads, the first is 0", "body:2", "40 of 40 arrivals"});
}

TEST_F(HopperWarp, stores_add_to_what_lies_there) {
  for (DType t : {DType::f32, DType::f16, DType::bf16}) {
    std::string name = t == DType::f32 ? "float" : t == DType::f16 ? "f16" : "bf16";
    int64_t count = 128 * 8 / info(t).bits;
    fill(t, 0, count);
    for (int64_t i = 0; i < count; ++i) store<double>(t, out_.data(), i, 3);
    run(std::string(kToShared) + "fence_for_copies(); __syncthreads(); if (t == 0) { bulk_add(reinterpret_cast<" +
        name + "*>(a.out), reinterpret_cast<" + name +
        "*>(s), 128); bulk_store(a.out + 64, s, 64); stores_commit(); stores_wait<0>(); }");
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(load<double>(t, out_.data(), i), 3 + load<double>(t, in_.data(), i)) << name << " " << i;
    for (size_t i = 0; i < 16; ++i) EXPECT_EQ(out_[64 + i], in_[i]);
  }
}

TEST_F(HopperWarp, boxes_add_to_what_lies_there) {
  TensorBox box;
  box.rank = 2, box.element_bytes = 4, box.dims = {16, 6}, box.strides = {4, 64}, box.box = {16, 8};
  box.adds = TensorBox::Adds::f32;
  EXPECT_TRUE(check_box(box, 16).ok());
  map_ = encode_map(box, out_.data(), device_);
  fill(DType::f32, 0, 128);
  for (int64_t i = 0; i < 128; ++i) store<double>(DType::f32, out_.data(), i, 2);
  std::string body = std::string(kToShared) +
                     "fence_for_copies(); __syncthreads();\nif (t == 0) { tensor_add<2>(&a.map, {0, 0}, s); "
                     "stores_commit(); stores_wait<0>(); }";
  run(body);
  for (int64_t i = 0; i < 128; ++i)
    ASSERT_EQ(load<double>(DType::f32, out_.data(), i), i < 96 ? 2 + load<double>(DType::f32, in_.data(), i) : 2) << i;
  box.adds = TensorBox::Adds::nothing;
  map_ = encode_map(box, out_.data(), device_);
  expect_mistake(body, {"thread 0, body:3", "a map that says what numbers"});
}

TEST_F(HopperWarp, blocks_reach_each_others_memory) {
  std::iota(in_.begin(), in_.end(), 1u);
  run(std::string(kToShared) +
          "u32* x = reinterpret_cast<u32*>(s); u32 other = cluster_rank() ^ 1; fence_for_copies();\n"
          "if (t == 0) { barrier_init(b, 2); barriers_ready(); } cluster_sync();\n"
          "if (t == 0) { barrier_arrive(b); barrier_expect_at(b, other, 64); remote_copy(s + 4096, s + 64 * other, 64, "
          "b, "
          "other); remote_store(x + 2000, other, 100 + cluster_rank()); }\n"
          "barrier_wait_cluster(b, 0); cluster_sync(); u32* out = a.out + 64 * cluster_rank();\n"
          "if (t < 16) out[t] = x[1024 + t]; if (t == 16) out[16] = x[2000];"
          "if (t == 17) out[17] = remote_load(x + 2000, other); cluster_sync();",
      32, 2);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (uint32_t i = 0; i < 16; ++i) EXPECT_EQ(out_[64 * rank + i], 16 * rank + i + 1);
    EXPECT_EQ(out_[64 * rank + 16], 100 + (rank ^ 1));
    EXPECT_EQ(out_[64 * rank + 17], 100 + rank);
  }
}

// --- mistakes
TEST_F(HopperWarp, vectors_that_are_not_aligned_are_found) {
  expect_mistake("Vec<u32, 4> x;\nload_vector(a.in + t, x); a.out[t] = x.v[0];",
                 {"thread 1, body:2", "16 bytes are loaded or stored 4 bytes behind a multiple of 16"});
}

TEST_F(HopperWarp, reads_of_pieces_that_have_not_come_are_found) {
  expect_mistake("piece_load<16>(s + 16 * t, a.in + 4 * t);\npieces_commit(); u32 r[4];\nmatrix_load(r, s + 16 * t);",
                 {"thread 31, body:3", "a load of matrices reads shared memory at offset 496", "asked for at body:1",
                  "has not brought yet"});
  expect_mistake(
      "if (t == 0) { barrier_init(b, 1); barrier_expect(b, 512); bulk_load(s, a.in, 512, b); }\n__syncthreads(); u32 "
      "r[4];\n"
      "matrix_load(r, s + 16 * t);",
      {"thread 30, body:3", "asked for at body:1", "has not brought yet"});
  expect_mistake("piece_load<16>(s + 16 * t, a.in);\nfence_for_copies(); bulk_store(a.out, s, 16);",
                 {"thread 0, body:2", "a copy reads shared memory", "asked for at body:1", "has not brought yet"});
}

TEST_F(HopperWarp, places_that_are_overwritten_too_early_are_found) {
  expect_mistake("piece_load<16>(s, a.in);\npiece_load<4>(s + 4, a.in);",
                 {"thread 0, body:2", "overwrites 4 bytes", "the copy asked for at body:1 has not finished with"});
  expect_mistake(
      std::string(kToShared) +
          "fence_for_copies(); __syncthreads();\nif (t == 3) { bulk_store(a.out, s, 64); stores_commit(); }\n"
          "u32 r[1] = {5}; matrix_store(s + 16 * t, r);",
      {"a store of matrices overwrites 16 bytes", "asked for at body:3 has not finished with", "body:4"});
  expect_mistake(std::string(kToShared) +
                     "fence_for_copies(); __syncthreads();\nif (t == 0) { bulk_store(a.out, s, 64);"
                     "piece_load<4>(s + 60, a.in); }",
                 {"thread 0, body:3", "overwrites 4 bytes"});
  expect_mistake("if (t == 0) { barrier_init(b, 1);\nbulk_load(s + 32768 - 16, a.in, 32, b); }",
                 {"thread 0, body:2", "goes over the barrier at offset 32768"});
}

TEST_F(HopperWarp, misaligned_addresses_are_found) {
  expect_mistake("u32 r[2];\nmatrix_load(r, s + 16 * t + 8 * (t == 5));",
                 {"thread 5, body:2", "lies at offset 88, it must be a multiple of 16"});
  expect_mistake("u32 r[2] = {};\nmatrix_store(s + 16 * t + 2 * (t == 9), r);", {"thread 9, body:2", "offset 146"});
  expect_mistake("piece_load<8>(s + 4, a.in);", {"thread 0, body:1", "to offset 4", "multiples of its size"});
  expect_mistake("piece_load<16>(s, a.in + 1);", {"thread 0, body:1", "multiples of its size"});
  expect_mistake("piece_load<16>(s, a.in, 20);", {"thread 0, body:1", "a copy of 20 bytes into a piece of 16"});
  expect_mistake("bulk_store(a.out, s, 8);", {"thread 0, body:1", "must be multiples of 16"});
  expect_mistake("operand_descriptor(s + 8, 16, 1024, Swizzle::bytes_128);",
                 {"thread 0, body:1", "an operand at offset 8", "multiples of 16"});
  expect_mistake("u32 r[4];\nmatrix_load(r, s + 33000 + 16 * t);", {"body:2", "outside the block's"});
}

TEST_F(HopperWarp, warps_that_are_not_whole_are_found) {
  expect_mistake("float d[4] = {}; u32 x[4] = {}, y[2] = {};\nmma<f16>(d, x, y);", {"body:2", "takes a whole warp"},
                 48);
  expect_mistake("float d[4] = {}; u32 x[4] = {}, y[2] = {};\nif (t != 7)\nmma<f16>(d, x, y);",
                 {"wait for each other for ever", "31 threads, the first is 0", "a product of a warp, body:3"});
  expect_mistake("float d[4] = {}; u32 x[4] = {}, y[2] = {};\nif (t == 7) __syncwarp(); else mma<f16>(d, x, y);",
                 {"body:2", "not all lanes of a warp ask for a product"});
  expect_mistake("float d[4] = {}; u32 x[4] = {}, y[2] = {};\nif (t == 7) mma<bf16>(d, x, y); else mma<f16>(d, x, y);",
                 {"body:2", "lanes of a warp ask for different products"});
}

TEST_F(HopperWarp, stores_need_fences_from_the_first_on) {
  expect_mistake(std::string(kToShared) + "if (t == 0) bulk_store(a.out, s, 64);",
                 {"thread 0, body:2", "ordinary stores wrote, without fence_for_copies"});
  expect_mistake(
      "piece_load<16>(s + 16 * t, a.in); pieces_commit(); pieces_wait<0>(); __syncthreads();\n"
      "if (t == 0) bulk_store(a.out, s, 64);",
      {"thread 0, body:2", "ordinary stores wrote, without fence_for_copies"});
}

TEST_F(HopperWarp, barriers_that_cannot_be_passed_say_what_is_missing) {
  expect_mistake(
      "if (t == 0) barrier_init(b, 3); __syncthreads();\nif (t < 2) barrier_expect(b, 64);\nbarrier_wait(b, 0);",
      {"32 threads, the first is 0", "body:3", "1 of 3 arrivals and 128 bytes are missing"});
  expect_mistake("if (t < 31)\n__syncthreads();\nelse named_sync(3, 32);",
                 {"31 threads, the first is 0, of block 0 for a barrier of the block, body:2",
                  "1 threads, the first is 31, of block 0 for a barrier by number, body:3"});
  expect_mistake("named_sync(16, 32);", {"thread 0, body:1", "a barrier by number 16"});
  expect_mistake("if (t == 0) { barrier_init(b, 1); barrier_end(b);\nbarrier_arrive(b); }",
                 {"body:2", "not initialised"});
}

TEST_F(HopperWarp, other_blocks_must_be_there) {
  expect_mistake("remote_load(reinterpret_cast<u32*>(s), 1);", {"thread 0, body:1", "may not have begun"}, 32, 2);
  expect_mistake("cluster_sync();\nif (cluster_rank() == 1) remote_load(reinterpret_cast<u32*>(s), 0);",
                 {"block 1, thread 0, body:2", "may have ended"}, 32, 2);
  expect_mistake("remote_load(reinterpret_cast<u32*>(s), 2);", {"thread 0, body:1", "block 2 of a cluster of 2"}, 32,
                 2);
}

TEST_F(HopperWarp, copies_beyond_a_tensor_are_found) {
#if !defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer alone knows where memory ends";
#endif
  std::vector<uint32_t> tensor(20);
  source_ = tensor.data();
  expect_mistake("piece_load<16>(s + 16 * t, a.in + 4 * t);",
                 {"thread 5, body:1", "a copy of 16 bytes of memory reaches beyond the end of a tensor"});
  expect_mistake("if (t == 0) { barrier_init(b, 1);\nbulk_load(s, a.in, 96, b); }",
                 {"thread 0, body:2", "from byte 80 on"});
  expect_mistake("if (t == 0) bulk_store(const_cast<u32*>(a.in) + 16, s, 32);",
                 {"thread 0, body:1", "a store of 32 bytes"});
}

}  // namespace
}  // namespace tsr
