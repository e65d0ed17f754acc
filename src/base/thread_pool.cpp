// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "base/error.hpp"
#include "base/settings.hpp"
#include "base/thread_team.hpp"

namespace tsr {
namespace {

// Processor time that the container grants, in cores; more threads than that would wait for each other.
double granted_cores() {
  std::ifstream in("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  return in >> quota >> period && quota > 0 && period > 0 ? quota / period : 1e9;  // "max": no limit
}

std::atomic<int>& count() {
  static std::atomic<int> n{[] {
    int64_t wanted = setting_int("TESSERA_THREADS");
    return wanted > 0 ? static_cast<int>(std::min<int64_t>(wanted, 1024)) : usable_cores();
  }()};
  return n;
}

std::atomic<bool> busy{false};  // somebody holds the threads

}  // namespace

int usable_cores() {
  cpu_set_t set;
  bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  double cores = known ? CPU_COUNT(&set) : std::thread::hardware_concurrency();
  return std::max(1, static_cast<int>(std::min(cores, std::ceil(granted_cores()))));
}

int thread_count() { return count().load(std::memory_order_relaxed); }

void set_thread_count(int n) {
  require(n >= 1 && n <= 1024, "thread count ", n, " is not in 1..1024");
  count().store(n, std::memory_order_relaxed);
}

ThreadLease::ThreadLease(int threads) {
  if (threads <= 1 || threads > thread_count() || inside_team()) return;
  if (!busy.exchange(true, std::memory_order_acquire)) threads_ = threads;
}

ThreadLease::~ThreadLease() {
  if (threads_ > 1) busy.store(false, std::memory_order_release);
}

void parallel_for(int64_t n, int64_t grain, int max_workers, LoopBody body, const void* context) {
  if (n <= 0) return;
  grain = std::max<int64_t>(1, grain);
  ThreadLease lease(static_cast<int>(std::min<int64_t>({thread_count(), max_workers, (n + grain - 1) / grain})));
  if (lease.threads() == 1)
    body(context, 0, n, 0);
  else
    run_team(n, grain, lease.threads(), body, context);
}

}  // namespace tsr
