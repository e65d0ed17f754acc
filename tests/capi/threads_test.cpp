// SPDX-License-Identifier: Apache-2.0
// Programs with several threads: each with a handle of its own, as the interface asks for, and all with one, as some
// programs do. The thread sanitizer runs these tests.
#include <thread>

#include "backend_client.hpp"

namespace {

using namespace client;

constexpr int kThreads = 4, kRounds = 12;

template <class F>
void on_threads(const F& f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&f, i] { f(i); });
  for (std::thread& t : threads) t.join();
}

// Operands and results of a thread, and the calls that it makes with them.
class Work {
 public:
  explicit Work(int n) : x_(CUDNN_DATA_FLOAT, {2, 3, n, 4}), y_(CUDNN_DATA_FLOAT, {2, 3, n, 4}), dims_({2, 3, n, 4}) {
    x_.random(n);
    EXPECT_OK(cudnnSetActivationDescriptor(relu_, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  }
  void activate(cudnnHandle_t h) {
    float one = 1, zero = 0;
    EXPECT_OK(cudnnActivationForward(h, relu_, &one, x_, x_.data(), &zero, y_, y_.data()));
    expect_relu();
  }
  // The caller's memory is the handle's here, which threads must not share.
  void soften(cudnnHandle_t h) {
    float one = 1, zero = 0;
    EXPECT_OK(cudnnSoftmaxForward(h, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x_, x_.data(), &zero, y_,
                                  y_.data()));
    double sum = 0;
    for (double v : y_.values()) sum += v;
    EXPECT_NEAR(sum, static_cast<double>(2 * dims_[2] * 4), 1e-3);
  }
  Part plan(cudnnHandle_t h) {
    Part x = tensor(1, CUDNN_DATA_FLOAT, dims_), y = tensor(2, CUDNN_DATA_FLOAT, dims_);
    return best_plan(operation_graph(h, {pointwise(CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, x, nullptr, y)}));
  }
  void run(cudnnHandle_t h, const Part& plan) {
    EXPECT_OK(execute(h, plan, {{1, x_.data()}, {2, y_.data()}}));
    expect_relu();
  }

 private:
  void expect_relu() {
    Values got = y_.values(), x = x_.values();
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(std::max(0.0, x[i]), got[i]);
  }
  Descriptor<cudnnActivationDescriptor_t> relu_{cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor};
  Tensor x_, y_;
  Ints dims_;
};

TEST(CapiThreads, HaveHandlesOfTheirOwn) {
  on_threads([](int thread) {
    for (int i = 0; i < kRounds; ++i) {
      Handle h;
      Work w(1 + (i + thread) % 5);
      w.activate(h);
      w.soften(h);
      w.run(h, w.plan(h));
    }
  });
}

TEST(CapiThreads, ShareAHandle) {
  Handle h;
  on_threads([&](int thread) {
    for (int i = 0; i < kRounds; ++i) {
      Work w(1 + (i + thread) % 5);
      w.activate(h);
      w.run(h, w.plan(h));
    }
  });
}

TEST(CapiThreads, ShareAPlan) {
  Handle h;
  Part plan = Work(3).plan(h);
  on_threads([&](int) {
    Handle own;
    for (int i = 0; i < kRounds; ++i) Work(3).run(own, plan);
  });
}

TEST(CapiThreads, HaveErrorsOfTheirOwn) {
  on_threads([](int thread) {
    for (int i = 0; i < kRounds; ++i) {
      EXPECT_TRUE(is_bad_param(thread % 2 ? cudnnBackendFinalize(nullptr) : cudnnSetStream(nullptr, nullptr)));
      std::string text = last_error();
      EXPECT_NE(std::string::npos, text.find(thread % 2 ? "cudnnBackendFinalize" : "cudnnSetStream")) << text;
    }
  });
}

}  // namespace
