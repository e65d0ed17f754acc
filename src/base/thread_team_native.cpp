// SPDX-License-Identifier: Apache-2.0
// The pool of builds without OpenMP: threads of our own.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/thread_team.hpp"

namespace tsr {
namespace {

// Loops of one plan follow each other within microseconds, and to wake a sleeping thread takes longer than many of
// them: threads look for work for a while before they sleep.
constexpr auto kPatience = std::chrono::microseconds(100);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns when `a` is no longer `old`. Looks at it for a while first where there is a core for every thread.
void wait_while(const std::atomic<uint32_t>& a, uint32_t old, bool look) {
  constexpr int kLooks = 64;  // between two looks at the clock
  if (look)
    for (auto end = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < end;)
      for (int i = 0; i < kLooks; ++i) {
        if (a.load(std::memory_order_acquire) != old) return;
        pause();
      }
  a.wait(old, std::memory_order_acquire);
}

class Pool {
 public:
  ~Pool() { stop(); }

  void run(int64_t n, int64_t grain, LoopBody body, const void* context, int threads) {
    auto helpers = static_cast<uint32_t>(threads - 1);
    grow(helpers);
    next_.store(0, std::memory_order_relaxed);
    error_ = nullptr;
    n_ = n, grain_ = grain, body_ = body, context_ = context;
    pending_.store(helpers, std::memory_order_relaxed);
    patient_.store(threads <= cores_, std::memory_order_relaxed);
    announce(helpers);
    work(0);
    for (uint32_t left; (left = pending_.load(std::memory_order_acquire)) != 0;)
      wait_while(pending_, left, patient_.load(std::memory_order_relaxed));
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // A loop is known by its number, and by how many threads take part beside the caller: others must not look at it, for
  // it may be over by then.
  static constexpr uint32_t kHelpers = 1023, kNumber = kHelpers + 1;

  void announce(uint32_t helpers) {
    uint32_t number = loop_.load(std::memory_order_relaxed) / kNumber + 1;
    loop_.store(number * kNumber + helpers, std::memory_order_release);
    loop_.notify_all();
  }

  void work(int worker) {
    try {
      for (;;) {
        int64_t first = next_.fetch_add(grain_, std::memory_order_relaxed);
        if (first >= n_) return;
        body_(context_, first, std::min(first + grain_, n_), worker);
      }
    } catch (...) {
      std::lock_guard guard(lock_);
      error_ = std::current_exception();
    }
  }

  void grow(uint32_t helpers) {
    while (threads_.size() < helpers) {
      auto worker = static_cast<uint32_t>(threads_.size()) + 1;
      uint32_t seen = loop_.load(std::memory_order_relaxed);
      threads_.emplace_back([this, worker, seen]() mutable {
        for (;;) {
          wait_while(loop_, seen, patient_.load(std::memory_order_relaxed));
          seen = loop_.load(std::memory_order_acquire);
          if (stopping_.load(std::memory_order_relaxed)) return;
          if (worker > seen % kNumber) continue;
          work(static_cast<int>(worker));
          if (pending_.fetch_sub(1, std::memory_order_release) == 1) pending_.notify_one();
        }
      });
    }
  }

  void stop() {
    stopping_.store(true, std::memory_order_relaxed);
    announce(0);
    for (std::thread& t : threads_) t.join();
  }

  const int cores_ = usable_cores();
  std::vector<std::thread> threads_;
  std::atomic<uint32_t> loop_{0}, pending_{0};
  std::atomic<int64_t> next_{0};
  std::atomic<bool> patient_{false}, stopping_{false};
  int64_t n_ = 0, grain_ = 1;
  LoopBody body_ = nullptr;
  const void* context_ = nullptr;
  std::mutex lock_;
  std::exception_ptr error_;
};

Pool& pool() {
  static Pool p;
  return p;
}

}  // namespace

void run_team(int64_t n, int64_t grain, int threads, LoopBody body, const void* context) {
  pool().run(n, grain, body, context, threads);
}

TeamSize::TeamSize(int) {}
TeamSize::~TeamSize() = default;
bool inside_team() { return false; }

}  // namespace tsr
