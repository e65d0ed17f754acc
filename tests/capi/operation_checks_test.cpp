// SPDX-License-Identifier: Apache-2.0
// What finalizing operations and graphs of the graph interface refuses, and with which status.
#include "graph_client.hpp"

namespace {

using namespace client;

constexpr int kBad = CUDNN_STATUS_BAD_PARAM;

// The status with which an operation is finalized.
int finalize(Net& net, int type, const Roles& roles, const std::function<void(Piece&)>& more = {}) {
  return status_of([&] {
    Piece& p = net.operation(type, roles);
    if (more) more(p);
    p.finalize();
  });
}

TEST(OperationChecks, Softmax) {
  auto with = [](const Dims& x, const Dims& y, const Dims& stats, const Dims& sink, bool log2 = false) {
    Net net;
    Roles roles = {{CUDNN_ATTR_OPERATION_SOFTMAX_XDESC, net.random(x)},
                   {CUDNN_ATTR_OPERATION_SOFTMAX_YDESC, net.output(y)}};
    if (!stats.empty()) roles.push_back({CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC, net.output(stats)});
    if (!sink.empty()) roles.push_back({CUDNN_ATTR_OPERATION_SOFTMAX_SINK_DESC, net.random(sink)});
    return finalize(net, CUDNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR, roles,
                    [&](Piece& p) { p.flag(CUDNN_ATTR_OPERATION_SOFTMAX_STATS_LOG2, log2); });
  };
  EXPECT_EQ(0, with({2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 1}, {1, 3, 1, 1}, true));
  EXPECT_EQ(kBad, with({3, 4, 5}, {3, 4, 5}, {}, {}));
  EXPECT_EQ(kBad, with({2, 3, 4, 5}, {2, 3, 4, 1}, {}, {}));
  EXPECT_EQ(kBad, with({2, 3, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 5}, {}));
  EXPECT_EQ(kBad, with({2, 3, 4, 5}, {2, 3, 4, 5}, {}, {1, 2, 1, 1}));
  EXPECT_EQ(kBad, with({2, 3, 4, 5}, {2, 3, 4, 5}, {}, {}, true));
}

TEST(OperationChecks, BandMask) {
  Net net;
  GraphTensor *x = net.random({2, 3, 4, 5}), *y = net.output({2, 3, 4, 5}), *fill = net.scalar(0),
              *length = net.input({2, 1, 1, 1}, {4, 3}, CUDNN_DATA_INT32),
              *sums = net.input({3, 1, 1, 1}, {0, 4, 7}, CUDNN_DATA_INT64), *one = net.scalar(1, CUDNN_DATA_INT32);
  auto with = [&](const Roles& more, GraphTensor* to) {
    Roles roles = {{CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC, x},
                   {CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC, fill},
                   {CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC, to}};
    roles.insert(roles.end(), more.begin(), more.end());
    return finalize(net, CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR, roles);
  };
  constexpr auto kQ = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_QDESC,
                 kKv = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_KVDESC,
                 kCuQ = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_QDESC,
                 kLeft = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_LEFT_BOUND_DESC,
                 kRight = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SHIFT_RIGHT_BOUND_DESC;
  EXPECT_EQ(0, with({}, y));
  EXPECT_EQ(0, with({{kCuQ, sums}, {kKv, length}, {kLeft, one}}, y));
  EXPECT_EQ(kBad, with({{kQ, length}}, y));
  EXPECT_EQ(kBad, with({{kQ, length}, {kCuQ, sums}, {kKv, length}}, y));
  EXPECT_EQ(kBad, with({{kCuQ, length}, {kKv, length}}, y));
  EXPECT_EQ(kBad, with({{kLeft, one}, {kRight, one}}, y));
  EXPECT_EQ(kBad, with({{kLeft, length}}, y));
  EXPECT_EQ(kBad, with({{kQ, net.random({2, 1, 1, 1})}, {kKv, length}}, y));
  EXPECT_EQ(kBad, with({}, net.output({2, 3, 4, 4})));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, finalize(net, CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR,
                                                           {{CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC, x},
                                                            {CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC, y}}));
}

TEST(OperationChecks, Movements) {
  auto transpose = [](const Dims& y, const Dims& perm, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    Net net;
    return finalize(net, CUDNN_BACKEND_OPERATION_TRANSPOSE_DESCRIPTOR,
                    {{CUDNN_ATTR_OPERATION_TRANSPOSE_XDESC, net.random({2, 3, 4})},
                     {CUDNN_ATTR_OPERATION_TRANSPOSE_YDESC, net.output(y, type)}},
                    [&](Piece& p) { p.ints(CUDNN_ATTR_OPERATION_TRANSPOSE_PERMUTATION, perm); });
  };
  EXPECT_EQ(0, transpose({4, 2, 3}, {2, 0, 1}));
  EXPECT_EQ(kBad, transpose({4, 2, 3}, {2, 0, 0}));
  EXPECT_EQ(kBad, transpose({4, 2, 3}, {2, 0}));
  EXPECT_EQ(kBad, transpose({4, 2, 3}, {0, 1, 3}));
  EXPECT_EQ(kBad, transpose({2, 3, 4}, {2, 0, 1}));
  EXPECT_EQ(kBad, transpose({4, 2, 3}, {2, 0, 1}, CUDNN_DATA_HALF));
  auto slice = [](const Dims& y, const Dims& start, const Dims& limit, const Dims& stride) {
    Net net;
    return finalize(
        net, CUDNN_BACKEND_OPERATION_SLICE_DESCRIPTOR,
        {{CUDNN_ATTR_OPERATION_SLICE_XDESC, net.random({4, 6})}, {CUDNN_ATTR_OPERATION_SLICE_YDESC, net.output(y)}},
        [&](Piece& p) {
          p.ints(CUDNN_ATTR_OPERATION_SLICE_START_INDICES, start)
              .ints(CUDNN_ATTR_OPERATION_SLICE_LIMIT_INDICES, limit)
              .ints(CUDNN_ATTR_OPERATION_SLICE_STRIDES, stride);
        });
  };
  EXPECT_EQ(0, slice({3, 3}, {1, 0}, {4, 5}, {1, 2}));
  EXPECT_EQ(kBad, slice({3, 2}, {1, 0}, {4, 5}, {1, 2}));
  EXPECT_EQ(kBad, slice({3, 3}, {1, 0}, {5, 5}, {1, 2}));
  EXPECT_EQ(kBad, slice({3, 3}, {-1, 0}, {2, 5}, {1, 2}));
  EXPECT_EQ(kBad, slice({3, 3}, {1, 0}, {4, 5}, {1, 0}));
  auto reshape = [](const Dims& y, cudnnDataType_t type) {
    Net net;
    return finalize(net, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                    {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, net.random({4, 6})},
                     {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, net.output(y, type)}});
  };
  EXPECT_EQ(0, reshape({2, 12}, CUDNN_DATA_HALF));
  EXPECT_EQ(kBad, reshape({2, 11}, CUDNN_DATA_FLOAT));
}

TEST(OperationChecks, RotaryDimensions) {
  auto rope = [](const Dims& x, const Dims& y, int64_t dim) {
    Net net;
    return finalize(net, CUDNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR,
                    {{CUDNN_ATTR_OPERATION_ROPE_FWD_XDESC, net.random(x)},
                     {CUDNN_ATTR_OPERATION_ROPE_FWD_YDESC, net.output(y)},
                     {CUDNN_ATTR_OPERATION_ROPE_FWD_FREQSDESC, net.random({3, 1, 1, 8})}},
                    [&](Piece& p) { p.ints(CUDNN_ATTR_OPERATION_ROPE_FWD_ROPE_DIM, {dim}); });
  };
  EXPECT_EQ(0, rope({1, 2, 3, 8}, {1, 2, 3, 8}, 0));
  EXPECT_EQ(0, rope({1, 2, 3, 8}, {1, 2, 3, 8}, 4));
  EXPECT_EQ(kBad, rope({1, 2, 3, 8}, {1, 2, 3, 8}, 3));
  EXPECT_EQ(kBad, rope({1, 2, 3, 8}, {1, 2, 3, 8}, 10));
  EXPECT_EQ(kBad, rope({1, 2, 3, 7}, {1, 2, 3, 7}, 0));
  EXPECT_EQ(kBad, rope({1, 2, 3, 8}, {1, 2, 3, 6}, 0));
  // 0 stands for the whole head, and is read so.
  Net net;
  Piece& p = net.operation(CUDNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR,
                           {{CUDNN_ATTR_OPERATION_ROPE_FWD_XDESC, net.random({1, 2, 3, 8})},
                            {CUDNN_ATTR_OPERATION_ROPE_FWD_YDESC, net.output({1, 2, 3, 8})},
                            {CUDNN_ATTR_OPERATION_ROPE_FWD_FREQSDESC, net.random({3, 1, 1, 8})}})
                 .finalize();
  int64_t dim = 0, count = 0;
  EXPECT_OK(cudnnBackendGetAttribute(p, CUDNN_ATTR_OPERATION_ROPE_FWD_ROPE_DIM, CUDNN_TYPE_INT64, 1, &count, &dim));
  EXPECT_EQ(8, dim);
}

TEST(OperationChecks, Reductions) {
  auto with = [](const Dims& y, int64_t groups) {
    Net net;
    Roles roles = {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, net.random({1, 9, 4})},
                   {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, net.output(y)}};
    if (groups > 0)
      roles.push_back(
          {CUDNN_ATTR_OPERATION_REDUCTION_GROUP_OFFSET_DESC, net.input({groups, 1, 1}, {0}, CUDNN_DATA_INT32)});
    return finalize(net, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, roles);
  };
  EXPECT_EQ(0, with({1, 1, 4}, 0));
  EXPECT_EQ(0, with({3, 1, 4}, 3));
  EXPECT_EQ(kBad, with({2, 1, 4}, 3));
  EXPECT_EQ(kBad, with({3, 1, 2}, 3));
  EXPECT_EQ(kBad, with({1, 4}, 0));
}

TEST(OperationChecks, Attention) {
  auto with = [](const std::function<void(Net&, Roles&)>& change, cudnnDataType_t type = CUDNN_DATA_HALF,
                 int64_t heads = 2, const std::function<void(Piece&)>& more = {}) {
    Net net;
    auto tensor = [&](const Dims& d) { return net.add(type, d, packed(d), false, false); };
    Roles roles = {{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, tensor({2, 4, 5, 8})},
                   {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, tensor({2, heads, 7, 8})},
                   {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, tensor({2, heads, 7, 8})},
                   {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, tensor({2, 4, 5, 8})}};
    change(net, roles);
    return finalize(net, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, roles, more);
  };
  auto nothing = [](Net&, Roles&) {};
  EXPECT_EQ(0, with(nothing));
  EXPECT_EQ(kBad, with(nothing, CUDNN_DATA_HALF, 3));
  EXPECT_EQ(kBad, with(nothing, CUDNN_DATA_FP8_E4M3));  // without its factors
  EXPECT_EQ(
      kBad, with([](Net& net, Roles& r) {
        r.push_back({CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, net.input({2, 1, 1, 1}, {7, 5}, CUDNN_DATA_INT32)});
      }));
  EXPECT_EQ(kBad, with([](Net& net, Roles& r) {
              r.push_back({CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_QDESC, net.random({1, 1, 1, 1})});
            }));
  EXPECT_EQ(kBad, with(nothing, CUDNN_DATA_HALF, 2, [](Piece& p) {
              p.set(CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_PROBABILITY, CUDNN_TYPE_FLOAT, std::vector{0.5f});
            }));
  EXPECT_EQ(kBad, with(nothing, CUDNN_DATA_HALF, 2,
                       [](Piece& p) { p.ints(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID, {3}); }));
}

// Graphs: what single operations do not show.

cudnnStatus_t run(Net& net) {
  return status_of([&] { net.run(); });
}

TEST(OperationChecks, AnIdStandsForOneTensor) {
  Net net;
  GraphTensor *x = net.random({4}), *y = net.output({4}), *other = net.output({5});
  GraphTensor again(x->uid, CUDNN_DATA_FLOAT, {4}, {1}, false, false),
      conflict(x->uid, CUDNN_DATA_HALF, {5}, {1}, false, false);
  again.desc.finalize();
  conflict.desc.finalize();
  net.pointwise(CUDNN_POINTWISE_NEG, x, nullptr, y);
  GraphTensor* z = net.output({4});
  net.pointwise(CUDNN_POINTWISE_ABS, &again, nullptr, z);  // the same tensor under another descriptor
  EXPECT_OK(run(net));
  net.pointwise(CUDNN_POINTWISE_NEG, &conflict, nullptr, other);
  EXPECT_EQ(kBad, run(net));
}

TEST(OperationChecks, GraphsThatCannotBe) {
  {
    Net net;  // two producers
    GraphTensor *x = net.random({4}), *y = net.output({4});
    net.pointwise(CUDNN_POINTWISE_NEG, x, nullptr, y);
    net.pointwise(CUDNN_POINTWISE_ABS, x, nullptr, y);
    EXPECT_TRUE(is_bad_param(run(net)));
  }
  {
    Net net;  // a cycle
    GraphTensor *a = net.hidden({4}), *b = net.hidden({4}), *x = net.random({4}), *y = net.output({4});
    net.pointwise(CUDNN_POINTWISE_ADD, x, b, a);
    net.pointwise(CUDNN_POINTWISE_NEG, a, nullptr, b);
    net.pointwise(CUDNN_POINTWISE_NEG, a, nullptr, y);
    EXPECT_TRUE(is_bad_param(run(net)));
  }
  {
    Net net;  // sizes that do not broadcast
    net.pointwise(CUDNN_POINTWISE_ADD, net.random({4}), net.random({3}), net.output({4}));
    EXPECT_TRUE(is_bad_param(run(net)));
  }
  {
    Net net;  // a mode that does not exist
    net.pointwise(static_cast<cudnnPointwiseMode_t>(99), net.random({4}), nullptr, net.output({4}));
    EXPECT_TRUE(is_bad_param(run(net)));
  }
  {
    Net net;  // a comparison that is none
    GraphTensor *x = net.random({1, 1, 2, 2}), *y = net.output({1, 1, 2, 2});
    net.operation(CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC, x},
                   {CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC, net.scalar(0)},
                   {CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC, y}})
        .set(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE, CUDNN_TYPE_POINTWISE_MODE,
             std::vector{CUDNN_POINTWISE_ADD})
        .finalize();
    EXPECT_TRUE(is_bad_param(run(net)));
  }
}

TEST(OperationChecks, SignalsAreNotSupported) {
  Net net;
  GraphTensor *flag = net.input({1}, {0}, CUDNN_DATA_INT32), *x = net.random({4}), *y = net.output({4});
  cudnnStatus_t s = status_of([&] {
    net.operation(CUDNN_BACKEND_OPERATION_SIGNAL_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_SIGNAL_FLAGDESC, flag},
                                                              {CUDNN_ATTR_OPERATION_SIGNAL_XDESC, x},
                                                              {CUDNN_ATTR_OPERATION_SIGNAL_YDESC, y}})
        .set(CUDNN_ATTR_OPERATION_SIGNAL_MODE, CUDNN_TYPE_SIGNAL_MODE, std::vector{CUDNN_SIGNAL_SET})
        .set(CUDNN_ATTR_OPERATION_SIGNAL_VALUE, CUDNN_TYPE_INT64, std::vector<int64_t>{1})
        .finalize();
    net.run();
  });
  EXPECT_TRUE(is_not_supported(s)) << s;
}

}  // namespace
