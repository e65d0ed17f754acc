// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "runtime.hpp"

namespace {

using namespace cudart_test;
using Floats = std::vector<float>;

TEST(Memory, IsAlignedAndOfAnySize) {
  void* p = &p;
  ASSERT_CUDA(cudaMalloc(&p, 0));
  EXPECT_EQ(p, nullptr);
  EXPECT_CUDA(cudaFree(p));
  for (size_t bytes : {1, 3, 256, 100001}) {
    ASSERT_CUDA(cudaMalloc(&p, bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 256, 0U);
    EXPECT_CUDA(cudaMemset(p, 1, bytes));
    EXPECT_CUDA(cudaFree(p));
  }
}

TEST(Memory, TellsOurLibrariesHowMuchThereIs) {
  char* p = nullptr;
  size_t bytes = 7;
  EXPECT_LE(tesseraRoom(&bytes, &bytes), 0);  // 0 where other tests have memory
  ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&p), 100));
  EXPECT_EQ(tesseraRoom(p + 40, &bytes), 1);
  EXPECT_EQ(bytes, 60U);
  EXPECT_EQ(tesseraRoom(p + 100, &bytes), 0);
  EXPECT_EQ(tesseraRoom(&bytes, &bytes), 0);
  EXPECT_CUDA(cudaFree(p));
  EXPECT_LE(tesseraRoom(p, &bytes), 0);
}

TEST(Memory, MoreThanTheMachineHasIsRefused) {
  void* p = nullptr;
  std::string text = said([&] { EXPECT_EQ(cudaMalloc(&p, size_t{1} << 60), cudaErrorMemoryAllocation); });
  EXPECT_NE(text.find("cudaMalloc: 1152921504606846976 bytes are more than"), std::string::npos) << text;
  EXPECT_EQ(p, nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Memory, FreeingWhatIsNotOursIsRefusedByName) {
  int here = 0;
  std::string text = said([&] { EXPECT_EQ(cudaFree(&here), cudaErrorInvalidValue); });
  std::ostringstream address;
  address << static_cast<void*>(&here);
  EXPECT_NE(text.find(address.str()), std::string::npos) << text;
  void* p = nullptr;
  ASSERT_CUDA(cudaMalloc(&p, 16));
  ASSERT_CUDA(cudaFree(p));
  text = said([&] { EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue); });
  EXPECT_NE(text.find("was freed before"), std::string::npos) << text;
  ASSERT_CUDA(cudaMallocHost(&p, 16));
  said([&] { EXPECT_EQ(cudaFree(p), cudaErrorInvalidValue); });
  EXPECT_CUDA(cudaFreeHost(p));
  said([&] { EXPECT_EQ(cudaFreeHost(p), cudaErrorInvalidValue); });
  EXPECT_CUDA(cudaFree(nullptr));
  EXPECT_CUDA(cudaFreeHost(nullptr));
  cudaGetLastError();
}

TEST(Memory, PointersSayWhatTheyAre) {
  cudaPointerAttributes a;
  float here[4];
  void *device = nullptr, *host = nullptr, *managed = nullptr;
  ASSERT_CUDA(cudaMalloc(&device, 64));
  ASSERT_CUDA(cudaHostAlloc(&host, 64, 2));
  ASSERT_CUDA(cudaMallocManaged(&managed, 64, 1));
  ASSERT_CUDA(cudaPointerGetAttributes(&a, static_cast<char*>(device) + 63));
  EXPECT_EQ(a.type, cudaMemoryTypeDevice);
  EXPECT_EQ(a.device, 0);
  EXPECT_EQ(a.devicePointer, static_cast<char*>(device) + 63);
  EXPECT_EQ(a.hostPointer, nullptr);
  ASSERT_CUDA(cudaPointerGetAttributes(&a, host));
  EXPECT_EQ(a.type, cudaMemoryTypeHost);
  EXPECT_EQ(a.hostPointer, host);
  ASSERT_CUDA(cudaPointerGetAttributes(&a, managed));
  EXPECT_EQ(a.type, cudaMemoryTypeManaged);
  ASSERT_CUDA(cudaPointerGetAttributes(&a, here));
  EXPECT_EQ(a.type, cudaMemoryTypeUnregistered);
  unsigned flags = 0;
  EXPECT_CUDA(cudaHostGetFlags(&flags, host));
  EXPECT_EQ(flags, 2U);
  ASSERT_CUDA(cudaHostRegister(here, sizeof here, 0));
  said([&] { EXPECT_EQ(cudaHostRegister(here, sizeof here, 0), cudaErrorHostMemoryAlreadyRegistered); });
  ASSERT_CUDA(cudaPointerGetAttributes(&a, here));
  EXPECT_EQ(a.type, cudaMemoryTypeHost);
  void* mapped = nullptr;
  EXPECT_CUDA(cudaHostGetDevicePointer(&mapped, here, 0));
  EXPECT_EQ(mapped, here);
  EXPECT_CUDA(cudaHostUnregister(here));
  said([&] { EXPECT_EQ(cudaHostUnregister(here), cudaErrorHostMemoryNotRegistered); });
  EXPECT_CUDA(cudaFree(device));
  EXPECT_CUDA(cudaFreeHost(host));
  EXPECT_CUDA(cudaFree(managed));
  cudaGetLastError();
}

TEST(Memory, CopiesAndFills) {
  Array<float> a({1, 2, 3, 4}), b({0, 0, 0, 0});
  ASSERT_CUDA(cudaMemcpy(b.get(), a.get(), 12, cudaMemcpyDeviceToDevice));
  EXPECT_EQ(b.values(), (Floats{1, 2, 3, 0}));
  ASSERT_CUDA(cudaMemcpyAsync(a.get() + 1, a.get(), 12, cudaMemcpyDefault, nullptr));  // ranges that overlap
  EXPECT_EQ(a.values(), (Floats{1, 1, 2, 3}));
  ASSERT_CUDA(cudaMemset(a.get() + 1, 0, 8));
  EXPECT_EQ(a.values(), (Floats{1, 0, 0, 3}));
  ASSERT_CUDA(cudaMemcpyPeer(a.get(), 0, b.get(), 0, 4));
  EXPECT_CUDA(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
}

TEST(Memory, CopiesOfRowsAndSlices) {
  std::vector<int> wide(3 * 4 * 5);
  std::iota(wide.begin(), wide.end(), 0);
  Array<int> from(wide), to(std::vector<int>(2 * 2 * 2, -1));
  ASSERT_CUDA(cudaMemcpy2D(to.get(), 8, from.get() + 1, 20, 8, 4, cudaMemcpyDeviceToDevice));
  EXPECT_EQ(to.values(), (std::vector<int>{1, 2, 6, 7, 11, 12, 16, 17}));
  cudaMemcpy3DParms p{};
  p.srcPtr = {from.get(), 20, 5, 4}, p.srcPos = {4, 1, 1};
  p.dstPtr = {to.get(), 8, 2, 2};
  p.extent = {8, 2, 2};
  p.kind = cudaMemcpyDeviceToDevice;
  ASSERT_CUDA(cudaMemcpy3D(&p));
  EXPECT_EQ(to.values(), (std::vector<int>{26, 27, 31, 32, 46, 47, 51, 52}));
  cudaPitchedPtr pitched{};
  ASSERT_CUDA(cudaMalloc3D(&pitched, {10, 3, 2}));
  EXPECT_GE(pitched.pitch, 10U);
  ASSERT_CUDA(cudaMemset3D(pitched, 7, {10, 3, 2}));
  EXPECT_EQ(static_cast<char*>(pitched.ptr)[5 * pitched.pitch + 9], 7);
  EXPECT_CUDA(cudaFree(pitched.ptr));
  void* rows = nullptr;
  size_t pitch = 0;
  ASSERT_CUDA(cudaMallocPitch(&rows, &pitch, 100, 3));
  EXPECT_CUDA(cudaMemset2D(rows, pitch, 1, 100, 3));
  EXPECT_CUDA(cudaFree(rows));
}

TEST(Memory, WrongCopiesAreRefused) {
  Array<float> a({1, 2, 3, 4});
  float out[8];
  std::string text = said([&] {
    EXPECT_EQ(cudaMemcpy(out, a.get() + 1, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemset(a.get(), 0, 17), cudaErrorInvalidValue);
  });
  EXPECT_NE(text.find("16 bytes, but the memory has 12 from there (16 in all)"), std::string::npos) << text;
  said([&] {
    EXPECT_EQ(cudaMemcpy(out, a.get(), 4, static_cast<cudaMemcpyKind>(9)), cudaErrorInvalidMemcpyDirection);
    EXPECT_EQ(cudaMemcpy(nullptr, a.get(), 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemcpy2D(out, 4, a.get(), 4, 8, 2, cudaMemcpyDefault), cudaErrorInvalidPitchValue);
    EXPECT_EQ(cudaMemcpyPeer(out, 1, a.get(), 0, 4), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaMemcpy3D(nullptr), cudaErrorInvalidValue);
  });
  EXPECT_EQ(a.values(), (Floats{1, 2, 3, 4}));
  cudaGetLastError();
}

TEST(Memory, ThreadsWorkSideBySide) {
  auto work = [](int seed) {
    cudaStream_t s = new_stream();
    for (int i = 0; i < 200; ++i) {
      Array<int> a({seed, i}), b({0, 0});
      EXPECT_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
      EXPECT_CUDA(cudaMemcpyAsync(b.get(), a.get(), a.bytes(), cudaMemcpyDeviceToDevice, s));
      cudaGraph_t g = nullptr;
      cudaGraphExec_t e = nullptr;
      EXPECT_CUDA(cudaStreamEndCapture(s, &g));
      EXPECT_CUDA(cudaGraphInstantiate(&e, g, 0));
      EXPECT_CUDA(cudaGraphLaunch(e, s));
      EXPECT_EQ(b.values(), (std::vector<int>{seed, i}));
      EXPECT_CUDA(cudaGraphExecDestroy(e));
      EXPECT_CUDA(cudaGraphDestroy(g));
    }
    EXPECT_CUDA(cudaStreamDestroy(s));
  };
  std::vector<std::thread> threads;
  for (int seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& t : threads) t.join();
}

TEST(Memory, PoolsCountWhatIsInUse) {
  cudaMemPool_t pool = nullptr, standard = nullptr;
  cudaMemPoolProps props{};
  ASSERT_CUDA(cudaMemPoolCreate(&pool, &props));
  cudaStream_t s = new_stream();
  void *p = nullptr, *q = nullptr;
  ASSERT_CUDA(cudaMallocFromPoolAsync(&p, 1000, pool, s));
  ASSERT_CUDA(cudaMallocAsync(&q, 1000, s));
  unsigned long long used = 0;
  ASSERT_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  EXPECT_EQ(used, 1000U);
  ASSERT_CUDA(cudaFreeAsync(p, s));
  ASSERT_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  EXPECT_EQ(used, 0U);
  ASSERT_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &used));
  EXPECT_EQ(used, 1000U);
  ASSERT_CUDA(cudaDeviceGetMemPool(&standard, 0));
  ASSERT_CUDA(cudaMemPoolGetAttribute(standard, cudaMemPoolAttrUsedMemCurrent, &used));
  EXPECT_EQ(used, 1000U);
  EXPECT_CUDA(cudaFree(q));
  ASSERT_CUDA(cudaMemPoolGetAttribute(standard, cudaMemPoolAttrUsedMemCurrent, &used));
  EXPECT_EQ(used, 0U);
  EXPECT_CUDA(cudaMemPoolTrimTo(pool, 0));
  EXPECT_CUDA(cudaMemPoolDestroy(pool));
  ASSERT_CUDA(cudaDeviceGetDefaultMemPool(&standard, 0));
  said([&] {
    EXPECT_EQ(cudaMemPoolDestroy(standard), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemPoolTrimTo(pool, 0), cudaErrorInvalidResourceHandle);
  });
  EXPECT_CUDA(cudaStreamDestroy(s));
  cudaGetLastError();
}

}  // namespace
