// SPDX-License-Identifier: Apache-2.0
#include "capi/stream_handle.hpp"

#include <map>

#include "runtime/cuda/driver.hpp"

namespace tsr::capi {

cudnnHandle_t handle_for(cudaStream_t stream) {
  // For each thread, since a handle has one stream at a time; for each device, since a handle stays on its own.
  thread_local std::map<int, std::unique_ptr<cudnnContext>> handles;
  std::unique_ptr<cudnnContext>& h = handles[cuda::driver() ? cuda::current_device() : 0];
  if (!h) h = std::make_unique<cudnnContext>();
  h->stream = stream;
  return h.get();
}

}  // namespace tsr::capi
