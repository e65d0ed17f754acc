// SPDX-License-Identifier: Apache-2.0
#include "convolution_reference.hpp"

using namespace client;

namespace {

struct Case {
  ConvSpec spec{{1, 1}, {1, 1}, {1, 1}};
  Tensor x{CUDNN_DATA_FLOAT, {2, 8, 10, 9}}, y{CUDNN_DATA_FLOAT, {2, 6, 10, 9}};
  Filter w{CUDNN_DATA_FLOAT, {6, 8, 3, 3}};
  ConvDescriptor conv{spec};
  Handle h;
  Case() { x.random(1), w.random(2), y.random(3); }
};

// Those that work come first, by time; memory is what the workspace query says. No algorithm is there twice.
template <class Perf, class Query>
void expect_ranking(const std::vector<Perf>& results, int count, const Query& query) {
  ASSERT_LE(static_cast<size_t>(count), results.size());
  ASSERT_GE(count, 1);
  EXPECT_EQ(results[0].status, CUDNN_STATUS_SUCCESS);
  int working = 0;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const Perf& r = results[i];
    for (size_t before = 0; before < i; ++before) EXPECT_NE(results[before].algo, r.algo);
    size_t bytes = 12345;
    EXPECT_OK(query(r.algo, &bytes));
    EXPECT_NE(bytes, 12345u);
    if (r.status == CUDNN_STATUS_SUCCESS) {
      ++working;
      EXPECT_GE(r.time, 0);
      if (i > 0) {
        EXPECT_EQ(results[i - 1].status, CUDNN_STATUS_SUCCESS);
        EXPECT_LE(results[i - 1].time, r.time);
      }
      EXPECT_EQ(bytes, r.memory);
    } else {
      EXPECT_TRUE(is_not_supported(r.status));
    }
  }
  EXPECT_GE(working, 1);
}

TEST(ConvolutionAlgorithms, forward) {
  Case c;
  int count = 0;
  ASSERT_OK(cudnnGetConvolutionForwardAlgorithmMaxCount(c.h, &count));
  EXPECT_EQ(count, CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  auto query = [&](cudnnConvolutionFwdAlgo_t algo, size_t* bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(c.h, c.x, c.w, c.conv, c.y, algo, bytes);
  };
  std::vector<cudnnConvolutionFwdAlgoPerf_t> results(static_cast<size_t>(count));
  int returned = 0;
  ASSERT_OK(cudnnGetConvolutionForwardAlgorithm_v7(c.h, c.x, c.w, c.conv, c.y, count, &returned, results.data()));
  expect_ranking(results, returned, query);
  ASSERT_OK(cudnnFindConvolutionForwardAlgorithm(c.h, c.x, c.w, c.conv, c.y, count, &returned, results.data()));
  expect_ranking(results, returned, query);
  Memory workspace(1 << 23);
  ASSERT_OK(cudnnFindConvolutionForwardAlgorithmEx(c.h, c.x, c.x.data(), c.w, c.w.data(), c.conv, c.y, c.y.data(),
                                                   count, &returned, results.data(), workspace.data(),
                                                   workspace.size()));
  expect_ranking(results, returned, query);
  results.resize(static_cast<size_t>(returned)), count = returned;
  Values want = forward_of(c.spec, c.x, c.w.values(), c.y);
  for (const auto& r : results) {
    if (r.status != CUDNN_STATUS_SUCCESS) continue;
    float one = 1, zero = 0;
    c.y.fill(7);
    EXPECT_OK(cudnnConvolutionForward(c.h, &one, c.x, c.x.data(), c.w, c.w.data(), c.conv, r.algo, workspace.data(),
                                      r.memory, &zero, c.y, c.y.data()));
    expect_values(c.y, want, 64);
    if (r.memory > 0) {
      EXPECT_TRUE(is_bad_param(cudnnConvolutionForward(c.h, &one, c.x, c.x.data(), c.w, c.w.data(), c.conv, r.algo,
                                                       workspace.data(), r.memory - 1, &zero, c.y, c.y.data())));
    }
  }
  // Without workspace some must still work, and the others say what is missing.
  ASSERT_OK(cudnnFindConvolutionForwardAlgorithmEx(c.h, c.x, c.x.data(), c.w, c.w.data(), c.conv, c.y, c.y.data(),
                                                   count, &returned, results.data(), nullptr, 0));
  EXPECT_EQ(results[0].status, CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(results[0].memory, 0u);
  for (const auto& r : results)
    if (r.memory > 0) {
      EXPECT_EQ(r.status, CUDNN_STATUS_ALLOC_FAILED);
    }
  // Fewer are asked for than there are.
  ASSERT_OK(cudnnGetConvolutionForwardAlgorithm_v7(c.h, c.x, c.w, c.conv, c.y, 1, &returned, results.data()));
  EXPECT_EQ(returned, 1);
}

TEST(ConvolutionAlgorithms, backward_data) {
  Case c;
  int count = 0, returned = 0;
  ASSERT_OK(cudnnGetConvolutionBackwardDataAlgorithmMaxCount(c.h, &count));
  EXPECT_EQ(count, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
  auto query = [&](cudnnConvolutionBwdDataAlgo_t algo, size_t* bytes) {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(c.h, c.w, c.y, c.conv, c.x, algo, bytes);
  };
  std::vector<cudnnConvolutionBwdDataAlgoPerf_t> results(static_cast<size_t>(count));
  ASSERT_OK(cudnnGetConvolutionBackwardDataAlgorithm_v7(c.h, c.w, c.y, c.conv, c.x, count, &returned, results.data()));
  expect_ranking(results, returned, query);
  ASSERT_OK(cudnnFindConvolutionBackwardDataAlgorithm(c.h, c.w, c.y, c.conv, c.x, count, &returned, results.data()));
  expect_ranking(results, returned, query);
  Memory workspace(1 << 23);
  ASSERT_OK(cudnnFindConvolutionBackwardDataAlgorithmEx(c.h, c.w, c.w.data(), c.y, c.y.data(), c.conv, c.x, c.x.data(),
                                                        count, &returned, results.data(), workspace.data(),
                                                        workspace.size()));
  expect_ranking(results, returned, query);
}

TEST(ConvolutionAlgorithms, backward_filter) {
  Case c;
  int count = 0, returned = 0;
  ASSERT_OK(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(c.h, &count));
  EXPECT_EQ(count, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);
  auto query = [&](cudnnConvolutionBwdFilterAlgo_t algo, size_t* bytes) {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(c.h, c.x, c.y, c.conv, c.w, algo, bytes);
  };
  std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> results(static_cast<size_t>(count));
  ASSERT_OK(
      cudnnGetConvolutionBackwardFilterAlgorithm_v7(c.h, c.x, c.y, c.conv, c.w, count, &returned, results.data()));
  expect_ranking(results, returned, query);
  ASSERT_OK(cudnnFindConvolutionBackwardFilterAlgorithm(c.h, c.x, c.y, c.conv, c.w, count, &returned, results.data()));
  expect_ranking(results, returned, query);
  Memory workspace(1 << 23);
  ASSERT_OK(cudnnFindConvolutionBackwardFilterAlgorithmEx(c.h, c.x, c.x.data(), c.y, c.y.data(), c.conv, c.w,
                                                          c.w.data(), count, &returned, results.data(),
                                                          workspace.data(), workspace.size()));
  expect_ranking(results, returned, query);
}

// Of these sizes transforms have stages of their own, which need memory between them.
TEST(ConvolutionAlgorithms, transforms_are_listed_once) {
  Case c;
  int returned = 0, found = 0;
  std::vector<cudnnConvolutionFwdAlgoPerf_t> results(CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  auto list = [&](const ConvDescriptor& conv, const Tensor& y) {
    EXPECT_OK(cudnnGetConvolutionForwardAlgorithm_v7(c.h, c.x, c.w, conv, y, CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
                                                     &returned, results.data()));
    return std::vector(results.begin(), results.begin() + returned);
  };
  auto is_transform = [](cudnnConvolutionFwdAlgo_t algo) {
    return algo == CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED || algo == CUDNN_CONVOLUTION_FWD_ALGO_FFT;
  };
  for (const auto& r : list(c.conv, c.y)) {
    EXPECT_NE(r.algo, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD);
    EXPECT_NE(r.algo, CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING);
    if (!is_transform(r.algo)) continue;
    ++found;
    EXPECT_OK(r.status);
    EXPECT_GT(r.memory, 0u);
  }
  EXPECT_EQ(found, 2);
  ConvSpec strided{{1, 1}, {2, 2}, {1, 1}};
  Tensor y(CUDNN_DATA_FLOAT, output_sizes(strided, c.x.dims(), {6, 8, 3, 3}));
  for (const auto& r : list(ConvDescriptor(strided), y))
    if (is_transform(r.algo)) {
      EXPECT_TRUE(is_not_supported(r.status));
    }
}

// Programs name algorithms without asking for lists: by transforms, directly, of dilated and flipped filters.
TEST(ConvolutionAlgorithms, all_can_be_named) {
  Handle h;
  float one = 1, zero = 0;
  for (ConvSpec spec : {ConvSpec{{1, 1}, {1, 1}, {1, 1}}, ConvSpec{{2, 0}, {2, 1}, {2, 1}, 1, CUDNN_CONVOLUTION}}) {
    Sizes filters = {6, 4, 3, 3};
    Tensor x(CUDNN_DATA_FLOAT, {2, 4, 10, 9}), y(CUDNN_DATA_FLOAT, output_sizes(spec, x.dims(), filters));
    Filter w(CUDNN_DATA_FLOAT, filters), dw(CUDNN_DATA_FLOAT, filters);
    x.random(1), w.random(2), y.random(3);
    ConvDescriptor conv(spec);
    Values forward = forward_of(spec, x, w.values(), y), data = backward_data_of(spec, x, w.values(), y),
           filter = backward_filter_of(spec, x, w.values(), y);
    Tensor result(CUDNN_DATA_FLOAT, y.dims()), dx(CUDNN_DATA_FLOAT, x.dims());
    for (int i = 0; i < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++i) {
      auto algo = static_cast<cudnnConvolutionFwdAlgo_t>(i);
      size_t bytes = 0;
      ASSERT_OK(cudnnGetConvolutionForwardWorkspaceSize(h, x, w, conv, y, algo, &bytes));
      Memory workspace(bytes);
      ASSERT_OK(cudnnConvolutionForward(h, &one, x, x.data(), w, w.data(), conv, algo, workspace.data(), bytes, &zero,
                                        result, result.data()));
      expect_values(result, forward, 64);
    }
    for (int i = 0; i < CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT; ++i) {
      auto algo = static_cast<cudnnConvolutionBwdDataAlgo_t>(i);
      size_t bytes = 0;
      ASSERT_OK(cudnnGetConvolutionBackwardDataWorkspaceSize(h, w, y, conv, x, algo, &bytes));
      Memory workspace(bytes);
      ASSERT_OK(cudnnConvolutionBackwardData(h, &one, w, w.data(), y, y.data(), conv, algo, workspace.data(), bytes,
                                             &zero, dx, dx.data()));
      expect_values(dx, data, 64);
    }
    for (int i = 0; i < CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT; ++i) {
      auto algo = static_cast<cudnnConvolutionBwdFilterAlgo_t>(i);
      size_t bytes = 0;
      ASSERT_OK(cudnnGetConvolutionBackwardFilterWorkspaceSize(h, x, y, conv, w, algo, &bytes));
      Memory workspace(bytes);
      ASSERT_OK(cudnnConvolutionBackwardFilter(h, &one, x, x.data(), y, y.data(), conv, algo, workspace.data(), bytes,
                                               &zero, dw, dw.data()));
      expect_values(dw.values(), filter, 512);
    }
  }
}

TEST(ConvolutionAlgorithms, refuse_what_does_not_exist) {
  Case c;
  size_t bytes = 0;
  for (int algo : {-1, static_cast<int>(CUDNN_CONVOLUTION_FWD_ALGO_COUNT), 99})
    EXPECT_TRUE(is_bad_param(cudnnGetConvolutionForwardWorkspaceSize(
        c.h, c.x, c.w, c.conv, c.y, static_cast<cudnnConvolutionFwdAlgo_t>(algo), &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnGetConvolutionForwardWorkspaceSize(c.h, c.x, c.w, c.conv, c.y,
                                                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnGetConvolutionForwardWorkspaceSize(nullptr, c.x, c.w, c.conv, c.y,
                                                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes)));
  int returned = 0;
  cudnnConvolutionFwdAlgoPerf_t result;
  EXPECT_TRUE(is_bad_param(cudnnGetConvolutionForwardAlgorithm_v7(c.h, c.x, c.w, c.conv, c.y, 0, &returned, &result)));
  EXPECT_TRUE(is_bad_param(cudnnGetConvolutionForwardAlgorithm_v7(c.h, c.x, c.w, c.conv, c.y, 1, nullptr, &result)));
  EXPECT_TRUE(is_bad_param(cudnnGetConvolutionForwardAlgorithm_v7(c.h, c.x, c.w, c.conv, c.y, 1, &returned, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnFindConvolutionForwardAlgorithmEx(c.h, c.x, nullptr, c.w, c.w.data(), c.conv, c.y,
                                                                  c.y.data(), 1, &returned, &result, nullptr, 0)));
}

}  // namespace
