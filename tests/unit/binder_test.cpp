// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/binder.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "graph/text.hpp"
#include "runtime/devices.hpp"

namespace tsr::cuda {
namespace {

struct Args {
  const float* first;
  dev::i64 known;
  void* second;
  dev::Number number;
  double real;
  dev::i64 integer;
  char* scratch;
  dev::Operand memory, scalar;
  dev::TensorMap map, scratch_map;
};

TEST(Binder, FillsInWhatAnExecutionKnowsAndLeavesTheRest) {
  Graph g =
      parse_graph("x = input f32[4,8]; s = scalar f16; n = scalar i32; y = mul x s; z = mul y (identity n); output z");
  TensorId x = g.find("x"), s = g.find("s"), n = g.find("n");
  alignas(16) float data[32] = {};
  uint16_t half = 0x4200;  // 3
  int32_t seven = 7;
  alignas(16) std::byte workspace[64];
  std::vector<void*> table(static_cast<size_t>(g.tensor_count()), nullptr);
  table[static_cast<size_t>(x)] = data, table[static_cast<size_t>(s)] = &half, table[static_cast<size_t>(n)] = &seven;

  KernelArgs<Args> k;
  k.args.known = 42;
  k.pointer(k.args.first, x, 16);
  k.pointer(k.args.second, kNone);
  k.number(k.args.number, Lane::f32, DType::f16, s);
  k.real(k.args.real, DType::f16, s);
  k.integer(k.args.integer, DType::i32, n);
  k.workspace(k.args.scratch, 32);
  k.operand(k.args.memory, g, x);
  k.operand(k.args.scalar, g, s);
  TensorBox box;
  box.rank = 2, box.element_bytes = 4, box.dims = {8, 4}, box.strides = {4, 32}, box.box = {8, 4};
  k.map(k.args.map, box, x, emulated_device());
  k.workspace_map(k.args.scratch_map, box, 32, emulated_device());

  KernelArgs<Args> moved = std::move(k);  // places are those of the struct, not of the object
  Args a = moved.filled({table.data(), workspace, nullptr});
  EXPECT_EQ(a.first, data + 4);
  EXPECT_EQ(a.known, 42);
  EXPECT_EQ(a.second, nullptr);
  EXPECT_EQ(a.number.f, 3.0f);
  EXPECT_EQ(a.real, 3.0);
  EXPECT_EQ(a.integer, 7);
  EXPECT_EQ(a.scratch, reinterpret_cast<char*>(workspace) + 32);
  EXPECT_EQ(a.memory.data, data);
  EXPECT_EQ(a.memory.strides[0], 8);
  EXPECT_EQ(a.scalar.data, nullptr);
  EXPECT_EQ(a.scalar.value, 0x4200u);
  dev::TensorMap wanted = encode_map(box, data, emulated_device());
  EXPECT_EQ(std::memcmp(&a.map, &wanted, sizeof wanted), 0);
  wanted = encode_map(box, workspace + 32, emulated_device());
  EXPECT_EQ(std::memcmp(&a.scratch_map, &wanted, sizeof wanted), 0);
}

// Arguments that are one map of a tensor.
struct OneMap {
  struct Args {
    dev::TensorMap map;
  };
  TensorBox box;
  KernelArgs<Args> k;

  OneMap() {
    box.rank = 2, box.element_bytes = 4, box.dims = {8, 4}, box.strides = {4, 32}, box.box = {8, 4};
    k.map(k.args.map, box, 0, emulated_device());
  }
  dev::TensorMap filled(void* pointer) const { return k.filled({&pointer, nullptr, nullptr}).map; }
  bool is_of(const dev::TensorMap& map, const void* pointer) const {
    dev::TensorMap wanted = encode_map(box, pointer, emulated_device());
    return std::memcmp(&map, &wanted, sizeof map) == 0;
  }
};

TEST(Binder, MapsAreEncodedAgainForOtherPointersOnly) {
  OneMap m;
  alignas(16) float data[2][32] = {};
  for (int i : {0, 1, 0}) {
    size_t before = maps_encoded();
    dev::TensorMap first = m.filled(data[i]), second = m.filled(data[i]);
    EXPECT_EQ(maps_encoded(), before + 1);
    EXPECT_TRUE(m.is_of(first, data[i]) && m.is_of(second, data[i]));
  }
}

TEST(Binder, ThreadsGetTheMapOfTheirOwnPointer) {
  OneMap m;
  std::atomic<int> wrong = 0;
  auto work = [&] {
    alignas(16) float data[32];
    for (int i = 0; i < 2000; ++i) wrong += !m.is_of(m.filled(data), data);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tsr::cuda
