// SPDX-License-Identifier: Apache-2.0
// Names: every name is the user's to give, and graphs keep them through text, whatever they are.
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include "expect_error.hpp"

namespace tessera {
namespace {

void expect_error(const std::function<void()>& f, std::initializer_list<std::string> words) {
  tsr::expect_error(f, Status::bad_parameter, words);
}

std::vector<std::string> names(const std::vector<Tensor>& tensors) {
  std::vector<std::string> out;
  for (const Tensor& t : tensors) out.push_back(t.name());
  return out;
}

void expect_round_trip(const Graph& g) {
  SCOPED_TRACE(g.text());
  Graph parsed = Graph::parse(g.text());
  EXPECT_EQ(parsed.text(), g.text());
  EXPECT_EQ(parsed.save(), g.save());
  Graph loaded = Graph::load(g.save());
  EXPECT_EQ(names(loaded.inputs()), names(g.inputs()));
  EXPECT_EQ(names(loaded.outputs()), names(g.outputs()));
}

TEST(Names, NoneIsTakenByTheLibrary) {
  for (int i = 0; i < 6; ++i) {
    std::string t = "t" + std::to_string(i);
    expect_round_trip(Graph::parse("x = input f32[4]; " + t + " = mul x 2; output " + t));
    expect_round_trip(Graph::parse("x = input f32[4]; y = add (mul x 2) (neg x); " + t + " = neg y; output " + t));
    Graph g;
    Tensor x = g.input("x", DType::f32, {4});
    g.output(x + 1.0, t);
    EXPECT_EQ(g.outputs()[0].name(), t);
    expect_round_trip(g);
  }
}

TEST(Names, NoneIsTakenByGradients) {
  Graph g;
  Tensor x = g.input("x", DType::f32, {4}), w = g.input("w", DType::f32, {4});
  Tensor loss = g.output(sum(tanh(x * w), {0}), "t3");
  std::vector<Tensor> d = gradient(loss, {x, w});
  // Each for something else than its gradient.
  g.output(x * 3.0, "d_x");
  g.output(x * 4.0, "t7");
  g.output(d[0], "t5");
  g.output(d[1], "d_w");
  expect_round_trip(g);
  expect_round_trip(
      Graph::parse("x = input f32[4]; t1 = reduce_add (mul x x) axes=0; t2 = grad t1 x; t4 = neg t2; output t4"));
}

TEST(Names, ThatTheTextFormCannotWriteAreQuoted) {
  const char* odd[] = {"layer 1/weight:0",
                       "1st",
                       "a-b",
                       "x'",
                       "say \"hi\"",
                       "back\\slash",
                       "\\",
                       "\"",
                       "gr\xc3\xbc\xc3\x9f",
                       "output",
                       "with",
                       "inf",
                       "nan",
                       "a;b",
                       "a#b",
                       "x=1",
                       "a, b",
                       "{s}",
                       "add",
                       "input",
                       "f32",
                       "const",
                       "scale",
                       "grad",
                       "reorder",
                       "stats",
                       "@7",
                       "a%",
                       "->",
                       " ",
                       "true",
                       "ragged"};
  for (const char* name : odd) {
    SCOPED_TRACE(name);
    Graph g;
    Tensor x = g.input(name, DType::f32, {1, 2, 4, 8}), s = g.scalar(std::string(name) + " s", DType::f32);
    SdpaOptions o;
    o.score_mod = subgraph([&](Tensor score) { return (score * s).as(DType::f32) + s; });
    Results r = sdpa_fwd(x, x, x, o, {}, {"stats"});
    g.output(r["o"], std::string(name) + " o", DType::f16);
    g.output(r["stats"], std::string("o ") + name);
    expect_round_trip(g);
    Graph h;
    Tensor y = h.input("y", DType::f32, {4, 8});
    h.output((y * 2.0).as(DType::bf16), name);
    expect_round_trip(h);
    Plan plan = Plan::load(h.plan().save());
    Buffer in(y), out(h.outputs()[0]);
    in.fill(3);
    plan.run({bind(y, in), bind(h.outputs()[0], out)});
    EXPECT_EQ(out.get(7), 6);
  }
}

TEST(Names, ThatNobodyMayGive) {
  Graph g;
  Tensor x = g.input("x", DType::f32, {4});
  expect_error([&] { g.input("%7", DType::f32, {4}); }, {"'%7'", "made up by the library"});
  expect_error([&] { g.scalar("%", DType::f32); }, {"'%'", "made up"});
  expect_error([&] { g.output(x + 1.0, "%x"); }, {"'%x'", "made up"});
  expect_error([&] { g.output(x + 1.0, "two\nlines"); }, {"control character"});
  expect_error([&] { g.input("a\tb", DType::f32, {4}); }, {"control character"});
  expect_error([&] { Graph::parse("\"%7\" = input f32[4]; y = neg \"%7\"; output y"); }, {"line 1", "made up"});
  expect_error([&] { Graph::parse("\"\" = input f32[4]; y = neg \"\"; output y"); }, {"line 1", "empty"});
  expect_error([&] { Graph::parse("\"x = input f32[4]\ny = neg x"); }, {"line 1, column 1", "not closed"});
  expect_error([&] { Graph::parse("x = input f32[4]; y = neg % x; output y"); }, {"column 27", "no meaning"});
}

// Tensors without a name are written as labels, which stand for tensors of the same text alone.
TEST(Names, LabelsBelongToTheirText) {
  // The numbers that are made up for nested results do not matter to what is written.
  for (int i = 0; i < 8; ++i) {
    std::string label = "%" + std::to_string(i);
    SCOPED_TRACE(label);
    Graph g = Graph::parse("x = input f32[4]; y = add (mul x 2) (mul x 3); " + label + " = sub y (neg x); z = add " +
                           label + " (mul x 100); output z");
    expect_round_trip(g);
    Buffer bx(g["x"]), bz(g["z"]);
    bx.fill(1);
    g.plan().run({bind(g["x"], bx), bind(g["z"], bz)});
    EXPECT_EQ(bz.get(0), 106);
    expect_error([&] { Graph::parse("x = input f32[4]; y = add (mul x 2) 3; z = neg " + label + "; output z"); },
                 {"unknown tensor '" + label + "'"});
  }
  expect_error([&] { Graph::parse("x = input f32[4]; %1 = neg x; %1 = neg x; output %1"); }, {"named '%1'"});
}

// A sub-graph calls what it captures as the graph around it does, and hides none of it.
TEST(Names, InsideAndOutsideOfSubgraphs) {
  for (const char* name : {"p0", "p1", "s", "t0", "t1", "t2", "a b"}) {
    SCOPED_TRACE(name);
    Graph g;
    Tensor q = g.input("q", DType::f32, {1, 1, 3, 4}), b = g.input(name, DType::f32, {1, 1, 3, 3});
    Tensor hidden = b * 2.0, named = b * 3.0;
    SdpaOptions o;
    o.score_mod = subgraph([&](Tensor s) { return (s * 2.0 + hidden) * named + b; });
    Tensor y = g.output(sdpa_fwd(q, q, q, o), "y");
    g.output(named, "named later");
    expect_round_trip(g);
    Graph read = Graph::load(g.save());
    Buffer bq(q), bb(b), by(y), bn(named), again(y);
    bq.fill_random(1);
    bb.fill_random(2);
    g.plan().run({bind(q, bq), bind(b, bb), bind(y, by), bind(named, bn)});
    read.plan().run({bind(read["q"], bq), bind(read[name], bb), bind(read["y"], again), bind(read["named later"], bn)});
    EXPECT_EQ(again.values(), by.values());
  }
  expect_round_trip(
      Graph::parse("q = input f32[1,1,3,4]; %1 = input f32[1,1,3,3]; %2 = mul %1 2; "
                   "o = sdpa_fwd q q q score_mod={ %3 -> %4 = mul %3 %2; add (mul %4 2) %1 }; output o"));
}

}  // namespace
}  // namespace tessera
