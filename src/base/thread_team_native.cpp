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
    n_ = n, grain_ = grain, body_ = body, context_ = context, helpers_ = helpers;
    patient_.store(threads <= cores_, std::memory_order_relaxed);
    inside_.store(0, std::memory_order_release);
    announce();
    work(0);
    // Threads that have not come by now, for they sleep or have no core, are not waited for.
    uint32_t left = inside_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed;
    while (left != kClosed) {
      wait_while(inside_, left, patient_.load(std::memory_order_relaxed));
      left = inside_.load(std::memory_order_acquire);
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr uint32_t kClosed = 1u << 31;

  void announce() {
    loop_.fetch_add(1, std::memory_order_release);
    loop_.notify_all();
  }

  // The loop that is open, if it is, stays so until leave().
  bool enter() {
    uint32_t count = inside_.load(std::memory_order_relaxed);
    while (!(count & kClosed))
      if (inside_.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) return true;
    return false;
  }
  void leave() {
    if (inside_.fetch_sub(1, std::memory_order_release) == (kClosed | 1)) inside_.notify_one();
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
          if (!enter()) continue;
          if (worker <= helpers_) work(static_cast<int>(worker));
          leave();
        }
      });
    }
  }

  void stop() {
    stopping_.store(true, std::memory_order_relaxed);
    announce();
    for (std::thread& t : threads_) t.join();
  }

  const int cores_ = usable_cores();
  std::vector<std::thread> threads_;
  std::atomic<uint32_t> loop_{0};          // changes with each
  std::atomic<uint32_t> inside_{kClosed};  // threads at work beside the caller, and whether more may come
  std::atomic<int64_t> next_{0};
  std::atomic<bool> patient_{false}, stopping_{false};
  int64_t n_ = 0, grain_ = 1;
  uint32_t helpers_ = 0;  // that may take part: there is scratch memory for so many
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
