// SPDX-License-Identifier: Apache-2.0
// The pool of builds with OpenMP: loops run on the threads that oneDNN uses too, so that the two never compete for
// cores and a step of one finds the threads that a step of the other left awake.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "base/thread_team.hpp"

namespace tsr {

void run_team(int64_t n, int64_t grain, int threads, LoopBody body, const void* context) {
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
#pragma omp parallel num_threads(threads)
  {
    try {
      for (int64_t first; (first = next.fetch_add(grain, std::memory_order_relaxed)) < n;)
        body(context, first, std::min(first + grain, n), omp_get_thread_num());
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

TeamSize::TeamSize(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
TeamSize::~TeamSize() { omp_set_num_threads(before_); }
bool inside_team() { return omp_in_parallel() != 0; }

}  // namespace tsr
