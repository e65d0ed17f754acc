// SPDX-License-Identifier: Apache-2.0
#include "capi/handle.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/settings.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/devices.hpp"

tsr::Device tsr::capi::default_device() {
  std::string name = tsr::setting("TESSERA_DEVICE");
  if (name == "cuda" || (name.empty() && !tsr::gpus().empty())) return tsr::cuda_device(tsr::cuda::current_device());
  tsr::Device d = name.empty() ? tsr::cpu_device() : tsr::find_device(name);
  tsr::require_present(d);
  return d;
}

cudnnContext::cudnnContext() : device(tsr::capi::default_device()) {}

cudnnContext::~cudnnContext() {
  for (auto& [key, pieces] : scratch_)
    for (Piece& p : pieces) device.memory->release(p.data);
}

namespace {

constexpr size_t kLeastScratch = 1 << 20, kScratchAlign = 256;

size_t scratch_size(size_t bytes, size_t before) {
  return std::max({kLeastScratch, (bytes + kScratchAlign - 1) / kScratchAlign * kScratchAlign, 2 * before});
}

// The CPU is done with a call when it returns. The memory is the thread's, so that those that share a handle, which
// they should not, do not share it.
void* host_scratch(size_t bytes) {
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<void, Free> data;
  thread_local size_t size = 0;
  if (size < bytes) {
    size_t larger = scratch_size(bytes, size);
    size = 0, data.reset(std::aligned_alloc(kScratchAlign, larger));
    if (!data) throw std::bad_alloc();
    size = larger;
  }
  return data.get();
}

}  // namespace

void* cudnnContext::scratch(size_t bytes) {
  if (bytes == 0) return nullptr;
  if (!device.memory) return host_scratch(bytes);
  std::lock_guard guard(lock_);
  std::vector<Piece>& pieces = scratch_[stream];
  if (pieces.empty() || pieces.back().bytes < bytes) {
    // Older pieces may still be in use by what the stream has to do.
    size_t size = scratch_size(bytes, pieces.empty() ? 0 : pieces.back().bytes);
    tsr::cuda::RelaxedCapture allowed;
    pieces.push_back({device.memory->allocate(size), size});
  }
  return pieces.back().data;
}

void cudnnContext::copy_in(void* to, const void* from, size_t bytes) {
  tsr::cuda::ensure_context(device.index);
  int capturing = 0;
  if (stream) tsr::cuda::driver().StreamIsCapturing(static_cast<tsr::cuda::Stream>(stream), &capturing);
  if (capturing) {
    std::lock_guard guard(lock_);
    auto* first = static_cast<const std::byte*>(from);
    from = captured_.emplace_back(first, first + bytes).data();
  }
  // From pageable memory: the driver has taken its own copy when this returns.
  tsr::cuda::check(tsr::cuda::driver().MemcpyHtoDAsync(reinterpret_cast<tsr::cuda::Pointer>(to), from, bytes,
                                                       static_cast<tsr::cuda::Stream>(stream)),
                   "cuMemcpyHtoDAsync", "an array of the call");
}

using namespace tsr::capi;

cudnnStatus_t CUDNNWINAPI cudnnCreate(cudnnHandle_t* handle) {
  if (handle) *handle = nullptr;
  return answer(TESSERA_CALL(cudnnCreate, handle), [&] {
    given(handle, "handle");
    try {
      *handle = new cudnnContext;
    } catch (const tsr::Error& e) {
      refuse(CUDNN_STATUS_NOT_INITIALIZED, e.what());
    }
  });
}

cudnnStatus_t CUDNNWINAPI cudnnDestroy(cudnnHandle_t handle) {
  return answer(TESSERA_CALL(cudnnDestroy, handle), [&] {
    if (!handle) return;
    tsr::synchronize(handle->device, handle->stream);
    delete handle;
  });
}

cudnnStatus_t CUDNNWINAPI cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId) {
  return answer(TESSERA_CALL(cudnnSetStream, handle, streamId), [&] { given(handle, "handle").stream = streamId; });
}

cudnnStatus_t CUDNNWINAPI cudnnGetStream(cudnnHandle_t handle, cudaStream_t* streamId) {
  return answer(TESSERA_CALL(cudnnGetStream, handle, streamId),
                [&] { given(streamId, "streamId") = static_cast<cudaStream_t>(given(handle, "handle").stream); });
}

// Kernels report nothing while they run: what goes wrong is a status of the call, or of the stream.
cudnnStatus_t CUDNNWINAPI cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t* rstatus, cudnnErrQueryMode_t mode,
                                                 cudnnRuntimeTag_t* tag) {
  return answer(TESSERA_CALL(cudnnQueryRuntimeError, handle, rstatus, mode, tag), [&] {
    given(handle, "handle");
    given(rstatus, "rstatus");
    demand(mode >= CUDNN_ERRQUERY_RAWCODE && mode <= CUDNN_ERRQUERY_BLOCKING, CUDNN_STATUS_BAD_PARAM, "mode ",
           static_cast<int>(mode), " does not exist");
    *rstatus = CUDNN_STATUS_SUCCESS;
    if (mode == CUDNN_ERRQUERY_BLOCKING) tsr::synchronize(handle->device, handle->stream);
  });
}
