// SPDX-License-Identifier: Apache-2.0
// Rules of the graph itself, for front ends that do not come through the text form.
#include "graph/graph.hpp"

#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"

namespace tsr {
namespace {

Tensor input(const std::string& name, Dims dims, DType type = DType::f32) {
  Tensor t;
  t.name = name;
  t.dims = dims;
  t.dtype = type;
  t.stored = t.dims_given = t.dtype_given = true;
  return t;
}

Tensor named(const std::string& name) {
  Tensor t;
  t.name = name;
  return t;
}

Node node(std::string_view op, std::vector<TensorId> in, std::vector<TensorId> out = {}) {
  auto spelled = find_spelling(op);
  Node n;
  n.op = spelled->op;
  n.attrs = spelled->options;
  n.in = std::move(in);
  n.out = std::move(out);
  return n;
}

TEST(Graph, NodesInAnyOrderAreSorted) {
  Graph g;
  TensorId x = g.add_tensor(input("x", {2, 3})), a = g.add_tensor(named("a")), y = g.add_tensor(named("y"));
  g.add_node_unordered(node("relu", {a}, {y}));
  g.add_node_unordered(node("neg", {x}, {a}));
  g.mark_output(y);
  g.finalize();
  EXPECT_EQ(spelling(g.node(0)), "neg");
  EXPECT_EQ(spelling(g.node(1)), "relu");
  EXPECT_EQ(g.tensor(y).dims, (Dims{2, 3}));
}

TEST(Graph, CyclesAreRefused) {
  Graph g;
  TensorId x = g.add_tensor(input("x", {2})), a = g.add_tensor(named("a")), b = g.add_tensor(named("b"));
  g.add_node_unordered(node("add", {x, b}, {a}));
  g.add_node_unordered(node("relu", {a}, {b}));
  g.mark_output(b);
  expect_error([&] { g.finalize(); }, Status::bad_parameter, {"cycle", "'a'", "'b'"});
}

TEST(Graph, NamesAndUniqueIdsAreUnique) {
  Graph g;
  Tensor x = input("x", {2});
  x.uid = 7;
  g.add_tensor(x);
  expect_error([&] { g.add_tensor(input("x", {2})); }, Status::bad_parameter, {"two tensors are named 'x'"});
  Tensor y = input("y", {2});
  y.uid = 7;
  expect_error([&] { g.add_tensor(y); }, Status::bad_parameter, {"'y'", "'x'", "share the unique id 7"});
}

TEST(Graph, ATensorHasOneProducer) {
  Graph g;
  TensorId x = g.add_tensor(input("x", {2})), y = g.add_tensor(named("y"));
  g.add_node(node("relu", {x}, {y}));
  expect_error([&] { g.add_node(node("neg", {x}, {y})); }, Status::bad_parameter,
               {"'y'", "two operations", "relu", "neg"});
}

TEST(Graph, WhatIsReadMustExist) {
  Graph g;
  TensorId a = g.add_tensor(named("a")), y = g.add_tensor(named("y"));
  g.add_node_unordered(node("relu", {a}, {y}));
  g.mark_output(y);
  expect_error([&] { g.finalize(); }, Status::bad_parameter, {"'a'"});
  Graph h;
  h.add_tensor(input("x", {2}));
  expect_error([&] { h.add_node(node("relu", {99})); }, Status::bad_parameter, {"not a tensor of this graph"});
  expect_error([&] { h.add_node(node("relu", {kNone})); }, Status::bad_parameter, {"input 'x' is missing"});
  expect_error([&] { h.add_node(node("relu", {0, 0, 0, 0})); }, Status::bad_parameter, {"4 inputs given"});
}

TEST(Graph, NeedsAnOutputAndOnlyResultsAreOutputs) {
  Graph g;
  TensorId x = g.add_tensor(input("x", {2}));
  g.add_node(node("relu", {x}));
  expect_error([&] { g.finalize(); }, Status::bad_parameter, {"no output"});
  expect_error([&] { g.mark_output(x); }, Status::bad_parameter, {"'x' is an input"});
}

TEST(Graph, SizesAreChecked) {
  Graph g;
  int64_t large = int64_t{1} << 40;
  expect_error([&] { g.add_tensor(input("a", {large, large})); }, Status::bad_parameter, {"2^63"});
  expect_error([&] { g.add_tensor(input("b", {-1, 2})); }, Status::bad_parameter, {"'b'", "-1", "negative"});
  Tensor far = input("c", {3, 2});
  far.strides = {INT64_MAX / 2, 1};
  far.strides_given = true;
  expect_error([&] { g.add_tensor(far); }, Status::bad_parameter, {"'c'", "2^63"});
  Tensor few = input("d", {3, 2});
  few.strides = {1};
  few.strides_given = true;
  expect_error([&] { g.add_tensor(few); }, Status::bad_parameter, {"'d'", "2 sizes but 1 strides"});
  Tensor back = input("e", {3, 2});
  back.strides = {2, -1};
  back.strides_given = true;
  expect_error([&] { g.add_tensor(back); }, Status::bad_parameter, {"'e'", "stride -1"});
  expect_error([&] { (void)Dims({1, 1, 1, 1, 1, 1, 1, 1, 1}); }, Status::bad_parameter, {"at most 8"});
  Tensor odd = input("f", {2});
  odd.alignment = 24;
  expect_error([&] { g.add_tensor(odd); }, Status::bad_parameter, {"'f'", "24", "power of two"});
  expect_error([&] { g.add_tensor(input("g", {2, 6, 2}, DType::i8x4)); }, Status::bad_parameter, {"multiple of 4"});
}

TEST(Graph, ProductsOfInferredSizesMayNotOverflow) {
  Graph g;
  int64_t large = int64_t{1} << 33;
  Tensor a = input("a", {large, 1}), b = input("b", {1, large});
  TensorId x = g.add_tensor(a), y = g.add_tensor(b);
  expect_error([&] { g.add_node(node("add", {x, y})); }, Status::bad_parameter, {"2^63"});
}

TEST(Graph, OutputsMayNotOverlapThemselves) {
  auto with_strides = [](Dims dims, Dims strides) {
    Graph g;
    TensorId x = g.add_tensor(input("x", dims)), y = g.add_tensor(named("y"));
    g.add_node(node("relu", {x}, {y}));
    g.mark_output(y);
    Tensor& t = g.edit(y);
    t.strides = strides;
    t.dims_given = t.strides_given = true;
    g.finalize();
  };
  EXPECT_NO_THROW(with_strides({2, 3}, {3, 1}));
  EXPECT_NO_THROW(with_strides({2, 3}, {100, 7}));
  EXPECT_NO_THROW(with_strides({3, 2}, {2, 3}));  // interleaved, yet every element has its own place
  EXPECT_NO_THROW(with_strides({1, 3}, {0, 1}));
  expect_error([&] { with_strides({2, 3}, {0, 1}); }, Status::bad_parameter, {"'y'", "overlap"});
  expect_error([&] { with_strides({2, 3}, {2, 1}); }, Status::bad_parameter, {"'y'", "overlap"});
  expect_error([&] { with_strides({4, 3}, {2, 3}); }, Status::bad_parameter, {"'y'", "overlap"});
}

TEST(Graph, InputsMayOverlap) { EXPECT_NO_THROW(parse_graph("x = input f32[4,3]:[0,1]; y = relu x; output y")); }

TEST(Graph, BroadcastRules) {
  EXPECT_EQ(broadcast({2, 3}, {2, 3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast({2, 1}, {1, 3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast({3}, {2, 3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast({}, {2, 3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast({0, 3}, {1, 3}), (Dims{0, 3}));
  EXPECT_EQ(broadcast({2, 3}, {4, 3}), std::nullopt);
  EXPECT_EQ(broadcast({0}, {2}), std::nullopt);
}

TEST(Graph, NewSizesFlowThroughTheGraph) {
  Graph g = parse_graph("x = input f32[2,3,4,4]:nhwc; b = input f32[1,3,1,1]; y = relu (add x b); output y");
  Graph h = g.with_shapes({{g.find("x"), {5, 3, 2, 2}, {}}});
  const Tensor& y = h.tensor(h.find("y"));
  EXPECT_EQ(y.dims, (Dims{5, 3, 2, 2}));
  EXPECT_EQ(y.strides, (Dims{12, 1, 6, 3})) << "the dimension order stays nhwc";
  expect_error(
      [&] {
        (void)g.with_shapes({{g.find("x"), {5, 3}, {}}});
      },
      Status::bad_parameter, {"'x'", "2 dimensions"});
  expect_error(
      [&] {
        (void)g.with_shapes({{g.find("x"), {5, 4, 2, 2}, {}}});
      },
      Status::bad_parameter, {"do not broadcast"});
}

TEST(Graph, FingerprintIsOfTheContent) {
  Graph a = parse_graph("x = input f32[2]; y = relu x; output y"),
        b = parse_graph("x = input f32[2]\ny = relu x # same\noutput y");
  Graph c = parse_graph("x = input f32[3]; y = relu x; output y");
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_NE(a.fingerprint(), c.fingerprint());
}

// The file of an operation names its slots in the order of ops/slots.hpp, all of them or, where it has none there,
// none.
TEST(Graph, SlotsHaveTheirNamesInTheirPlaces) {
  for (const OpSpec* op : all_ops())
    for (const auto* list : {&op->in, &op->out})
      for (size_t i = 0; i < list->size(); ++i) {
        int place = (*list)[i].place;
        EXPECT_TRUE(place == static_cast<int>(i) || ((*list)[0].place < 0 && place < 0))
            << op->name << ": slot '" << (*list)[i].name << "' is number " << i << ", its place is " << place;
      }
}

}  // namespace
}  // namespace tsr
