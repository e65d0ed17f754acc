// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/driver.hpp"

#include <dlfcn.h>

#include <array>
#include <mutex>

#include "base/settings.hpp"

namespace tsr::cuda {
namespace {

class Loader {
 public:
  explicit Loader(Driver& d) : d_(d) {
    std::string given = setting("TESSERA_CUDA_DRIVER");
    d_.path = given.empty() ? "libcuda.so.1" : given;
    handle_ = dlopen(d_.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) d_.missing = cat("the CUDA driver was not found: ", dlerror());
  }
  template <class F>
  void get_optional(F& f, const char* symbol) {
    if (handle_) f = reinterpret_cast<F>(dlsym(handle_, symbol));
  }
  template <class F>
  void get(F& f, const char* symbol) {
    get_optional(f, symbol);
    if (handle_ && !f && d_.missing.empty())
      d_.missing = cat("'", d_.path, "' has no ", symbol, "; CUDA 12 or later is needed");
  }

 private:
  Driver& d_;
  void* handle_;
};

Driver open() {
  Driver d;
  Loader l(d);
  l.get(d.Init, "cuInit");
  l.get(d.DriverGetVersion, "cuDriverGetVersion");
  l.get(d.GetErrorName, "cuGetErrorName");
  l.get(d.GetErrorString, "cuGetErrorString");
  l.get(d.DeviceGetCount, "cuDeviceGetCount");
  l.get(d.DeviceGetName, "cuDeviceGetName");
  l.get(d.DeviceGetAttribute, "cuDeviceGetAttribute");
  l.get(d.DeviceTotalMem, "cuDeviceTotalMem_v2");
  l.get(d.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  l.get(d.CtxGetCurrent, "cuCtxGetCurrent");
  l.get(d.CtxGetDevice, "cuCtxGetDevice");
  l.get(d.CtxSetCurrent, "cuCtxSetCurrent");
  l.get(d.CtxSynchronize, "cuCtxSynchronize");
  l.get(d.PointerGetAttribute, "cuPointerGetAttribute");
  l.get(d.MemAlloc, "cuMemAlloc_v2");
  l.get(d.MemFree, "cuMemFree_v2");
  l.get(d.MemAllocHost, "cuMemAllocHost_v2");
  l.get(d.MemFreeHost, "cuMemFreeHost");
  l.get(d.MemcpyHtoD, "cuMemcpyHtoD_v2");
  l.get(d.MemcpyDtoH, "cuMemcpyDtoH_v2");
  l.get(d.MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  l.get(d.MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  l.get(d.MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2");
  l.get(d.MemsetD8Async, "cuMemsetD8Async");
  l.get(d.StreamCreate, "cuStreamCreate");
  l.get(d.StreamDestroy, "cuStreamDestroy_v2");
  l.get(d.StreamSynchronize, "cuStreamSynchronize");
  l.get(d.StreamIsCapturing, "cuStreamIsCapturing");
  l.get(d.StreamBeginCapture, "cuStreamBeginCapture_v2");
  l.get(d.StreamEndCapture, "cuStreamEndCapture");
  l.get(d.ThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  l.get_optional(d.StreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph");
  l.get(d.GraphGetNodes, "cuGraphGetNodes");
  l.get(d.GraphNodeGetType, "cuGraphNodeGetType");
  l.get(d.GraphKernelNodeGetParams, "cuGraphKernelNodeGetParams_v2");
  l.get(d.GraphKernelNodeSetParams, "cuGraphKernelNodeSetParams_v2");
  l.get(d.GraphKernelNodeCopyAttributes, "cuGraphKernelNodeCopyAttributes");
  l.get(d.GraphMemcpyNodeGetParams, "cuGraphMemcpyNodeGetParams");
  l.get(d.GraphMemcpyNodeSetParams, "cuGraphMemcpyNodeSetParams");
  l.get(d.GraphMemsetNodeGetParams, "cuGraphMemsetNodeGetParams");
  l.get(d.GraphMemsetNodeSetParams, "cuGraphMemsetNodeSetParams");
  l.get(d.GraphHostNodeGetParams, "cuGraphHostNodeGetParams");
  l.get(d.GraphHostNodeSetParams, "cuGraphHostNodeSetParams");
  l.get(d.GraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
  l.get(d.GraphLaunch, "cuGraphLaunch");
  l.get(d.GraphExecDestroy, "cuGraphExecDestroy");
  l.get(d.GraphDestroy, "cuGraphDestroy");
  l.get(d.EventCreate, "cuEventCreate");
  l.get(d.EventRecord, "cuEventRecord");
  l.get(d.EventSynchronize, "cuEventSynchronize");
  l.get(d.EventElapsedTime, "cuEventElapsedTime");
  l.get(d.EventDestroy, "cuEventDestroy_v2");
  l.get(d.LaunchHostFunc, "cuLaunchHostFunc");
  l.get(d.LibraryLoadData, "cuLibraryLoadData");
  l.get(d.LibraryUnload, "cuLibraryUnload");
  l.get(d.LibraryGetKernel, "cuLibraryGetKernel");
  l.get(d.KernelGetFunction, "cuKernelGetFunction");
  l.get(d.KernelSetAttribute, "cuKernelSetAttribute");
  l.get(d.TensorMapEncodeTiled, "cuTensorMapEncodeTiled");
  l.get(d.TensorMapEncodeIm2col, "cuTensorMapEncodeIm2col");
  l.get(d.LaunchKernelEx, "cuLaunchKernelEx");
  if (!d) return d;
  if (Result r = d.Init(0); r != 0) {
    const char* text = "";
    d.GetErrorString(r, &text);
    d.missing = cat("the CUDA driver '", d.path, "' does not start: error ", r, ", ", text);
    return d;
  }
  d.DriverGetVersion(&d.version);
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver d = open();
  return d;
}

void raise(Result r, const char* call, const std::string& what) {
  const char *name = "an unknown error", *text = "";
  driver().GetErrorName(r, &name);
  driver().GetErrorString(r, &text);
  constexpr Result kOutOfMemory = 2;
  fail(r == kOutOfMemory ? Status::out_of_memory : Status::execution_failed, call, " failed with ", name, " (", r, ", ",
       text ? text : "", ")", what.empty() ? "" : ": ", what);
}

void ensure_context(int device) {
  Context current = nullptr;
  check(driver().CtxGetCurrent(&current), "cuCtxGetCurrent");
  if (current) return;
  constexpr int kMaxDevices = 64;
  static std::array<Context, kMaxDevices> primary{};
  static std::mutex lock;
  std::lock_guard guard(lock);
  require(device >= 0 && device < kMaxDevices, "CUDA device ", device, " is out of range");
  Context& c = primary[static_cast<size_t>(device)];
  if (!c) check(driver().DevicePrimaryCtxRetain(&c, device), "cuDevicePrimaryCtxRetain", "device ", device);
  check(driver().CtxSetCurrent(c), "cuCtxSetCurrent");
}

int current_device() {
  Context current = nullptr;
  int device = 0;
  check(driver().CtxGetCurrent(&current), "cuCtxGetCurrent");
  if (current) check(driver().CtxGetDevice(&device), "cuCtxGetDevice");
  return device;
}

RelaxedCapture::RelaxedCapture() {
  if (driver()) driver().ThreadExchangeStreamCaptureMode(&mode_);
}
RelaxedCapture::~RelaxedCapture() {
  if (driver()) driver().ThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace tsr::cuda
