// SPDX-License-Identifier: Apache-2.0
// Memory in the order of streams. Pools keep nothing back: they only count what is in use.
#include <atomic>

#include "cudart/memory.hpp"
#include "cudart/stream.hpp"

struct CUmemPoolHandle_st : cudart::Handle<CUmemPoolHandle_st> {
  static constexpr const char* kWhat = "memory pool";
  std::atomic<unsigned long long> used{0}, most{0}, threshold{0};
};

namespace cudart {
namespace {

CUmemPoolHandle_st& default_pool() {
  static auto& pool = *new CUmemPoolHandle_st;
  return pool;
}

std::atomic<CUmemPoolHandle_st*>& current_pool() {
  static std::atomic<CUmemPoolHandle_st*> pool{&default_pool()};
  return pool;
}

void* allocate_from(CUmemPoolHandle_st& pool, size_t bytes, cudaStream_t stream) {
  CUstream_st& s = find_stream(stream);
  if (s.capture) {
    cudaMemAllocNodeParams p{};
    p.bytesize = bytes;
    record(s, alloc_work(p));
    return p.dptr;
  }
  void* p = allocate(bytes, Kind::device, 0, &pool);
  unsigned long long used = pool.used += bytes;
  if (used > pool.most) pool.most = used;
  return p;
}

void check_device(int device) {
  demand(device == 0, cudaErrorInvalidDevice, "device is ", device, ", there is only device 0");
}

unsigned long long attribute(const CUmemPoolHandle_st& p, cudaMemPoolAttr attr) {
  switch (attr) {
    case cudaMemPoolAttrReleaseThreshold:
      return p.threshold;
    case cudaMemPoolAttrReservedMemCurrent:
    case cudaMemPoolAttrUsedMemCurrent:
      return p.used;
    case cudaMemPoolAttrReservedMemHigh:
    case cudaMemPoolAttrUsedMemHigh:
      return p.most;
    default:
      fail(cudaErrorInvalidValue, "attr is ", static_cast<int>(attr), ", allowed are 1 to 8");
  }
}

// Memory may be used again as soon as it is freed, so that the ways of doing so (1 to 3) have no meaning.
bool is_way_of_reuse(cudaMemPoolAttr attr) { return static_cast<int>(attr) >= 1 && static_cast<int>(attr) <= 3; }

}  // namespace

void returned(CUmemPoolHandle_st* pool, size_t bytes) {
  if (CUmemPoolHandle_st::alive(pool)) pool->used -= bytes;  // memory may outlive its pool
}

}  // namespace cudart

using namespace cudart;

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  return answer("cudaMallocAsync",
                [&] { given(pointer, "devPtr") = allocate_from(*current_pool().load(), size, stream); });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return answer("cudaMallocFromPoolAsync",
                [&] { given(pointer, "ptr") = allocate_from(CUmemPoolHandle_st::at(pool), size, stream); });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return answer("cudaFreeAsync", [&] {
    CUstream_st& s = find_stream(stream);
    if (s.capture) {
      record(s, MemFree{pointer});
      return;
    }
    free_device(pointer);
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  return answer("cudaMemPoolCreate", [&] {
    given(props, "poolProps");
    given(pool, "memPool") = new CUmemPoolHandle_st;
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return answer("cudaMemPoolDestroy", [&] {
    CUmemPoolHandle_st& p = CUmemPoolHandle_st::at(pool);
    demand(&p != &default_pool(), cudaErrorInvalidValue, "the device's default pool cannot be destroyed");
    if (current_pool() == &p) current_pool() = &default_pool();
    delete &p;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return answer("cudaMemPoolTrimTo", [&] { CUmemPoolHandle_st::at(pool); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value) {
  return answer("cudaMemPoolGetAttribute", [&] {
    const CUmemPoolHandle_st& p = CUmemPoolHandle_st::at(pool);
    if (is_way_of_reuse(attr))
      given(static_cast<int*>(value), "value") = 1;
    else
      given(static_cast<unsigned long long*>(value), "value") = attribute(p, attr);
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value) {
  return answer("cudaMemPoolSetAttribute", [&] {
    CUmemPoolHandle_st& p = CUmemPoolHandle_st::at(pool);
    given(static_cast<int*>(value), "value");
    if (is_way_of_reuse(attr)) return;
    attribute(p, attr);  // refuses what there is not
    if (attr == cudaMemPoolAttrReleaseThreshold) p.threshold = *static_cast<unsigned long long*>(value);
    if (attr == cudaMemPoolAttrUsedMemHigh || attr == cudaMemPoolAttrReservedMemHigh) p.most = p.used.load();
  });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*, size_t) {
  return answer("cudaMemPoolSetAccess", [&] { CUmemPoolHandle_st::at(pool); });
}

cudaError_t cudaMemPoolGetAccess(int* flags, cudaMemPool_t pool, cudaMemLocation*) {
  return answer("cudaMemPoolGetAccess", [&] {
    constexpr int kReadWrite = 3;
    CUmemPoolHandle_st::at(pool);
    given(flags, "flags") = kReadWrite;
  });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return answer("cudaDeviceGetDefaultMemPool", [&] {
    check_device(device);
    given(pool, "memPool") = &default_pool();
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return answer("cudaDeviceGetMemPool", [&] {
    check_device(device);
    given(pool, "memPool") = current_pool();
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return answer("cudaDeviceSetMemPool", [&] {
    check_device(device);
    current_pool() = &CUmemPoolHandle_st::at(pool);
  });
}
