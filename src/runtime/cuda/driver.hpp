// SPDX-License-Identifier: Apache-2.0
// NVIDIA's driver, opened at run time: the library builds and runs without it. The names and values are those of the
// driver's documented interface, declared here so that no toolkit is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace tsr::cuda {

using Result = int;  // CUresult, 0 is success
using Context = struct ContextTag*;
using Stream = struct StreamTag*;  // a CUstream, which a cudaStream_t is too
using Event = struct EventTag*;
using Library = struct LibraryTag*;
using Function = struct FunctionTag*;  // a CUkernel, which may be launched as a CUfunction
using GraphHandle = struct GraphTag*;
using GraphExec = struct GraphExecTag*;
using GraphNode = struct GraphNodeTag*;
using Pointer = unsigned long long;  // CUdeviceptr

struct LaunchAttribute {
  int id;
  char pad[4];
  union {
    char room[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int flag;
  } value;
};
constexpr int kCooperative = 2, kClusterDimension = 4, kProgrammaticSerialisation = 6;  // LaunchAttribute::id

struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

enum class DeviceAttribute : int {
  warp_size = 10,
  clock_khz = 13,
  multiprocessors = 16,
  memory_clock_khz = 36,
  memory_bus_bits = 37,
  l2_bytes = 38,
  major = 75,
  minor = 76,
  shared_bytes_optin = 97,
};

// One pointer for each function that is used; the member's name is the symbol's without `cu`.
struct Driver {
  std::string path, missing;  // where it was found; or why there is none, then all else is null
  int version = 0;            // 13000 for 13.0
  explicit operator bool() const { return missing.empty(); }

  Result (*Init)(unsigned) = nullptr;
  Result (*DriverGetVersion)(int*) = nullptr;
  Result (*GetErrorName)(Result, const char**) = nullptr;
  Result (*GetErrorString)(Result, const char**) = nullptr;
  Result (*DeviceGetCount)(int*) = nullptr;
  Result (*DeviceGetName)(char*, int, int) = nullptr;
  Result (*DeviceGetAttribute)(int*, int, int) = nullptr;
  Result (*DeviceTotalMem)(size_t*, int) = nullptr;
  Result (*DevicePrimaryCtxRetain)(Context*, int) = nullptr;
  Result (*CtxGetCurrent)(Context*) = nullptr;
  Result (*CtxGetDevice)(int*) = nullptr;
  Result (*CtxSetCurrent)(Context) = nullptr;
  Result (*CtxSynchronize)() = nullptr;
  Result (*PointerGetAttribute)(void*, int, Pointer) = nullptr;
  Result (*MemAlloc)(Pointer*, size_t) = nullptr;
  Result (*MemFree)(Pointer) = nullptr;
  Result (*MemAllocHost)(void**, size_t) = nullptr;
  Result (*MemFreeHost)(void*) = nullptr;
  Result (*MemcpyHtoD)(Pointer, const void*, size_t) = nullptr;
  Result (*MemcpyDtoH)(void*, Pointer, size_t) = nullptr;
  Result (*MemcpyHtoDAsync)(Pointer, const void*, size_t, Stream) = nullptr;
  Result (*MemcpyDtoHAsync)(void*, Pointer, size_t, Stream) = nullptr;
  Result (*MemcpyDtoDAsync)(Pointer, Pointer, size_t, Stream) = nullptr;
  Result (*MemsetD8Async)(Pointer, unsigned char, size_t, Stream) = nullptr;
  Result (*StreamCreate)(Stream*, unsigned) = nullptr;
  Result (*StreamDestroy)(Stream) = nullptr;
  Result (*StreamSynchronize)(Stream) = nullptr;
  Result (*StreamIsCapturing)(Stream, int*) = nullptr;
  Result (*StreamBeginCapture)(Stream, int) = nullptr;
  Result (*StreamEndCapture)(Stream, GraphHandle*) = nullptr;
  Result (*ThreadExchangeStreamCaptureMode)(int*) = nullptr;
  // Null before CUDA 12.3.
  Result (*StreamBeginCaptureToGraph)(Stream, GraphHandle, const GraphNode*, const void*, size_t, int) = nullptr;
  Result (*GraphGetNodes)(GraphHandle, GraphNode*, size_t*) = nullptr;
  Result (*GraphNodeGetType)(GraphNode, int*) = nullptr;
  Result (*GraphKernelNodeGetParams)(GraphNode, void*) = nullptr;
  Result (*GraphKernelNodeSetParams)(GraphNode, const void*) = nullptr;
  Result (*GraphKernelNodeCopyAttributes)(GraphNode, GraphNode) = nullptr;
  Result (*GraphMemcpyNodeGetParams)(GraphNode, void*) = nullptr;
  Result (*GraphMemcpyNodeSetParams)(GraphNode, const void*) = nullptr;
  Result (*GraphMemsetNodeGetParams)(GraphNode, void*) = nullptr;
  Result (*GraphMemsetNodeSetParams)(GraphNode, const void*) = nullptr;
  Result (*GraphHostNodeGetParams)(GraphNode, void*) = nullptr;
  Result (*GraphHostNodeSetParams)(GraphNode, const void*) = nullptr;
  Result (*GraphInstantiateWithFlags)(GraphExec*, GraphHandle, unsigned long long) = nullptr;
  Result (*GraphLaunch)(GraphExec, Stream) = nullptr;
  Result (*GraphExecDestroy)(GraphExec) = nullptr;
  Result (*GraphDestroy)(GraphHandle) = nullptr;
  Result (*EventCreate)(Event*, unsigned) = nullptr;
  Result (*EventRecord)(Event, Stream) = nullptr;
  Result (*EventSynchronize)(Event) = nullptr;
  Result (*EventElapsedTime)(float*, Event, Event) = nullptr;
  Result (*EventDestroy)(Event) = nullptr;
  Result (*LaunchHostFunc)(Stream, void (*)(void*), void*) = nullptr;
  Result (*LibraryLoadData)(Library*, const void*, int*, void**, unsigned, int*, void**, unsigned) = nullptr;
  Result (*LibraryUnload)(Library) = nullptr;
  Result (*LibraryGetKernel)(Function*, Library, const char*) = nullptr;
  Result (*KernelGetFunction)(Function*, Function) = nullptr;
  Result (*KernelSetAttribute)(int, int, Function, int) = nullptr;
  Result (*TensorMapEncodeTiled)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,
                                 const uint32_t*, int, int, int, int) = nullptr;
  Result (*TensorMapEncodeIm2col)(void*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const int*, const int*,
                                  uint32_t, uint32_t, const uint32_t*, int, int, int, int) = nullptr;
  Result (*LaunchKernelEx)(const LaunchConfig*, Function, void**, void**) = nullptr;
};

const Driver& driver();

// Raises for anything but success, with the call, the driver's own words and what was being done.
[[noreturn]] void raise(Result r, const char* call, const std::string& what);
template <class... Parts>
void check(Result r, const char* call, const Parts&... what) {
  if (r != 0) raise(r, call, cat("", what...));
}

// Gives the calling thread a context if it has none: that of the caller stays, else the device's primary one is used.
void ensure_context(int device);

// The device of the caller's context; 0 if it has none.
int current_device();

// Allows this thread to allocate and to load kernels although a stream of the program is being captured: neither is
// part of the captured graph.
class RelaxedCapture {
 public:
  RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture();

 private:
  int mode_ = 2;  // relaxed; then what it was before
};

}  // namespace tsr::cuda
