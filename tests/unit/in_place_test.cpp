// SPDX-License-Identifier: Apache-2.0
// Outputs in the memory of inputs.
#include <gtest/gtest.h>

#include <numeric>

#include "graph/op.hpp"
#include "graph/text.hpp"
#include "planner/overlap.hpp"
#include "planner/plan.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

Tensor tensor(const Dims& dims, const Dims& strides, DType type = DType::f32) {
  Tensor t;
  t.dims = dims, t.strides = strides, t.dtype = type;
  return t;
}

Overlap at_distance(const Tensor& a, const Tensor& b, int64_t bytes) {
  static std::byte memory[1 << 16];
  return overlap(a, memory + (1 << 15), b, memory + (1 << 15) + bytes);
}

TEST(Overlap, is_same_where_elements_meet) {
  Tensor t = tensor({4, 8}, {8, 1});
  EXPECT_EQ(at_distance(t, t, 0), Overlap::same);
  EXPECT_EQ(at_distance(t, tensor({4, 8}, {8, 1}, DType::i32), 0), Overlap::same);
  EXPECT_EQ(at_distance(t, tensor({4, 8}, {1, 4}), 0), Overlap::partly);
  EXPECT_EQ(at_distance(t, tensor({4, 8}, {8, 1}, DType::bf16), 0), Overlap::partly);
  EXPECT_EQ(at_distance(t, tensor({2, 8}, {8, 1}), 0), Overlap::partly);
  // Of a dimension of size 1 the stride does not matter.
  EXPECT_EQ(at_distance(tensor({1, 8}, {8, 1}), tensor({1, 8}, {99, 1}), 0), Overlap::same);
}

TEST(Overlap, is_none_beyond_the_end) {
  Tensor t = tensor({4, 8}, {8, 1});
  EXPECT_EQ(at_distance(t, t, 128), Overlap::none);
  EXPECT_EQ(at_distance(t, t, -128), Overlap::none);
  EXPECT_EQ(at_distance(t, t, 124), Overlap::partly);
  EXPECT_EQ(at_distance(t, t, -4), Overlap::partly);
}

// Queries, keys and values side by side in one buffer.
TEST(Overlap, sees_that_interleaved_tensors_are_apart) {
  Tensor t = tensor({2, 16, 8}, {16 * 24, 24, 1});
  EXPECT_EQ(at_distance(t, t, 8 * 4), Overlap::none);
  EXPECT_EQ(at_distance(t, t, 16 * 4), Overlap::none);
  EXPECT_EQ(at_distance(t, t, 7 * 4), Overlap::partly);
  EXPECT_EQ(at_distance(t, tensor({2, 16, 4}, {16 * 24, 24, 1}), 20 * 4), Overlap::none);
  EXPECT_EQ(at_distance(t, tensor({2, 16, 5}, {16 * 24, 24, 1}), 20 * 4), Overlap::partly);
}

TEST(Overlap, agrees_with_counting_bytes) {
  std::vector<Tensor> shapes = {tensor({3, 4}, {4, 1}),       tensor({3, 4}, {1, 3}),
                                tensor({3, 2}, {7, 3}),       tensor({5}, {6}),
                                tensor({2, 2, 2}, {9, 4, 2}), tensor({4}, {5}, DType::bf16),
                                tensor({3, 3}, {10, 2}),      tensor({2, 3}, {3, 1}, DType::f64)};
  auto bytes_of = [](const Tensor& t, int64_t from) {
    std::vector<bool> touched(2048, false);
    Dims index = Dims::filled(t.rank(), 0);
    int64_t size = info(t.dtype).bits / 8;
    for (int64_t i = 0; i < t.numel(); ++i, next_index(index, t.dims))
      for (int64_t k = 0; k < size; ++k) touched[static_cast<size_t>(1000 + from + t.offset(index) * size + k)] = true;
    return touched;
  };
  for (const Tensor& a : shapes)
    for (const Tensor& b : shapes)
      for (int64_t distance = -120; distance <= 120; distance += 2) {
        std::vector<bool> x = bytes_of(a, 0), y = bytes_of(b, distance);
        bool meet = false;
        for (size_t i = 0; i < x.size(); ++i) meet = meet || (x[i] && y[i]);
        EXPECT_EQ(at_distance(a, b, distance) != Overlap::none, meet)
            << cat(describe(a), " ", describe(b), " ", distance);
      }
}

class InPlace : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<const Plan> plan(const std::string& text) {
    auto g = std::make_shared<Graph>(parse_graph(text));
    return make_plan(g, find_device(GetParam()));
  }
};

std::vector<float> counted(size_t n, float from) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), from);
  return v;
}

// Each result needs both operands, and overwrites one of them.
TEST_P(InPlace, rotation) {
  auto p = plan(
      "x1 = input f32[40,100]; x2 = input f32[40,100]; c = input f32[1,100]; s = input f32[1,100]; "
      "y1 = sub (mul x1 c) (mul x2 s); y2 = add (mul x2 c) (mul x1 s); output y1; output y2");
  const Graph& g = p->source();
  auto uid = [&](const char* name) { return g.tensor(g.find(name)).uid; };
  for (bool crossed : {false, true}) {
    std::vector<float> x1 = counted(4000, 1), x2 = counted(4000, -70), c = counted(100, 3), s = counted(100, 5);
    std::vector<float> a = x1, b = x2;
    std::vector<std::byte> workspace(p->workspace_bytes());
    p->execute(std::vector<Binding>{{uid("x1"), a.data()},
                                    {uid("x2"), b.data()},
                                    {uid("c"), c.data()},
                                    {uid("s"), s.data()},
                                    {uid("y1"), crossed ? b.data() : a.data()},
                                    {uid("y2"), crossed ? a.data() : b.data()}},
               workspace.data(), workspace.size());
    if (crossed) std::swap(a, b);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i], x1[i] * c[i % 100] - x2[i] * s[i % 100]) << i;
      ASSERT_EQ(b[i], x2[i] * c[i % 100] + x1[i] * s[i % 100]) << i;
    }
  }
}

// A later step still reads what an earlier one overwrites.
TEST_P(InPlace, across_steps) {
  auto p =
      plan("x = input f32[64,64]; w = input f32[64,64]; y = relu (matmul x w); z = matmul x x; output y; output z");
  const Graph& g = p->source();
  auto uid = [&](const char* name) { return g.tensor(g.find(name)).uid; };
  std::vector<float> x(4096), w(4096), y(4096), z(4096), z2(4096);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3, w[i] = static_cast<float>(i % 5) - 2;
  std::vector<std::byte> workspace(p->workspace_bytes());
  auto run = [&](float* to_y, float* to_z) {
    p->execute(std::vector<Binding>{{uid("x"), x.data()}, {uid("w"), w.data()}, {uid("y"), to_y}, {uid("z"), to_z}},
               workspace.data(), workspace.size());
  };
  run(y.data(), z.data());
  run(x.data(), z2.data());
  EXPECT_EQ(x, y);
  EXPECT_EQ(z2, z);
}

TEST_P(InPlace, partial_overlap_is_refused) {
  auto p = plan("x = input f32[8,16]; y = relu x; output y");
  const Graph& g = p->source();
  std::vector<float> memory(300, 1);
  std::vector<std::byte> workspace(p->workspace_bytes());
  auto run = [&](float* to) {
    p->execute(std::vector<Binding>{{g.tensor(g.find("x")).uid, memory.data()}, {g.tensor(g.find("y")).uid, to}},
               workspace.data(), workspace.size());
  };
  run(memory.data() + 128);
  run(memory.data());
  try {
    run(memory.data() + 16);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("'y'"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("'x'"), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, InPlace, testing::Values("cpu", "emulated"),
                         [](const auto& info) { return std::string(info.param); });

// A workspace of any alignment; and memory of the plan's own where the caller's is too small.
TEST(Workspace, of_any_alignment_or_none) {
  auto g = std::make_shared<Graph>(
      parse_graph("x = input f32[32,300]; w = input f32[300,40]; y = softmax (matmul x w) axes=1; output y"));
  auto p = make_plan(g, cpu_device());
  ASSERT_GT(p->workspace_bytes(), 0u);
  std::vector<float> x = counted(32 * 300, 0), w = counted(300 * 40, 0), expected(32 * 40), y(32 * 40);
  for (float& v : x) v = v / 9600 - 0.5F;
  for (float& v : w) v = v / 12000 - 0.5F;
  auto bindings = [&](std::vector<float>& to) {
    return std::vector<Binding>{{g->tensor(g->find("x")).uid, x.data()},
                                {g->tensor(g->find("w")).uid, w.data()},
                                {g->tensor(g->find("y")).uid, to.data()}};
  };
  p->execute_within(bindings(expected), nullptr, 0, nullptr);
  std::vector<std::byte> memory(p->workspace_bytes() + 16);
  for (size_t shift : {0, 1, 2, 3, 7, 15}) {
    p->execute(bindings(y), memory.data() + shift, p->workspace_bytes());
    EXPECT_EQ(y, expected);
  }
  EXPECT_THROW(p->execute(bindings(y), memory.data(), 16), Error);
}

}  // namespace
}  // namespace tsr
