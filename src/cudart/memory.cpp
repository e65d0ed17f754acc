// SPDX-License-Identifier: Apache-2.0
#include "cudart/memory.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>

namespace cudart {
namespace {

constexpr size_t kAlignment = 256;

struct Blocks {
  std::mutex lock;
  std::map<uintptr_t, Block> by_start;
};

// Never destroyed: programs free memory while they end.
Blocks& blocks() {
  static auto& b = *new Blocks;
  return b;
}

uintptr_t number(const void* p) { return reinterpret_cast<uintptr_t>(p); }

struct Found {
  uintptr_t start = 0;
  Block block;
};

// The block that holds an address.
bool find(const void* pointer, Found& found) {
  std::lock_guard guard(blocks().lock);
  auto& all = blocks().by_start;
  auto it = all.upper_bound(number(pointer));
  if (it == all.begin()) return false;
  --it;
  if (number(pointer) >= it->first + it->second.bytes) return false;
  found = {it->first, it->second};
  return true;
}

// The block that begins at an address is taken out of the list, if it is of such a kind.
template <class Allowed>
bool take(void* pointer, Block& taken, const Allowed& allowed) {
  std::lock_guard guard(blocks().lock);
  auto it = blocks().by_start.find(number(pointer));
  if (it == blocks().by_start.end() || !allowed(it->second.kind)) return false;
  taken = it->second;
  blocks().by_start.erase(it);
  return true;
}

size_t available_memory() {
  std::ifstream in("/proc/meminfo");
  std::string word;
  size_t kilobytes = 0;
  while (in >> word)
    if (word == "MemAvailable:" && in >> kilobytes) return kilobytes << 10;
  return total_memory();
}

void hand_out(void** pointer, size_t bytes, Kind kind, unsigned flags = 0) {
  given(pointer, "the place for the pointer") = nullptr;
  *pointer = allocate(bytes, kind, flags);
}

size_t pitch_of(size_t width) { return (width + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

size_t total_memory() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

void* allocate(size_t bytes, Kind kind, unsigned flags, CUmemPoolHandle_st* pool) {
  if (bytes == 0) return nullptr;
  demand(bytes <= total_memory(), cudaErrorMemoryAllocation, bytes, " bytes are more than this machine's ",
         total_memory());
  void* p = std::aligned_alloc(kAlignment, pitch_of(bytes));
  if (!p) throw std::bad_alloc();
  std::lock_guard guard(blocks().lock);
  blocks().by_start[number(p)] = {bytes, kind, flags, pool};
  return p;
}

void free_device(void* pointer) {
  Block b;
  Found f;
  if (!pointer) return;
  if (find(pointer, f) && f.start == number(pointer) && f.block.kind == Kind::graph) return;
  bool taken = take(pointer, b, [](Kind k) { return k == Kind::device || k == Kind::managed; });
  demand(taken, cudaErrorInvalidValue, pointer, " is no memory that cudaMalloc gave, or was freed before");
  std::free(pointer);
  if (b.pool) returned(b.pool, b.bytes);
}

void release(void* pointer) {
  Block b;
  if (take(pointer, b, [](Kind) { return true; })) std::free(pointer);
}

std::shared_ptr<void> graph_memory(size_t bytes) { return {allocate(bytes, Kind::graph), release}; }

void check_range(const void* pointer, size_t bytes, const char* name) {
  if (bytes == 0) return;
  demand(pointer, cudaErrorInvalidValue, name, " is a null pointer, for ", bytes, " bytes");
  Found f;
  if (!find(pointer, f)) return;
  size_t room = f.start + f.block.bytes - number(pointer);
  demand(bytes <= room, cudaErrorInvalidValue, name, " (", pointer, "): ", bytes, " bytes, but the memory has ", room,
         " from there (", f.block.bytes, " in all)");
}

}  // namespace cudart

using namespace cudart;

int tesseraRoom(const void* pointer, size_t* bytes) {
  Found f;
  if (find(pointer, f)) {
    *bytes = f.start + f.block.bytes - number(pointer);
    return 1;
  }
  std::lock_guard guard(blocks().lock);
  return blocks().by_start.empty() ? -1 : 0;
}

cudaError_t cudaMalloc(void** pointer, size_t size) {
  return answer("cudaMalloc", [&] { hand_out(pointer, size, Kind::device); });
}

cudaError_t cudaMallocHost(void** pointer, size_t size) {
  return answer("cudaMallocHost", [&] { hand_out(pointer, size, Kind::host); });
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned flags) {
  return answer("cudaHostAlloc", [&] { hand_out(pointer, size, Kind::host, flags); });
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned flags) {
  return answer("cudaMallocManaged", [&] {
    demand(size > 0, cudaErrorInvalidValue, "size is 0, allowed are sizes from 1");
    hand_out(pointer, size, Kind::managed, flags);
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return answer("cudaMallocPitch", [&] {
    given(pitch, "pitch") = pitch_of(width);
    hand_out(pointer, pitch_of(width) * height, Kind::device);
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  return answer("cudaMalloc3D", [&] {
    cudaPitchedPtr p{nullptr, pitch_of(extent.width), extent.width, extent.height};
    p.ptr = allocate(p.pitch * extent.height * extent.depth, Kind::device);
    given(pointer, "pitchedDevPtr") = p;
  });
}

cudaError_t cudaFree(void* pointer) {
  return answer("cudaFree", [&] { free_device(pointer); });
}

cudaError_t cudaFreeHost(void* pointer) {
  return answer("cudaFreeHost", [&] {
    Block b;
    if (!pointer) return;
    bool taken = take(pointer, b, [](Kind k) { return k == Kind::host; });
    demand(taken, cudaErrorInvalidValue, pointer, " is no memory that cudaMallocHost gave, or was freed before");
    std::free(pointer);
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned flags) {
  return answer("cudaHostRegister", [&] {
    demand(pointer && size > 0, cudaErrorInvalidValue, "ptr is ", pointer, ", size is ", size);
    Found f;
    demand(!find(pointer, f), cudaErrorHostMemoryAlreadyRegistered, pointer, " is known already, as a part of ",
           f.block.bytes, " bytes");
    std::lock_guard guard(blocks().lock);
    blocks().by_start[number(pointer)] = {size, Kind::registered, flags, nullptr};
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return answer("cudaHostUnregister", [&] {
    Block b;
    bool taken = take(pointer, b, [](Kind k) { return k == Kind::registered; });
    demand(taken, cudaErrorHostMemoryNotRegistered, pointer, " was not registered");
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return answer("cudaHostGetDevicePointer", [&] {
    Found f;
    demand(find(host, f) && f.block.kind != Kind::device, cudaErrorInvalidValue, host,
           " is no memory of cudaHostAlloc or cudaHostRegister");
    given(device, "pDevice") = host;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return answer("cudaHostGetFlags", [&] {
    Found f;
    demand(find(host, f) && f.block.kind == Kind::host, cudaErrorInvalidValue, host, " is no memory of cudaHostAlloc");
    given(flags, "pFlags") = f.block.flags;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return answer("cudaPointerGetAttributes", [&] {
    cudaPointerAttributes a{};
    void* p = const_cast<void*>(pointer);
    Found f;
    if (!find(pointer, f)) {
      a.type = cudaMemoryTypeUnregistered, a.device = cudaInvalidDeviceId, a.hostPointer = p;
    } else if (f.block.kind == Kind::device || f.block.kind == Kind::graph) {
      a.type = cudaMemoryTypeDevice, a.devicePointer = p;
    } else {
      a.type = f.block.kind == Kind::managed ? cudaMemoryTypeManaged : cudaMemoryTypeHost;
      a.devicePointer = a.hostPointer = p;
    }
    given(attributes, "attributes") = a;
  });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return answer("cudaMemGetInfo", [&] {
    given(free, "free") = available_memory();
    given(total, "total") = total_memory();
  });
}
