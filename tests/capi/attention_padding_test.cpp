// SPDX-License-Identifier: Apache-2.0
// Every element of every result of attention whose sequences are shorter than the tensors: one operation, spelled out,
// and spelled out in part, so that it is no attention. Inputs beyond the lengths hold NaN, results are poisoned before.
#include "attention_spelled.hpp"

namespace {

using namespace client;

struct Inputs {
  Inputs(const AttentionCase& c, cudnnDataType_t type)
      : q(sequence_values(c, type, true, 1)),
        k(sequence_values(c, type, false, 2)),
        v(sequence_values(c, type, false, 3)),
        dout(sequence_values(c, type, true, 4)),
        want(attend(c, q, k, v, dout)) {}
  Values q, k, v, dout;
  AttentionResults want;
};

double tolerance_of(cudnnDataType_t type) { return std::max(2e-5, 4 * epsilon_of(type)); }

Values biases(const Dims& dims) {
  Values v;
  for (int64_t i = 0; i < count_of(dims); ++i) v.push_back(static_cast<double>(i * 7 % 11) / 8 - 0.5);
  return v;
}

// Lengths 0, 1, all, and something between, in turn.
std::vector<size_t> lengths(size_t batches, size_t full, size_t start) {
  const size_t kinds[] = {full, 1, 0, (full + 1) / 2};
  std::vector<size_t> v;
  for (size_t b = 0; b < batches; ++b) v.push_back(kinds[(b + start) % 4]);
  return v;
}

struct Gradients {
  GraphTensor *dq = nullptr, *dk = nullptr, *dv = nullptr, *dbias = nullptr, *dsink = nullptr;
};
constexpr double kSink = 0.4;  // of each head; statistics are taken as they are given

// As version 1 of the front end spells it out. What is not `whole` gives the gradient of the bias alone.
Gradients spell_backward(SpelledAttention& a, const Inputs& in, GraphTensor* bias, bool whole) {
  const AttentionCase& c = a.c;
  Net& net = a.net;
  Gradients y;
  GraphTensor *q = net.input(c.q_dims(), in.q, a.type), *kt = a.turned_input(c.kv_dims(), in.k),
              *vt = a.turned_input(c.kv_dims(), in.v), *o = net.input(c.q_dims(), in.want.o, a.type),
              *dout = net.input(c.q_dims(), in.dout, a.type), *stats = net.input(c.rows(), in.want.stats),
              *scale = net.scalar(c.scale), *sums = net.hidden(c.rows()), *delta = net.output(c.rows());
  net.reduce(CUDNN_REDUCE_TENSOR_ADD, a.apply(CUDNN_POINTWISE_MUL, dout, o), sums);
  net.pointwise(CUDNN_POINTWISE_MUL, sums, net.scalar(1), delta);
  Dims heads = {1, static_cast<int64_t>(c.h), 1, 1};
  GraphTensor *sink = net.input(heads, {kSink}), *share = net.hidden(c.rows());
  y.dsink = net.output(heads);
  net.pointwise(CUDNN_POINTWISE_SUB, sink, stats, share);
  net.reduce(CUDNN_REDUCE_TENSOR_ADD, a.apply(CUDNN_POINTWISE_MUL, a.apply(CUDNN_POINTWISE_EXP, share), sums), y.dsink);
  GraphTensor* s = a.scores();
  net.matmul(q, kt, s, a.seq_q, a.seq_kv);
  s = a.apply(CUDNN_POINTWISE_ADD, a.apply(CUDNN_POINTWISE_MUL, s, scale), bias);
  if (a.seq_q) s = a.masked(s, true, false, net.scalar(-INFINITY));
  s = a.apply(CUDNN_POINTWISE_SUB, s, stats);
  if (c.causal) s = a.masked(s, false, true, net.scalar(-INFINITY));
  GraphTensor* e = a.apply(CUDNN_POINTWISE_EXP, s);
  if (whole) {
    y.dv = net.output(c.kv_dims(), a.type);
    net.matmul(a.turn(e, a.type), dout, y.dv, a.seq_kv, nullptr, a.seq_q);
  }
  GraphTensor* dp = a.scores();
  net.matmul(dout, vt, dp, a.seq_q, a.seq_kv);
  GraphTensor* ds = a.apply(CUDNN_POINTWISE_MUL, a.apply(CUDNN_POINTWISE_SUB, dp, delta), e);
  y.dbias = net.output(c.bias_dims, bias->type);
  net.reduce(CUDNN_REDUCE_TENSOR_ADD, ds, y.dbias);
  if (!whole) return y;
  ds = a.apply(CUDNN_POINTWISE_MUL, ds, scale);
  y.dk = net.output(c.kv_dims(), a.type), y.dq = net.output(c.q_dims(), a.type);
  net.matmul(a.turn(ds, a.type), q, y.dk, a.seq_kv, nullptr, a.seq_q);
  net.matmul(ds, a.turn(kt, CUDNN_DATA_FLOAT), y.dq, a.seq_q, nullptr, a.seq_kv);
  return y;
}

void check_backward(const AttentionCase& c, cudnnDataType_t type, bool whole) {
  SpelledAttention a(c, type);
  GraphTensor* bias = a.net.input(c.bias_dims, c.bias, type);
  Inputs in(c, type);
  Gradients y = spell_backward(a, in, bias, whole);
  a.net.run();
  double tolerance = tolerance_of(type);
  expect_near(in.want.dbias, y.dbias->values(), tolerance);
  Values dsink(c.h, 0);
  for (size_t b = 0; b < c.b; ++b)
    for (size_t h = 0; h < c.h; ++h)
      for (size_t i = 0; i < c.queries(b); ++i) {
        size_t row = (b * c.h + h) * c.sq + i;
        if (in.want.stats[row] != -INFINITY) dsink[h] -= std::exp(kSink - in.want.stats[row]) * in.want.delta[row];
      }
  expect_near(dsink, y.dsink->values(), tolerance);
  if (!whole) return;
  expect_near(in.want.dq, y.dq->values(), tolerance);
  expect_near(in.want.dk, y.dk->values(), tolerance);
  expect_near(in.want.dv, y.dv->values(), tolerance);
}

// Biases that repeat along batches, heads and rows.
std::vector<Dims> bias_shapes(const AttentionCase& c) {
  Dims all = c.scores(), one = {1, 1, all[2], all[3]}, heads = {1, all[1], all[2], all[3]},
       batches = {all[0], 1, all[2], all[3]}, columns = {1, all[1], 1, all[3]};
  return choices<Dims>({all, one, heads, batches, columns}, {one, heads});
}

TEST(AttentionPadding, GradientOfTheBias) {
  for (AttentionCase c :
       choices<AttentionCase>({{4, 2, 5, 7, 8}, {2, 3, 1, 9, 16}, {3, 2, 70, 130, 32}}, {{4, 2, 5, 7, 8}}))
    for (cudnnDataType_t type :
         choices<cudnnDataType_t>({CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}, {CUDNN_DATA_HALF}))
      for (const Dims& dims : bias_shapes(c))
        for (bool causal : {false, true})
          for (bool whole : {true, false}) {
            c.causal = causal;
            c.bias_dims = dims, c.bias = biases(dims);
            unsigned char bytes[8];
            for (double& x : c.bias) store(type, bytes, x), x = load(type, bytes);
            c.len_q = lengths(c.b, c.sq, 0), c.len_kv = lengths(c.b, c.skv, causal ? 1 : 2);
            SCOPED_TRACE(testing::Message()
                         << "type " << type << ", bias " << testing::PrintToString(dims) << ", queries " << c.sq
                         << (causal ? ", causal" : "") << (whole ? "" : ", not all gradients"));
            check_backward(c, type, whole);
            if (HasFatalFailure()) return;
          }
}

// Forward, spelled out. With the probabilities stored it is no attention that plans know.
void check_forward(const AttentionCase& c, cudnnDataType_t type, bool keeps, double fill) {
  SpelledAttention a(c, type);
  Net& net = a.net;
  Inputs in(c, type);
  GraphTensor *q = net.input(c.q_dims(), in.q, type), *kt = a.turned_input(c.kv_dims(), in.k),
              *v = net.input(c.kv_dims(), in.v, type), *s = a.scores(), *m = net.hidden(c.rows()),
              *l = net.hidden(c.rows()), *stats = net.output(c.rows()), *o = net.output(c.q_dims(), type),
              *p = keeps ? net.output(c.scores()) : a.scores(type);
  net.matmul(q, kt, s, a.seq_q, a.seq_kv);
  s = a.apply(CUDNN_POINTWISE_MUL, s, net.scalar(c.scale));
  s = a.masked(s, true, c.causal, net.scalar(fill));
  net.reduce(CUDNN_REDUCE_TENSOR_MAX, s, m);
  GraphTensor* e = a.apply(CUDNN_POINTWISE_EXP, a.apply(CUDNN_POINTWISE_SUB, s, m));
  net.reduce(CUDNN_REDUCE_TENSOR_ADD, e, l);
  net.pointwise(CUDNN_POINTWISE_ADD, m, a.apply(CUDNN_POINTWISE_LOG, l), stats);
  net.pointwise(CUDNN_POINTWISE_DIV, e, l, p);
  net.matmul(p, v, o, a.seq_q, nullptr, a.seq_kv);
  net.run();
  expect_near(in.want.o, o->values(), tolerance_of(type));
  expect_near(in.want.stats, stats->values());
  if (keeps) expect_near(in.want.p, p->values());
}

TEST(AttentionPadding, SpelledOutForward) {
  for (AttentionCase c : choices<AttentionCase>({{4, 2, 5, 7, 8}, {3, 2, 70, 130, 32}}, {{4, 2, 5, 7, 8}}))
    for (cudnnDataType_t type : choices<cudnnDataType_t>({CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16}, {CUDNN_DATA_FLOAT}))
      for (bool causal : {false, true})
        for (bool keeps : {false, true})
          for (double fill : {-double{INFINITY}, -1e20}) {
            c.causal = causal;
            c.len_q = lengths(c.b, c.sq, 0), c.len_kv = lengths(c.b, c.skv, 1);
            SCOPED_TRACE(testing::Message() << "type " << type << ", queries " << c.sq << (causal ? ", causal" : "")
                                            << (keeps ? ", probabilities kept" : "") << ", fill " << fill);
            check_forward(c, type, keeps, fill);
            if (HasFatalFailure()) return;
          }
}

// One operation forward and one backward.
TEST(AttentionPadding, OneOperation) {
  for (AttentionCase c : choices<AttentionCase>({{4, 2, 5, 7, 8}, {3, 2, 70, 130, 32}}, {{4, 2, 5, 7, 8}}))
    for (cudnnDataType_t type :
         choices<cudnnDataType_t>({CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}, {CUDNN_DATA_HALF})) {
      c.len_q = lengths(c.b, c.sq, 1), c.len_kv = lengths(c.b, c.skv, 2);
      SCOPED_TRACE(testing::Message() << "type " << type << ", queries " << c.sq);
      double tolerance = tolerance_of(type);
      Inputs in(c, type);
      {
        SpelledAttention a(c, type);
        Net& net = a.net;
        GraphTensor *q = net.input(c.q_dims(), in.q, type), *k = net.input(c.kv_dims(), in.k, type),
                    *v = net.input(c.kv_dims(), in.v, type), *o = net.output(c.q_dims(), type),
                    *stats = net.output(c.rows()), *max = net.output(c.rows()), *sum = net.output(c.rows());
        Piece& softmax = net.operation(CUDNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR,
                                       {{CUDNN_ATTR_OPERATION_SOFTMAX_XDESC, a.scores()},
                                        {CUDNN_ATTR_OPERATION_SOFTMAX_YDESC, a.scores()},
                                        {CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC, stats},
                                        {CUDNN_ATTR_OPERATION_SOFTMAX_MAX_DESC, max},
                                        {CUDNN_ATTR_OPERATION_SOFTMAX_SUM_EXP_DESC, sum}})
                             .finalize();
        net.forget_last_operation();
        net.operation(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
                      {{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, q},
                       {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, k},
                       {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, v},
                       {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, o},
                       {CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, net.scalar(c.scale)},
                       {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, a.seq_q},
                       {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, a.seq_kv}})
            .set(CUDNN_ATTR_OPERATION_SDPA_FWD_SOFTMAX_DESC, {softmax})
            .finalize();
        net.run();
        expect_near(in.want.o, o->values(), tolerance);
        expect_near(in.want.stats, stats->values());
        expect_near(in.want.max, max->values());
        expect_near(in.want.sum, sum->values());
      }
      SpelledAttention a(c, type);
      Net& net = a.net;
      GraphTensor *q = net.input(c.q_dims(), in.q, type), *k = net.input(c.kv_dims(), in.k, type),
                  *v = net.input(c.kv_dims(), in.v, type), *o = net.input(c.q_dims(), in.want.o, type),
                  *dout = net.input(c.q_dims(), in.dout, type), *stats = net.input(c.rows(), in.want.stats),
                  *dq = net.output(c.q_dims(), type), *dk = net.output(c.kv_dims(), type),
                  *dv = net.output(c.kv_dims(), type);
      net.operation(CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR,
                    {{CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, q},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, k},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, v},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, o},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, dout},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, stats},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC, net.scalar(c.scale)},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_QDESC, a.seq_q},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_KVDESC, a.seq_kv},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, dq},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, dk},
                     {CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, dv}})
          .finalize();
      net.run();
      expect_near(in.want.dq, dq->values(), tolerance);
      expect_near(in.want.dk, dk->values(), tolerance);
      expect_near(in.want.dv, dv->values(), tolerance);
    }
}

// Packed sequences are as long as memory says, also where the graph was described with fewer steps.
void check_longer(const AttentionCase& c, cudnnDataType_t type, size_t declared_q, size_t declared_kv) {
  Inputs in(c, type);
  double tolerance = tolerance_of(type);
  auto bounded = [](Values v) {  // statistics of rows that do not exist are not stored
    for (double& x : v)
      if (x == -INFINITY) x = 0;
    return v;
  };
  {
    SpelledAttention a(c, type);
    PackedSequences q(a, type, true, c.d, declared_q), kv(a, type, false, c.d, declared_kv),
        rows(a, CUDNN_DATA_FLOAT, true, 1, declared_q);
    GraphTensor *o = q.add(), *stats = rows.add();
    a.net
        .operation(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
                   {{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, q.input(in.q)},
                    {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, kv.input(in.k)},
                    {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, kv.input(in.v)},
                    {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, o},
                    {CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, stats},
                    {CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, a.net.scalar(c.scale)},
                    {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, a.seq_q},
                    {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, a.seq_kv}})
        .finalize();
    a.net.run();
    expect_near(in.want.o, q.read(o), tolerance);
    expect_near(bounded(in.want.stats), bounded(rows.read(stats)));
  }
  SpelledAttention a(c, type);
  PackedSequences q(a, type, true, c.d, declared_q), kv(a, type, false, c.d, declared_kv),
      rows(a, CUDNN_DATA_FLOAT, true, 1, declared_q);
  GraphTensor *dq = q.add(), *dk = kv.add(), *dv = kv.add();
  a.net
      .operation(CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR,
                 {{CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, q.input(in.q)},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, kv.input(in.k)},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, kv.input(in.v)},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, q.input(in.want.o)},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, q.input(in.dout)},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, rows.input(in.want.stats)},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC, a.net.scalar(c.scale)},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_QDESC, a.seq_q},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_KVDESC, a.seq_kv},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, dq},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, dk},
                  {CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, dv}})
      .finalize();
  a.net.run();
  expect_near(in.want.dq, q.read(dq), tolerance);
  expect_near(in.want.dk, kv.read(dk), tolerance);
  expect_near(in.want.dv, kv.read(dv), tolerance);
}

TEST(AttentionPadding, PackedSequencesLongerThanTheSizes) {
  struct Longer {
    AttentionCase c;
    size_t declared_q, declared_kv;
  };
  const Longer small = {{4, 2, 9, 12, 8}, 4, 5}, decode = {{4, 2, 3, 200, 16}, 1, 64},
               large = {{3, 2, 150, 230, 32}, 40, 70}, keys = {{4, 2, 5, 90, 8}, 5, 20};
  for (Longer x : choices<Longer>({small, decode, large, keys}, {small, large}))
    for (cudnnDataType_t type :
         choices<cudnnDataType_t>({CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}, {CUDNN_DATA_HALF}))
      for (size_t start : {0, 1}) {
        x.c.len_q = lengths(x.c.b, x.c.sq, start), x.c.len_kv = lengths(x.c.b, x.c.skv, 2 * start);
        SCOPED_TRACE(testing::Message() << "type " << type << ", queries " << x.c.sq << " instead of " << x.declared_q);
        check_longer(x.c, type, x.declared_q, x.declared_kv);
        if (HasFatalFailure()) return;
      }
}

}  // namespace
