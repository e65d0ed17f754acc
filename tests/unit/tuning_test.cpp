// SPDX-License-Identifier: Apache-2.0
#include "planner/tuning.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/cache_folder.hpp"
#include "base/settings.hpp"
#include "expect_error.hpp"
#include "graph/op.hpp"
#include "graph/text.hpp"
#include "planner/machine.hpp"

namespace tsr {
namespace {

std::shared_ptr<const Plan> plan_of(const char* text) {
  return make_plan(std::make_shared<Graph>(parse_graph(text)), cpu_device(), {.tuned = false});
}

TEST(Tuning, KeyOfARegionDependsOnlyOnTheRegion) {
  auto alone = plan_of("x = input f32[4,8]; y = softmax x; output y");
  auto renamed = plan_of(
      "other = input i32[3]; n = add other other; output n; b = input f32[4,8]; c@77 = softmax b; "
      "output c");
  auto wider = plan_of("x = input f32[4,9]; y = softmax x; output y");
  auto find_softmax = [](const Plan& p) {
    for (const PlannedStep& s : p.steps())
      if (spelling(p.graph().node(s.region.nodes[0])) == "softmax") return tuning_key(s.region);
    return std::string();
  };
  EXPECT_EQ(find_softmax(*alone), find_softmax(*renamed));
  EXPECT_NE(find_softmax(*alone), find_softmax(*wider));
}

TEST(Tuning, RegionGraphKeepsRaggedTensorsAndSubgraphs) {
  for (const char* text :
       {"off = input i32[3]; q = input f16[2,1,4,8] ragged=off*8; k = input f16[2,1,4,8]; l = input i32[2,1,1,1]; "
        "y = sdpa_fwd q k k seq_len_q=l seq_len_kv=l; output y",
        "x = input f32[2,2,4,8]; s = input f32[1]; y = sdpa_fwd x x x score_mod={a -> r = mul a s; r}; output y"}) {
    auto plan = plan_of(text);
    for (const PlannedStep& s : plan->steps()) {
      Graph g = region_graph(s.region);
      EXPECT_TRUE(g.finalized());
      EXPECT_EQ(print_graph(parse_graph(print_graph(g))), print_graph(g));
    }
  }
}

TEST(Tuning, RoundTripAndRefusals) {
  Tuning t;
  t.set("a machine", "0123", {"fused_cpu", {{{"block", 1024}}, 1.5e-3}});
  t.set("another", "0123", {"reference", {{}, 2e-3}});
  std::string text = t.save();
  Tuning again = Tuning::parse(text);
  EXPECT_EQ(again.save(), text);
  ASSERT_NE(again.find("a machine", "0123"), nullptr);
  EXPECT_EQ(again.find("a machine", "0123")->engine, "fused_cpu");
  EXPECT_EQ(again.find("a machine", "4567"), nullptr);
  EXPECT_EQ(again.size("another"), 1u);
  expect_error([&] { Tuning::parse(text.substr(0, text.size() - 5)); }, tessera::Status::corrupt_data,
               {"truncated or altered"});
  std::string older = text;
  older.replace(older.find(kVersion), kVersion.size(), "0.0.0");
  expect_error([&] { Tuning::parse(older); }, tessera::Status::corrupt_data, {"made by version 0.0.0"});
  expect_error([&] { Tuning::parse(seal("tuning", "machine m\nregion 1 e\n")); }, tessera::Status::corrupt_data,
               {"line 3 is damaged"});
  expect_error([&] { Tuning::parse("hello"); }, tessera::Status::corrupt_data, {"the header"});
}

TEST(Machine, ConstantsRoundTripAndForeignOnesAreRefused) {
  const Machine& m = this_machine();
  EXPECT_GT(m.flops_one, 0);
  EXPECT_GE(m.narrow_flops_one, m.flops_one);
  EXPECT_DOUBLE_EQ(cpu_device().bytes_per_second, m.copy_all);  // what `doctor` shows is what plans are made with
  EXPECT_GE(m.copy_all, m.copy_one);
  std::string text = save_machine(m);
  EXPECT_EQ(save_machine(load_machine(text, m.name)), text);
  expect_error([&] { load_machine(text, "abacus"); }, tessera::Status::corrupt_data, {"this is 'abacus'"});
  expect_error([&] { load_machine(text.substr(0, 40), m.name); }, tessera::Status::corrupt_data, {""});
  expect_error([&] { load_machine(seal("machine", m.name + "\n1 2 3\n"), m.name); }, tessera::Status::corrupt_data,
               {"missing or not positive"});
}

TEST(CacheFolder, FilesAreReplacedWhole) {
  std::string path = testing::TempDir() + "/tessera_cache_test";
  EXPECT_TRUE(write_file_atomically(path, "one"));
  EXPECT_TRUE(write_file_atomically(path, "two"));
  EXPECT_EQ(read_file(path), "two");
  EXPECT_FALSE(write_file_atomically("/no/such/folder/file", "x"));
  EXPECT_FALSE(read_file("/no/such/file").has_value());
}

TEST(CacheFolder, WhatIsCostlyIsFoundOutOnce) {
  if (cache_folder().empty()) GTEST_SKIP() << "nothing can be kept here";
  std::string file = "recall-test-" + std::to_string(getpid()), value;
  int found_out = 0;
  auto ask = [&](const std::string& answer) {
    value.clear();
    auto load = [&](const std::string& text) {
      if (text != "good") fail(tessera::Status::corrupt_data, "damaged");
      value = text;
    };
    recall(file, load, [&] { return ++found_out, answer; });
  };
  ask("");  // not worth keeping
  ask("bad");
  EXPECT_EQ(found_out, 2);
  ask("good");  // what is there is refused
  EXPECT_EQ(found_out, 3);
  ask("good");
  EXPECT_EQ(found_out, 3);
  EXPECT_EQ(value, "good");
  std::filesystem::remove(cache_folder() + "/" + file);
}

}  // namespace
}  // namespace tsr
