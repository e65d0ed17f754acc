// SPDX-License-Identifier: Apache-2.0
// What stands behind cudnnHandle_t: a device, a stream, and what repeated calls find again.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "capi/status.hpp"
#include "planner/plan_cache.hpp"

namespace tsr::capi {
// TESSERA_DEVICE; without it the caller's GPU, or the CPU where there is none.
Device default_device();
}  // namespace tsr::capi

struct cudnnContext {
  cudnnContext();  // on the default device
  cudnnContext(const cudnnContext&) = delete;
  cudnnContext& operator=(const cudnnContext&) = delete;
  ~cudnnContext();

  const tsr::Device device;
  void* stream = nullptr;  // a CUstream; nothing on the CPU

  // Memory for calls whose interface has no workspace: one piece for each stream, in whose order it is used; on the CPU
  // one for each thread. Grows.
  void* scratch(size_t bytes);

  // A copy from host memory to the GPU's, in the order of the stream; the source is free on return. Where the stream is
  // being captured, the handle keeps a copy for all times that the captured graph is run.
  void copy_in(void* to, const void* from, size_t bytes);

  // Plans of calls that were made before, by everything that shapes them (capi/call.hpp).
  tsr::PlanCache<std::string> plans;

 private:
  std::mutex lock_;  // a handle belongs to one thread at a time; clients are not always that careful
  struct Piece {
    void* data = nullptr;
    size_t bytes = 0;
  };
  std::list<std::vector<std::byte>> captured_;             // sources of copies that captured graphs repeat
  std::unordered_map<void*, std::vector<Piece>> scratch_;  // by stream; the last is in use, others may still be
};
