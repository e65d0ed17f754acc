// SPDX-License-Identifier: Apache-2.0
// Packed sequences in plans: where copies are put between them and nodes, and where not.
#include "planner/ragged.hpp"

#include <gtest/gtest.h>

#include "graph/op.hpp"
#include "graph/text.hpp"
#include "harness/buffers.hpp"
#include "planner/plan.hpp"
#include "runtime/devices.hpp"

namespace tsr {
namespace {

const std::string kInputs =
    "o = input i32[3]; x = input f32[2,4,5,8]:bshd ragged=o*32; w = input f32[2,4,5,8]:bshd ragged=o*32; "
    "n = input i32[2]; ";

std::shared_ptr<const Graph> graph(const std::string& text) {
  return std::make_shared<const Graph>(parse_graph(kInputs + text));
}

std::string operations(const Graph& g) {
  std::string s;
  for (NodeId n = 0; n < g.node_count(); ++n) s += (n ? " " : "") + spelling(g.node(n));
  return s;
}

TEST(Ragged, CopiesStandAroundWhatTakesNoPackedSequences) {
  for (const Device& device : {emulated_device("h200"), cpu_device()}) {
    auto g = graph("y = exp x; z = mul y x; output z; with z ragged=o*32");
    auto unpacked = unpack_ragged(g, device);
    // One copy for both readers of x, one for the result.
    EXPECT_EQ(operations(*unpacked), "transpose exp mul transpose");
    EXPECT_EQ(unpack_ragged(unpacked, device), unpacked);
    TensorId z = unpacked->find("z");
    ASSERT_NE(z, kNone);
    EXPECT_NE(unpacked->tensor(z).ragged, kNone);
    EXPECT_EQ(unpacked->tensor(z).uid, g->tensor(g->find("z")).uid);
  }
}

TEST(Ragged, TheReferenceTakesPackedSequencesAsTheyAre) {
  auto g = graph("y f64 = sdpa_fwd x w x seq_len_q=n seq_len_kv=n compute=f64; output y");
  EXPECT_EQ(unpack_ragged(g, cpu_device()), g);
}

TEST(Ragged, EnginesThatTakePackedSequencesGetThem) {
  Device gpu = emulated_device("h200");
  for (const char* text : {
           "y = transpose x perm=0,2,1,3; output y",
           "y = sdpa_fwd x w x seq_len_q=n seq_len_kv=n; output y; with y ragged=o*32",
           "f = input f32[1,1,5,8]; y = rope x f; output y; with y ragged=o*32",
       }) {
    auto g = graph(text);
    EXPECT_EQ(unpack_ragged(g, gpu), g) << text;
  }
}

TEST(Ragged, OnlyWhatAnEngineDeclinesIsPadded) {
  // The bias must be padded; attention still leaves alone what lies beyond the lengths of its results.
  auto g = graph(
      "r = input i32[3]; b = input f32[2,1,5,5] ragged=r*5; y = sdpa_fwd x w x bias=b seq_len_q=n seq_len_kv=n; "
      "output y; with y ragged=o*32");
  auto unpacked = unpack_ragged(g, emulated_device("h200"));
  EXPECT_EQ(operations(*unpacked), "transpose sdpa_fwd");
  const Node& attention = unpacked->node(1);
  for (TensorId t : {attention.in[0], attention.in[1], attention.in[2], attention.out[0]})
    EXPECT_NE(unpacked->tensor(t).ragged, kNone) << to_text(unpacked->tensor(t));
}

TEST(Ragged, VirtualTensorsArePlain) {
  auto g = graph("y f32[2,4,5,8]:[960,8,96,1] = exp x; z = exp y; output z; with y ragged=o*96");
  auto padded = pad_virtual(g);
  const Tensor& y = padded->tensor(padded->find("y"));
  EXPECT_EQ(y.ragged, kNone);
  EXPECT_EQ(y.strides, (Dims{160, 8, 32, 1}));
  EXPECT_NE(padded->tensor(padded->find("x")).ragged, kNone);
  EXPECT_EQ(pad_virtual(padded), padded);
}

TEST(Ragged, ConstantOffsetsStay) {
  auto g = std::make_shared<const Graph>(
      parse_graph("o = const i32[3] 0,2,5; x = input f32[2,4,5,8]:bshd ragged=o*32; y = exp x; output y"));
  auto unpacked = unpack_ragged(g, emulated_device("h200"));
  EXPECT_NE(unpacked->tensor(unpacked->find("x")).ragged, kNone);
}

TEST(Ragged, OffsetsMayBeComputed) {
  auto g = std::make_shared<const Graph>(parse_graph(
      "o@1 = input i32[3]; p = add o o; x@2 = input f32[2,1,2,2]; y@3 = add x 1; output y; with x ragged=p"));
  alignas(256) int32_t offsets[3] = {0, 1, 3};
  alignas(256) float x[6] = {1, 2, 3, 4, 5, 6}, y[8] = {};
  const float expected[8] = {2, 3, 1, 1, 4, 5, 6, 7};
  for (const Device& d : {cpu_device(), emulated_device("h200")}) {
    auto plan = make_plan(g, d);
    std::fill(std::begin(y), std::end(y), 0.0f);
    GuardedBuffer workspace(plan->workspace_bytes(), 256);
    plan->execute(std::vector<Binding>{{1, offsets}, {2, x}, {3, y}}, workspace.data(), workspace.size());
    for (int i = 0; i < 8; ++i) EXPECT_EQ(y[i], expected[i]) << d.name << " " << i;
  }
}

TEST(Ragged, PlansAreSavedAndLoaded) {
  Device gpu = emulated_device("h200");
  auto plan = make_plan(graph("y = exp x; output y; with y ragged=o*32"), gpu);
  ASSERT_EQ(plan->steps().size(), 3u);
  EXPECT_EQ(load_plan(plan->save(), gpu)->steps().size(), 3u);
}

}  // namespace
}  // namespace tsr
