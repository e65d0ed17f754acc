// SPDX-License-Identifier: Apache-2.0
// The device, errors, streams and events, and device code.
#include <cstring>
#include <thread>

#include "runtime.hpp"

namespace {

using namespace cudart_test;

TEST(Device, IsAProcessorAndSaysSo) {
  int count = 0, device = -1, value = 0, version = 0;
  ASSERT_CUDA(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 1);
  ASSERT_CUDA(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
  EXPECT_CUDA(cudaSetDevice(0));
  said([&] { EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice); });
  cudaDeviceProp p;
#if TESSERA_CUDART == 12
  ASSERT_CUDA(cudaGetDeviceProperties_v2(&p, 0));
#else
  ASSERT_CUDA(cudaGetDeviceProperties(&p, 0));
#endif
  EXPECT_EQ(std::string(p.name).rfind("Tessera CPU (host stand-in): ", 0), 0U) << p.name;
  EXPECT_EQ(p.major, 9);
  EXPECT_EQ(p.minor, 0);
  EXPECT_GT(p.totalGlobalMem, size_t{1} << 20);
  ASSERT_CUDA(cudaDeviceGetAttribute(&value, 75, 0));
  EXPECT_EQ(value, p.major);
  ASSERT_CUDA(cudaDeviceGetAttribute(&value, 16, 0));
  EXPECT_EQ(value, p.multiProcessorCount);
  said([&] { EXPECT_EQ(cudaDeviceGetAttribute(&value, 0, 0), cudaErrorInvalidValue); });
  ASSERT_CUDA(cudaRuntimeGetVersion(&version));
  EXPECT_EQ(version / 1000, TESSERA_CUDART);
  size_t free = 0, total = 0;
  ASSERT_CUDA(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(total, p.totalGlobalMem);
  EXPECT_LE(free, total);
  cudaGetLastError();
}

TEST(Device, HasNoDriverBehindIt) {
  auto* function = reinterpret_cast<void*>(1);
  auto status = cudaDriverEntryPointSuccess;
  EXPECT_CUDA(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &function, 12000, 0, &status));
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(cudaGetDriverEntryPoint("cuInit", &function, 0, nullptr), cudaErrorSymbolNotFound);
  cudaGetLastError();
}

TEST(Errors, HaveNamesAndBelongToThreads) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorNotSupported), "cudaErrorNotSupported");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code");
  said([&] { EXPECT_EQ(cudaSetDevice(7), cudaErrorInvalidDevice); });
  std::thread([] { EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

TEST(Streams, AreIdleAndTheirHandlesChecked) {
  cudaStream_t s = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithPriority(&s, 1, -1));
  unsigned flags = 0;
  int priority = 0;
  EXPECT_CUDA(cudaStreamGetFlags(s, &flags));
  EXPECT_CUDA(cudaStreamGetPriority(s, &priority));
  EXPECT_EQ(flags, 1U);
  EXPECT_EQ(priority, -1);
  EXPECT_CUDA(cudaStreamQuery(s));
  EXPECT_CUDA(cudaStreamSynchronize(s));
  EXPECT_CUDA(cudaStreamSynchronize(nullptr));
  EXPECT_CUDA(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(2)));
  int calls = 0;
  EXPECT_CUDA(cudaLaunchHostFunc(
      s, [](void* n) { ++*static_cast<int*>(n); }, &calls));
  EXPECT_CUDA(cudaStreamAddCallback(
      s, [](cudaStream_t, cudaError_t, void* n) { ++*static_cast<int*>(n); }, &calls, 0));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(tesseraOwns(s), 1);
  EXPECT_CUDA(cudaStreamDestroy(s));
  EXPECT_EQ(tesseraOwns(s), 0);
  std::string text = said([&] { EXPECT_EQ(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle); });
  EXPECT_NE(text.find("is no stream of this runtime"), std::string::npos) << text;
  said([&] { EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle); });
  cudaGetLastError();
}

TEST(Events, HaveHappenedWhenRecorded) {
  cudaEvent_t a = nullptr, b = nullptr, untimed = nullptr;
  ASSERT_CUDA(cudaEventCreate(&a));
  ASSERT_CUDA(cudaEventCreate(&b));
  ASSERT_CUDA(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  float ms = -1;
  said([&] { EXPECT_EQ(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle); });
  ASSERT_CUDA(cudaEventRecord(a, nullptr));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_CUDA(cudaEventRecord(b, nullptr));
  EXPECT_CUDA(cudaEventQuery(b));
  EXPECT_CUDA(cudaEventSynchronize(b));
  EXPECT_CUDA(cudaStreamWaitEvent(nullptr, b, 0));
  ASSERT_CUDA(cudaEventElapsedTime(&ms, a, b));
  EXPECT_GE(ms, 4.5F);
  EXPECT_LT(ms, 5000.F);
  ASSERT_CUDA(cudaEventRecord(untimed, nullptr));
  said([&] { EXPECT_EQ(cudaEventElapsedTime(&ms, a, untimed), cudaErrorInvalidResourceHandle); });
  for (cudaEvent_t e : {a, b, untimed}) EXPECT_CUDA(cudaEventDestroy(e));
  said([&] { EXPECT_EQ(cudaEventQuery(a), cudaErrorInvalidResourceHandle); });
  cudaGetLastError();
}

TEST(Modules, RegisterAndTheirKernelsAreRefusedOnce) {
  char binary = 0, kernel = 0, variable = 0, name[] = "scale_kernel";
  void** handle = __cudaRegisterFatBinary(&binary);
  ASSERT_NE(handle, nullptr);
  __cudaRegisterFunction(handle, &kernel, name, name, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
  __cudaRegisterVar(handle, &variable, name, name, 0, 1, 0, 0);
  void* managed = nullptr;
  std::string text = said([&] { __cudaRegisterManagedVar(handle, &managed, name, "weights", 0, 16, 0, 0); });
  EXPECT_NE(text.find("weights starts as zeros"), std::string::npos) << text;
  ASSERT_NE(managed, nullptr);
  EXPECT_EQ(static_cast<int*>(managed)[3], 0);
  __cudaRegisterFatBinaryEnd(handle);
  ASSERT_EQ(__cudaPushCallConfiguration({7, 1, 1}, {32, 1, 1}, 64, nullptr), 0U);
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
  EXPECT_EQ(grid.x, 7U);
  EXPECT_EQ(shared, 64U);
  auto launch = [&] { EXPECT_EQ(cudaLaunchKernel(&kernel, grid, block, nullptr, 0, stream), cudaErrorNotSupported); };
  text = said(launch);
  EXPECT_NE(text.find("kernel scale_kernel does not run"), std::string::npos) << text;
  EXPECT_NE(text.find("host stand-in"), std::string::npos) << text;
  EXPECT_EQ(said(launch), "");
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotSupported);
  const char* found = nullptr;
  ASSERT_CUDA(cudaFuncGetName(&found, &kernel));
  EXPECT_STREQ(found, "scale_kernel");
  cudaFuncAttributes attributes;
  EXPECT_CUDA(cudaFuncGetAttributes(&attributes, &kernel));
  EXPECT_EQ(attributes.maxThreadsPerBlock, 1024);
  int blocks = 0;
  EXPECT_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &kernel, 256, 0));
  EXPECT_EQ(blocks, 8);
  __cudaUnregisterFatBinary(handle);
}

}  // namespace
