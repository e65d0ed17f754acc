// SPDX-License-Identifier: Apache-2.0
// What may be bound to a plan: the tensors of its graph, once each, with memory that suits them.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <tessera/tessera.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

void expect_error(const std::function<void()>& f, std::initializer_list<std::string> words) {
  tsr::expect_error(f, Status::bad_parameter, words);
}

// z = 2 x + y, with an internal tensor.
struct Model {
  Graph g;
  Tensor x, y, twice, z;
  explicit Model(DType type = DType::f32, const Ints& dims = {2, 3}) {
    x = g.input("x", type, dims);
    y = g.input("y", type, dims);
    twice = x * 2.0;
    z = g.output(twice + y, "z", type);
  }
};

TEST(Binding, TensorOfAnotherGraphIsRefused) {
  Model m, other;
  Buffer bx(m.x), by(m.y), bz(m.z);
  Plan plan = m.g.plan();
  expect_error(
      [&] {
        plan.run({bind(m.x, bx), bind(m.y, by), bind(other.z, bz)});
      },
      {"'z'", "f32[2,3]", "belongs to another graph than the plan's"});
  // Also when both graphs are equal and share a plan, and when the other one was read from the first.
  Plan same = other.g.plan();
  expect_error([&] { same.run({bind(m.x, bx), bind(m.y, by), bind(m.z, bz)}); }, {"'x'", "another graph"});
  Graph copy = Graph::parse(m.g.text());
  expect_error([&] { plan.run({bind(copy["x"], bx), bind(m.y, by), bind(m.z, bz)}); }, {"'x'", "another graph"});
  expect_error([&] { plan.run({bind(Tensor(), bx)}); }, {"empty Tensor"});
}

TEST(Binding, CopiesOfTheObjectAreTheSameGraph) {
  Model m;
  Graph same = m.g;
  Buffer bx(m.x), by(m.y), bz(m.z);
  bx.fill(3);
  by.fill(1);
  same.plan().run({bind(m.x, bx), bind(same["y"], by), bind(same["z"], bz)});
  EXPECT_EQ(bz.get(5), 7);
}

TEST(Binding, PlansOutliveChangesOfTheirGraph) {
  Model m;
  Plan plan = m.g.plan();
  Buffer bx(m.x), by(m.y), bz(m.z);
  bx.fill(3);
  by.fill(1);
  // The new input takes the number that x had so far; names change, too.
  Tensor late = m.g.input("late", DType::f32, {2, 3}, {.uid = m.x.uid()});
  m.g.output(m.twice, "more");
  m.g.output(m.z, "renamed");
  plan.run({bind(m.x, bx), bind(m.y, by), bind(m.z, bz)});
  EXPECT_EQ(bz.get(0), 7);
  Buffer bl(late);
  expect_error(
      [&] {
        plan.run({bind(m.x, bx), bind(m.y, by), bind(m.z, bz), bind(late, bl)});
      },
      {"'late'", "added to the graph after it was planned"});
}

TEST(Binding, LoadedPlansTakeTensorsOfEqualGraphs) {
  Model m;
  Plan plan = Plan::load(m.g.plan().save());
  Graph read = Graph::load(m.g.save());
  Model again;
  Buffer bx(m.x), by(m.y), bz(m.z);
  bx.fill(3);
  by.fill(1);
  for (const Graph& g : {m.g, read, again.g}) {
    bz.fill(0);
    plan.run({bind(g["x"], bx), bind(g["y"], by), bind(g["z"], bz)});
    EXPECT_EQ(bz.get(0), 7);
  }
  Graph named = Graph::parse("x = input f32[2,3]; w = input f32[2,3]; z = add x w; output z");
  expect_error([&] { plan.run({bind(named["w"], by)}); }, {"'w'", "unique id 2", "none of the loaded plan's"});
  Graph sized = Graph::parse("x = input f32[3,2]; y = input f32[3,2]; z = add x y; output z");
  expect_error([&] { plan.run({bind(sized["x"], bx)}); }, {"'x' f32[3,2]", "in the loaded plan 'x' f32[2,3]"});
  Graph ordered = Graph::parse("x = input f32[2,3]:[1,2]; y = input f32[2,3]; z = add x y; output z");
  expect_error([&] { plan.run({bind(ordered["x"], bx)}); }, {"strides [1,2]", "strides [3,1]"});
  Graph typed = Graph::parse("x = input f16[2,3]; y = input f32[2,3]; z = add x y; output z");
  expect_error([&] { plan.run({bind(typed["x"], bx)}); }, {"'x' f16[2,3]", "'x' f32[2,3]"});
}

TEST(Binding, MemoryMustBeLargeEnough) {
  for (DType type : {DType::f64, DType::f32, DType::f16, DType::i32, DType::i8}) {
    Model m(type), small(type, {1, 3});
    Plan plan = m.g.plan();
    Buffer bx(m.x), by(m.y), bz(m.z), few(small.x);
    std::string given = std::to_string(few.bytes()) + " bytes", wanted = "needs " + std::to_string(bx.bytes());
    expect_error([&] { plan.run({bind(m.x, few), bind(m.y, by), bind(m.z, bz)}); }, {"'x'", given, wanted});
    expect_error([&] { plan.run({bind(m.x, bx), bind(m.y, by), bind(m.z, few)}); }, {"'z'", given, wanted});
    // More than is needed will do.
    Buffer many(Model(type, {5, 5}).x);
    plan.run({bind(m.x, many), bind(m.y, by), bind(m.z, bz)});
  }
}

TEST(Binding, GapsBetweenStridesCount) {
  Graph g;
  Tensor x = g.input("x", DType::f32, {2, 3}, {.strides = {8, 2}});
  Tensor y = g.output(-x, "y");
  std::vector<float> memory(12), result(12);
  auto run = [&](size_t n) { g.plan().run({bind(x, std::span(memory).first(n)), bind(y, std::span(result))}); };
  expect_error([&] { run(12); }, {"'x'", "48 bytes", "needs 52"});
  memory.resize(13);
  result.resize(13);
  run(13);
}

TEST(Binding, MemoryMustHaveTheTensorsType) {
  Model m, half(DType::f16), doubles(DType::f64);
  Buffer bx(m.x), by(m.y), bz(m.z), bh(half.x), bd(doubles.x);
  Plan plan = m.g.plan();
  expect_error([&] { plan.run({bind(m.x, bd), bind(m.y, by), bind(m.z, bz)}); }, {"'x' f32[2,3]", "memory of f64"});
  expect_error([&] { half.g.plan().run({bind(half.x, bx)}); }, {"'x' f16[2,3]", "memory of f32"});
  std::array<int32_t, 6> whole{};
  expect_error([&] { plan.run({bind(m.x, std::span(whole))}); }, {"'x' f32[2,3]", "memory of i32"});
}

TEST(Binding, SpansCarryTheirSize) {
  Model m;
  std::vector<float> x = {1, 2, 3, 4, 5, 6}, y(6, 10), z(6);
  Plan plan = m.g.plan();
  const std::vector<float>& constant = x;
  plan.run({bind(m.x, std::span(constant)), bind(m.y, std::as_bytes(std::span(y))), bind(m.z, std::span(z))});
  EXPECT_EQ(z, (std::vector<float>{12, 14, 16, 18, 20, 22}));
  expect_error([&] { plan.run({bind(m.x, std::span(x).first(5))}); }, {"'x'", "20 bytes", "needs 24"});
  expect_error([&] { plan.run({bind(m.x, std::as_bytes(std::span(x)).first(23))}); }, {"'x'", "23 bytes"});
  expect_error(
      [&] {
        plan.run({bind(m.x, std::span(x)), bind(m.y, std::span(y)), bind(m.z, std::span(constant))});
      },
      {"output 'z'", "constant memory"});
  std::array<float, 6> w{};
  plan.run({bind(m.x, constant), bind(m.y, y), bind(m.z, w)});
  EXPECT_EQ(w[5], 22);
  expect_error([&] { plan.run({bind(m.x, x), bind(m.y, y), bind(m.z, constant)}); }, {"output 'z'", "constant memory"});
  // Of a bare pointer nothing is known.
  plan.run({{m.x, x.data()}, {m.y, y.data()}, {m.z, z.data()}});
}

TEST(Binding, OnceEach) {
  Model m;
  Buffer bx(m.x), by(m.y), bz(m.z), other(m.x);
  Plan plan = m.g.plan();
  expect_error(
      [&] {
        plan.run({bind(m.x, bx), bind(m.y, by), bind(m.z, bz), bind(m.x, other)});
      },
      {"'x' f32[2,3]", "bound twice"});
  expect_error([&] { plan.run({bind(m.z, bz), bind(m.z, bz), bind(m.x, bx), bind(m.y, by)}); }, {"'z'", "bound twice"});
}

TEST(Binding, InternalTensorsAreRefused) {
  Model m;
  Tensor two = m.g.constant(2);
  m.g.output(m.z * two, "w");
  Buffer bx(m.x), by(m.y), bz(m.z), bw(m.z), bt(m.twice);
  Plan plan = m.g.plan();
  expect_error(
      [&] {
        plan.run({bind(m.x, bx), bind(m.y, by), bind(m.z, bz), bind(m.g["w"], bw), bind(m.twice, bt)});
      },
      {m.twice.name(), "f32[2,3]", "is internal: only inputs and outputs are bound"});
  Buffer b2(two);
  expect_error([&] { plan.run({bind(two, b2)}); }, {two.name(), "internal"});
}

TEST(Binding, OtherSizesAtExecution) {
  Model m;
  Plan plan = m.g.plan();
  std::vector<float> x(20), y(20, 1), z(20);
  std::iota(x.begin(), x.end(), 0.0F);
  ShapeOverride larger[] = {{m.x, {4, 5}, {}}, {m.y, {4, 5}, {}}};
  Workspace workspace(plan, larger);
  auto run = [&](size_t n) {
    Binding bindings[] = {bind(m.x, std::span(x).first(n)), bind(m.y, std::span(y)), bind(m.z, std::span(z))};
    plan.execute(bindings, larger, workspace.data(), workspace.bytes());
  };
  run(20);
  EXPECT_EQ(z[19], 39);
  expect_error([&] { run(19); }, {"'x' f32[4,5]", "76 bytes", "needs 80"});
  Model other;
  ShapeOverride foreign[] = {{other.x, {4, 5}, {}}};
  expect_error([&] { plan.workspace_bytes(foreign); }, {"'x'", "another graph"});
}

// Packed sequences lie in as much memory as their offsets say.
TEST(Binding, PackedSequencesMayBeShort) {
  Graph g = Graph::parse(
      "off = input i32[3]; x = input f32[2,1,4,2]:bshd ragged=off; y = mul x 2; with y ragged=off; "
      "output y f32:bshd");
  std::array<int32_t, 3> offsets = {0, 4, 6};
  std::vector<float> x(6, 1), y(6);
  g.plan().run({bind(g["off"], std::span(offsets)), bind(g["x"], std::span(x)), bind(g["y"], std::span(y))});
  EXPECT_EQ(y, std::vector<float>(6, 2));
}

}  // namespace
}  // namespace tessera
