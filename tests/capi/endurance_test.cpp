// SPDX-License-Identifier: Apache-2.0
// Programs that run for long: what is created and destroyed leaves nothing behind, and caches stay within their limits
// when no two calls are alike. (The address sanitizer counts memory in its own way: there, leaks are found at the end.)
#include <malloc.h>

#include "backend_client.hpp"

namespace {

using namespace client;

#ifdef __SANITIZE_ADDRESS__
constexpr int kMany = 500, kShapes = 3000;
#else
constexpr int kMany = 10000, kShapes = 50000;
#endif
constexpr size_t kMega = 1 << 20;

size_t allocated() {
  struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

// Bytes by which n rounds grow the memory, after as many as caches may take to fill.
template <class F>
size_t growth(int warm, int n, const F& f) {
  for (int i = 0; i < warm; ++i) f(i);
  size_t before = allocated();
  for (int i = warm; i < n; ++i) f(i);
  size_t after = allocated();
  return after > before ? after - before : 0;
}

template <class D>
void make_and_drop(cudnnStatus_t (*create)(D*), cudnnStatus_t (*destroy)(D)) {
  D d = nullptr;
  ASSERT_OK(create(&d));
  ASSERT_OK(destroy(d));
}

TEST(Endurance, HandlesLeaveNothing) {
  EXPECT_LT(growth(100, kMany, [](int) { make_and_drop(cudnnCreate, cudnnDestroy); }), kMega / 4);
}

TEST(Endurance, DescriptorsLeaveNothing) {
  auto all = [](int) {
    make_and_drop(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
    make_and_drop(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor);
    make_and_drop(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor);
    make_and_drop(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor);
    make_and_drop(cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor);
    make_and_drop(cudnnCreateLRNDescriptor, cudnnDestroyLRNDescriptor);
    make_and_drop(cudnnCreateReduceTensorDescriptor, cudnnDestroyReduceTensorDescriptor);
    make_and_drop(cudnnCreateOpTensorDescriptor, cudnnDestroyOpTensorDescriptor);
    make_and_drop(cudnnCreateTensorTransformDescriptor, cudnnDestroyTensorTransformDescriptor);
    make_and_drop(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor);
    make_and_drop(cudnnCreateSpatialTransformerDescriptor, cudnnDestroySpatialTransformerDescriptor);
    make_and_drop(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor);
    make_and_drop(cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor);
    make_and_drop(cudnnCreateSeqDataDescriptor, cudnnDestroySeqDataDescriptor);
    make_and_drop(cudnnCreateAttnDescriptor, cudnnDestroyAttnDescriptor);
    make_and_drop(cudnnCreateCTCLossDescriptor, cudnnDestroyCTCLossDescriptor);
    for (int type = 0; type < 51; ++type) {
      cudnnBackendDescriptor_t d = nullptr;
      cudnnBackendCreateDescriptor(static_cast<cudnnBackendDescriptorType_t>(type), &d);  // some cannot be created
      if (d) cudnnBackendDestroyDescriptor(d);
    }
  };
  EXPECT_LT(growth(100, kMany, all), kMega / 4);
}

// Tensors that name each other as their offsets would otherwise keep each other alive.
TEST(Endurance, DescriptorsThatHoldEachOtherLeaveNothing) {
  auto circle = [](int) {
    Part a(CUDNN_BACKEND_TENSOR_DESCRIPTOR), b(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    EXPECT_OK(a.set_part(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, b));
    EXPECT_OK(b.set_part(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, a));
  };
  EXPECT_LT(growth(100, kMany, circle), kMega / 4);
}

class Shapes {
 public:
  // No two are alike.
  cudnnStatus_t activate(int i) {
    EXPECT_OK(cudnnSetTensor4dDescriptor(t_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1 + i % 40, 1 + i / 40 % 40,
                                         1 + i / 1600));
    return cudnnActivationForward(h_, relu_, &one_, t_, x_.data(), &zero_, t_, y_.data());
  }
  // By way of a plan of its own.
  cudnnStatus_t run_plan(int i) {
    Ints dims = {1 + i % 40, 1 + i / 40 % 40, 1 + i / 1600};
    Part x = tensor(1, CUDNN_DATA_FLOAT, dims), y = tensor(2, CUDNN_DATA_FLOAT, dims);
    Part graph = operation_graph(h_, {pointwise(CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, x, nullptr, y)});
    Part engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR), config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    EXPECT_OK(engine.set_part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph));
    EXPECT_OK(engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, int64_t{0}));
    EXPECT_OK(engine.finalize());
    EXPECT_OK(config.set_part(CUDNN_ATTR_ENGINECFG_ENGINE, engine));
    EXPECT_OK(config.finalize());
    return execute(h_, plan_of(config), {{1, x_.data()}, {2, y_.data()}});
  }

 private:
  Handle h_;
  Descriptor<cudnnTensorDescriptor_t> t_{cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor};
  Descriptor<cudnnActivationDescriptor_t> relu_{cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor};
  Memory x_{40 * 40 * 40 * sizeof(float)}, y_{40 * 40 * 40 * sizeof(float)};
  float one_ = 1, zero_ = 0;

 public:
  Shapes() { EXPECT_OK(cudnnSetActivationDescriptor(relu_, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0)); }
};

TEST(Endurance, PlansLeaveNothing) {
  Shapes s;
  EXPECT_LT(growth(100, kMany, [&](int) { ASSERT_OK(s.run_plan(7)); }), kMega / 4);
}

// The first thousands fill the cache; from then on what is kept makes room for what comes.
TEST(Endurance, CachesStayWithinTheirLimits) {
  Shapes s;
  size_t before = allocated();
  EXPECT_LT(growth(kShapes / 10, kShapes, [&](int i) { ASSERT_OK(s.activate(i)); }), 4 * kMega);
  EXPECT_LT(growth(kShapes / 10, kShapes, [&](int i) { ASSERT_OK(s.run_plan(i)); }), 4 * kMega);
  EXPECT_LT(allocated(), before + 2 * 64 * kMega);  // TESSERA_PLAN_CACHE_MB, of the handle and of the process
}

}  // namespace
