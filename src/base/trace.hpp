// SPDX-License-Identifier: Apache-2.0
// Named ranges of time for profilers that read NVTX (Nsight Systems). Where none is attached a range costs a branch;
// where NVTX's header was not found at configuration there are none.
#pragma once

#include <atomic>

namespace tsr {

class TraceRange {
 public:
  explicit TraceRange(const char* name) : open_(wanted.load(std::memory_order_relaxed) && push(name)) {}
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
  ~TraceRange() {
    if (open_) pop();
  }

 private:
  static bool push(const char* name);  // false, and no longer wanted: there is no profiler
  static void pop();
  inline static std::atomic<bool> wanted = true;
  bool open_;
};

}  // namespace tsr
