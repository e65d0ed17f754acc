// SPDX-License-Identifier: Apache-2.0
// The emulated copy engine and tensor cores: what they compute, and that they find the mistakes that a GPU would answer
// with wrong numbers or not at all.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "engines/cuda/toolkit/wgmma_text.hpp"
#include "expect_error.hpp"
#include "graph/text.hpp"
#include "planner/plan.hpp"
#include "runtime/devices.hpp"
#include "runtime/jit/nvrtc.hpp"
#include "runtime/kernel.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr {
namespace {

struct Args {
  dev::TensorMap map;
  float* out;
};

// The body sees `a`, `s` (shared memory, 32 kB of places and then barriers `b`), and `t`, the thread.
Program program(const std::string& body, const cuda::WgmmaShape& shape = {}) {
  Program p;
  p.include = "engines/cuda/wgmma/product.cuh";
  p.generated = cuda::wgmma_text("Product", shape) +
                "namespace tsr::dev {\nstruct Args { TensorMap map; float* out; };\ninline void test(const Args& a) {\n"
                "char* s = shared_memory(); u64* b = reinterpret_cast<u64*>(s + 32768); int t = threadIdx.x;\n#line 1 "
                "\"body\"\n" +
                body + "\n}\n}";
  p.args = "tsr::dev::Args";
  p.body = "tsr::dev::test";
  p.threads = 128;
  return p;
}

class Hopper : public testing::Test {
 protected:
  Hopper() : data_(64 * 64), out_(128 * 64, -1.0F) {
    for (size_t i = 0; i < data_.size(); ++i)
      store(DType::bf16, data_.data(), static_cast<int64_t>(i), static_cast<double>(i % 13) - 6);
    TensorBox box;
    box.rank = 2, box.dims = {64, 60}, box.strides = {2, 128}, box.box = {64, 64},
    box.swizzle = dev::Swizzle::bytes_128;
    args_ = {encode_map(box, data_.data(), device_), out_.data()};
  }
  void run(const std::string& body, const cuda::WgmmaShape& shape = {}, int threads = 128, int cluster = 1) {
    auto k = get_kernel(program(body, shape), device_);
    k->launch({.blocks = cluster, .threads = threads, .shared_bytes = 33000, .cluster = cluster}, nullptr, args_);
  }
  void expect_mistake(const std::string& body, std::initializer_list<std::string> words,
                      const cuda::WgmmaShape& shape = {}) {
    expect_error([&] { run(body, shape); }, Status::execution_failed, words);
    expect_error([&] { run(body, shape); }, Status::execution_failed, {"thread", "body:1"});
  }
  // Of the matrix that the map describes: 60 rows, 4 more beyond its end.
  double element(int row, int column) const {
    return row < 60 ? load<double>(DType::bf16, data_.data(), row * 64 + column) : 0;
  }

  // One thread brings the matrix to place s, all wait.
  static constexpr const char* kBring =
      "if (t == 0) { barrier_init(b, 1); barriers_ready(); } __syncthreads();"
      "if (t == 0) { barrier_expect(b, 8192); tensor_load<2>(s, &a.map, {0, 0}, b); } barrier_wait(b, 0);";
  static constexpr const char* kMultiply =
      "u64 m = operand_descriptor(s, 16, 1024, Swizzle::bytes_128); Product::Sums d; wgmma_fence();"
      "for (int k = 0; k < 4; ++k) Product::run(d, m + 2 * k, m + 2 * k, k > 0); wgmma_commit();";
  static constexpr const char* kStore = "for (int i = 0; i < 32; ++i) a.out[t * 32 + i] = d[i];";

  Device device_ = emulated_device();
  std::vector<uint16_t> data_;
  std::vector<float> out_;
  Args args_{};
};

TEST_F(Hopper, copies_boxes_and_multiplies_them) {
  run(std::string(kBring) + kMultiply + "wgmma_wait<0>();" + kStore);
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < 64; ++j) {
      double sum = 0;
      for (int k = 0; k < 64; ++k) sum += element(i, k) * element(j, k);
      int thread = i / 16 * 32 + i % 8 * 4 + j % 8 / 2, slot = j / 8 * 4 + i % 16 / 8 * 2 + j % 2;
      ASSERT_EQ(out_[static_cast<size_t>(thread * 32 + slot)], sum) << i << " " << j;
    }
}

TEST_F(Hopper, left_operands_come_from_registers) {
  cuda::WgmmaShape shape{.a_in_registers = true};
  // All elements 1: sums of the columns.
  run(std::string(kBring) +
          "u64 m = operand_descriptor(s, 16, 1024, Swizzle::bytes_128); Product::Sums d;"
          "u32 ones[4] = {0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u}; wgmma_fence();"
          "for (int k = 0; k < 4; ++k) Product::run(d, ones, m + 2 * k, k > 0); wgmma_commit(); wgmma_wait<0>();" +
          kStore,
      shape);
  for (int j = 0; j < 64; ++j) {
    double sum = 0;
    for (int k = 0; k < 64; ++k) sum += element(j, k);
    EXPECT_EQ(out_[static_cast<size_t>(j % 8 / 2 * 32 + j / 8 * 4 + j % 2)], sum) << j;
  }
}

// Every type from shared memory and from registers: whole numbers, whose sums are exact.
TEST_F(Hopper, all_types_are_multiplied) {
  struct Case {
    DType a, b, sum;
  };
  for (const Case& c : {Case{DType::f16, DType::f16, DType::f32}, Case{DType::f16, DType::f16, DType::f16},
                        Case{DType::f32, DType::f32, DType::f32}, Case{DType::e4m3, DType::e5m2, DType::f32},
                        Case{DType::e5m2, DType::e4m3, DType::f16}, Case{DType::i8, DType::u8, DType::i32}})
    for (bool registers : {false, true}) {
      cuda::WgmmaShape shape{.columns = 16, .a = c.a, .b = c.b, .sum = c.sum, .a_in_registers = registers};
      int depth = cuda::wgmma_depth(shape), each = 128 / info(c.a).bits;
      // Rows of 16 bytes, eight of which make a matrix: the first half of all rows, then the second.
      auto place = [&](int row, int k) { return (k / each * 64 + row) * each + k % each; };
      auto value = [&](DType t, int row, int k) { return (row * 5 + k * 3 + row * k) % 7 - (t == DType::u8 ? 0 : 3); };
      auto* bytes = reinterpret_cast<char*>(data_.data());
      for (int row = 0; row < 64; ++row)
        for (int k = 0; k < depth; ++k) {
          store<double>(c.a, bytes, place(row, k), value(c.a, row, k));
          store<double>(c.b, bytes + 2048, place(row, k), value(c.b, row, k));
        }
      args_.out = out_.data();
      std::memcpy(out_.data(), bytes, 4096);  // what the kernel brings to shared memory
      run("for (int i = t; i < 1024; i += 128) reinterpret_cast<float*>(s)[i] = a.out[i]; fence_for_copies(); "
          "__syncthreads();\nu64 l = operand_descriptor(s, 1024, 128, Swizzle::none), r = operand_descriptor(s + 2048, "
          "1024, 128, Swizzle::none); u32 x[4]; const u32* w = reinterpret_cast<u32*>(s); int row = t / 32 * 16 + t % "
          "32 "
          "/ 4;\nfor (int i = 0; i < 4; ++i) x[i] = w[(i / 2 * 64 + row + i % 2 * 8) * 4 + t % 4];\n"
          "Product::Sums d; wgmma_fence(); Product::run(d, " +
              std::string(registers ? "x" : "l") +
              ", r, false); wgmma_commit(); wgmma_wait<0>();"
              "memcpy(a.out + t * (sizeof d / 4), d, sizeof d);",
          shape);
      for (int i = 0; i < 64; ++i)
        for (int j = 0; j < 16; ++j) {
          double sum = 0;
          for (int k = 0; k < depth; ++k) sum += value(c.a, i, k) * value(c.b, j, k);
          int thread = i / 16 * 32 + i % 8 * 4 + j % 8 / 2, slot = j / 8 * 4 + i % 16 / 8 * 2 + j % 2;
          ASSERT_EQ(load<double>(c.sum, out_.data(), thread * 8 + slot), sum)
              << c.a << " " << c.b << " " << i << " " << j;
        }
    }
}

TEST_F(Hopper, copies_reach_all_blocks_of_a_cluster) {
  run("if (t == 0) { barrier_init(b, 1); barriers_ready(); barrier_expect(b, 8192); } cluster_sync();"
      "if (t == 0 && cluster_rank() == 1) tensor_load_multicast<2>(s, &a.map, {0, 0}, b, 3);"
      "barrier_wait(b, 0); if (t == 0) a.out[cluster_rank()] = to_lane<float>(*reinterpret_cast<bf16*>(s)); "
      "cluster_sync();",
      {}, 128, 2);
  EXPECT_EQ(out_[0], element(0, 0));
  EXPECT_EQ(out_[1], element(0, 0));
}

TEST_F(Hopper, boxes_go_back_to_memory) {
  std::vector<uint16_t> before = data_;
  run(std::string(kBring) +
      "auto* x = reinterpret_cast<bf16*>(s); x[t] = from_lane<bf16>(7.0f); fence_for_copies(); __syncthreads();"
      "if (t == 0) { tensor_store<2>(&a.map, {0, 0}, s); stores_commit(); stores_wait<0>(); }");
  for (int i = 0; i < 64; ++i) EXPECT_EQ(element(0, i), 7);
  EXPECT_TRUE(std::equal(before.begin() + 128, before.end(), data_.begin() + 128));
}

// --- mistakes
TEST_F(Hopper, what_did_not_come_yet_is_no_number) {
  run("if (t == 0) { barrier_init(b, 1); barrier_expect(b, 8192); tensor_load<2>(s, &a.map, {0, 0}, b);"
      "a.out[0] = to_lane<float>(*reinterpret_cast<bf16*>(s)); barrier_wait(b, 0);"
      "a.out[1] = to_lane<float>(*reinterpret_cast<bf16*>(s)); }");
  EXPECT_TRUE(std::isnan(out_[0]));
  EXPECT_EQ(out_[1], element(0, 0));
}

TEST_F(Hopper, sums_that_nobody_waited_for_are_no_numbers) {
  run(std::string(kBring) + kMultiply + "a.out[t] = d[0]; wgmma_wait<0>(); a.out[128 + t] = d[0];");
  for (size_t i = 0; i < 128; ++i) {
    EXPECT_TRUE(std::isnan(out_[i]));
    EXPECT_FALSE(std::isnan(out_[128 + i]));
  }
}

TEST_F(Hopper, operands_that_are_overwritten_under_way_are_found) {
  expect_mistake(std::string(kBring) + kMultiply +
                     "if (t == 0) { barrier_expect(b, 8192); tensor_load<2>(s, &a.map, {0, 0}, b); } wgmma_wait<0>();",
                 {"overwrites 8192 bytes", "may still read", "thread 0"});
  expect_mistake(
      std::string(kBring) + kMultiply + "__syncthreads(); reinterpret_cast<int*>(s)[t] = 0; wgmma_wait<0>();",
      {"was overwritten while the product"});
}

TEST_F(Hopper, a_missing_fence_of_proxies_is_found) {
  expect_mistake(std::string(kBring) + "reinterpret_cast<bf16*>(s)[t] = from_lane<bf16>(1.0f); __syncthreads();" +
                     kMultiply + "wgmma_wait<0>();",
                 {"ordinary stores wrote, without fence_for_copies"});
  expect_mistake(std::string(kBring) +
                     "reinterpret_cast<bf16*>(s)[t] = from_lane<bf16>(1.0f); __syncthreads();"
                     "if (t == 0) tensor_store<2>(&a.map, {0, 0}, s);",
                 {"ordinary stores wrote, without fence_for_copies"});
}

TEST_F(Hopper, stores_must_be_waited_for_before_their_memory_is_used_again) {
  expect_mistake(std::string(kBring) +
                     "fence_for_copies(); if (t == 0) { tensor_store<2>(&a.map, {0, 0}, s); stores_commit();"
                     "reinterpret_cast<int*>(s)[0] = 5; stores_wait<0>(); }",
                 {"was overwritten before the copy out of it"});
}

TEST_F(Hopper, stores_of_rows_that_end_inside_16_bytes_are_found) {
  TensorBox box;
  box.rank = 2, box.dims = {60, 60}, box.strides = {2, 128}, box.box = {64, 64}, box.swizzle = dev::Swizzle::bytes_128;
  args_.map = encode_map(box, data_.data(), device_);
  expect_mistake(std::string(kBring) + "fence_for_copies(); if (t == 0) tensor_store<2>(&a.map, {0, 0}, s);",
                 {"rows of the tensor have 120 bytes"});
}

TEST_F(Hopper, a_missing_fence_of_registers_is_found) {
  expect_mistake(std::string(kBring) +
                     "u64 m = operand_descriptor(s, 16, 1024, Swizzle::bytes_128); Product::Sums d;"
                     "Product::run(d, m, m, false); wgmma_commit(); wgmma_wait<0>();",
                 {"wgmma_fence must stand"});
}

TEST_F(Hopper, operands_that_begin_inside_a_pattern_are_found) {
  expect_mistake(
      std::string(kBring) +
          "u64 m = operand_descriptor(s + 128, 16, 1024, Swizzle::bytes_128); Product::Sums d; wgmma_fence();"
          "Product::run(d, m, m, false); wgmma_commit(); wgmma_wait<0>();",
      {"begins at offset 128, inside a pattern of 1024"});
  expect_mistake(
      "if (t == 0) { barrier_init(b, 1); barrier_expect(b, 8192); tensor_load<2>(s + 256, &a.map, {0, 0}, b); }",
      {"goes to offset 256", "multiple of 1024"});
}

TEST_F(Hopper, barriers_that_cannot_be_passed_are_reported) {
  expect_mistake("if (t == 0) barrier_init(b, 2); __syncthreads(); if (t == 0) barrier_arrive(b); barrier_wait(b, 0);",
                 {"wait for each other for ever", "128 threads", "a barrier in shared memory"});
  expect_mistake(
      "if (t == 0) { barrier_init(b, 1); barrier_expect(b, 16384); tensor_load<2>(s, &a.map, {0, 0}, b); "
      "barrier_wait(b, 0); }",
      {"wait for each other for ever"});
  expect_mistake("if (t == 0) { barrier_init(b, 1); barrier_expect(b, 64); barrier_arrive(b); }",
                 {"more arrive at the barrier", "than the 1 it was made for"});
  expect_mistake("if (t == 0) barrier_arrive(b);", {"was not initialised"});
}

TEST_F(Hopper, what_lies_outside_is_found) {
  expect_mistake("if (t == 0) { barrier_init(b, 1); tensor_load<2>(s + 32768 - 1024, &a.map, {0, 0}, b); }",
                 {"outside the block's 33000 bytes"});
  expect_mistake("if (t == 0) { barrier_init(b, 1); tensor_load<3>(s, &a.map, {0, 0, 0}, b); }",
                 {"3 coordinates by a map of rank 2"});
  expect_mistake("if (t == 0) { barrier_init(b, 1); tensor_load<2>(s, &a.map, {-1, 0}, b); }",
                 {"begins -2 bytes along its rows", "no multiple of 16"});
}

TEST_F(Hopper, sums_that_are_written_under_way_are_found) {
  expect_mistake(std::string(kBring) + kMultiply + "if (t == 5) d[3] = 0; wgmma_wait<0>();",
                 {"thread 5", "were written before they were waited for"});
  expect_mistake(std::string(kBring) + kMultiply +
                     "d[0] *= 2; wgmma_fence(); Product::run(d, m, m, true); wgmma_commit(); wgmma_wait<0>();",
                 {"were written before they were waited for"});
}

TEST_F(Hopper, products_of_what_has_not_come_are_found) {
  expect_mistake(
      "if (t == 0) { barrier_init(b, 1); barriers_ready(); barrier_expect(b, 8192); tensor_load<2>(s, &a.map, {0, 0}, "
      "b); "
      "}"
      "__syncthreads();" +
          std::string(kMultiply) + "wgmma_wait<0>();",
      {"a product reads shared memory at offset 0", "has not brought yet"});
}

TEST_F(Hopper, the_first_use_needs_a_fence_too) {
  expect_mistake(
      "for (int i = t; i < 4096; i += 128) reinterpret_cast<bf16*>(s)[i] = from_lane<bf16>(1.0f);"
      "__syncthreads();" +
          std::string(kMultiply) + "wgmma_wait<0>();",
      {"a product reads shared memory", "without fence_for_copies"});
}

TEST_F(Hopper, descriptions_with_another_swizzle_are_found) {
  expect_mistake(std::string(kBring) +
                     "u64 m = operand_descriptor(s, 16, 512, Swizzle::bytes_64); Product::Sums d; wgmma_fence();"
                     "Product::run(d, m, m, false); wgmma_commit(); wgmma_wait<0>();",
                 {"is described with a swizzle of 64 bytes, but came in boxes with a swizzle of 128 bytes"});
  // What threads write themselves may lie as they like.
  run(std::string(kBring) +
      "for (int i = t; i < 4096; i += 128) reinterpret_cast<bf16*>(s)[i] = from_lane<bf16>(float(i % 7 + 20));"
      "fence_for_copies(); __syncthreads();"
      "u64 m = operand_descriptor(s, 16, 512, Swizzle::bytes_64); Product::Sums d; wgmma_fence();"
      "Product::run(d, m, m, false); wgmma_commit(); wgmma_wait<0>();");
}

// The first threads of a warpgroup alone cannot multiply.
TEST_F(Hopper, products_take_whole_warpgroups) {
  expect_error([&] { run(std::string(kBring) + kMultiply + "wgmma_wait<0>();", {}, 64); }, Status::execution_failed,
               {"takes a whole warpgroup"});
}

// --- the engine
TEST(Wgmma, no_kernel_spills) {
  if (!jit::nvrtc()) GTEST_SKIP() << jit::nvrtc().missing;
  for (const char* text : {
           "a = input bf16[8192,8192]; b = input bf16[8192,8192]; c = matmul a b; output c bf16",
           "a = input f16[2048,2048]; b = input f16[2048,2048]; s = input f32[1,2048]; r = input f16[2048,2048]; "
           "c = gelu (add (add (matmul a b) s) r); output c f16",
           "a = input bf16[2048,512]; b = input bf16[512,2048]:col; c = matmul a b; x = relu c; output c f32; output x "
           "bf16",
           "x = input bf16[32,128,28,28]:nhwc; w = input bf16[128,128,3,3]:nhwc; b = input bf16[1,128,1,1]; "
           "y = relu (add (conv_fprop x w pad=1,1) b); output y bf16:nhwc",
           "dy = input bf16[32,128,28,28]:nhwc; w = input bf16[128,256,3,3]:nhwc; dx = conv_dgrad dy w pad=1,1; "
           "output dx bf16:nhwc",
       }) {
    KernelRecorder recorder;
    auto plan = make_plan(std::make_shared<Graph>(parse_graph(text)), find_device("h200"), {.tuned = false});
    ASSERT_EQ(plan->steps().size(), 1u) << text;
    EXPECT_EQ(plan->steps()[0].engine->info().name, "wgmma_cuda") << text;
    for (const auto& [program, kernel] : recorder.entries()) {
      EXPECT_EQ(kernel->info().spill_bytes, 0) << program.body;
      EXPECT_EQ(kernel->info().log.find("serializ"), std::string::npos) << kernel->info().log;
    }
  }
}

// --- maps
TEST(TensorMap, boxes_that_the_copy_engine_cannot_take_are_declined) {
  TensorBox good;
  good.rank = 2, good.dims = {64, 64}, good.strides = {2, 128}, good.box = {64, 64},
  good.swizzle = dev::Swizzle::bytes_128;
  EXPECT_TRUE(check_box(good, 16).ok());
  EXPECT_FALSE(check_box(good, 8).ok());
  for (auto change : {+[](TensorBox& b) { b.strides[1] = 130; }, +[](TensorBox& b) { b.strides[0] = 4; },
                      +[](TensorBox& b) { b.box[0] = 128; }, +[](TensorBox& b) { b.box[1] = 300; },
                      +[](TensorBox& b) { b.rank = 1; }, +[](TensorBox& b) { b.box[0] = 4; }}) {
    TensorBox bad = good;
    change(bad);
    EXPECT_FALSE(check_box(bad, 16).ok());
  }
}

}  // namespace
}  // namespace tsr
