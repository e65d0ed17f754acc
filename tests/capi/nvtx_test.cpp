// SPDX-License-Identifier: Apache-2.0
// Ranges that a profiler sees. It must be there when the program starts: ctest's `capi_nvtx` names one that counts.
#include <dlfcn.h>

#include <cstdlib>

#include "backend_client.hpp"

using namespace client;

namespace {

class Profiler {
 public:
  explicit Profiler(const char* path) : file_(dlopen(path, RTLD_NOW | RTLD_NOLOAD)) {}
  bool loaded() const { return file_ != nullptr; }
  int opened(const char* name) const { return find<int (*)(const char*)>("profiler_opened")(name); }
  int open() const { return find<int (*)()>("profiler_open")(); }

 private:
  template <class F>
  F find(const char* name) const {
    return reinterpret_cast<F>(dlsym(file_, name));
  }
  void* file_;
};

}  // namespace

TEST(Nvtx, CallsPlanningAndExecutionAreRanges) {
  const char* path = std::getenv("NVTX_INJECTION64_PATH");
  if (!path) GTEST_SKIP() << "no profiler is attached";
  Handle handle;
  Profiler p(path);
  ASSERT_TRUE(p.loaded()) << "the library did not load its profiler";
  int planned = p.opened("plan"), executed = p.opened("execute");

  Tensor x(CUDNN_DATA_FLOAT, {1, 2, 3, 5}), y(CUDNN_DATA_FLOAT, {1, 2, 3, 5});
  float one = 1, zero = 0;
  for (int i = 0; i < 2; ++i)
    ASSERT_OK(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x, x.data(), &zero,
                                  y, y.data()));
  EXPECT_EQ(p.opened("cudnnSoftmaxForward"), 2);
  EXPECT_EQ(p.opened("plan"), planned + 1);
  EXPECT_EQ(p.opened("execute"), executed + 2);

  Part graph = operation_graph(
      handle, {pointwise(CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, tensor(1, CUDNN_DATA_FLOAT, {1, 2, 3, 5}), nullptr,
                         tensor(2, CUDNN_DATA_FLOAT, {1, 2, 3, 5}))});
  ASSERT_OK(execute(handle, best_plan(graph), {{1, x.data()}, {2, y.data()}}));
  EXPECT_EQ(p.opened("cudnnBackendExecute"), 1);
  EXPECT_EQ(p.opened("execute"), executed + 3);

  EXPECT_TRUE(is_bad_param(cudnnBackendExecute(nullptr, nullptr, nullptr)));  // what is refused ends its range too
  EXPECT_EQ(p.opened("cudnnBackendExecute"), 2);
  EXPECT_EQ(p.open(), 0);
}
