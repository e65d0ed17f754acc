// SPDX-License-Identifier: Apache-2.0
// The pool of builds without OpenMP: threads of our own.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/thread_team.hpp"

namespace tsr {
namespace {

class Pool {
 public:
  ~Pool() { stop(); }

  void run(int64_t n, int64_t grain, LoopBody body, const void* context, int threads) {
    grow(threads - 1);
    next_.store(0, std::memory_order_relaxed);
    error_ = nullptr;
    {
      std::lock_guard guard(lock_);
      n_ = n, grain_ = grain, body_ = body, context_ = context;
      wanted_ = threads - 1;
      pending_ = threads - 1;
      ++generation_;
    }
    wake_.notify_all();
    work(0);
    std::unique_lock guard(lock_);
    done_.wait(guard, [&] { return pending_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
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

  void grow(int workers) {
    while (static_cast<int>(threads_.size()) < workers) {
      int worker = static_cast<int>(threads_.size()) + 1;
      uint64_t seen = generation_;
      threads_.emplace_back([this, worker, seen]() mutable {
        std::unique_lock guard(lock_);
        for (;;) {
          wake_.wait(guard, [&] { return stopping_ || generation_ != seen; });
          if (stopping_) return;
          seen = generation_;
          if (worker > wanted_) continue;
          guard.unlock();
          work(worker);
          guard.lock();
          if (--pending_ == 0) done_.notify_one();
        }
      });
    }
  }

  void stop() {
    {
      std::lock_guard guard(lock_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  std::mutex lock_;
  std::condition_variable wake_, done_;
  std::vector<std::thread> threads_;
  std::atomic<int64_t> next_{0};
  int64_t n_ = 0, grain_ = 1;
  LoopBody body_ = nullptr;
  const void* context_ = nullptr;
  std::exception_ptr error_;
  int wanted_ = 0, pending_ = 0;
  uint64_t generation_ = 0;
  bool stopping_ = false;
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
