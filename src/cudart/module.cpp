// SPDX-License-Identifier: Apache-2.0
// Compiled device code: it registers itself when a program starts, which is accepted, and is refused when it should
// run.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "cudart/memory.hpp"

namespace cudart {
namespace {

struct Kernels {
  std::mutex lock;
  std::unordered_map<const void*, std::string> names;
  std::set<std::string> refused;
};

Kernels& kernels() {
  static auto& k = *new Kernels;
  return k;
}

std::string name_of(const void* function) {
  std::lock_guard guard(kernels().lock);
  auto it = kernels().names.find(function);
  if (it != kernels().names.end()) {
    int status = 0;
    std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(it->second.c_str(), nullptr, nullptr, &status),
                                                    std::free);
    return readable ? readable.get() : it->second;
  }
  std::ostringstream address;
  address << "at " << function;
  return address.str();
}

cudaError_t refuse_launch(const char* function, const void* kernel) {
  return answer(function, [&] {
    std::string name = name_of(kernel);
    bool first = false;
    {
      std::lock_guard guard(kernels().lock);
      first = kernels().refused.insert(name).second;
    }
    std::string text = "kernel " + name + " does not run: there is no GPU here, and no kernels run on the processor";
    throw Failure{cudaErrorNotSupported, first ? text : ""};
  });
}

struct Launch {
  dim3 grid, block;
  size_t shared = 0;
  CUstream_st* stream = nullptr;
};
thread_local std::vector<Launch> launches;  // between <<<..>>> and the call

constexpr int kThreads = 1024, kThreadsPerMultiprocessor = 2048, kBlocks = 32, kSharedBytes = 227 << 10;

int blocks_that_fit(int threads, size_t shared) {
  demand(threads > 0, cudaErrorInvalidValue, "blockSize is ", threads, ", allowed are sizes from 1");
  if (threads > kThreads || shared > kSharedBytes) return 0;
  int by_shared = shared == 0 ? kBlocks : static_cast<int>(kSharedBytes / shared);
  return std::min({kBlocks, kThreadsPerMultiprocessor / threads, by_shared});
}

}  // namespace
}  // namespace cudart

using namespace cudart;

void** __cudaRegisterFatBinary(void* binary) { return new void*(binary); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { delete handle; }

void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, dim3*, dim3*, int*) {
  std::lock_guard guard(kernels().lock);
  kernels().names[host] = name;
}

void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
// The host reads and writes these, so that they need memory; what they start with stands in the device code.
void __cudaRegisterManagedVar(void**, void** host, char*, const char* name, int, size_t size, int, int) {
  *host = allocate(size, Kind::managed);
  if (*host) std::memset(*host, 0, size);
  say(std::string("the managed variable ") + name + " starts as zeros: device code is not read");
}

void __cudaRegisterHostVar(void**, const char*, char*, size_t) {}
char __cudaInitModule(void**) { return 1; }

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream_st* stream) {
  launches.push_back({grid, block, shared, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  return answer("__cudaPopCallConfiguration", [&] {
    demand(!launches.empty(), cudaErrorInvalidValue, "a kernel is called without <<<..>>>");
    Launch last = launches.back();
    launches.pop_back();
    given(grid, "gridDim") = last.grid, given(block, "blockDim") = last.block;
    given(shared, "sharedMem") = last.shared, given(static_cast<CUstream_st**>(stream), "stream") = last.stream;
  });
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) { return cudaGetKernel(kernel, function); }

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return answer("cudaGetKernel",
                [&] { given(kernel, "kernelPtr") = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function)); });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuse_launch("cudaLaunchKernel", kernel);
}

cudaError_t cudaLaunchKernel(const void* function, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuse_launch("cudaLaunchKernel", function);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void* function, void**) {
  return refuse_launch("cudaLaunchKernelExC", function);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3, dim3, void**, size_t, cudaStream_t) {
  return refuse_launch("cudaLaunchCooperativeKernel", function);
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return answer("cudaFuncGetName", [&] {
    std::lock_guard guard(kernels().lock);
    auto it = kernels().names.find(function);
    demand(it != kernels().names.end(), cudaErrorInvalidValue, function, " is no kernel");
    given(name, "name") = it->second.c_str();
  });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  return answer("cudaFuncGetAttributes", [&] {
    cudaFuncAttributes a{};
    a.maxThreadsPerBlock = kThreads, a.numRegs = 32, a.ptxVersion = a.binaryVersion = 90;
    a.maxDynamicSharedSizeBytes = kSharedBytes, a.preferredShmemCarveout = -1;
    given(attributes, "attr") = a;
  });
}

// Kernels do not run: how they should is of no consequence.
cudaError_t cudaFuncSetAttribute(const void*, int, int) { return cudaSuccess; }
cudaError_t cudaFuncSetCacheConfig(const void*, int) { return cudaSuccess; }
cudaError_t cudaFuncSetSharedMemConfig(const void*, int) { return cudaSuccess; }

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, size_t shared) {
  return answer("cudaOccupancyMaxActiveBlocksPerMultiprocessor",
                [&] { given(blocks, "numBlocks") = blocks_that_fit(threads, shared); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                                   size_t shared, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void*, int blocks, int) {
  return answer("cudaOccupancyAvailableDynamicSMemPerBlock", [&] {
    demand(blocks > 0, cudaErrorInvalidValue, "numBlocks is ", blocks, ", allowed are numbers from 1");
    given(bytes, "dynamicSmemSize") = static_cast<size_t>(kSharedBytes / blocks);
  });
}
