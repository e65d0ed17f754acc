// SPDX-License-Identifier: Apache-2.0
// CTC loss: costs by enumeration of all paths, gradients by differences of these.
#include "flat.hpp"

namespace {

using namespace client;

constexpr int kSteps = 5, kBatch = 3, kClasses = 4;

struct Labels {
  std::vector<int> flat = {1, 2, 3, 3, 1};  // 1 2 | 3 3 | 1
  std::vector<int> lengths = {2, 2, 1};
  std::vector<int> inputs = {5, 4, 3};
};

// Softmax of every row [step][sequence].
Values softmax(const Values& x) {
  Values y = x;
  for (size_t r = 0; r < y.size(); r += kClasses) {
    double sum = 0;
    for (size_t k = 0; k < kClasses; ++k) sum += std::exp(x[r + k]);
    for (size_t k = 0; k < kClasses; ++k) y[r + k] = std::exp(x[r + k]) / sum;
  }
  return y;
}

// -log of the probability of all paths that become the labels.
double cost(const Values& probs, const Labels& l, int n) {
  size_t first = 0;
  for (int i = 0; i < n; ++i) first += static_cast<size_t>(l.lengths[static_cast<size_t>(i)]);
  std::vector<int> wanted(l.flat.begin() + static_cast<std::ptrdiff_t>(first),
                          l.flat.begin() + static_cast<std::ptrdiff_t>(first) + l.lengths[static_cast<size_t>(n)]);
  int steps = l.inputs[static_cast<size_t>(n)], paths = 1;
  for (int t = 0; t < steps; ++t) paths *= kClasses;
  double total = 0;
  for (int path = 0; path < paths; ++path) {
    std::vector<int> read;
    double p = 1;
    for (int t = 0, rest = path, before = 0; t < steps; ++t, rest /= kClasses) {
      int k = rest % kClasses;
      p *= probs[static_cast<size_t>((t * kBatch + n) * kClasses + k)];
      if (k != 0 && (t == 0 || k != before)) read.push_back(k);
      before = k;
    }
    if (read == wanted) total += p;
  }
  return -std::log(total);
}

class Ctc : public testing::Test {
 protected:
  Ctc() { x.random(3); }
  void set(cudnnLossNormalizationMode_t norm, cudnnCTCGradMode_t grad = CUDNN_CTC_ZERO_OOB_GRADIENTS) {
    ASSERT_OK(cudnnSetCTCLossDescriptor_v9(desc, CUDNN_DATA_FLOAT, norm, grad, 8));
  }
  cudnnStatus_t run(const Labels& l, bool v8, cudnnCTCLossAlgo_t algo = CUDNN_CTC_LOSS_ALGO_DETERMINISTIC) {
    size_t bytes = 0;
    cudnnStatus_t s = v8 ? cudnnGetCTCLossWorkspaceSize_v8(handle, algo, desc, x, gradients, &bytes)
                         : cudnnGetCTCLossWorkspaceSize(handle, x, gradients, l.flat.data(), l.lengths.data(),
                                                        l.inputs.data(), algo, desc, &bytes);
    if (s != CUDNN_STATUS_SUCCESS) return s;
    Memory work(bytes);
    if (v8) return run_v8(l, x, algo, work);
    return cudnnCTCLoss(handle, x, x.data(), l.flat.data(), l.lengths.data(), l.inputs.data(), costs.data(), gradients,
                        gradients.data(), algo, desc, work.data(), bytes);
  }
  cudnnStatus_t run_v8(const Labels& l, Tensor& from, cudnnCTCLossAlgo_t algo, Memory& work) {
    Integers flat(l.flat), lengths(l.lengths), inputs(l.inputs);
    return cudnnCTCLoss_v8(handle, algo, desc, from, from.data(), flat.get(), lengths.get(), inputs.get(), costs.data(),
                           gradients, gradients.data(), work.size(), work.data());
  }
  // Costs of softmax(x) and their gradient, row by row.
  void expect_softmax(const Labels& l) {
    Values v = x.values(), want_costs, want;
    for (int n = 0; n < kBatch; ++n) want_costs.push_back(cost(softmax(v), l, n));
    for (size_t i = 0; i < v.size(); ++i) {
      int n = static_cast<int>(i) / kClasses % kBatch;
      double before = v[i], step = 1e-5;
      v[i] = before + step;
      double above = cost(softmax(v), l, n);
      v[i] = before - step;
      want.push_back((above - cost(softmax(v), l, n)) / (2 * step));
      v[i] = before;
    }
    expect_values(costs, want_costs, 64);
    expect_values(gradients, want, 256);
  }

  Handle handle;
  Descriptor<cudnnCTCLossDescriptor_t> desc{cudnnCreateCTCLossDescriptor, cudnnDestroyCTCLossDescriptor};
  Tensor x{CUDNN_DATA_FLOAT, {kSteps, kBatch, kClasses}}, gradients{CUDNN_DATA_FLOAT, {kSteps, kBatch, kClasses}};
  Tensor costs{CUDNN_DATA_FLOAT, {kBatch}};
};

TEST_F(Ctc, activations) {
  set(CUDNN_LOSS_NORMALIZATION_SOFTMAX);
  for (bool v8 : {false, true})
    for (auto algo : {CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC}) {
      ASSERT_OK(run(Labels(), v8, algo));
      expect_softmax(Labels());
    }
}

// Labels are as many as their lengths say, however long they may be: what follows them in memory is something else's.
TEST_F(Ctc, labels_end_before_their_room_does) {
  set(CUDNN_LOSS_NORMALIZATION_SOFTMAX);
  Labels l;
  constexpr size_t kCosts = 64;  // bytes into the memory that begins with the labels
  Memory together(4096);
  std::memcpy(together.edit(), l.flat.data(), l.flat.size() * sizeof(int));
  Integers lengths(l.lengths), inputs(l.inputs);
  size_t bytes = 0;
  const auto algo = CUDNN_CTC_LOSS_ALGO_DETERMINISTIC;
  ASSERT_OK(cudnnGetCTCLossWorkspaceSize_v8(handle, algo, desc, x, gradients, &bytes));
  Memory work(bytes);
  auto* base = static_cast<unsigned char*>(together.data());
  ASSERT_OK(cudnnCTCLoss_v8(handle, algo, desc, x, x.data(), reinterpret_cast<int*>(base), lengths.get(), inputs.get(),
                            base + kCosts, gradients, gradients.data(), work.size(), work.data()));
  for (int n = 0; n < kBatch; ++n) {
    float got;
    std::memcpy(&got, together.host() + kCosts + sizeof(float) * static_cast<size_t>(n), sizeof got);
    EXPECT_NEAR(got, cost(softmax(x.values()), l, n), 1e-4);
  }
}

// Gradients are those of the activations that were normalised to the probabilities.
TEST_F(Ctc, probabilities) {
  ASSERT_OK(cudnnSetCTCLossDescriptor(desc, CUDNN_DATA_FLOAT));
  Values activations = x.values(), p = softmax(activations);
  for (size_t i = 0; i < p.size(); ++i) x.set(static_cast<int64_t>(i), p[i]);
  ASSERT_OK(run(Labels(), false));
  for (size_t i = 0; i < p.size(); ++i) x.set(static_cast<int64_t>(i), activations[i]);
  expect_softmax(Labels());
}

TEST_F(Ctc, strided) {
  Tensor strided(CUDNN_DATA_FLOAT, {kSteps, kBatch, kClasses}, Layout::gaps);
  for (int64_t i = 0; i < x.count(); ++i) strided.set(i, x.get(i));
  set(CUDNN_LOSS_NORMALIZATION_SOFTMAX);
  Labels l;
  Memory none;
  ASSERT_OK(run_v8(l, strided, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, none));
  expect_softmax(l);
}

TEST_F(Ctc, costs_alone) {
  set(CUDNN_LOSS_NORMALIZATION_SOFTMAX);
  Labels l;
  size_t bytes = 0;
  ASSERT_OK(cudnnGetCTCLossWorkspaceSize(handle, x, nullptr, l.flat.data(), l.lengths.data(), l.inputs.data(),
                                         CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, desc, &bytes));
  Memory work(bytes);
  ASSERT_OK(cudnnCTCLoss(handle, x, x.data(), l.flat.data(), l.lengths.data(), l.inputs.data(), costs.data(), nullptr,
                         nullptr, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, desc, work.data(), bytes));
  Values want;
  for (int n = 0; n < kBatch; ++n) want.push_back(cost(softmax(x.values()), l, n));
  expect_values(costs, want, 64);
}

// Two equal labels need a blank between them: two steps are too few.
TEST_F(Ctc, too_short) {
  Labels l;
  l.inputs = {5, 2, 3};
  for (auto mode : {CUDNN_CTC_ZERO_OOB_GRADIENTS, CUDNN_CTC_SKIP_OOB_GRADIENTS}) {
    set(CUDNN_LOSS_NORMALIZATION_SOFTMAX, mode);
    gradients.fill(3);
    ASSERT_OK(run(l, false));
    EXPECT_TRUE(std::isinf(costs.get(1)));
    for (int64_t i = 0; i < gradients.count(); ++i) {
      bool short_one = i / kClasses % kBatch == 1;
      if (short_one) {
        EXPECT_EQ(gradients.get(i), mode == CUDNN_CTC_ZERO_OOB_GRADIENTS ? 0 : 3);
      } else {
        EXPECT_NE(gradients.get(i), 3);
      }
    }
  }
}

TEST_F(Ctc, descriptors) {
  cudnnDataType_t type;
  cudnnLossNormalizationMode_t norm;
  cudnnNanPropagation_t nan;
  cudnnCTCGradMode_t grad;
  int longest;
  ASSERT_OK(
      cudnnSetCTCLossDescriptor_v8(desc, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_SOFTMAX, CUDNN_PROPAGATE_NAN, 77));
  ASSERT_OK(cudnnGetCTCLossDescriptor_v9(desc, &type, &norm, &grad, &longest));
  EXPECT_EQ(type, CUDNN_DATA_FLOAT);
  EXPECT_EQ(norm, CUDNN_LOSS_NORMALIZATION_SOFTMAX);
  EXPECT_EQ(grad, CUDNN_CTC_SKIP_OOB_GRADIENTS);
  EXPECT_EQ(longest, 77);
  ASSERT_OK(
      cudnnSetCTCLossDescriptorEx(desc, CUDNN_DATA_FLOAT, CUDNN_LOSS_NORMALIZATION_NONE, CUDNN_NOT_PROPAGATE_NAN));
  ASSERT_OK(cudnnGetCTCLossDescriptorEx(desc, &type, &norm, &nan));
  EXPECT_EQ(norm, CUDNN_LOSS_NORMALIZATION_NONE);
  EXPECT_EQ(nan, CUDNN_NOT_PROPAGATE_NAN);
  ASSERT_OK(cudnnGetCTCLossDescriptor(desc, &type));
  ASSERT_OK(cudnnGetCTCLossDescriptor_v8(desc, &type, &norm, &nan, &longest));
}

TEST_F(Ctc, mistakes) {
  EXPECT_TRUE(is_bad_param(run(Labels(), false)));  // not set
  EXPECT_TRUE(is_bad_param(cudnnSetCTCLossDescriptor(desc, CUDNN_DATA_HALF)));
  EXPECT_TRUE(is_bad_param(cudnnSetCTCLossDescriptor(nullptr, CUDNN_DATA_FLOAT)));
  set(CUDNN_LOSS_NORMALIZATION_SOFTMAX);
  Labels l;
  l.flat[0] = 0;
  EXPECT_TRUE(is_bad_param(run(l, false)));
  l.flat[0] = kClasses;
  EXPECT_TRUE(is_bad_param(run(l, false)));
  l = {};
  l.lengths[0] = -1;
  EXPECT_TRUE(is_bad_param(run(l, false)));
  l = {};
  l.inputs[0] = kSteps + 1;
  EXPECT_TRUE(is_bad_param(run(l, false)));
  size_t bytes = 0;
  EXPECT_TRUE(is_bad_param(
      cudnnGetCTCLossWorkspaceSize_v8(handle, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, desc, nullptr, gradients, &bytes)));
  EXPECT_TRUE(is_bad_param(
      cudnnGetCTCLossWorkspaceSize_v8(nullptr, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, desc, x, gradients, &bytes)));
  EXPECT_TRUE(is_bad_param(
      cudnnGetCTCLossWorkspaceSize_v8(handle, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, desc, costs, gradients, &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnCTCLoss_v8(handle, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, desc, x, x.data(), nullptr,
                                           nullptr, nullptr, costs.data(), nullptr, nullptr, 0, nullptr)));
}

}  // namespace
