// SPDX-License-Identifier: Apache-2.0
// Attention as programs of version 0 of the front end spell it out: scores in the order F16x16, virtual or kept from
// forward to backward, a descriptor of random numbers whose other parameters nobody set, masks from indices that are
// floats, minus infinity that is -1e20, and 8 bits with factors and largest magnitudes.
#include "attention_spelled.hpp"

namespace {

using namespace client;

constexpr double kFill = -1e20;

double tolerance_of(cudnnDataType_t type) { return std::max(2e-5, 6 * epsilon_of(type)); }

// The ones and zeros that a graph draws, times what the kept probabilities are multiplied by.
Values drawn(const AttentionCase& c, double p_keep, int64_t seed, int64_t offset) {
  Net net;
  GraphTensor* y = net.output(c.scores());
  Piece& p = net.part(CUDNN_BACKEND_RNG_DESCRIPTOR);
  p.set(CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, std::vector{CUDNN_RNG_DISTRIBUTION_BERNOULLI});
  p.set(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, std::vector{p_keep}).finalize();
  net.operation(
         CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
         {{CUDNN_ATTR_OPERATION_RNG_YDESC, y},
          {CUDNN_ATTR_OPERATION_RNG_SEED, net.input({1, 1, 1, 1}, {static_cast<double>(seed)}, CUDNN_DATA_INT64)},
          {CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC,
           net.input({1, 1, 1, 1}, {static_cast<double>(offset)}, CUDNN_DATA_INT64)}})
      .set(CUDNN_ATTR_OPERATION_RNG_DESC, {p})
      .finalize();
  net.run();
  return y->values();
}

struct Inputs {
  Inputs(const AttentionCase& c, cudnnDataType_t type)
      : q(sequence_values(c, type, true, 1)),
        k(sequence_values(c, type, false, 2)),
        v(sequence_values(c, type, false, 3)),
        dout(sequence_values(c, type, true, 4)) {}
  Values q, k, v, dout;
};

// max, difference, exponential, sum, quotient; the statistics where they are wanted.
GraphTensor* spell_softmax(SpelledAttention& a, GraphTensor* s, GraphTensor* p, GraphTensor* stats) {
  Net& net = a.net;
  GraphTensor *m = net.hidden(a.c.rows()), *l = net.hidden(a.c.rows());
  net.reduce(CUDNN_REDUCE_TENSOR_MAX, s, m);
  GraphTensor* e = a.apply(CUDNN_POINTWISE_EXP, a.apply(CUDNN_POINTWISE_SUB, s, m));
  net.reduce(CUDNN_REDUCE_TENSOR_ADD, e, l);
  if (stats) net.pointwise(CUDNN_POINTWISE_ADD, m, a.apply(CUDNN_POINTWISE_LOG, l), stats);
  net.pointwise(CUDNN_POINTWISE_DIV, e, l, p);
  return p;
}

// --- without padding: the backward pass computes the probabilities again

struct Dropout {
  GraphTensor *seed, *offset, *factor;
  double p_keep;
};

Dropout make_dropout(SpelledAttention& a, double p_keep) {
  auto number = [&](double v) { return a.net.input({1, 1, 1, 1}, {v}, CUDNN_DATA_INT64); };
  return {number(123456), number(1), a.net.scalar(1 / p_keep, a.type), p_keep};
}

void check_flash(AttentionCase c, cudnnDataType_t type, double p_keep) {
  c.causal = true;
  c.keep = drawn(c, p_keep, 123456, 1);
  unsigned char bytes[8];
  store(type, bytes, 1 / p_keep);
  for (double& x : c.keep) x *= load(type, bytes);
  Inputs in(c, type);
  AttentionResults want = attend(c, in.q, in.k, in.v, in.dout);
  {
    SpelledAttention a(c, type);
    Net& net = a.net;
    Dropout drop = make_dropout(a, p_keep);
    GraphTensor *q = net.input(c.q_dims(), in.q, type), *kt = a.turned_input(c.kv_dims(), in.k),
                *v = net.input(c.kv_dims(), in.v, type), *o = net.output(c.q_dims(), type),
                *stats = net.output(c.rows()), *s = a.scores(), *kept = a.reordered(type, true, c.scores());
    net.matmul(q, kt, s);
    s = a.masked(a.apply(CUDNN_POINTWISE_MUL, s, net.scalar(c.scale)), false, true, net.scalar(kFill), nullptr,
                 CUDNN_DATA_FLOAT);
    GraphTensor* p = spell_softmax(a, s, a.reordered(CUDNN_DATA_FLOAT, true, c.scores()), stats);
    net.pointwise(CUDNN_POINTWISE_MUL, p, a.random(p_keep, drop.seed, drop.offset), kept);
    net.matmul(a.apply(CUDNN_POINTWISE_MUL, kept, drop.factor, type), v, o);
    net.run();
    expect_near(want.o, o->values(), tolerance_of(type));
    expect_near(want.stats, stats->values());
  }
  SpelledAttention a(c, type);
  Net& net = a.net;
  Dropout drop = make_dropout(a, p_keep);
  GraphTensor *q = net.input(c.q_dims(), in.q, type), *kt = a.turned_input(c.kv_dims(), in.k),
              *vt = a.turned_input(c.kv_dims(), in.v), *o = net.input(c.q_dims(), want.o, type),
              *dout = net.input(c.q_dims(), in.dout, type), *stats = net.input(c.rows(), want.stats),
              *sums = net.hidden(c.rows()), *delta = net.output(c.rows()), *scale = net.scalar(c.scale),
              *s = a.scores(), *kept = a.reordered(type, true, c.scores()), *dq = net.output(c.q_dims(), type),
              *dk = net.output(c.kv_dims(), type), *dv = net.output(c.kv_dims(), type), *ds = a.scores(),
              *dq_sum = a.reordered(CUDNN_DATA_FLOAT, false, c.q_dims());
  net.reduce(CUDNN_REDUCE_TENSOR_ADD, a.apply(CUDNN_POINTWISE_MUL, dout, o), sums);
  net.pointwise(CUDNN_POINTWISE_MUL, sums, net.scalar(p_keep), delta);
  net.matmul(q, kt, s);
  s = a.masked(a.apply(CUDNN_POINTWISE_MUL, s, scale), false, true, net.scalar(kFill), nullptr, CUDNN_DATA_FLOAT);
  GraphTensor* p = a.apply(CUDNN_POINTWISE_EXP, a.apply(CUDNN_POINTWISE_SUB, s, stats));
  GraphTensor* mask = a.random(p_keep, drop.seed, drop.offset);
  net.pointwise(CUDNN_POINTWISE_MUL, p, mask, kept);
  net.matmul(a.turn(a.apply(CUDNN_POINTWISE_MUL, kept, drop.factor, type), type), dout, dv);
  net.matmul(dout, vt, ds);
  ds = a.apply(CUDNN_POINTWISE_SUB, a.apply(CUDNN_POINTWISE_MUL, ds, mask), delta);
  ds = a.apply(CUDNN_POINTWISE_MUL, a.apply(CUDNN_POINTWISE_MUL, ds, p), drop.factor);
  ds = a.apply(CUDNN_POINTWISE_MUL, ds, scale);
  net.matmul(ds, a.turn(kt, type), dq_sum);
  net.matmul(a.turn(ds, CUDNN_DATA_FLOAT), q, dk);
  net.pointwise(CUDNN_POINTWISE_IDENTITY, dq_sum, nullptr, dq);
  net.run();
  expect_near(want.dq, dq->values(), tolerance_of(type));
  expect_near(want.dk, dk->values(), tolerance_of(type));
  expect_near(want.dv, dv->values(), tolerance_of(type));
}

TEST(AttentionVersion0, RecomputedProbabilities) {
  for (AttentionCase c :
       choices<AttentionCase>({{2, 2, 16, 16, 8}, {1, 3, 7, 7, 16}, {2, 1, 130, 130, 64}}, {{2, 2, 16, 16, 8}}))
    for (cudnnDataType_t type :
         choices<cudnnDataType_t>({CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT}, {CUDNN_DATA_HALF}))
      for (double p_keep : {1.0, 0.8}) {
        SCOPED_TRACE(testing::Message() << "type " << type << ", " << c.sq << " steps, kept " << p_keep);
        check_flash(c, type, p_keep);
        if (HasFatalFailure()) return;
      }
}

// --- with padding: forward keeps the probabilities, in the order F16x16, for backward

struct Kept {
  Values memory, o;  // kept probabilities, before they are multiplied by the factor
};

Kept run_keeping_forward(const AttentionCase& c, cudnnDataType_t type, double p_keep, const Inputs& in) {
  SpelledAttention a(c, type);
  Net& net = a.net;
  bool drops = p_keep != 1;
  GraphTensor *q = net.input(c.q_dims(), in.q, type), *kt = a.turned_input(c.kv_dims(), in.k),
              *v = net.input(c.kv_dims(), in.v, type), *o = net.output(c.q_dims(), type), *s = a.scores(),
              *kept = a.reordered(type, false, c.scores()), *scaled = net.add(type, kt->dims, kt->strides, true, false);
  net.pointwise(CUDNN_POINTWISE_MUL, kt, net.scalar(c.scale, type), scaled);
  net.matmul(q, scaled, s, a.seq_q, a.seq_kv);
  if (!c.bias.empty()) s = a.apply(CUDNN_POINTWISE_ADD, s, net.input(c.bias_dims, c.bias, type));
  s = a.masked(s, true, c.causal, net.scalar(kFill), nullptr, CUDNN_DATA_FLOAT);
  GraphTensor* p = spell_softmax(a, s, drops ? a.reordered(CUDNN_DATA_FLOAT, true, c.scores()) : kept, nullptr);
  if (drops) {
    net.pointwise(CUDNN_POINTWISE_MUL, p, a.random(p_keep, nullptr, nullptr, 123456), kept);
    p = a.apply(CUDNN_POINTWISE_MUL, kept, net.scalar(1 / p_keep, type), type);
  }
  net.matmul(p, v, o, a.seq_q, nullptr, a.seq_kv);
  net.run();
  return {kept->values(), o->values()};
}

void check_keeping(const AttentionCase& given, cudnnDataType_t type, double p_keep) {
  AttentionCase c = given;
  auto rounded = [&](double x) {
    unsigned char bytes[8];
    store(type, bytes, x);
    return load(type, bytes);
  };
  c.scale = rounded(c.scale);
  for (double& x : c.bias) x = rounded(x);
  double factor = p_keep == 1 ? 1 : rounded(1 / p_keep);
  if (p_keep != 1) c.keep = drawn(c, p_keep, 123456, 0);
  Values ones = c.keep;
  for (double& x : c.keep) x *= factor;
  Inputs in(c, type);
  AttentionResults want = attend(c, in.q, in.k, in.v, in.dout);
  Kept kept = run_keeping_forward(c, type, p_keep, in);
  Values s = want.p;
  for (size_t i = 0; i < ones.size(); ++i) s[i] *= ones[i];
  expect_near(s, kept.memory, tolerance_of(type));
  expect_near(want.o, kept.o, tolerance_of(type));

  SpelledAttention a(c, type);
  Net& net = a.net;
  GraphTensor *q = net.input(c.q_dims(), in.q, type), *k = net.input(c.kv_dims(), in.k, type),
              *vt = a.turned_input(c.kv_dims(), in.v), *dout = net.input(c.q_dims(), in.dout, type),
              *p = a.reordered(type, false, c.scores()), *dq = net.output(c.q_dims(), type),
              *dk = net.output(c.kv_dims(), type), *dv = net.output(c.kv_dims(), type), *drop = net.scalar(1 / p_keep),
              *scale = net.scalar(c.scale), *zero = net.scalar(0), *dp = a.scores(), *sums = net.hidden(c.rows()),
              *mask = a.scores(CUDNN_DATA_BOOLEAN), *dropped = a.scores(), *ds = a.reordered(type, false, c.scores());
  p->fill(kept.memory);
  GraphTensor* pt = net.add(type, a.turned(c.scores()), a.turned_strides(c.scores()), true, false);
  GraphTensor* pt_scaled = net.add(type, pt->dims, pt->strides, true, false);
  GraphTensor* pt_abs = net.add(type, pt->dims, pt->strides, true, false);
  net.reshape(p, pt);
  net.pointwise(CUDNN_POINTWISE_MUL, pt, drop, pt_scaled);
  net.pointwise(CUDNN_POINTWISE_ABS, pt_scaled, nullptr, pt_abs);
  net.matmul(pt_abs, dout, dv, a.seq_kv, nullptr, a.seq_q);
  net.matmul(dout, vt, dp, a.seq_q, a.seq_kv);
  GraphTensor* p_abs = a.apply(CUDNN_POINTWISE_ABS, p, nullptr, type);
  net.pointwise(CUDNN_POINTWISE_CMP_GT, p, zero, mask);
  net.pointwise(CUDNN_POINTWISE_BINARY_SELECT, a.apply(CUDNN_POINTWISE_MUL, dp, drop), zero, dropped, mask);
  net.reduce(CUDNN_REDUCE_TENSOR_ADD, a.apply(CUDNN_POINTWISE_MUL, p_abs, dropped), sums);
  GraphTensor* x = a.apply(CUDNN_POINTWISE_MUL, p_abs, a.apply(CUDNN_POINTWISE_SUB, dropped, sums));
  a.masked(a.apply(CUDNN_POINTWISE_MUL, x, scale), true, c.causal, zero, ds, CUDNN_DATA_FLOAT);
  net.matmul(ds, k, dq, a.seq_q, nullptr, a.seq_kv);
  GraphTensor* dst = net.add(type, pt->dims, pt->strides, true, false);
  net.reshape(ds, dst);
  net.matmul(dst, q, dk, a.seq_kv, nullptr, a.seq_q);
  net.run();
  // As the graph says it: a probability that was dropped counts as 0 in the gradient of the softmax, too.
  AttentionResults y = want;
  std::fill(y.dq.begin(), y.dq.end(), 0), std::fill(y.dk.begin(), y.dk.end(), 0);
  for (size_t b = 0; b < c.b; ++b)
    for (size_t h = 0; h < c.h; ++h)
      for (size_t i = 0; i < c.queries(b); ++i)
        for (size_t j = 0; j < c.keys(b); ++j) {
          size_t row = (b * c.h + h) * c.sq + i, key = (b * c.h + h) * c.skv + j, at = row * c.skv + j;
          double g = ones.empty() ? want.ds[at] : ones[at] * want.ds[at];
          for (size_t e = 0; e < c.d; ++e) {
            y.dq[row * c.d + e] += c.scale * g * in.k[key * c.d + e];
            y.dk[key * c.d + e] += c.scale * g * in.q[row * c.d + e];
          }
        }
  expect_near(y.dq, dq->values(), tolerance_of(type));
  expect_near(y.dk, dk->values(), tolerance_of(type));
  expect_near(y.dv, dv->values(), tolerance_of(type));
}

TEST(AttentionVersion0, KeptProbabilities) {
  for (AttentionCase c :
       choices<AttentionCase>({{3, 2, 16, 16, 8}, {4, 1, 5, 9, 16}, {2, 2, 70, 130, 64}}, {{3, 2, 16, 16, 8}}))
    for (cudnnDataType_t type : choices<cudnnDataType_t>({CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}, {CUDNN_DATA_HALF}))
      for (bool causal : {false, true})
        for (double p_keep : {1.0, 0.8}) {
          c.causal = causal;
          c.len_q = {c.sq, 1, c.sq / 2, 0}, c.len_kv = {c.skv / 2, c.skv, 1, c.skv};
          c.len_q.resize(c.b), c.len_kv.resize(c.b);
          c.bias_dims = {1, static_cast<int64_t>(c.h), static_cast<int64_t>(c.sq), static_cast<int64_t>(c.skv)};
          c.bias.assign(c.h * c.sq * c.skv, 0);
          for (size_t i = 0; i < c.bias.size(); ++i) c.bias[i] = static_cast<double>(i % 5) / 4;
          SCOPED_TRACE(testing::Message()
                       << "type " << type << ", queries " << c.sq << ", kept " << p_keep << (causal ? ", causal" : ""));
          check_keeping(c, type, p_keep);
          if (HasFatalFailure()) return;
        }
}

// --- 8 bits: packed sequences, factors of all tensors, largest magnitudes; k^T and v^T are views of stored tensors

double largest(const Values& v) {
  double y = 0;
  for (double x : v)
    if (std::isfinite(x)) y = std::max(y, std::fabs(x));
  return y;
}

void expect_large(double want, GraphTensor* got) { EXPECT_NEAR(want, got->values()[0], 0.15 * want); }

// Products of 8-bit numbers, multiplied by one factor after the other.
GraphTensor* times(SpelledAttention& a, GraphTensor* x, std::initializer_list<GraphTensor*> factors) {
  for (GraphTensor* f : factors) {
    GraphTensor* y = a.net.add(CUDNN_DATA_FLOAT, x->dims, x->strides, true, false);
    a.net.pointwise(CUDNN_POINTWISE_MUL, x, f, y);
    x = y;
  }
  return x;
}

GraphTensor* stored_amax(SpelledAttention& a, GraphTensor* x) {
  GraphTensor* y = a.net.output({1, 1, 1, 1});
  a.net.reduce(CUDNN_REDUCE_TENSOR_AMAX, x, y);
  return y;
}

struct EightBits {
  AttentionCase c;
  double p_keep, descale_q = 0.5, descale_k = 0.75, descale_v = 0.25, scale_s = 256, scale_o = 32;
  Inputs in;  // as stored
  AttentionResults want;
};

EightBits make_eight_bits(AttentionCase c, double p_keep) {
  c.keep = drawn(c, p_keep, 123456, 1);
  for (double& x : c.keep) x /= p_keep;
  EightBits y = {c, p_keep, 0.5, 0.75, 0.25, 256, 32, Inputs(c, CUDNN_DATA_FP8_E4M3), {}};
  auto scaled = [](Values v, double f) {
    for (double& x : v) x *= f;
    return v;
  };
  y.want = attend(c, scaled(y.in.q, y.descale_q), scaled(y.in.k, y.descale_k), scaled(y.in.v, y.descale_v));
  return y;
}

void check_eight_bits(const EightBits& t) {
  const AttentionCase& c = t.c;
  SpelledAttention a(c, CUDNN_DATA_FP8_E4M3);
  Net& net = a.net;
  PackedSequences packed_qkv(a, CUDNN_DATA_FP8_E4M3, true, c.d, c.sq),
      packed_o(a, CUDNN_DATA_FP8_E4M3, true, c.d, c.sq);
  GraphTensor *q = packed_qkv.input(t.in.q), *k = packed_qkv.input(t.in.k), *v = packed_qkv.input(t.in.v),
              *kt = packed_qkv.add(true), *o = packed_o.add(), *s = a.scores(), *m = net.output(c.rows()),
              *l = net.hidden(c.rows()), *inverse = net.output(c.rows()),
              *kept = a.reordered(CUDNN_DATA_FLOAT, true, c.scores()), *seq = a.seq_q;
  kt->same_memory = k;
  auto number = [&](double x) { return net.input({1, 1, 1, 1}, {x}); };
  Dropout drop = make_dropout(a, t.p_keep);
  net.reshape(k, kt);
  net.matmul(q, kt, s, seq, seq, nullptr, -2000000);
  s = times(a, s, {net.scalar(c.scale), number(t.descale_q), number(t.descale_k)});
  net.reduce(CUDNN_REDUCE_TENSOR_MAX, s, m);
  GraphTensor* e = a.apply(CUDNN_POINTWISE_EXP, a.apply(CUDNN_POINTWISE_SUB, s, m));
  net.reduce(CUDNN_REDUCE_TENSOR_ADD, e, l);
  net.pointwise(CUDNN_POINTWISE_RECIPROCAL, l, nullptr, inverse);
  GraphTensor* p = a.apply(CUDNN_POINTWISE_MUL, e, inverse);
  net.pointwise(CUDNN_POINTWISE_MUL, p, a.random(t.p_keep, drop.seed, drop.offset), kept);
  GraphTensor *scaled = times(a, kept, {net.scalar(1 / t.p_keep)}), *amax_s = stored_amax(a, p),
              *rounded = a.scores(CUDNN_DATA_FP8_E4M3);
  net.pointwise(CUDNN_POINTWISE_MUL, scaled, number(t.scale_s), rounded);
  GraphTensor* product = net.add(CUDNN_DATA_FLOAT, c.q_dims(), o->strides, true, false);
  net.matmul(rounded, v, product, seq, nullptr, seq);
  GraphTensor* result = times(a, product, {number(1 / t.scale_s), number(t.descale_v)});
  net.pointwise(CUDNN_POINTWISE_MUL, result, number(t.scale_o), o);
  GraphTensor* amax_o = stored_amax(a, result);
  net.run();
  Values got = packed_o.read(o);
  for (double& x : got) x /= t.scale_o;
  double tolerance = 0.1 * largest(t.want.o);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(t.want.o[i], got[i], tolerance) << i;
  expect_large(largest(t.want.p), amax_s);
  expect_large(largest(t.want.o), amax_o);
  for (size_t b = 0; b < c.b; ++b)
    for (size_t h = 0; h < c.h; ++h)
      for (size_t i = 0; i < c.queries(b); ++i) {
        size_t row = (b * c.h + h) * c.sq + i;
        ASSERT_NEAR(t.want.max[row], m->values()[row], 1e-4);
        ASSERT_NEAR(1 / t.want.sum[row], inverse->values()[row], 1e-4);
      }
}

TEST(AttentionVersion0, EightBits) {
  for (AttentionCase c : choices<AttentionCase>({{3, 2, 16, 16, 16}, {2, 3, 9, 9, 32}}, {{3, 2, 16, 16, 16}}))
    for (double p_keep : {1.0, 0.8}) {
      c.len_q = {c.sq, 1, c.sq / 2};
      c.len_q.resize(c.b);
      c.len_kv = c.len_q;
      SCOPED_TRACE(testing::Message() << c.sq << " steps, kept " << p_keep);
      check_eight_bits(make_eight_bits(c, p_keep));
      if (HasFatalFailure()) return;
    }
}

// Gradients in E5M2 from maxima and inverse sums. As the graph says it, gradients of probabilities that were dropped
// are 0.
void check_eight_bits_backward(AttentionCase c, double p_keep) {
  constexpr cudnnDataType_t kIn = CUDNN_DATA_FP8_E4M3, kOut = CUDNN_DATA_FP8_E5M2;
  const double descale_q = 0.5, descale_k = 0.75, descale_v = 0.25, descale_o = 1.0 / 32, descale_do = 0.5;
  const double scale_s = 256, scale_ds = 64, scale_out = 16;
  c.keep = drawn(c, p_keep, 123456, 1);
  Values ones = c.keep;
  for (double& x : c.keep) x /= p_keep;
  auto scaled = [](Values v, double f) {
    for (double& x : v) x *= f;
    return v;
  };
  Values q = sequence_values(c, kIn, true, 1), k = sequence_values(c, kIn, false, 2),
         v = sequence_values(c, kIn, false, 3), dout = sequence_values(c, kOut, true, 4);
  Values tq = scaled(q, descale_q), tk = scaled(k, descale_k);
  AttentionResults want = attend(c, tq, tk, scaled(v, descale_v), scaled(dout, descale_do));
  Values wanted_ds(want.ds.size(), 0), dq(want.dq.size(), 0), dk(want.dk.size(), 0);
  for (size_t b = 0; b < c.b; ++b)
    for (size_t h = 0; h < c.h; ++h)
      for (size_t i = 0; i < c.queries(b); ++i)
        for (size_t j = 0; j < c.keys(b); ++j) {
          size_t row = (b * c.h + h) * c.sq + i, key = (b * c.h + h) * c.skv + j, at = row * c.skv + j;
          double shift = want.p[at] * want.delta[row];
          double ds = wanted_ds[at] = c.scale * ones[at] * ((want.ds[at] + shift) * p_keep - shift);
          for (size_t e = 0; e < c.d; ++e) {
            dq[row * c.d + e] += ds * tk[key * c.d + e];
            dk[key * c.d + e] += ds * tq[row * c.d + e];
          }
        }

  SpelledAttention a(c, kIn);
  Net& net = a.net;
  PackedSequences in(a, kIn, true, c.d, c.sq), out(a, kOut, true, c.d, c.sq);
  auto number = [&](double x) { return net.input({1, 1, 1, 1}, {x}); };
  Values inverse = want.sum;
  for (double& x : inverse) x = x == 0 ? 1 : 1 / x;
  Values most = want.max;  // beyond the lengths that of products which are all padding
  for (double& x : most) x = std::isfinite(x) ? x : -2e6 * c.scale * descale_q * descale_k;
  GraphTensor *gq = in.input(q), *gk = in.input(k), *gv = in.input(v), *kt = in.add(true), *vt = in.add(true),
              *o = in.input(scaled(want.o, 1 / descale_o)), *gdo = out.input(dout), *rdq = out.add(), *rdk = out.add(),
              *rdv = out.add(), *m = net.input(c.rows(), most), *z = net.input(c.rows(), inverse), *s = a.scores(),
              *seq = a.seq_q, *scale = net.scalar(c.scale), *dk_s = number(descale_k), *dq_s = number(descale_q),
              *ddo = number(descale_do), *dds = number(1 / scale_ds), *keep = net.scalar(p_keep),
              *kept = a.reordered(CUDNN_DATA_FLOAT, true, c.scores());
  kt->same_memory = gk, vt->same_memory = gv;
  Dropout drop = make_dropout(a, p_keep);
  auto product = [&](GraphTensor* x, GraphTensor* y, GraphTensor* rows, GraphTensor* columns, GraphTensor* terms,
                     const Dims& dims, double padding) {
    GraphTensor* r = net.hidden(dims);
    net.matmul(x, y, r, rows, columns, terms, padding);
    return r;
  };
  auto finish = [&](GraphTensor* x, GraphTensor* to) {
    net.pointwise(CUDNN_POINTWISE_MUL, x, number(scale_out), to);
    return stored_amax(a, x);
  };
  net.reshape(gk, kt);
  s = times(a, product(gq, kt, seq, seq, nullptr, c.scores(), -2000000), {scale, dq_s, dk_s});
  GraphTensor* p = a.apply(CUDNN_POINTWISE_MUL, a.apply(CUDNN_POINTWISE_EXP, a.apply(CUDNN_POINTWISE_SUB, s, m)), z);
  GraphTensor* mask = a.random(p_keep, drop.seed, drop.offset);
  net.pointwise(CUDNN_POINTWISE_MUL, p, mask, kept);
  GraphTensor *dropped = times(a, kept, {net.scalar(1 / p_keep)}), *rounded = a.scores(kIn);
  net.pointwise(CUDNN_POINTWISE_MUL, dropped, number(scale_s), rounded);
  GraphTensor* amax_dv = finish(
      times(a, product(a.turn(rounded, kIn), gdo, seq, nullptr, seq, c.kv_dims(), 0), {number(1 / scale_s), ddo}), rdv);
  net.reshape(gv, vt);
  GraphTensor* dp = times(a, product(gdo, vt, seq, seq, nullptr, c.scores(), 0), {ddo, number(descale_v)});
  dp = times(a, a.apply(CUDNN_POINTWISE_MUL, dp, mask), {keep});
  GraphTensor *real_o = net.hidden(c.q_dims()), *real_do = net.hidden(c.q_dims()), *sums = net.hidden(c.rows());
  net.pointwise(CUDNN_POINTWISE_MUL, o, number(descale_o), real_o);
  net.pointwise(CUDNN_POINTWISE_MUL, gdo, ddo, real_do);
  net.reduce(CUDNN_REDUCE_TENSOR_ADD, times(a, a.apply(CUDNN_POINTWISE_MUL, real_o, real_do), {keep}), sums);
  GraphTensor* ds = times(a, a.apply(CUDNN_POINTWISE_SUB, dp, sums), {scale});
  ds = a.apply(CUDNN_POINTWISE_MUL, dropped, ds);
  GraphTensor *amax_ds = stored_amax(a, ds), *small = a.scores(kOut);
  net.pointwise(CUDNN_POINTWISE_MUL, ds, number(scale_ds), small);
  GraphTensor* amax_dq = finish(times(a, product(small, gk, seq, nullptr, seq, c.q_dims(), 0), {dds, dk_s}), rdq);
  GraphTensor* amax_dk =
      finish(times(a, product(a.turn(small, kOut), gq, seq, nullptr, seq, c.kv_dims(), 0), {dds, dq_s}), rdk);
  net.run();
  auto near = [&](const Values& wanted, GraphTensor* t) {
    Values got = scaled(out.read(t), 1 / scale_out);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(wanted[i], got[i], 0.25 * largest(wanted)) << i;
  };
  near(dq, rdq), near(dk, rdk), near(want.dv, rdv);
  expect_large(largest(want.dv), amax_dv);
  expect_large(largest(wanted_ds), amax_ds);
  expect_large(largest(dq), amax_dq);
  expect_large(largest(dk), amax_dk);
}

TEST(AttentionVersion0, EightBitsBackward) {
  for (AttentionCase c : choices<AttentionCase>({{3, 2, 16, 16, 16}, {2, 3, 9, 9, 32}}, {{3, 2, 16, 16, 16}}))
    for (double p_keep : {1.0, 0.8}) {
      c.len_q = {c.sq, 1, c.sq / 2};
      c.len_q.resize(c.b);
      c.len_kv = c.len_q;
      SCOPED_TRACE(testing::Message() << c.sq << " steps, kept " << p_keep);
      check_eight_bits_backward(c, p_keep);
      if (HasFatalFailure()) return;
    }
}

}  // namespace
