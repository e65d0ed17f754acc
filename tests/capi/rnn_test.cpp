// SPDX-License-Identifier: Apache-2.0
// Recurrent networks of version 8 on: results against plain loops, gradients against differences of these.
#include "rnn_reference.hpp"

namespace {

using namespace client;

using RnnDescriptor = Descriptor<cudnnRNNDescriptor_t>;
using DataDescriptor = Descriptor<cudnnRNNDataDescriptor_t>;

// A network of the library: descriptors, weights and workspaces.
class Network {
 public:
  Network(const RnnCase& c, cudnnDropoutDescriptor_t dropout = nullptr)
      : c(c),
        rnn(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor),
        x_desc(cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor),
        y_desc(cudnnCreateRNNDataDescriptor, cudnnDestroyRNNDataDescriptor),
        h_desc(c.type, {c.layers * c.directions(), c.batch(), c.outputs(), 1, 1}),  // as PyTorch says it
        c_desc(c.type, {c.layers * c.directions(), c.batch(), c.hidden}) {
    cudnnDataType_t math = c.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    EXPECT_OK(cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, c.mode, c.bias, c.direction, c.input, c.type, math,
                                       CUDNN_DEFAULT_MATH, c.inputs, c.hidden, c.outputs(), c.layers, dropout,
                                       CUDNN_RNN_PADDED_IO_ENABLED));
    if (c.clip > 0) {
      EXPECT_OK(cudnnRNNSetClip_v9(rnn, CUDNN_RNN_CLIP_MINMAX, -c.clip, c.clip));
    }
    set_data(x_desc, c.inputs, nullptr);
    set_data(y_desc, c.outputs() * c.directions(), nullptr);
    EXPECT_OK(cudnnGetRNNWeightSpaceSize(handle, rnn, &weight_bytes));
    size_t work_bytes = 0, reserve_bytes = 0;
    EXPECT_OK(cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_TRAINING, x_desc, &work_bytes, &reserve_bytes));
    work.resize(work_bytes, 0), reserve.resize(reserve_bytes, 0);
    find_offsets();
  }
  void set_data(cudnnRNNDataDescriptor_t d, int width, void* padding) {
    EXPECT_OK(cudnnSetRNNDataDescriptor(d, c.type, c.layout, c.steps, c.batch(), width, c.lengths.data(), padding));
  }
  void find_offsets() {
    auto matrix = Flat(c.type, 1), bias = Flat(c.type, 1);
    auto* base = reinterpret_cast<char*>(0x100000);
    for (int l = 0; l < c.layers * c.directions(); ++l) {
      offsets.parts.emplace_back();
      for (int id = 0; id < 2 * c.gates() + (c.proj ? 1 : 0); ++id) {
        void *m = nullptr, *b = nullptr;
        EXPECT_OK(cudnnGetRNNWeightParams(handle, rnn, l, weight_bytes, base, id, matrix, &m, bias, &b));
        auto offset = [&](void* p) {
          return p ? static_cast<int>((static_cast<char*>(p) - base) / static_cast<int>(size_of(c.type))) : -1;
        };
        offsets.parts.back().push_back({offset(m), offset(b)});
      }
    }
  }
  cudnnStatus_t forward(Tensor& x, Tensor& w, Tensor* hx, Tensor* cx, Tensor& y, Tensor* hy, Tensor* cy,
                        cudnnForwardMode_t mode, const int* lengths) {
    auto data = [](Tensor* t) { return t ? t->data() : nullptr; };
    return cudnnRNNForward(handle, rnn, mode, lengths, x_desc, x.data(), y_desc, y.data(), h_desc, data(hx), data(hy),
                           c_desc, data(cx), data(cy), weight_bytes, w.data(), work.size(), work.data(), reserve.size(),
                           reserve.data());
  }

  const RnnCase& c;
  Handle handle;
  RnnDescriptor rnn;
  DataDescriptor x_desc, y_desc;
  Tensor h_desc, c_desc;
  size_t weight_bytes = 0;
  Memory work, reserve;
  RnnOffsets offsets;
};

// Elements of rows past the sequences' ends are left out.
Values valid_rows(const RnnCase& c, const Values& v, int width) {
  Values kept;
  for (int b = 0; b < c.batch(); ++b)
    for (int t = 0; t < c.lengths[static_cast<size_t>(b)]; ++t)
      for (int i = 0; i < width; ++i) kept.push_back(v[static_cast<size_t>(c.row(t, b) * width + i)]);
  return kept;
}

void expect_rows(const RnnCase& c, const Tensor& got, const Values& want, int width) {
  Values g = valid_rows(c, got.values(), width);
  Flat f(got.type(), static_cast<int64_t>(g.size()));
  for (size_t i = 0; i < g.size(); ++i) f.set(static_cast<int64_t>(i), g[i]);
  expect_close(f, valid_rows(c, want, width));
}

void check(const RnnCase& c, bool states = true, bool device_lengths = true) {
  SCOPED_TRACE(testing::Message() << "mode " << c.mode << " bias " << c.bias << " direction " << c.direction << " proj "
                                  << c.proj << " layers " << c.layers << " type " << c.type << " layout " << c.layout);
  Network n(c);
  bool lstm = c.mode == CUDNN_LSTM;
  int wide = c.directions() * c.outputs();
  Flat x(c.type, c.rows() * c.inputs), w(c.type, static_cast<int64_t>(n.weight_bytes / size_of(c.type)));
  Flat y(c.type, c.rows() * wide), dy(c.type, c.rows() * wide), dx(c.type, c.rows() * c.inputs);
  Flat hx(c.type, n.h_desc.count()), hy(hx.type(), hx.count()), dhy(hx.type(), hx.count()), dhx(hx.type(), hx.count());
  Flat cx(c.type, n.c_desc.count()), cy(cx.type(), cx.count()), dcy(cx.type(), cx.count()), dcx(cx.type(), cx.count());
  unsigned seed = 1;
  for (Flat* t : {&x, &w, &dy, &hx, &dhy, &cx, &dcy}) {
    t->random(seed++);
    for (int64_t i = 0; i < t->count(); ++i) t->set(i, t->get(i) / 2);
  }
  if (!states)
    for (Flat* t : {&hx, &cx, &dhy, &dcy}) t->fill(0);
  RnnValues v{x.values(), w.values(), hx.values(), cx.values(), {}, {}, {}};
  RnnReference reference(c, n.offsets);
  auto if_states = [&](Flat& t) -> Tensor* { return states ? &t : nullptr; };
  auto data_if = [&](Flat& t, bool wanted = true) { return states && wanted ? t.data() : nullptr; };
  Integers length_memory(c.lengths);
  const int* lengths = device_lengths ? length_memory.get() : nullptr;

  reference.forward(v);
  ASSERT_OK(n.forward(x, w, if_states(hx), if_states(cx), y, if_states(hy), lstm ? if_states(cy) : nullptr,
                      CUDNN_FWD_MODE_INFERENCE, lengths));
  expect_rows(c, y, v.y, wide);
  if (states) expect_close(hy, v.hy);
  if (states && lstm) expect_close(cy, v.cy);
  Values inference = y.values();
  ASSERT_OK(n.forward(x, w, if_states(hx), if_states(cx), y, if_states(hy), lstm ? if_states(cy) : nullptr,
                      CUDNN_FWD_MODE_TRAINING, lengths));
  EXPECT_EQ(inference, y.values());

  Values dys = dy.values(), dhys = dhy.values(), dcys = dcy.values();
  ASSERT_OK(cudnnRNNBackwardData_v8(n.handle, n.rnn, lengths, n.y_desc, y.data(), dy.data(), n.x_desc, dx.data(),
                                    n.h_desc, data_if(hx), data_if(dhy), data_if(dhx), n.c_desc, data_if(cx),
                                    data_if(dcy, lstm), data_if(dcx, lstm), n.weight_bytes, w.data(), n.work.size(),
                                    n.work.data(), n.reserve.size(), n.reserve.data()));
  auto loss = [&] {
    reference.forward(v);
    return dot(v.y, dys) + dot(v.hy, dhys) + (lstm ? dot(v.cy, dcys) : 0);
  };
  expect_rows(c, dx, differences(v.x, loss), c.inputs);
  if (states) expect_close(dhx, differences(v.h, loss));
  if (states && lstm) expect_close(dcx, differences(v.c, loss));
  Values dw = differences(v.w, loss);
  Flat dweights(c.type, w.count());
  dweights.fill(0.25);
  auto backward_weights = [&](cudnnWgradMode_t mode) {
    return cudnnRNNBackwardWeights_v8(n.handle, n.rnn, mode, lengths, n.x_desc, x.data(), n.h_desc, data_if(hx),
                                      n.y_desc, y.data(), n.weight_bytes, dweights.data(), n.work.size(), n.work.data(),
                                      n.reserve.size(), n.reserve.data());
  };
  ASSERT_OK(backward_weights(CUDNN_WGRAD_MODE_SET));
  expect_close(dweights, dw);
  dweights.fill(0.25);
  ASSERT_OK(backward_weights(CUDNN_WGRAD_MODE_ADD));
  for (double& d : dw) d += 0.25;
  expect_close(dweights, dw);
}

constexpr auto kPacked = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
constexpr auto kBatchMajor = CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED;

TEST(Rnn, cells) {
  for (auto mode : {CUDNN_RNN_RELU, CUDNN_RNN_TANH, CUDNN_LSTM, CUDNN_GRU})
    for (auto type : kFloats) check({.mode = mode, .type = type});
}

TEST(Rnn, biases) {
  for (auto bias : {CUDNN_RNN_NO_BIAS, CUDNN_RNN_SINGLE_INP_BIAS, CUDNN_RNN_SINGLE_REC_BIAS, CUDNN_RNN_DOUBLE_BIAS})
    for (auto mode : {CUDNN_RNN_TANH, CUDNN_GRU}) check({.mode = mode, .bias = bias, .layers = 2});
}

TEST(Rnn, directions_layers_projection) {
  for (auto direction : {CUDNN_UNIDIRECTIONAL, CUDNN_BIDIRECTIONAL})
    for (int layers : {1, 3}) {
      check({.mode = CUDNN_GRU, .direction = direction, .layers = layers});
      check({.mode = CUDNN_LSTM, .direction = direction, .proj = 2, .layers = layers});
    }
}

TEST(Rnn, skipped_input) {
  for (auto mode : {CUDNN_RNN_TANH, CUDNN_LSTM, CUDNN_GRU})
    check({.mode = mode, .input = CUDNN_SKIP_INPUT, .inputs = 4, .layers = 2});
}

TEST(Rnn, layouts_and_lengths) {
  for (auto layout : {CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, kPacked, kBatchMajor})
    for (bool device_lengths : {true, false})
      for (auto direction : {CUDNN_UNIDIRECTIONAL, CUDNN_BIDIRECTIONAL}) {
        RnnCase c{.direction = direction, .layers = 2, .layout = layout, .lengths = {5, 3, 3, 1}, .steps = 5};
        check(c, true, device_lengths);
        if (layout != kPacked) c.lengths = {2, 5, 1, 4};
        check(c, false, device_lengths);
        c.lengths = {3, 3};  // packed: an ordinary tensor
        check(c, true, device_lengths);
      }
  check({.mode = CUDNN_GRU, .type = CUDNN_DATA_DOUBLE, .layout = kPacked, .lengths = {4, 2, 0}, .steps = 4});
}

TEST(Rnn, clipped_cells) { check({.lengths = {6, 6}, .steps = 6, .clip = 0.3}); }

TEST(Rnn, without_states) {
  for (auto mode : {CUDNN_RNN_RELU, CUDNN_LSTM, CUDNN_GRU}) check({.mode = mode, .layers = 2}, false);
}

TEST(Rnn, padding) {
  RnnCase c{.type = CUDNN_DATA_HALF, .layout = kBatchMajor, .lengths = {1, 3}, .steps = 3};
  Network n(c);
  uint16_t padding = to_half(-7.5);
  n.set_data(n.y_desc, c.outputs(), &padding);
  Flat x(c.type, c.rows() * c.inputs), w(c.type, static_cast<int64_t>(n.weight_bytes / 2)),
      y(c.type, c.rows() * c.outputs());
  x.random(1), w.random(2);
  ASSERT_OK(n.forward(x, w, nullptr, nullptr, y, nullptr, nullptr, CUDNN_FWD_MODE_INFERENCE, nullptr));
  for (int t = 0; t < c.steps; ++t)
    for (int i = 0; i < c.outputs(); ++i) {
      EXPECT_EQ(y.get(c.row(t, 0) * c.outputs() + i) == -7.5, t > 0);
      EXPECT_NE(y.get(c.row(t, 1) * c.outputs() + i), -7.5);
    }
}

// States may be overwritten by those that follow.
TEST(Rnn, states_in_place) {
  RnnCase c{.direction = CUDNN_BIDIRECTIONAL, .layers = 2, .lengths = {4, 2, 1}, .steps = 4};
  Network n(c);
  int wide = c.directions() * c.outputs();
  Flat x(c.type, c.rows() * c.inputs), w(c.type, static_cast<int64_t>(n.weight_bytes / 4)), y(c.type, c.rows() * wide);
  Flat h(c.type, n.h_desc.count()), cell(c.type, n.c_desc.count());
  unsigned seed = 1;
  for (Flat* t : {&x, &w, &h, &cell}) t->random(seed++);
  RnnValues v{x.values(), w.values(), h.values(), cell.values(), {}, {}, {}};
  RnnReference(c, n.offsets).forward(v);
  ASSERT_OK(n.forward(x, w, &h, &cell, y, &h, &cell, CUDNN_FWD_MODE_INFERENCE, nullptr));
  expect_rows(c, y, v.y, wide), expect_close(h, v.hy), expect_close(cell, v.cy);
}

// Masks follow from the states: the same states give the same results, used ones others; gradients know the masks.
void check_dropout(bool with_states) {
  RnnCase c{.direction = CUDNN_BIDIRECTIONAL, .layers = 3, .type = CUDNN_DATA_DOUBLE, .lengths = {4, 2}, .steps = 4};
  Handle handle;
  Descriptor<cudnnDropoutDescriptor_t> dropout(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor);
  size_t state_bytes = 0;
  ASSERT_OK(cudnnDropoutGetStatesSize(handle, &state_bytes));
  Memory states(state_bytes);
  void* state = with_states ? states.data() : nullptr;
  auto restart = [&] { ASSERT_OK(cudnnSetDropoutDescriptor(dropout, handle, 0.4F, state, state_bytes, 17)); };
  restart();
  Network n(c, dropout);
  int wide = c.directions() * c.outputs();
  Flat x(c.type, c.rows() * c.inputs), w(c.type, static_cast<int64_t>(n.weight_bytes / 8));
  Flat y(c.type, c.rows() * wide), dy(c.type, c.rows() * wide), dx(c.type, x.count()), dw(c.type, w.count());
  Flat hx(c.type, n.h_desc.count()), hy(c.type, hx.count()), dhy(c.type, hx.count()), dhx(c.type, hx.count());
  unsigned seed = 1;
  for (Flat* t : {&x, &w, &dy, &hx, &dhy}) t->random(seed++);
  auto forward = [&](cudnnForwardMode_t mode) {
    EXPECT_OK(n.forward(x, w, &hx, nullptr, y, &hy, nullptr, mode, nullptr));
    return y.values();
  };
  Values plain = forward(CUDNN_FWD_MODE_INFERENCE), first = forward(CUDNN_FWD_MODE_TRAINING);
  EXPECT_NE(plain, first);
  EXPECT_NE(first, forward(CUDNN_FWD_MODE_TRAINING));
  restart();
  EXPECT_EQ(first, forward(CUDNN_FWD_MODE_TRAINING));

  ASSERT_OK(cudnnRNNBackwardData_v8(n.handle, n.rnn, nullptr, n.y_desc, y.data(), dy.data(), n.x_desc, dx.data(),
                                    n.h_desc, hx.data(), dhy.data(), dhx.data(), nullptr, nullptr, nullptr, nullptr,
                                    n.weight_bytes, w.data(), n.work.size(), n.work.data(), n.reserve.size(),
                                    n.reserve.data()));
  ASSERT_OK(cudnnRNNBackwardWeights_v8(n.handle, n.rnn, CUDNN_WGRAD_MODE_SET, nullptr, n.x_desc, x.data(), n.h_desc,
                                       hx.data(), n.y_desc, y.data(), n.weight_bytes, dw.data(), n.work.size(),
                                       n.work.data(), n.reserve.size(), n.reserve.data()));
  auto loss = [&] {
    restart();
    forward(CUDNN_FWD_MODE_TRAINING);
    return dot(y.values(), dy.values()) + dot(hy.values(), dhy.values());
  };
  auto expect_gradient = [&](Flat& of, Flat& got) {
    for (int64_t i = 0; i < of.count(); i += 29) {
      double before = of.get(i), step = 1e-5;
      of.set(i, before + step);
      double above = loss();
      of.set(i, before - step);
      EXPECT_NEAR(got.get(i), (above - loss()) / (2 * step), 1e-6) << "element " << i;
      of.set(i, before);
    }
  };
  expect_gradient(x, dx), expect_gradient(w, dw), expect_gradient(hx, dhx);
}

TEST(Rnn, dropout) { check_dropout(true); }
// A widespread client trains with a descriptor that has no states.
TEST(Rnn, dropout_without_states) { check_dropout(false); }

TEST(Rnn, descriptors_tell_what_they_were_told) {
  RnnCase c{.mode = CUDNN_LSTM, .hidden = 5, .proj = 3, .layers = 2, .lengths = {2, 1}, .steps = 2};
  Network n(c);
  cudnnRNNAlgo_t algo;
  cudnnRNNMode_t mode;
  cudnnRNNBiasMode_t bias;
  cudnnDirectionMode_t direction;
  cudnnRNNInputMode_t input;
  cudnnDataType_t type, math_precision;
  cudnnMathType_t math;
  int32_t inputs, hidden, proj, layers;
  cudnnDropoutDescriptor_t dropout;
  uint32_t flags;
  ASSERT_OK(cudnnGetRNNDescriptor_v8(n.rnn, &algo, &mode, &bias, &direction, &input, &type, &math_precision, &math,
                                     &inputs, &hidden, &proj, &layers, &dropout, &flags));
  EXPECT_EQ(mode, CUDNN_LSTM);
  EXPECT_EQ(bias, CUDNN_RNN_DOUBLE_BIAS);
  EXPECT_EQ(hidden, 5);
  EXPECT_EQ(proj, 3);
  EXPECT_EQ(layers, 2);
  EXPECT_EQ(flags, CUDNN_RNN_PADDED_IO_ENABLED);
  cudnnRNNDataLayout_t layout;
  int steps, batch, vector, lengths[3] = {-1, -1, -1};
  ASSERT_OK(cudnnGetRNNDataDescriptor(n.x_desc, &type, &layout, &steps, &batch, &vector, 3, lengths, nullptr));
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(batch, 2);
  EXPECT_EQ(lengths[0], 2);
  EXPECT_EQ(lengths[1], 1);
  EXPECT_EQ(lengths[2], -1);
  cudnnRNNClipMode_t clip;
  cudnnNanPropagation_t nan;
  double low, high;
  ASSERT_OK(cudnnRNNSetClip_v8(n.rnn, CUDNN_RNN_CLIP_MINMAX, CUDNN_NOT_PROPAGATE_NAN, -1, 2));
  ASSERT_OK(cudnnRNNGetClip_v8(n.rnn, &clip, &nan, &low, &high));
  EXPECT_EQ(nan, CUDNN_NOT_PROPAGATE_NAN);
  EXPECT_EQ(low, -1);
  EXPECT_EQ(high, 2);
  // A matrix is [1, rows, columns], a bias a column; what is not there has no dimensions.
  Flat matrix(c.type, 1), vector_desc(c.type, 1);
  void *m, *b;
  int count, dims[3], strides[3];
  ASSERT_OK(cudnnGetRNNWeightParams(n.handle, n.rnn, 1, n.weight_bytes, nullptr, 8, matrix, &m, vector_desc, &b));
  ASSERT_OK(cudnnGetTensorNdDescriptor(matrix, 3, &type, &count, dims, strides));
  EXPECT_EQ((Sizes{count, dims[0], dims[1], dims[2]}), (Sizes{3, 1, 3, 5}));
  ASSERT_OK(cudnnGetTensorNdDescriptor(vector_desc, 3, &type, &count, dims, strides));
  EXPECT_EQ(count, 0);
  EXPECT_EQ(b, nullptr);
}

TEST(Rnn, mistakes) {
  RnnCase c;
  Network n(c);
  auto set = [&](cudnnRNNMode_t mode, int inputs, int hidden, int proj, int layers, cudnnDataType_t type) {
    return cudnnSetRNNDescriptor_v8(n.rnn, CUDNN_RNN_ALGO_STANDARD, mode, CUDNN_RNN_NO_BIAS, CUDNN_UNIDIRECTIONAL,
                                    CUDNN_LINEAR_INPUT, type, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, inputs, hidden,
                                    proj, layers, nullptr, 0);
  };
  EXPECT_TRUE(is_bad_param(set(CUDNN_LSTM, 0, 4, 4, 1, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(is_bad_param(set(CUDNN_LSTM, 3, 0, 4, 1, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(is_bad_param(set(CUDNN_LSTM, 3, 4, 5, 1, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(is_bad_param(set(CUDNN_LSTM, 3, 4, 4, 0, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(is_bad_param(set(static_cast<cudnnRNNMode_t>(9), 3, 4, 4, 1, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(is_not_supported(set(CUDNN_GRU, 3, 4, 2, 1, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(is_not_supported(set(CUDNN_GRU, 3, 4, 4, 1, CUDNN_DATA_INT8)));
  EXPECT_TRUE(is_not_supported(set(CUDNN_GRU, 3, 4, 4, 1, CUDNN_DATA_DOUBLE)));
  EXPECT_TRUE(is_bad_param(set(CUDNN_LSTM, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, CUDNN_DATA_FLOAT)));
  EXPECT_TRUE(is_bad_param(cudnnRNNSetClip_v9(n.rnn, CUDNN_RNN_CLIP_MINMAX, 1, -1)));
  EXPECT_TRUE(is_bad_param(cudnnBuildRNNDynamic(n.handle, n.rnn, 2)));
  EXPECT_TRUE(is_bad_param(cudnnGetRNNWeightSpaceSize(nullptr, n.rnn, &n.weight_bytes)));
  EXPECT_TRUE(is_bad_param(cudnnGetRNNWeightSpaceSize(n.handle, nullptr, &n.weight_bytes)));
  void* p;
  EXPECT_TRUE(is_bad_param(
      cudnnGetRNNWeightParams(n.handle, n.rnn, 1, n.weight_bytes, nullptr, 0, nullptr, &p, nullptr, nullptr)));
  EXPECT_TRUE(is_bad_param(
      cudnnGetRNNWeightParams(n.handle, n.rnn, 0, n.weight_bytes, nullptr, 9, nullptr, &p, nullptr, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnGetRNNWeightParams(n.handle, n.rnn, 0, 4, nullptr, 0, nullptr, &p, nullptr, nullptr)));
  int rising[] = {1, 2}, high[] = {5, 1};
  auto data = [&](cudnnRNNDataLayout_t layout, const int* lengths) {
    return cudnnSetRNNDataDescriptor(n.y_desc, c.type, layout, 4, 2, 4, lengths, nullptr);
  };
  EXPECT_TRUE(is_bad_param(data(kPacked, rising)));
  EXPECT_TRUE(is_bad_param(data(kBatchMajor, high)));
  EXPECT_TRUE(is_bad_param(data(kBatchMajor, nullptr)));
  EXPECT_TRUE(is_bad_param(data(static_cast<cudnnRNNDataLayout_t>(7), rising)));

  Flat x(c.type, c.rows() * c.inputs), w(c.type, static_cast<int64_t>(n.weight_bytes / 4)), y(c.type, c.rows() * 4);
  auto forward = [&](const void* from, void* to, size_t weight_bytes, size_t reserve_bytes, cudnnTensorDescriptor_t h) {
    return cudnnRNNForward(n.handle, n.rnn, CUDNN_FWD_MODE_TRAINING, nullptr, n.x_desc, from, n.y_desc, to, h, from,
                           nullptr, n.c_desc, nullptr, nullptr, weight_bytes, w.data(), n.work.size(), n.work.data(),
                           reserve_bytes, n.reserve.data());
  };
  size_t weights = n.weight_bytes, reserve = n.reserve.size();
  EXPECT_OK(forward(x.data(), y.data(), weights, reserve, n.h_desc));
  EXPECT_TRUE(is_bad_param(forward(nullptr, y.data(), weights, reserve, n.h_desc)));
  EXPECT_TRUE(is_bad_param(forward(x.data(), nullptr, weights, reserve, n.h_desc)));
  EXPECT_TRUE(is_bad_param(forward(x.data(), y.data(), weights - 4, reserve, n.h_desc)));
  EXPECT_TRUE(is_bad_param(forward(x.data(), y.data(), weights, reserve - 1, n.h_desc)));
  EXPECT_TRUE(is_bad_param(forward(x.data(), y.data(), weights, reserve, nullptr)));
  EXPECT_TRUE(is_bad_param(forward(x.data(), y.data(), weights, reserve, Tensor(c.type, {1, 3, 4}))));
  RnnDescriptor empty(cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor);
  EXPECT_TRUE(is_bad_param(cudnnGetRNNWeightSpaceSize(n.handle, empty, &weights)));
}

}  // namespace
