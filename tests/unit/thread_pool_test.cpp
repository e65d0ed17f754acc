// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace tsr {
namespace {

struct WithThreads {
  int before = thread_count();
  explicit WithThreads(int n) { set_thread_count(n); }
  ~WithThreads() { set_thread_count(before); }
};

TEST(ThreadPool, EveryElementOnce) {
  WithThreads four(4);
  std::vector<int> hits(10007, 0);
  parallel_for(10007, 100, 4, [&](int64_t first, int64_t last, int worker) {
    ASSERT_LT(worker, 4);
    for (int64_t i = first; i < last; ++i) ++hits[static_cast<size_t>(i)];
  });
  for (int h : hits) ASSERT_EQ(h, 1);
}

TEST(ThreadPool, NestedAndConcurrentLoopsDoNotWaitForEachOther) {
  WithThreads four(4);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 20; ++repeat)
        parallel_for(64, 4, 4, [&](int64_t first, int64_t last, int) {
          parallel_for(last - first, 1, 4, [&](int64_t a, int64_t b, int) { sum += b - a; });
        });
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(sum.load(), 4 * 20 * 64);
}

TEST(ThreadPool, OneLeaseAtATime) {
  WithThreads two(2);
  ThreadLease first(2), second(2), alone(1);
  EXPECT_EQ(first.threads(), 2);
  EXPECT_EQ(second.threads(), 1);
  EXPECT_EQ(alone.threads(), 1);
  int calls = 0;
  parallel_for(100, 1, 2, [&](int64_t, int64_t, int) { ++calls; });
  EXPECT_EQ(calls, 1);  // the threads are taken: the whole range at once
}

// Threads that a loop does not need see it come and go, while they look for work and while they sleep.
TEST(ThreadPool, LoopsOfDifferentSizesFollowEachOther) {
  WithThreads six(6);
  for (int repeat = 0; repeat < 300; ++repeat) {
    int64_t n = 2 + repeat % 5;
    std::atomic<int64_t> sum{0};
    parallel_for(n, 1, static_cast<int>(n), [&](int64_t first, int64_t last, int worker) {
      EXPECT_LT(worker, n);
      sum += last - first;
    });
    ASSERT_EQ(sum.load(), n);
    if (repeat % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(ThreadPool, ErrorsReachTheCaller) {
  WithThreads two(2);
  auto body = [](int64_t first, int64_t, int) { require(first != 96, "element ", first); };
  EXPECT_THROW(parallel_for(128, 1, 2, body), Error);
  EXPECT_THROW(set_thread_count(0), Error);
}

}  // namespace
}  // namespace tsr
