// SPDX-License-Identifier: Apache-2.0
// Normalisations, movements, random numbers and block scales of the graph interface against plain loops.
#include <algorithm>
#include <numeric>

#include "graph_client.hpp"

namespace {

using namespace client;

Piece& norm_forward(Net& net, cudnnBackendNormMode_t mode, cudnnBackendNormFwdPhase_t phase, const Roles& roles) {
  return net.operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR, roles)
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, std::vector{mode})
      .set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, std::vector{phase});
}

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const Values& v) {
  Moments m;
  for (double x : v) m.mean += x / static_cast<double>(v.size());
  for (double x : v) m.variance += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
  return m;
}

TEST(Layers, LayerAndRmsNorm) {
  for (cudnnBackendNormMode_t mode : {CUDNN_LAYER_NORM, CUDNN_RMS_NORM})
    for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16}) {
      bool rms = mode == CUDNN_RMS_NORM;
      Net net;
      GraphTensor *x = net.random({4, 9, 1, 1}, type), *scale = net.random({1, 9, 1, 1}),
                  *bias = net.random({1, 9, 1, 1}), *y = net.output({4, 9, 1, 1}),
                  *mean = rms ? nullptr : net.output({4, 1, 1, 1}), *inv = net.output({4, 1, 1, 1});
      norm_forward(net, mode, CUDNN_NORM_FWD_TRAINING,
                   {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x},
                    {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale},
                    {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, bias},
                    {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, net.scalar(1e-3)},
                    {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y},
                    {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, mean},
                    {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, inv}})
          .finalize();
      net.run();
      Values wanted, means, invs, v = x->values(), s = scale->values(), b = bias->values();
      for (size_t r = 0; r < 4; ++r) {
        Values row(&v[r * 9], &v[r * 9] + 9);
        Moments m = moments(row);
        if (rms) m = {0, m.variance + m.mean * m.mean};
        means.push_back(m.mean);
        invs.push_back(1 / std::sqrt(m.variance + 1e-3));
        for (size_t i = 0; i < 9; ++i) wanted.push_back((row[i] - m.mean) * invs[r] * s[i] + b[i]);
      }
      expect_near(wanted, y->values());
      expect_near(invs, inv->values());
      if (!rms) expect_near(means, mean->values());
    }
}

TEST(Layers, BatchNormTracksRunningStatistics) {
  Net net;
  Dims d = {3, 2, 4, 5}, c = {1, 2, 1, 1};
  GraphTensor *x = net.random(d), *scale = net.random(c), *bias = net.random(c), *old_mean = net.random(c),
              *old_var = net.input(c, {0.5, 2}), *y = net.output(d), *mean = net.output(c), *inv = net.output(c),
              *new_mean = net.output(c), *new_var = net.output(c);
  norm_forward(net, CUDNN_BATCH_NORM, CUDNN_NORM_FWD_TRAINING,
               {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x},
                {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale},
                {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, bias},
                {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, net.scalar(1e-3)},
                {CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, net.scalar(0.25)},
                {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, old_mean},
                {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, old_var},
                {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, new_mean},
                {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, new_var},
                {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y},
                {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, mean},
                {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, inv}})
      .finalize();
  // The same values by the inference form, from the statistics just computed.
  GraphTensor* again = net.output(d);
  norm_forward(net, CUDNN_BATCH_NORM, CUDNN_NORM_FWD_INFERENCE,
               {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x},
                {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, mean},
                {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, inv},
                {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale},
                {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, bias},
                {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, again}})
      .finalize();
  net.run();
  Values v = x->values(), wanted(v.size()), means, vars;
  for (size_t ch = 0; ch < 2; ++ch) {
    Values of;
    for (size_t i = 0; i < v.size(); ++i)
      if (i / 20 % 2 == ch) of.push_back(v[i]);
    Moments m = moments(of);
    for (size_t i = 0; i < v.size(); ++i)
      if (i / 20 % 2 == ch)
        wanted[i] = (v[i] - m.mean) / std::sqrt(m.variance + 1e-3) * scale->values()[ch] + bias->values()[ch];
    means.push_back(0.75 * old_mean->values()[ch] + 0.25 * m.mean);
    vars.push_back(0.75 * old_var->values()[ch] + 0.25 * m.variance * 60 / 59);
  }
  expect_near(wanted, y->values());
  expect_near(wanted, again->values());
  expect_near(means, new_mean->values());
  expect_near(vars, new_var->values());
}

// The gradient by differences: dx = d sum(dy * y) / dx.
TEST(Layers, NormGradients) {
  for (cudnnBackendNormMode_t mode : {CUDNN_LAYER_NORM, CUDNN_INSTANCE_NORM}) {
    bool layer = mode == CUDNN_LAYER_NORM;
    Dims d = {2, 3, 2, 2}, params = layer ? Dims{1, 3, 2, 2} : Dims{1, 3, 1, 1},
         stats = layer ? Dims{2, 1, 1, 1} : Dims{2, 3, 1, 1};
    Net net;
    GraphTensor *x = net.random(d), *dy = net.random(d), *scale = net.random(params);
    auto forward = [&](const Values& v, Values* means, Values* invs) {
      size_t group = layer ? 12 : 4, per = layer ? 1 : 4;
      Values y, s = scale->values();
      for (size_t g = 0; g < v.size() / group; ++g) {
        Moments m = moments(Values(&v[g * group], &v[g * group] + group));
        double inv = 1 / std::sqrt(m.variance + 1e-3);
        if (means) means->push_back(m.mean), invs->push_back(inv);
        for (size_t i = 0; i < group; ++i)
          y.push_back((v[g * group + i] - m.mean) * inv * s[(g * group + i) / per % s.size()]);
      }
      return y;
    };
    Values means, invs, v = x->values(), grad = dy->values();
    forward(v, &means, &invs);
    GraphTensor *mean = net.input(stats, means), *inv = net.input(stats, invs), *dx = net.output(d),
                *dscale = net.output(params), *dbias = net.output(params);
    net.operation(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, x},
                   {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, dy},
                   {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, scale},
                   {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, mean},
                   {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, inv},
                   {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, dx},
                   {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, dscale},
                   {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, dbias}})
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, std::vector{mode})
        .finalize();
    net.run();
    Values wanted, sums(dbias->values().size(), 0);
    auto loss = [&](const Values& at) {
      Values y = forward(at, nullptr, nullptr);
      return std::inner_product(y.begin(), y.end(), grad.begin(), 0.0);
    };
    for (size_t i = 0; i < v.size(); ++i) {
      Values more = v, less = v;
      more[i] += 1e-5, less[i] -= 1e-5;
      wanted.push_back((loss(more) - loss(less)) / 2e-5);
      sums[i / (layer ? 1 : 4) % sums.size()] += grad[i];
    }
    expect_near(wanted, dx->values(), 1e-4);
    expect_near(sums, dbias->values());
  }
}

TEST(Layers, StatisticsOfBatchNormInPieces) {
  Net net;
  Dims d = {2, 3, 4, 4}, c = {1, 3, 1, 1};
  GraphTensor *x = net.random(d, CUDNN_DATA_HALF), *sum = net.output(c), *sq_sum = net.output(c),
              *scale = net.random(c), *bias = net.random(c), *eq_scale = net.output(c), *eq_bias = net.output(c),
              *mean = net.output(c), *inv = net.output(c);
  net.operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_GENSTATS_XDESC, x},
                                                               {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum},
                                                               {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, sq_sum}})
      .set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, std::vector{CUDNN_GENSTATS_SUM_SQSUM})
      .type(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_INT8)  // as some clients say it
      .finalize();
  net.operation(CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC, sum},
                 {CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC, sq_sum},
                 {CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC, scale},
                 {CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC, bias},
                 {CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC, eq_scale},
                 {CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC, eq_bias},
                 {CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC, mean},
                 {CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC, inv},
                 {CUDNN_ATTR_OPERATION_BN_FINALIZE_EPSILON_DESC, net.scalar(1e-3)},
                 {CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC, net.scalar(32, CUDNN_DATA_INT64)}})
      .set(CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE, CUDNN_TYPE_BN_FINALIZE_STATS_MODE,
           std::vector{CUDNN_BN_FINALIZE_STATISTICS_TRAINING})
      .type(CUDNN_ATTR_OPERATION_BN_FINALIZE_MATH_PREC, CUDNN_DATA_FLOAT)
      .finalize();
  // Its gradient's weights: dx = eq_dy_scale dy + eq_x_scale x + eq_bias.
  GraphTensor *dy = net.random(d), *dscale = net.output(c), *dbias = net.output(c), *a = net.output(c),
              *b = net.output(c), *e = net.output(c);
  net.operation(CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, x},
                 {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, dy},
                 {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, mean},
                 {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, inv},
                 {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, scale},
                 {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, dscale},
                 {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, dbias},
                 {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, a},
                 {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, b},
                 {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, e}})
      .type(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_DATA_FLOAT)
      .finalize();
  net.run();
  Values v = x->values(), g = dy->values(), sums, squares, scales, biases, ds, db;
  for (size_t ch = 0; ch < 3; ++ch) {
    Values of, dys;
    for (size_t i = 0; i < v.size(); ++i)
      if (i / 16 % 3 == ch) of.push_back(v[i]), dys.push_back(g[i]);
    Moments m = moments(of);
    double inv_std = 1 / std::sqrt(m.variance + 1e-3);
    sums.push_back(m.mean * 32);
    squares.push_back((m.variance + m.mean * m.mean) * 32);
    scales.push_back(scale->values()[ch] * inv_std);
    biases.push_back(bias->values()[ch] - m.mean * scales.back());
    db.push_back(std::accumulate(dys.begin(), dys.end(), 0.0));
    ds.push_back(0);
    for (size_t i = 0; i < 32; ++i) ds.back() += dys[i] * (of[i] - m.mean) * inv_std;
  }
  expect_near(sums, sum->values());
  expect_near(squares, sq_sum->values());
  expect_near(scales, eq_scale->values());
  expect_near(biases, eq_bias->values());
  expect_near(ds, dscale->values());
  expect_near(db, dbias->values());
  expect_near(scales, a->values());
}

// --- movements

TEST(Layers, Movements) {
  Net net;
  GraphTensor *x = net.random({2, 4, 6}, CUDNN_DATA_HALF), *turned = net.output({6, 2, 4}, CUDNN_DATA_HALF),
              *cut = net.output({1, 2, 3}, CUDNN_DATA_HALF), *flat = net.output({8, 6}, CUDNN_DATA_HALF, {1, 8}),
              *other = net.random({2, 1, 6}, CUDNN_DATA_HALF), *joined = net.output({2, 5, 6}, CUDNN_DATA_HALF);
  net.operation(CUDNN_BACKEND_OPERATION_TRANSPOSE_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_TRANSPOSE_XDESC, x}, {CUDNN_ATTR_OPERATION_TRANSPOSE_YDESC, turned}})
      .ints(CUDNN_ATTR_OPERATION_TRANSPOSE_PERMUTATION, {2, 0, 1})
      .finalize();
  net.operation(CUDNN_BACKEND_OPERATION_SLICE_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_SLICE_XDESC, x}, {CUDNN_ATTR_OPERATION_SLICE_YDESC, cut}})
      .ints(CUDNN_ATTR_OPERATION_SLICE_START_INDICES, {1, 0, 1})
      .ints(CUDNN_ATTR_OPERATION_SLICE_LIMIT_INDICES, {2, 3, 6})
      .ints(CUDNN_ATTR_OPERATION_SLICE_STRIDES, {1, 2, 2})
      .finalize();
  net.operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, flat}})
      .set(CUDNN_ATTR_OPERATION_RESHAPE_MODE, CUDNN_TYPE_RESHAPE_MODE, std::vector{CUDNN_RESHAPE_LOGICAL})
      .finalize();
  net.operation(CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC, joined}})
      .set(CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS, {x->desc, other->desc})
      .ints(CUDNN_ATTR_OPERATION_CONCAT_AXIS, {1})
      .finalize();
  net.run();
  Values v = x->values(), o = other->values(), t, c, j;
  for (size_t k = 0; k < 6; ++k)
    for (size_t i = 0; i < 8; ++i) t.push_back(v[i * 6 + k]);
  for (size_t i : {0, 2})
    for (size_t k : {1, 3, 5}) c.push_back(v[24 + i * 6 + k]);
  for (size_t b = 0; b < 2; ++b) {
    j.insert(j.end(), &v[b * 24], &v[b * 24] + 24);
    j.insert(j.end(), &o[b * 6], &o[b * 6] + 6);
  }
  expect_near(t, turned->values(), 0);
  expect_near(c, cut->values(), 0);
  expect_near(v, flat->values(), 0);
  expect_near(j, joined->values(), 0);
}

// A view of the same memory: a transposed matrix told by its strides.
TEST(Layers, ReshapeIsAView) {
  Net net;
  GraphTensor *x = net.random({1, 1, 4, 6}), *y = net.output({1, 1, 6, 4}, CUDNN_DATA_FLOAT, {24, 24, 1, 6});
  net.operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y}})
      .finalize();
  net.run();
  Values wanted, v = x->values();
  for (size_t i = 0; i < 24; ++i) wanted.push_back(v[i % 4 * 6 + i / 4]);
  expect_near(wanted, y->values(), 0);
}

TEST(Layers, PagesBecomeSequences) {
  for (bool transposed : {false, true}) {
    Net net;
    GraphTensor *container = net.random({5, 2, 3, 4}), *table = net.input({2, 1, 2, 1}, {4, 0, 2, 1}, CUDNN_DATA_INT32),
                *lengths = net.input({2, 1, 1, 1}, {6, 4}, CUDNN_DATA_INT32),
                *y = transposed ? net.output({2, 2, 4, 6}, CUDNN_DATA_FLOAT, {48, 24, 1, 4}) : net.output({2, 2, 6, 4});
    net.operation(CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC, container},
                   {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC, table},
                   {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC, lengths},
                   {CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC, y}})
        .finalize();
    net.run();
    Values wanted(96), c = container->values();
    const size_t kPages[] = {4, 0, 2, 1}, kLengths[] = {6, 4};
    for (size_t i = 0; i < 96; ++i) {
      size_t e = i % 4, s = i / 4 % 6, h = i / 24 % 2, b = i / 48;
      double v = s < kLengths[b] ? c[((kPages[b * 2 + s / 3] * 2 + h) * 3 + s % 3) * 4 + e] : 0;
      wanted[transposed ? ((b * 2 + h) * 4 + e) * 6 + s : i] = v;
    }
    expect_near(wanted, y->values(), 0);
  }
}

// --- random numbers

TEST(Layers, RandomNumbers) {
  for (cudnnRngDistribution_t distribution :
       {CUDNN_RNG_DISTRIBUTION_BERNOULLI, CUDNN_RNG_DISTRIBUTION_UNIFORM, CUDNN_RNG_DISTRIBUTION_NORMAL}) {
    Net net;
    GraphTensor *seed = net.input({1, 1, 1, 1}, {42}, CUDNN_DATA_INT64), *offset = net.scalar(0, CUDNN_DATA_INT64),
                *later = net.scalar(4, CUDNN_DATA_INT64);
    std::vector<GraphTensor*> results;
    Piece& p = net.part(CUDNN_BACKEND_RNG_DESCRIPTOR);
    p.set(CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, std::vector{distribution});
    p.set(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, std::vector{0.25});
    p.set(CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM, CUDNN_TYPE_DOUBLE, std::vector{2.0});
    p.set(CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM, CUDNN_TYPE_DOUBLE, std::vector{6.0});
    p.set(CUDNN_ATTR_RNG_NORMAL_DIST_MEAN, CUDNN_TYPE_DOUBLE, std::vector{-1.0});
    p.set(CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION, CUDNN_TYPE_DOUBLE, std::vector{3.0}).finalize();
    for (int i = 0; i < 3; ++i) {
      results.push_back(net.output({2, 3, 50, 50}));
      Piece& op = net.operation(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
                                {{CUDNN_ATTR_OPERATION_RNG_YDESC, results[i]},
                                 {CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, i == 2 ? later : offset}});
      op.set(CUDNN_ATTR_OPERATION_RNG_DESC, {p});
      if (i == 1)
        op.ints(CUDNN_ATTR_OPERATION_RNG_SEED, {42});  // a number, or a tensor
      else
        op.set(CUDNN_ATTR_OPERATION_RNG_SEED, {seed->desc});
      op.finalize();
    }
    net.run();
    Values v = results[0]->values();
    expect_near(v, results[1]->values(), 0);
    EXPECT_NE(v, results[2]->values());
    Moments m = moments(v);
    double mean = distribution == CUDNN_RNG_DISTRIBUTION_BERNOULLI ? 0.25
                  : distribution == CUDNN_RNG_DISTRIBUTION_UNIFORM ? 4
                                                                   : -1;
    double variance = distribution == CUDNN_RNG_DISTRIBUTION_BERNOULLI ? 0.1875
                      : distribution == CUDNN_RNG_DISTRIBUTION_UNIFORM ? 16.0 / 12
                                                                       : 9;
    EXPECT_NEAR(mean, m.mean, 4 * std::sqrt(variance / 15000));
    EXPECT_NEAR(variance, m.variance, 0.05 * variance);
  }
}

// --- block scales: there and back

// Quantises rows of 64 numbers in blocks, and multiplies what comes of it by the scales again.
struct BlockScales {
  BlockScales(cudnnDataType_t type, cudnnDataType_t scale_type, int block)
      : x(net.random({1, 4, 64})),
        narrow(net.add(type, {1, 4, 64}, {256, 64, 1}, false, false)),
        scale(net.output({1, 4, 64 / block}, scale_type)),
        y(net.output({1, 4, 64})) {
    GraphTensor* back = net.hidden({1, 4, 64});
    net.operation(CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC, x},
                   {CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC, narrow},
                   {CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC, scale}})
        .type(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE, CUDNN_TYPE_INT32, std::vector{block})
        .finalize();
    net.operation(CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC, narrow},
                   {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC, scale},
                   {CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC, back}})
        .type(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE, CUDNN_TYPE_INT32, std::vector{1, block})
        .flag(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE, true)
        .finalize();
    net.pointwise(CUDNN_POINTWISE_NEG, back, nullptr, y);
    net.run();
  }
  Net net;
  GraphTensor *x, *narrow, *scale, *y;
};

TEST(Layers, BlockScalesThereAndBack) {
  BlockScales b(CUDNN_DATA_FP8_E4M3, CUDNN_DATA_FP8_E8M0, 32);
  expect_near(b.x->values(), b.y->values(), 0x1p-4);  // three bits of mantissa
  Values s;
  for (int i = 0; i < 8; ++i) s.push_back(std::ldexp(1, b.scale->data()[i] - 127));
  for (double v : s) EXPECT_EQ(0x1p-8, v);  // largest magnitudes between 0.5 and 1, over 448, rounded up
}

TEST(Layers, UnsignedBlockScalesThereAndBack) {
  for (int block : {16, 32}) {
    BlockScales b(CUDNN_DATA_FP4_E2M1, CUDNN_DATA_FP8_E5M3, block);
    Values x = b.x->values(), y = b.y->values();
    for (size_t i = 0; i < x.size(); i += static_cast<size_t>(block)) {
      double largest = 0;
      for (size_t k = 0; k < static_cast<size_t>(block); ++k) largest = std::max(largest, std::fabs(x[i + k]));
      unsigned bits = b.scale->data()[i / static_cast<size_t>(block)];  // five bits of exponent, three of mantissa
      double scale = std::ldexp(8 + bits % 8, static_cast<int>(bits / 8) - 15 - 3);
      EXPECT_NEAR(largest / 6, scale, scale / 16);
      for (size_t k = 0; k < static_cast<size_t>(block); ++k)
        EXPECT_NEAR(x[i + k], y[i + k], scale) << i + k;  // between 4 and 6 numbers are 2 apart
    }
  }
}

}  // namespace
