// SPDX-License-Identifier: Apache-2.0
// Devices of the public C++ API: names, memory, errors, and plans on the emulated device.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tessera/tessera.hpp>

#include "expect_error.hpp"
#include "runtime/devices.hpp"

namespace tessera {
namespace {

using tsr::expect_error;

bool has_gpu() { return !tsr::gpus().empty(); }

struct Small {
  Graph g;
  Tensor x = g.input("x", DType::f32, {3, 5}), s = g.scalar("s", DType::f32);
  Tensor y = g.output(relu(x * s) + 1.0, "y");
};

TEST(ApiDevice, NamesAreChecked) {
  Small m;
  expect_error([&] { m.g.plan({.device = "gpu"}); }, Status::bad_parameter,
               {"there is no device 'gpu'", "cpu", "cuda", "emulated", "h200"});
  expect_error([&] { m.g.plan({.device = "cuda:x"}); }, Status::bad_parameter, {"'cuda:x' must read cuda:NUMBER"});
  expect_error([&] { Buffer(m.x, "gpu"); }, Status::bad_parameter, {"there is no device 'gpu'"});
  EXPECT_EQ(m.g.plan().device(), "cpu");
  EXPECT_EQ(m.g.plan({.device = "emulated"}).device(), "emulated");
}

TEST(ApiDevice, WithoutAGpuTheErrorSaysWhatIsMissing) {
  if (has_gpu()) GTEST_SKIP() << "this machine has a GPU";
  Small m;
  for (const char* name : {"cuda", "cuda:1"}) {
    expect_error([&] { m.g.plan({.device = name}); }, Status::not_supported, {"there is no CUDA device", "driver"});
    expect_error([&] { Buffer(m.x, name); }, Status::not_supported, {"there is no CUDA device", "driver"});
  }
}

// The same graph on the CPU and on another device, with memory there.
void expect_same_values(const std::string& device) {
  Small m;
  std::vector<double> expected;
  for (const std::string& name : {std::string("cpu"), device}) {
    Buffer bx(m.x, name), bs(m.s, name), by(m.y, name);
    bx.fill_random(1);
    bs.set(0, 2.5);
    Plan plan = m.g.plan({.device = name});
    plan.run({bind(m.x, bx), bind(m.s, bs), bind(m.y, by)});
    if (name == "cpu") {
      expected = by.values();
      continue;
    }
    std::vector<double> got = by.values();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_FLOAT_EQ(got[i], expected[i]);
    EXPECT_FLOAT_EQ(by.get(7), expected[7]);
    // A saved plan runs on the same device, again and with a workspace that is kept.
    Plan loaded = Plan::load(plan.save(), name);
    EXPECT_EQ(loaded.device(), name);
    bx.fill(2);
    Workspace workspace(loaded);
    Binding bindings[] = {bind(m.x, bx), bind(m.s, bs), bind(m.y, by)};
    loaded.execute(bindings, workspace);
    EXPECT_EQ(by.values(), std::vector<double>(15, 6));
    expect_error([&] { Plan::load(plan.save()); }, Status::corrupt_data, {"this device is 'cpu'"});
  }
}

TEST(ApiDevice, EmulatedPlansGiveTheValuesOfTheCpu) { expect_same_values("emulated"); }

TEST(ApiDevice, GpuPlansGiveTheValuesOfTheCpu) {
  if (!has_gpu()) GTEST_SKIP() << "no GPU here";
  expect_same_values("cuda");
}

TEST(ApiDevice, OtherSizesHaveAWorkspaceOnTheDevice) {
  Small m;
  Plan plan = m.g.plan({.device = "emulated"});
  Buffer bx(m.x, "emulated"), bs(m.s), by(m.y, "emulated");
  bx.fill(3);
  bs.set(0, 1);
  ShapeOverride two_rows[] = {{m.x, {2, 5}, {}}};
  Workspace workspace(plan, two_rows);
  Binding bindings[] = {bind(m.x, bx), bind(m.s, bs), bind(m.y, by)};
  plan.execute(bindings, two_rows, workspace.data(), workspace.bytes());
  EXPECT_EQ(by.get(9), 4);
  EXPECT_EQ(by.get(10), 0);
}

// Elements go in and out one by one and all at once, in every type's packing and with gaps between strides.
TEST(ApiDevice, BuffersConvertWhereverTheyLie) {
  for (const char* device : {"cpu", "emulated"})
    for (DType type :
         {DType::f64, DType::f32, DType::bf16, DType::e2m1, DType::i32, DType::i8, DType::i4, DType::bit}) {
      Graph g;
      Tensor t = g.input("t", type, {3, 5}, {.strides = {7, 1}});
      Buffer b(t, device);
      EXPECT_EQ(b.values(), std::vector<double>(15, 0));
      std::vector<double> ones_and_zeros;
      for (int i = 0; i < 15; ++i) ones_and_zeros.push_back(i % 3 == 0);
      b.set(ones_and_zeros);
      EXPECT_EQ(b.values(), ones_and_zeros);
      b.set(4, 1), ones_and_zeros[4] = 1;
      b.set(14, 1), ones_and_zeros[14] = 1;
      EXPECT_EQ(b.values(), ones_and_zeros);
      for (int i = 0; i < 15; ++i) EXPECT_EQ(b.get(i), ones_and_zeros[static_cast<size_t>(i)]);
      b.fill(1);
      EXPECT_EQ(b.values(), std::vector<double>(15, 1));
      expect_error([&] { b.get(15); }, Status::bad_parameter, {"element 15 of a buffer of 15"});
      expect_error([&] { b.set(std::vector<double>(3)); }, Status::bad_parameter, {"3 values for a buffer of 15"});
    }
}

TEST(ApiDevice, EmptyBuffersAreFine) {
  Graph g;
  Tensor t = g.input("t", DType::f32, {0, 4});
  for (const char* device : {"cpu", "emulated"}) {
    Buffer b(t, device);
    b.fill(1);
    EXPECT_TRUE(b.values().empty());
  }
}

TEST(ApiDevice, ARecordIsForPlanningAlone) {
  Small m;
  Plan plan = m.g.plan({.device = "h200"});
  EXPECT_EQ(plan.device(), "h200");
  EXPECT_NE(plan.explain().find("h200"), std::string::npos);
  auto words = {std::string("h200"), std::string("not run")};
  expect_error([&] { Buffer(m.x, "h200"); }, Status::not_supported, words);
  expect_error([&] { Workspace w(plan); }, Status::not_supported, words);
  Buffer bx(m.x), bs(m.s), by(m.y);
  expect_error([&] { plan.run({bind(m.x, bx), bind(m.s, bs), bind(m.y, by)}); }, Status::not_supported, words);
  alignas(16) std::byte memory[16];
  Binding bindings[] = {bind(m.x, bx), bind(m.s, bs), bind(m.y, by)};
  expect_error([&] { plan.execute(bindings, memory, sizeof memory); }, Status::not_supported, words);
}

}  // namespace
}  // namespace tessera
