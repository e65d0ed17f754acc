// SPDX-License-Identifier: Apache-2.0
// What cases cannot show of the oneDNN engine: frozen weights over many executions, and many threads at once.
#include <gtest/gtest.h>

#include <thread>

#include "base/thread_pool.hpp"
#include "graph/text.hpp"
#include "planner/plan.hpp"

namespace tsr {
namespace {

constexpr int64_t kX = 1, kW = 2, kY = 3;

std::shared_ptr<const Plan> make(const std::string& text) {
  auto g = std::make_shared<Graph>(parse_graph(text));
  for (auto [name, uid] : {std::pair{"x", kX}, {"w", kW}, {"y", kY}}) g->edit(g->find(name)).uid = uid;
  g->finalize();
  return make_plan(g, cpu_device());
}

std::vector<float> run(const Plan& p, std::vector<float>& x, std::vector<float>& w, size_t results) {
  std::vector<float> y(results, -1);
  std::vector<std::byte> workspace(p.workspace_bytes() + 256);
  void* base = workspace.data();
  size_t room = workspace.size();
  std::align(256, p.workspace_bytes(), base, room);
  Binding bindings[] = {{kX, x.data()}, {kW, w.data()}, {kY, y.data()}};
  p.execute(bindings, base, p.workspace_bytes());
  return y;
}

const char* const kProduct = "x = input f32[64,128]; w = input f32[128,96] frozen=true; y = matmul x w; output y";

TEST(OneDnn, FrozenWeightsBelongToThePointerFirstSeen) {
  auto plan = make(kProduct);
  std::vector<float> x(64 * 128, 1), w(128 * 96, 1), other(128 * 96, 2);
  EXPECT_EQ(run(*plan, x, w, 64 * 96), std::vector<float>(64 * 96, 128));
  EXPECT_EQ(run(*plan, x, other, 64 * 96), std::vector<float>(64 * 96, 256));
  EXPECT_EQ(run(*plan, x, w, 64 * 96), std::vector<float>(64 * 96, 128));
}

TEST(OneDnn, ThreadsMayShareAPlan) {
  auto plan = make("x = input f32[2,16,12,12]; w = input f32[32,16,3,3] frozen=true; y = conv_fprop x w; output y");
  size_t results = 2 * 32 * 10 * 10;
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  // All alive at once: frozen weights are known by their address.
  std::vector<std::vector<float>> weights;
  for (float value : {1.0f, 2.0f, 3.0f}) weights.emplace_back(32 * 16 * 9, value);
  for (size_t t = 0; t < good.size(); ++t)
    threads.emplace_back([&, t] {
      // Threads 0 and 1 share weights, 2 and 3 have their own.
      std::vector<float> x(2 * 16 * 12 * 12, 1), &w = weights[t < 2 ? 0 : t - 1];
      float value = w[0];
      for (int i = 0; i < 20; ++i) good[t] += run(*plan, x, w, results) == std::vector<float>(results, 144 * value);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, std::vector<int>(4, 20));
}

// A gradient of weights is summed over threads: alone it must be as complete as with a team.
TEST(OneDnn, FewerThreadsThanAtPlanning) {
  int before = thread_count();
  set_thread_count(4);
  auto plan =
      make("x = input f32[4,16,8,8]; w = input f32[4,32,8,8]; y f32[32,16,3,3] = conv_wgrad w x pad=1,1; output y");
  std::vector<float> x(4 * 16 * 64, 1), dy(4 * 32 * 64, 1);
  auto many = run(*plan, x, dy, 32 * 16 * 9);
  set_thread_count(1);
  auto one = run(*plan, x, dy, 32 * 16 * 9);
  set_thread_count(before);
  EXPECT_EQ(many[4], 4 * 64);
  EXPECT_EQ(many, one);
}

}  // namespace
}  // namespace tsr
