// SPDX-License-Identifier: Apache-2.0
// Attributes that do not matter for what an operation does are not looked at: programs leave anything in them.
#include "graph_client.hpp"

namespace {

using namespace client;

TEST(IrrelevantAttributes, OtherDistributions) {
  struct Row {
    cudnnRngDistribution_t distribution;
    double p, low, high, mean, deviation;
    double least, most;  // of what is drawn
  };
  for (const Row& r : {Row{CUDNN_RNG_DISTRIBUTION_BERNOULLI, 0.5, 3, -3, -1, -1, 0, 1},
                       Row{CUDNN_RNG_DISTRIBUTION_UNIFORM, -1, 2, 5, -1, -1, 2, 5},
                       Row{CUDNN_RNG_DISTRIBUTION_NORMAL, 7, 3, -3, 100, 1, 90, 110}}) {
    Net net;
    GraphTensor* y = net.output({2, 3, 8, 8});
    Piece& p = net.part(CUDNN_BACKEND_RNG_DESCRIPTOR);
    p.set(CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, std::vector{r.distribution});
    auto number = [&](int name, double v) { p.set(name, CUDNN_TYPE_DOUBLE, std::vector{v}); };
    number(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, r.p);
    number(CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM, r.low);
    number(CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM, r.high);
    number(CUDNN_ATTR_RNG_NORMAL_DIST_MEAN, r.mean);
    number(CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION, r.deviation);
    p.finalize();
    net.operation(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_RNG_YDESC, y}})
        .ints(CUDNN_ATTR_OPERATION_RNG_SEED, {5})
        .set(CUDNN_ATTR_OPERATION_RNG_DESC, {p})
        .finalize();
    net.run();
    double least = INFINITY, most = -INFINITY;
    for (double v : y->values()) least = std::min(least, v), most = std::max(most, v);
    EXPECT_LE(r.least, least);
    EXPECT_GE(r.most, most);
    EXPECT_LT(least, most);
  }
}

TEST(IrrelevantAttributes, OperandsThatAModeDoesNotHave) {
  Net net;
  GraphTensor *x = net.random({2, 3}), *other = net.random({5, 7}), *neg = net.output({2, 3}),
              *sum = net.output({2, 3}), *b = net.random({2, 3});
  net.pointwise(CUDNN_POINTWISE_NEG, x, other, neg, other);
  net.pointwise(CUDNN_POINTWISE_ADD, x, b, sum, other);
  net.run();
  Values v = x->values(), w = b->values();
  for (size_t i = 0; i < v.size(); ++i) {
    EXPECT_EQ(-v[i], neg->values()[i]);
    EXPECT_FLOAT_EQ(static_cast<float>(v[i] + w[i]), static_cast<float>(sum->values()[i]));
  }
}

Piece& resampling(Net& net, cudnnResampleMode_t mode, bool window) {
  Piece& p = net.part(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  p.set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE, std::vector{mode});
  p.type(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT).ints(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, {2});
  auto ratios = [&](int name, cudnnFraction_t f) { p.set(name, CUDNN_TYPE_FRACTION, std::vector{f, f}); };
  if (window) ratios(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, {2, 1});
  ratios(CUDNN_ATTR_RESAMPLE_STRIDES, window ? cudnnFraction_t{2, 1} : cudnnFraction_t{1, 2});
  ratios(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, {0, 1});
  ratios(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, {0, 1});
  return p.finalize();
}

TEST(IrrelevantAttributes, WindowsOfInterpolationAndIndicesOfMeans) {
  Net net;
  GraphTensor *x = net.random({1, 1, 4, 4}), *wide = net.output({1, 1, 8, 8}), *mean = net.output({1, 1, 2, 2}),
              *index = net.output({1, 1, 2, 2}, CUDNN_DATA_INT8);
  net.operation(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x}, {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, wide}})
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, {resampling(net, CUDNN_RESAMPLE_NEAREST, false)})
      .finalize();
  net.operation(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x},
                                                                  {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, mean},
                                                                  {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, index}})
      .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, {resampling(net, CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, true)})
      .finalize();
  net.run();
  Values v = x->values();
  EXPECT_NEAR((v[0] + v[1] + v[4] + v[5]) / 4, mean->values()[0], 1e-6);
  EXPECT_EQ(v[0], wide->values()[0]);
  for (double i : index->values()) EXPECT_EQ(-1, i);  // poison
}

// Inference of a layer norm neither reads nor gives statistics; running ones belong to batch norms.
TEST(IrrelevantAttributes, StatisticsOfInference) {
  Net net;
  GraphTensor *x = net.random({3, 4, 1, 1}), *scale = net.input({1, 4, 1, 1}, {1}),
              *bias = net.input({1, 4, 1, 1}, {0}), *y = net.output({3, 4, 1, 1}), *mean = net.output({3, 1, 1, 1}),
              *inverse = net.output({3, 1, 1, 1}), *running = net.random({7}), *more = net.output({7});
  net.operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x},
                 {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale},
                 {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, bias},
                 {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, net.scalar(1e-5)},
                 {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, mean},
                 {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, inverse},
                 {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, running},
                 {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, more},
                 {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y}})
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, std::vector{CUDNN_LAYER_NORM})
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, std::vector{CUDNN_NORM_FWD_INFERENCE})
      .finalize();
  net.run();
  Values v = x->values();
  for (size_t row = 0; row < 3; ++row) {
    double m = 0, square = 0;
    for (size_t i = 0; i < 4; ++i) m += v[row * 4 + i] / 4;
    for (size_t i = 0; i < 4; ++i) square += (v[row * 4 + i] - m) * (v[row * 4 + i] - m) / 4;
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR((v[row * 4 + i] - m) / std::sqrt(square + 1e-5), y->values()[row * 4 + i], 1e-4);
  }
}

}  // namespace
