// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

using namespace client;

namespace {

struct DropoutDescriptor : Descriptor<cudnnDropoutDescriptor_t> {
  DropoutDescriptor() : Descriptor(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor) {}
};

size_t states_size(cudnnHandle_t h) {
  size_t bytes = 0;
  EXPECT_OK(cudnnDropoutGetStatesSize(h, &bytes));
  return bytes;
}

size_t reserve_size(const Tensor& x) {
  size_t bytes = 0;
  EXPECT_OK(cudnnDropoutGetReserveSpaceSize(x, &bytes));
  return bytes;
}

TEST(Dropout, keeps_its_share_and_sends_gradients_the_same_way) {
  Handle h;
  for (cudnnDataType_t type : kFloats)
    for (Layout layout : kLayouts) {
      Tensor x(type, {4, 8, 16, 5}, layout), y(type, x.dims(), layout), dy(type, x.dims(), layout),
          dx(type, x.dims(), layout);
      x.fill(1), dy.fill(2);
      DropoutDescriptor d;
      Memory states(states_size(h)), reserve(reserve_size(x));
      ASSERT_OK(cudnnSetDropoutDescriptor(d, h, 0.25f, states.data(), states.size(), 7));
      ASSERT_OK(cudnnDropoutForward(h, d, x, x.data(), y, y.data(), reserve.data(), reserve.size()));
      ASSERT_OK(cudnnDropoutBackward(h, d, dy, dy.data(), dx, dx.data(), reserve.data(), reserve.size()));
      int kept = 0;
      for (int64_t i = 0; i < x.count(); ++i) {
        if (y.get(i) != 0) {
          ++kept;
          EXPECT_NEAR(y.get(i), 4.0 / 3, 0.01);
        }
        EXPECT_NEAR(dx.get(i), 2 * y.get(i), 0.02);
      }
      EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(x.count()), 0.75, 0.05);
      EXPECT_TRUE(y.gaps_untouched() && dx.gaps_untouched());
    }
}

TEST(Dropout, masks_follow_from_states) {
  Handle h;
  Tensor x(CUDNN_DATA_FLOAT, {2, 3, 50, 1}), first(CUDNN_DATA_FLOAT, x.dims()), second(CUDNN_DATA_FLOAT, x.dims()),
      again(CUDNN_DATA_FLOAT, x.dims());
  x.fill(1);
  DropoutDescriptor d, restored;
  Memory states(states_size(h)), reserve(reserve_size(x));
  ASSERT_OK(cudnnSetDropoutDescriptor(d, h, 0.5f, states.data(), states.size(), 1234567890123ull));
  ASSERT_OK(cudnnDropoutForward(h, d, x, x.data(), first, first.data(), reserve.data(), reserve.size()));
  Memory saved = states;
  ASSERT_OK(cudnnDropoutForward(h, d, x, x.data(), second, second.data(), reserve.data(), reserve.size()));
  EXPECT_NE(first.values(), second.values());

  ASSERT_OK(cudnnRestoreDropoutDescriptor(restored, h, 0.5f, saved.data(), saved.size(), 1234567890123ull));
  ASSERT_OK(cudnnDropoutForward(h, restored, x, x.data(), again, again.data(), reserve.data(), reserve.size()));
  EXPECT_EQ(again.values(), second.values());

  ASSERT_OK(cudnnSetDropoutDescriptor(d, h, 0.5f, states.data(), states.size(), 1234567890123ull));
  ASSERT_OK(cudnnDropoutForward(h, d, x, x.data(), again, again.data(), reserve.data(), reserve.size()));
  EXPECT_EQ(again.values(), first.values());

  float p = 0;
  void* where = nullptr;
  unsigned long long seed = 0;
  ASSERT_OK(cudnnGetDropoutDescriptor(d, h, &p, &where, &seed));
  EXPECT_EQ(p, 0.5f);
  EXPECT_EQ(where, states.data());
  EXPECT_EQ(seed, 1234567890123ull);
}

TEST(Dropout, extremes) {
  Handle h;
  Tensor x(CUDNN_DATA_FLOAT, {1, 2, 3, 1}), y(CUDNN_DATA_FLOAT, x.dims());
  x.random(1);
  DropoutDescriptor d;
  Memory states(states_size(h)), reserve(reserve_size(x));
  ASSERT_OK(cudnnSetDropoutDescriptor(d, h, 0, nullptr, 0, 0));  // keeps everything: no states needed
  ASSERT_OK(cudnnDropoutForward(h, d, x, x.data(), y, y.data(), reserve.data(), reserve.size()));
  EXPECT_EQ(x.values(), y.values());
  ASSERT_OK(cudnnSetDropoutDescriptor(d, h, 1, states.data(), states.size(), 0));
  ASSERT_OK(cudnnDropoutForward(h, d, x, x.data(), y, y.data(), reserve.data(), reserve.size()));
  EXPECT_EQ(y.values(), Values(6, 0));
  Values before = x.values();
  ASSERT_OK(cudnnSetDropoutDescriptor(d, h, 0.5f, states.data(), states.size(), 3));
  ASSERT_OK(cudnnDropoutForward(h, d, x, x.data(), x, x.data(), reserve.data(), reserve.size()));  // in place
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(x.get(static_cast<int64_t>(i)) == 0 || x.get(static_cast<int64_t>(i)) == 2 * before[i]);
}

TEST(Dropout, mistakes) {
  Handle h;
  Tensor x(CUDNN_DATA_FLOAT, {1, 2, 3, 4}), other(CUDNN_DATA_FLOAT, {1, 2, 3, 5});
  DropoutDescriptor d;
  Memory states(states_size(h)), reserve(reserve_size(x));
  EXPECT_TRUE(is_bad_param(cudnnDropoutGetStatesSize(nullptr, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnSetDropoutDescriptor(d, h, 0.5f, states.data(), states.size() - 1, 0)));
  EXPECT_TRUE(is_bad_param(cudnnSetDropoutDescriptor(d, h, 1.5f, states.data(), states.size(), 0)));
  EXPECT_TRUE(is_bad_param(cudnnSetDropoutDescriptor(nullptr, h, 0.5f, states.data(), states.size(), 0)));
  ASSERT_OK(cudnnSetDropoutDescriptor(d, h, 0.5f, nullptr, 0, 0));
  EXPECT_TRUE(is_bad_param(cudnnDropoutForward(h, d, x, x.data(), x, x.data(), reserve.data(), reserve.size())));
  ASSERT_OK(cudnnSetDropoutDescriptor(d, h, 0.5f, states.data(), states.size(), 0));
  EXPECT_TRUE(
      is_bad_param(cudnnDropoutForward(h, d, x, x.data(), other, other.data(), reserve.data(), reserve.size())));
  EXPECT_TRUE(is_bad_param(cudnnDropoutForward(h, d, x, x.data(), x, x.data(), reserve.data(), 1)));
  EXPECT_TRUE(is_bad_param(cudnnDropoutForward(h, d, x, nullptr, x, x.data(), reserve.data(), reserve.size())));
  EXPECT_TRUE(is_bad_param(cudnnDropoutForward(nullptr, d, x, x.data(), x, x.data(), reserve.data(), reserve.size())));
}

}  // namespace
