// SPDX-License-Identifier: Apache-2.0
// Recurrent networks before version 8: one descriptor for each step, weights as a filter.
#include <cudnn_rnn_v7.h>

#include <memory>

#include "rnn_reference.hpp"

namespace {

using namespace client;

using Steps = std::vector<std::unique_ptr<Tensor>>;

Steps steps_of(const RnnCase& c, int width) {
  Steps s;
  for (int t = 0; t < c.steps; ++t) {
    int batch = 0;
    for (int l : c.lengths) batch += l > t;
    s.push_back(std::make_unique<Tensor>(c.type, Sizes{batch, width, 1}));
  }
  return s;
}

std::vector<cudnnTensorDescriptor_t> descriptors(const Steps& s) {
  std::vector<cudnnTensorDescriptor_t> d;
  for (const auto& t : s) d.push_back(*t);
  return d;
}

using Filter = Descriptor<cudnnFilterDescriptor_t>;
Filter make_filter() { return {cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor}; }

void check(const RnnCase& c) {
  SCOPED_TRACE(testing::Message() << "mode " << c.mode << " layers " << c.layers << " type " << c.type);
  Handle handle;
  Descriptor<cudnnRNNDescriptor_t> rnn(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor);
  Descriptor<cudnnDropoutDescriptor_t> dropout(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor);
  ASSERT_OK(cudnnSetDropoutDescriptor(dropout, handle, 0, nullptr, 0, 0));
  ASSERT_OK(cudnnSetRNNDescriptor_v6(handle, rnn, c.hidden, c.layers, dropout, c.input, c.direction, c.mode,
                                     CUDNN_RNN_ALGO_STANDARD,
                                     c.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  bool lstm = c.mode == CUDNN_LSTM;
  int wide = c.directions() * c.hidden;
  Steps x_steps = steps_of(c, c.inputs), y_steps = steps_of(c, wide);
  auto xs = descriptors(x_steps), ys = descriptors(y_steps);
  size_t weight_bytes = 0, work_bytes = 0, reserve_bytes = 0;
  ASSERT_OK(cudnnGetRNNParamsSize(handle, rnn, xs[0], &weight_bytes, c.type));
  ASSERT_OK(cudnnGetRNNWorkspaceSize(handle, rnn, c.steps, xs.data(), &work_bytes));
  ASSERT_OK(cudnnGetRNNTrainingReserveSize(handle, rnn, c.steps, xs.data(), &reserve_bytes));
  Memory work(work_bytes), reserve(reserve_bytes);
  auto elements = static_cast<int>(weight_bytes / size_of(c.type));
  Filter filter = make_filter(), part = make_filter();
  int dims[] = {elements, 1, 1};
  ASSERT_OK(cudnnSetFilterNdDescriptor(filter, c.type, CUDNN_TENSOR_NCHW, 3, dims));

  Flat x(c.type, c.rows() * c.inputs), w(c.type, elements), dx(c.type, x.count()), dw(c.type, elements);
  Flat y(c.type, c.rows() * wide), dy(c.type, y.count());
  Tensor hx(c.type, {c.layers * c.directions(), c.batch(), c.hidden});
  Tensor hy(c.type, hx.dims()), cx(c.type, hx.dims()), cy(c.type, hx.dims());
  Tensor dhy(c.type, hx.dims()), dcy(c.type, hx.dims()), dhx(c.type, hx.dims()), dcx(c.type, hx.dims());
  unsigned seed = 1;
  for (Tensor* t : std::initializer_list<Tensor*>{&x, &w, &dy, &hx, &cx, &dhy, &dcy}) {
    t->random(seed++);
    for (int64_t i = 0; i < t->count(); ++i) t->set(i, t->get(i) / 2);
  }
  RnnOffsets offsets;
  auto* base = static_cast<char*>(w.data());
  for (int l = 0; l < c.layers * c.directions(); ++l) {
    offsets.parts.emplace_back();
    for (int id = 0; id < 2 * c.gates(); ++id) {
      void *m = nullptr, *b = nullptr;
      ASSERT_OK(cudnnGetRNNLinLayerMatrixParams(handle, rnn, l, xs[0], filter, base, id, part, &m));
      ASSERT_OK(cudnnGetRNNLinLayerBiasParams(handle, rnn, l, xs[0], filter, base, id, part, &b));
      auto offset = [&](void* p) {
        return static_cast<int>((static_cast<char*>(p) - base) / static_cast<int>(size_of(c.type)));
      };
      offsets.parts.back().push_back({offset(m), offset(b)});
    }
  }
  RnnValues v{x.values(), w.values(), hx.values(), cx.values(), {}, {}, {}};
  RnnReference reference(c, offsets);
  reference.forward(v);
  void* cx_data = lstm ? cx.data() : nullptr;
  void* cy_data = lstm ? cy.data() : nullptr;
  ASSERT_OK(cudnnRNNForwardInference(handle, rnn, c.steps, xs.data(), x.data(), hx, hx.data(), cx, cx_data, filter,
                                     w.data(), ys.data(), y.data(), hy, hy.data(), cy, cy_data, work.data(),
                                     work.size()));
  expect_close(y, v.y), expect_close(hy, v.hy);
  if (lstm) expect_close(cy, v.cy);
  ASSERT_OK(cudnnRNNForwardTraining(handle, rnn, c.steps, xs.data(), x.data(), hx, hx.data(), cx, cx_data, filter,
                                    w.data(), ys.data(), y.data(), hy, hy.data(), cy, cy_data, work.data(), work.size(),
                                    reserve.data(), reserve.size()));
  expect_close(y, v.y);
  ASSERT_OK(cudnnRNNBackwardData(handle, rnn, c.steps, ys.data(), y.data(), ys.data(), dy.data(), dhy, dhy.data(), dcy,
                                 lstm ? dcy.data() : nullptr, filter, w.data(), hx, hx.data(), cx, cx_data, xs.data(),
                                 dx.data(), dhx, dhx.data(), dcx, lstm ? dcx.data() : nullptr, work.data(), work.size(),
                                 reserve.data(), reserve.size()));
  dw.fill(-0.5);
  ASSERT_OK(cudnnRNNBackwardWeights(handle, rnn, c.steps, xs.data(), x.data(), hx, hx.data(), ys.data(), y.data(),
                                    work.data(), work.size(), filter, dw.data(), reserve.data(), reserve.size()));
  Values dys = dy.values(), dhys = dhy.values(), dcys = dcy.values();
  auto loss = [&] {
    reference.forward(v);
    return dot(v.y, dys) + dot(v.hy, dhys) + (lstm ? dot(v.cy, dcys) : 0);
  };
  expect_close(dx, differences(v.x, loss));
  expect_close(dhx, differences(v.h, loss));
  if (lstm) expect_close(dcx, differences(v.c, loss));
  Values want = differences(v.w, loss);
  for (double& d : want) d -= 0.5;  // gradients of weights are added
  expect_close(dw, want);
}

constexpr auto kPacked = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;

TEST(RnnV7, cells_and_types) {
  for (auto mode : {CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_LSTM, CUDNN_GRU})
    for (auto type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF})
      check({.mode = mode, .type = type, .layout = kPacked, .lengths = {3, 3}, .steps = 3});
}

TEST(RnnV7, falling_batches) {
  for (auto direction : {CUDNN_UNIDIRECTIONAL, CUDNN_BIDIRECTIONAL})
    check({.direction = direction, .layers = 2, .layout = kPacked, .lengths = {4, 3, 1}, .steps = 4});
}

TEST(RnnV7, mistakes) {
  Handle handle;
  Descriptor<cudnnRNNDescriptor_t> rnn(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor);
  auto set = [&](int hidden, int layers) {
    return cudnnSetRNNDescriptor_v6(handle, rnn, hidden, layers, nullptr, CUDNN_LINEAR_INPUT, CUDNN_UNIDIRECTIONAL,
                                    CUDNN_GRU, CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_FLOAT);
  };
  EXPECT_TRUE(is_bad_param(set(0, 1)));
  EXPECT_TRUE(is_bad_param(set(4, 0)));
  ASSERT_OK(set(4, 1));
  Tensor small(CUDNN_DATA_FLOAT, {1, 3, 1}), large(CUDNN_DATA_FLOAT, {2, 3, 1});
  cudnnTensorDescriptor_t growing[] = {small, large}, missing[] = {large, nullptr};
  size_t bytes = 0;
  EXPECT_TRUE(is_bad_param(cudnnGetRNNWorkspaceSize(handle, rnn, 2, growing, &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnGetRNNWorkspaceSize(handle, rnn, 2, missing, &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnGetRNNWorkspaceSize(handle, rnn, 0, missing, &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnGetRNNWorkspaceSize(handle, rnn, 1, nullptr, &bytes)));
  EXPECT_TRUE(is_bad_param(cudnnGetRNNParamsSize(handle, nullptr, small, &bytes, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(is_bad_param(cudnnGetRNNParamsSize(handle, rnn, nullptr, &bytes, CUDNN_DATA_FLOAT)));
}

}  // namespace
