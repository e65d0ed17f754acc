// SPDX-License-Identifier: Apache-2.0
// A pool of worker threads for the CPU engines. One parallel loop at a time uses the workers; a loop that starts while
// they are busy (another thread, or a nested loop) runs on its caller alone, so nothing ever waits for the pool. A
// build with OpenMP (oneDNN brings it) runs the loops on OpenMP's threads, so that there is one set of threads, not
// two.
#pragma once

#include <cstdint>

namespace tsr {

int usable_cores();  // that this process may use, or its container grants
// Number of threads that a parallel loop may use, the caller included.
int thread_count();
void set_thread_count(int n);  // n >= 1; takes effect at the next loop

// The right to use several threads, for as long as it lives. Loops take it themselves; a library with loops of its own
// is called with threads() threads.
class ThreadLease {
 public:
  explicit ThreadLease(int threads);  // asks; never waits
  ThreadLease(const ThreadLease&) = delete;
  ThreadLease& operator=(const ThreadLease&) = delete;
  ~ThreadLease();
  int threads() const { return threads_; }  // as many as asked for, or 1

 private:
  int threads_ = 1;
};

// Calls body(context, first, last, worker) over disjoint pieces of [0, n), each a multiple of `grain` long but the
// last. `worker` < thread_count() tells which scratch memory to use.
using LoopBody = void (*)(const void* context, int64_t first, int64_t last, int worker);
// At most `max_workers` take part: a step lays out scratch for as many when it is built.
void parallel_for(int64_t n, int64_t grain, int max_workers, LoopBody body, const void* context);

template <class F>
void parallel_for(int64_t n, int64_t grain, int max_workers, const F& f) {
  auto call = [](const void* c, int64_t a, int64_t b, int w) { (*static_cast<const F*>(c))(a, b, w); };
  parallel_for(n, grain, max_workers, call, &f);
}

}  // namespace tsr
