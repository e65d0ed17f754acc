// SPDX-License-Identifier: Apache-2.0
// The public C++ API, by its public headers alone.
#include <gtest/gtest.h>

#include <cmath>
#include <tessera/tessera.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

void expect_error(const std::function<void()>& f, std::initializer_list<std::string> words,
                  Status status = Status::bad_parameter) {
  tsr::expect_error(f, status, words);
}

TEST(Api, ArithmeticReadsLikeMathematics) {
  Graph g;
  Tensor x = g.input("x", DType::f32, {2, 3}), s = g.scalar("s", DType::f32);
  Tensor y = g.output((2.0 * x - 1.0) / s + max(x, -x), "y");
  Buffer bx(x), by(y);
  for (int i = 0; i < 6; ++i) bx.set(i, i - 2);
  float factor = 4;
  Plan plan = g.plan();
  EXPECT_EQ(plan.steps(), 1);
  plan.run({bind(x, bx), {s, &factor}, bind(y, by)});
  for (int i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(by.get(i), (2.0 * (i - 2) - 1) / 4 + std::abs(i - 2));
}

TEST(Api, OptionalInputsAndOutputsByName) {
  Graph g;
  Tensor q = g.input("q", DType::f32, {1, 2, 4, 8}), k = g.input("k", DType::f32, {1, 2, 4, 8});
  Tensor bias = g.input("bias", DType::f32, {1, 1, 4, 4});
  Results r = sdpa_fwd(q, k, k, {.scale = 0.35}, {{"bias", bias}}, {"stats"});
  EXPECT_EQ(r["stats"].dims(), (Ints{1, 2, 4, 1}));
  EXPECT_EQ(r[0].dims(), (Ints{1, 2, 4, 8}));
  EXPECT_EQ(r[1].dims(), (Ints{1, 2, 4, 1}));
  expect_error([&] { r["max"]; }, {"no output 'max'"});
  expect_error([&] { r[2]; }, {"no output 2 here, but 2"});
  expect_error([&] { sdpa_fwd(q, k, k, {}, {{"bais", bias}}); }, {"no input named 'bais'", "did you mean 'bias'"});
  expect_error([&] { call("sdpa_fwd", {q, k, k}, ConvOptions{}); }, {"options are of another operation"});
  expect_error([&] { call("sdpa_fwdd", {q, k, k}); }, {"did you mean 'sdpa_fwd'"});
}

TEST(Api, SubgraphsMayUseTensorsAroundThem) {
  Graph g;
  Tensor q = g.input("q", DType::f32, {1, 1, 3, 4}), b = g.input("b", DType::f32, {1, 1, 3, 3});
  SdpaOptions o;
  o.score_mod = subgraph([&](Tensor s) { return s + 2.0 * b; });
  Tensor with_mod = g.output(sdpa_fwd(q, q, q, o), "with_mod");
  Tensor with_bias = g.output(sdpa_fwd(q, q, q, {}, {{"bias", 2.0 * b}}), "with_bias");
  Buffer bq(q), bb(b), mod(with_mod), bias(with_bias);
  bq.fill_random(1);
  bb.fill_random(2);
  g.plan().run({bind(q, bq), bind(b, bb), bind(with_mod, mod), bind(with_bias, bias)});
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(mod.get(i), bias.get(i), 1e-6);
  // The text form carries the capture.
  EXPECT_EQ(Graph::parse(g.text()).text(), g.text());
}

TEST(Api, NumbersStandForOperands) {
  Graph g;
  Tensor x = g.input("x", DType::f32, {3});
  Tensor y = g.output(max(min(pow(x, 2), 5), 1) + sin(x) * sin(x) + cos(x) * cos(x), "y");
  Buffer bx(x), by(y);
  bx.set(std::vector<double>{0.5, -2, 3});
  g.plan().run({bind(x, bx), bind(y, by)});
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(by.get(i), std::vector<double>({2, 5, 6})[i], 1e-6);
}

TEST(Api, ConstantsFitTheirType) {
  Graph g;
  EXPECT_EQ(g.constant(127, DType::i8).dtype(), DType::i8);
  expect_error([&] { g.constant(300, DType::i8); }, {"a constant of i8 cannot be 300"});
  expect_error([&] { g.constant(1.5, DType::i32); }, {"a constant of i32 cannot be 1.5"});
  expect_error([&] { g.constant({0, NAN}, {2}, DType::i64); }, {"a constant of i64 cannot be nan"});
  expect_error([&] { g.constant(2, DType::boolean); }, {"a constant of bool cannot be 2"});
}

TEST(Api, MistakesAreNamed) {
  Graph g, other;
  Tensor x = g.input("x", DType::f32, {2, 3}), z = other.input("z", DType::f32, {2, 3});
  expect_error([&] { x + z; }, {"'z' belongs to another graph"});
  expect_error([&] { x + Tensor(); }, {"missing"});
  expect_error([&] { g.input("x", DType::f32, {1}); }, {"two tensors are named 'x'"});
  expect_error([&] { g.input("w", DType::f32, {2, 3}, {.layout = "nhwc"}); }, {"'nhwc' is no layout of 2 dimensions"});
  expect_error([&] { g["y"]; }, {"no tensor 'y'"});
  expect_error([&] { g.output(x); }, {"'x' is an input"});
  expect_error([&] { x.as(DType::f16); }, {"its type is fixed"});
  expect_error([&] { g.plan(); }, {"no output"});
  g.output(relu(x), "y");
  expect_error([&] { g.plan({.engines = {"fast"}}); }, {"no engine named 'fast'"});
  Buffer bx(x);
  expect_error([&] { g.plan().run({bind(x, bx)}); }, {"output 'y'", "no pointer"});
  expect_error([&] { Plan::load("nonsense"); }, {"header"}, Status::corrupt_data);
  expect_error([&] { bx.get(6); }, {"element 6 of a buffer of 6"});
}

TEST(Api, LayoutsAndTypesOfResults) {
  Graph g;
  Tensor x = g.input("x", DType::f16, {2, 4, 3, 3}, {.layout = "nhwc"});
  Tensor y = g.output((x * 2.0).layout("nchw"), "y", DType::bf16);
  Buffer bx(x), by(y);
  for (int i = 0; i < 72; ++i) bx.set(i, i);
  g.plan().run({bind(x, bx), bind(y, by)});
  EXPECT_EQ(y.strides(), (Ints{36, 9, 3, 1}));
  for (int i = 0; i < 72; ++i) EXPECT_EQ(by.get(i), 2 * i);
}

TEST(Api, TypesOfAWholeGraph) {
  Graph g({.io = DType::bf16, .intermediate = DType::f16, .compute = DType::f64});
  Tensor x = g.input("x", {2, 3}), b = g.input("b", DType::f32, {1, 3});
  Tensor sum = x + b, wide = (x * b).as(DType::f32), y = g.output(relu(sum) + wide, "y");
  g.output(wide, "wide");
  Tensor index = g.output(argmax(sum), "index");
  EXPECT_EQ(x.dtype(), DType::bf16);
  EXPECT_EQ(sum.dtype(), DType::f16);
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_EQ(wide.dtype(), DType::f32);
  EXPECT_EQ(index.dtype(), DType::i64);
  EXPECT_NE(g.text().find("compute=f64"), std::string::npos);
  EXPECT_EQ(Graph::parse(g.text()).text(), g.text());
  Graph plain;
  expect_error([&] { plain.input("x", {2, 3}); }, {"input 'x' needs a type"});
}

TEST(Api, BuffersAsElements) {
  Graph g;
  Tensor x = g.input("x", DType::f32, {2, 3}), h = g.input("h", DType::bf16, {4}), i = g.input("i", DType::i32, {2});
  Buffer bx(x), bh(h), bi(i);
  bx.span<float>()[4] = 2.5f;
  bi.span<int32_t>()[1] = -7;
  bh.span<uint16_t>()[0] = 0x3f80;
  EXPECT_EQ(bx.get(4), 2.5);
  EXPECT_EQ(bi.get(1), -7);
  EXPECT_EQ(bh.get(0), 1);
  EXPECT_EQ(bx.span<float>().size(), 6u);
  EXPECT_EQ(std::as_const(bx).span<float>()[4], 2.5f);
  expect_error([&] { bx.span<double>(); }, {"'x' f32[2,3]", "asked for f64 of 64"});
  expect_error([&] { bh.span<uint8_t>(); }, {"have 16 bits", "unsigned integers of 8"});
  Buffer emulated(x, "emulated");
  expect_error([&] { emulated.span<float>(); }, {"lie in a device's memory"});
}

TEST(Api, RandomNumbersHaveAScale) {
  Graph g;
  Tensor x = g.input("x", DType::f64, {1000});
  Buffer a(x), b(x);
  a.fill_random(3);
  b.fill_random(3, 0.02);
  for (int i = 0; i < 1000; ++i) EXPECT_NEAR(b.get(i), 0.02 * a.get(i), 1e-15);
}

TEST(Api, NamesAndScalarsThatPeopleLookFor) {
  Graph g;
  Tensor x = g.input("x", DType::f32, {1, 2, 6, 6}), w = g.input("w", DType::f32, {3, 2, 3, 3});
  EXPECT_EQ(conv_fprop(x, w, {.stride = 2, .pad = 1}).dims(), (Ints{1, 3, 3, 3}));
  EXPECT_EQ(Tensor(max_pool(x, {.window = 3, .stride = 2, .pad = 1})).dims(), (Ints{1, 2, 3, 3}));
  EXPECT_EQ(avg_pool(x, {.window = 2}).dims(), (Ints{1, 2, 3, 3}));
  EXPECT_EQ(matmul(x, g.input("m", DType::f32, {6, 5})).dims(), (Ints{1, 2, 6, 5}));
  silu(x);
  std::string text = g.text();
  expect_error([&] { matmul(g["m"], w); }, {"must be equal, they are 5 and 3"});
  EXPECT_EQ(g.text(), text) << "what is refused leaves nothing behind";
  for (const char* part : {"stride=2,2", "mode=avg_pool_include", "swish", "window=3,3"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(Api, ReshapeMeansTheSameInTextAndCode) {
  Graph g;
  Tensor x = g.input("x", DType::f32, {2, 3}, {.layout = "col"});
  g.output(reshape(x, {6}), "y");
  Graph t = Graph::parse("x = input f32[2,3]:col; y = reshape x size=6; output y");
  EXPECT_EQ(g.text(), t.text());
}

}  // namespace
}  // namespace tessera
