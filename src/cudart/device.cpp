// SPDX-License-Identifier: Apache-2.0
// The one device: the processor, in the words of CUDA's runtime.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "cudart/device.hpp"
#include "cudart/memory.hpp"

namespace cudart {
namespace {

constexpr int kRuntimeVersion = TESSERA_CUDART == 12 ? 12080 : 13000;
constexpr const char* kBusId = "0000:00:00.0";

void check_device(int device) {
  demand(device == 0, cudaErrorInvalidDevice, "device is ", device, ", there is only device 0");
}

std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line))
    if (line.rfind("model name", 0) == 0) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown processor";
}

struct Capability {
  int major = 9, minor = 0;
};

// What programs choose their paths by: no kernel ever runs, so that any answer is as true as another.
Capability capability() {
  static const Capability c = [] {
    const char* text = std::getenv("TESSERA_HOST_CAPABILITY");
    Capability asked;
    int read = text && *text ? std::sscanf(text, "%d.%d", &asked.major, &asked.minor) : 2;
    if (read == 2 && asked.major > 0 && asked.minor >= 0) return asked;
    say(std::string("TESSERA_HOST_CAPABILITY='") + text + "' does not read MAJOR.MINOR; using 9.0");
    return Capability{};
  }();
  return c;
}

cudaDeviceProp describe() {
  cudaDeviceProp p{};
  std::snprintf(p.name, sizeof p.name, "Tessera CPU (host stand-in): %s", processor().c_str());
  std::memcpy(p.uuid.bytes, "tessera-host-cpu", sizeof p.uuid.bytes);
  p.totalGlobalMem = total_memory();
  p.sharedMemPerBlock = 48 << 10;
  p.sharedMemPerBlockOptin = 227 << 10;
  p.sharedMemPerMultiprocessor = 228 << 10;
  p.reservedSharedMemPerBlock = 1 << 10;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024, p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff, p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 65536;
  p.major = capability().major, p.minor = capability().minor;
  p.textureAlignment = p.surfaceAlignment = 512, p.texturePitchAlignment = 32;
  p.multiProcessorCount = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.l2CacheSize = static_cast<int>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)));
  p.memoryBusWidth = 64;
  p.integrated = p.canMapHostMemory = p.unifiedAddressing = p.managedMemory = p.pageableMemoryAccess = 1;
  p.concurrentManagedAccess = p.canUseHostPointerForRegisteredMem = p.hostRegisterSupported = 1;
  p.pageableMemoryAccessUsesHostPageTables = p.directManagedMemAccessFromHost = p.hostNativeAtomicSupported = 1;
  p.memoryPoolsSupported = p.streamPrioritiesSupported = 1;
#if TESSERA_CUDART < 13
  p.clockRate = p.memoryClockRate = 1000000;
  p.singleToDoublePrecisionPerfRatio = 2;
#endif
  return p;
}

}  // namespace

const cudaDeviceProp& properties(int device) {
  check_device(device);
  static const cudaDeviceProp p = describe();
  return p;
}

namespace {

// By the numbers of cudaDeviceAttr; what does not exist here is 0.
int attribute(int attr) {
  const cudaDeviceProp& p = properties(0);
  switch (attr) {
    case 1:
      return p.maxThreadsPerBlock;
    case 2:
    case 3:
    case 4:
      return p.maxThreadsDim[attr - 2];
    case 5:
    case 6:
    case 7:
      return p.maxGridSize[attr - 5];
    case 8:
      return static_cast<int>(p.sharedMemPerBlock);
    case 9:
      return static_cast<int>(p.totalConstMem);
    case 10:
      return p.warpSize;
    case 11:
      return static_cast<int>(p.memPitch);
    case 12:
      return p.regsPerBlock;
    case 13:  // clock rates, in kHz
    case 36:
      return 1000000;
    case 14:
      return static_cast<int>(p.textureAlignment);
    case 16:
      return p.multiProcessorCount;
    case 18:
      return p.integrated;
    case 37:
      return p.memoryBusWidth;
    case 38:
      return p.l2CacheSize;
    case 39:
      return p.maxThreadsPerMultiProcessor;
    case 75:
      return p.major;
    case 76:
      return p.minor;
    case 81:
      return static_cast<int>(p.sharedMemPerMultiprocessor);
    case 82:
      return p.regsPerMultiprocessor;
    case 87:
      return 2;
    case 97:
      return static_cast<int>(p.sharedMemPerBlockOptin);
    case 106:
      return p.maxBlocksPerMultiProcessor;
    case 111:
      return static_cast<int>(p.reservedSharedMemPerBlock);
    case 19:   // can map host memory
    case 41:   // unified addressing
    case 78:   // stream priorities
    case 83:   // managed memory
    case 86:   // native atomics of the host
    case 88:   // pageable memory access
    case 89:   // concurrent managed access
    case 91:   // host pointer for registered memory
    case 99:   // host register
    case 100:  // pageable memory access by the host's page tables
    case 101:  // direct managed access from the host
    case 115:  // memory pools
      return 1;
    case 131:  // NUMA nodes: none
    case 134:
      return -1;
    default:
      constexpr int kMost = 160;  // newer versions add a few
      demand(attr > 0 && attr < kMost, cudaErrorInvalidValue, "attr is ", attr, ", allowed are 1 to ", kMost - 1);
      return 0;
  }
}

size_t& limit(int number) {
  static size_t limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};
  demand(number >= 0 && number < static_cast<int>(std::size(limits)), cudaErrorUnsupportedLimit, "limit is ", number,
         ", allowed are 0 to ", std::size(limits) - 1);
  return limits[number];
}

cudaError_t no_driver(const char* function, const char* symbol, void** pointer,
                      cudaDriverEntryPointQueryResult* status) {
  return answer(function, [&] {
    given(symbol, "symbol");
    given(pointer, "funcPtr") = nullptr;
    if (status) *status = cudaDriverEntryPointSymbolNotFound;
    if (!status) throw Failure{cudaErrorSymbolNotFound, ""};
  });
}

unsigned device_flags = 0;
int cache_config = 0, shared_config = 0;

}  // namespace
}  // namespace cudart

using namespace cudart;

cudaError_t cudaGetDeviceCount(int* count) {
  return answer("cudaGetDeviceCount", [&] { given(count, "count") = 1; });
}

cudaError_t cudaGetDevice(int* device) {
  return answer("cudaGetDevice", [&] { given(device, "device") = 0; });
}

cudaError_t cudaSetDevice(int device) {
  return answer("cudaSetDevice", [&] { check_device(device); });
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return answer("cudaInitDevice", [&] { check_device(device); });
}

cudaError_t cudaSetValidDevices(int* devices, int len) {
  return answer("cudaSetValidDevices", [&] {
    if (len > 0) given(devices, "device_arr");
    for (int i = 0; i < len; ++i) check_device(devices[i]);
  });
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* prop) {
  return answer("cudaChooseDevice", [&] {
    given(prop, "prop");
    given(device, "device") = 0;
  });
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  device_flags = flags;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return answer("cudaGetDeviceFlags", [&] { given(flags, "flags") = device_flags; });
}

// Memory stays: programs that reset are about to end, and some free afterwards what the reset has freed.
cudaError_t cudaDeviceReset() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

cudaError_t cudaDeviceGetAttribute(int* value, int attr, int device) {
  return answer("cudaDeviceGetAttribute", [&] {
    check_device(device);
    given(value, "value") = attribute(attr);
  });
}

cudaError_t cudaDeviceGetLimit(size_t* value, int number) {
  return answer("cudaDeviceGetLimit", [&] { given(value, "pValue") = limit(number); });
}

cudaError_t cudaDeviceSetLimit(int number, size_t value) {
  return answer("cudaDeviceSetLimit", [&] { limit(number) = value; });
}

cudaError_t cudaDeviceGetCacheConfig(int* config) {
  return answer("cudaDeviceGetCacheConfig", [&] { given(config, "pCacheConfig") = cache_config; });
}

cudaError_t cudaDeviceSetCacheConfig(int config) {
  cache_config = config;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetSharedMemConfig(int* config) {
  return answer("cudaDeviceGetSharedMemConfig", [&] { given(config, "pConfig") = shared_config; });
}

cudaError_t cudaDeviceSetSharedMemConfig(int config) {
  shared_config = config;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return answer("cudaDeviceGetStreamPriorityRange", [&] {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int len, int device) {
  return answer("cudaDeviceGetPCIBusId", [&] {
    check_device(device);
    given(id, "pciBusId");
    demand(len > static_cast<int>(std::strlen(kBusId)), cudaErrorInvalidValue, "len is ", len, ", needed are ",
           std::strlen(kBusId) + 1);
    std::strcpy(id, kBusId);
  });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return answer("cudaDeviceGetByPCIBusId", [&] {
    demand(std::strcmp(&given(id, "pciBusId"), kBusId) == 0, cudaErrorInvalidDevice, "there is no device '", id, "'");
    given(device, "device") = 0;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return answer("cudaDeviceCanAccessPeer", [&] {
    check_device(device), check_device(peer);
    given(can, "canAccessPeer") = 0;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return answer("cudaDeviceEnablePeerAccess",
                [&] { fail(cudaErrorPeerAccessUnsupported, "peerDevice is ", peer, ", there is only device 0"); });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return answer("cudaDeviceDisablePeerAccess",
                [&] { fail(cudaErrorPeerAccessUnsupported, "peerDevice is ", peer, ", there is only device 0"); });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return answer("cudaDriverGetVersion", [&] { given(version, "driverVersion") = kRuntimeVersion; });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return answer("cudaRuntimeGetVersion", [&] { given(version, "runtimeVersion") = kRuntimeVersion; });
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* status) {
  return no_driver("cudaGetDriverEntryPoint", symbol, function, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  return no_driver("cudaGetDriverEntryPointByVersion", symbol, function, status);
}

cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
