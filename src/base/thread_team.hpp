// SPDX-License-Identifier: Apache-2.0
// The threads under the pool: OpenMP's where a library that uses OpenMP is built in, otherwise our own. One of
// thread_team_openmp.cpp and thread_team_native.cpp is compiled; thread_pool.cpp alone decides who may run a team.
#pragma once

#include "base/thread_pool.hpp"

namespace tsr {

// Runs the loop on `threads` threads, the caller included. One call at a time.
void run_team(int64_t n, int64_t grain, int threads, LoopBody body, const void* context);

// How many threads other users of the runtime get when they are called from this thread, for as long as this lives.
class TeamSize {
 public:
  explicit TeamSize(int threads);
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;
  ~TeamSize();

 private:
  [[maybe_unused]] int before_ = 0;
};

// The caller is one thread of a running team of the runtime, perhaps somebody else's.
bool inside_team();

}  // namespace tsr
