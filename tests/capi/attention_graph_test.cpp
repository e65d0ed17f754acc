// SPDX-License-Identifier: Apache-2.0
// Attention and its parts in the graph interface, against plain loops.
#include <algorithm>
#include <climits>
#include <functional>

#include "graph_client.hpp"

namespace {

using namespace client;

constexpr int64_t kB = 2, kHq = 4, kHkv = 2, kSq = 5, kSkv = 7, kD = 8;
constexpr double kScale = 0.35;

// One head of one batch: what the options do to its scores and probabilities.
struct Wanted {
  std::function<double(double, size_t b, size_t h, size_t i, size_t j)> score = [](double s, auto...) { return s; };
  std::function<double(size_t h)> sink;  // a logit of its own
  std::function<double(double, size_t b, size_t h, size_t i, size_t j)> drop = [](double p, auto...) { return p; };
  std::function<bool(size_t b, size_t i)> row = [](auto...) { return true; };  // rows that exist
  Values o, stats, max, sum;

  // q [b,hq,sq,d], k and v [b,hkv,skv,d]
  void compute(const Values& q, const Values& k, const Values& v) {
    for (size_t b = 0; b < kB; ++b)
      for (size_t h = 0; h < kHq; ++h)
        for (size_t i = 0; i < kSq; ++i) {
          Values s(kSkv, 0), out(kD, 0);
          size_t kv = b * kHkv + h / (kHq / kHkv);
          double most = sink ? sink(h) : -INFINITY, total = 0;
          for (size_t j = 0; j < kSkv; ++j) {
            for (size_t e = 0; e < kD; ++e) s[j] += q[((b * kHq + h) * kSq + i) * kD + e] * k[(kv * kSkv + j) * kD + e];
            s[j] = score(s[j] * kScale, b, h, i, j);
            most = std::max(most, s[j]);
          }
          if (!row(b, i)) most = -INFINITY;
          for (double x : s) total += most == -INFINITY ? 0 : std::exp(x - most);
          if (sink) total += std::exp(sink(h) - most);
          for (size_t j = 0; total > 0 && j < kSkv; ++j)
            for (size_t e = 0; e < kD; ++e)
              out[e] += drop(std::exp(s[j] - most) / total, b, h, i, j) * v[(kv * kSkv + j) * kD + e];
          o.insert(o.end(), out.begin(), out.end());
          stats.push_back(most + std::log(total));
          max.push_back(most);
          sum.push_back(total);
        }
  }
};

struct Attention {
  explicit Attention(cudnnDataType_t type = CUDNN_DATA_FLOAT)
      : q(net.random({kB, kHq, kSq, kD}, type)),
        k(net.random({kB, kHkv, kSkv, kD}, type)),
        v(net.random({kB, kHkv, kSkv, kD}, type)),
        o(net.output({kB, kHq, kSq, kD}, type)),
        scale(net.scalar(kScale, CUDNN_DATA_FLOAT, {1})) {}

  // To be finalized by the caller.
  Piece& operation(const Roles& more = {}) {
    Roles roles = {{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, q},
                   {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, k},
                   {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, v},
                   {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, o},
                   {CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, scale}};
    roles.insert(roles.end(), more.begin(), more.end());
    return net.operation(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, roles);
  }
  // A softmax descriptor whose x and y are placeholders.
  Piece& softmax(const Roles& more) {
    Roles roles = {{CUDNN_ATTR_OPERATION_SOFTMAX_XDESC, scores()}, {CUDNN_ATTR_OPERATION_SOFTMAX_YDESC, scores()}};
    roles.insert(roles.end(), more.begin(), more.end());
    Piece& p = net.operation(CUDNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR, roles);
    net.forget_last_operation();
    return p;
  }
  GraphTensor* scores() { return net.hidden({kB, kHq, kSq, kSkv}); }
  GraphTensor* rows() { return net.output({kB, kHq, kSq, 1}); }
  void band(GraphTensor* x, GraphTensor* y, cudnnPointwiseMode_t compare, const Roles& more = {}) {
    Roles roles = {{CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC, x},
                   {CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC, net.scalar(-INFINITY)},
                   {CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC, y}};
    roles.insert(roles.end(), more.begin(), more.end());
    net.operation(CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR, roles)
        .set(CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector{compare})
        .finalize();
  }
  // Operations so far are the score modification from `in` to `out`.
  void take_body(Piece& op, Piece& body, GraphTensor* in, GraphTensor* out) {
    op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH, {body})
        .ints(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID, {in->uid})
        .ints(CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_OUTPUT_UID, {out->uid});
  }
  void check(Wanted& w, double tolerance = 1e-5) {
    w.compute(q->values(), k->values(), v->values());
    expect_near(w.o, o->values(), tolerance);
  }

  Net net;
  GraphTensor *q, *k, *v, *o, *scale;
};

TEST(AttentionGraph, Plain) {
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
    Attention a(type);
    GraphTensor* stats = a.rows();
    a.operation({{CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, stats}}).finalize();
    a.net.run();
    Wanted w;
    a.check(w, std::max(1e-5, 2 * epsilon_of(type)));
    expect_near(w.stats, stats->values());
  }
}

TEST(AttentionGraph, SoftmaxDescriptorTellsStatistics) {
  for (bool log2 : {false, true}) {
    Attention a;
    GraphTensor *stats = a.rows(), *max = a.rows(), *sum = a.rows(), *sink = a.net.random({1, kHq, 1, 1});
    Piece& softmax = a.softmax({{CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC, stats},
                                {CUDNN_ATTR_OPERATION_SOFTMAX_MAX_DESC, max},
                                {CUDNN_ATTR_OPERATION_SOFTMAX_SUM_EXP_DESC, sum},
                                {CUDNN_ATTR_OPERATION_SOFTMAX_SINK_DESC, sink}});
    softmax.flag(CUDNN_ATTR_OPERATION_SOFTMAX_STATS_LOG2, log2).finalize();
    a.operation().set(CUDNN_ATTR_OPERATION_SDPA_FWD_SOFTMAX_DESC, {softmax}).finalize();
    a.net.run();
    Wanted w;
    Values z = sink->values();
    w.sink = [&](size_t h) { return z[h]; };
    a.check(w);
    if (log2)
      for (double& s : w.stats) s /= std::log(2);
    expect_near(w.stats, stats->values());
    expect_near(w.max, max->values());
    expect_near(w.sum, sum->values());
  }
}

// A bias, a causal mask and a window, in a sub-graph that reads tensors of the outer variant pack.
TEST(AttentionGraph, ScoreModification) {
  Attention a;
  GraphTensor *in = a.scores(), *biased = a.scores(), *right = a.scores(), *out = a.scores(),
              *bias = a.net.random({1, kHq, kSq, kSkv}), *window = a.net.scalar(3);
  a.net.pointwise(CUDNN_POINTWISE_ADD, in, bias, biased);
  a.band(biased, right, CUDNN_POINTWISE_CMP_GE,
         {{CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SHIFT_RIGHT_BOUND_DESC, a.net.scalar(1, CUDNN_DATA_INT32)}});
  a.band(right, out, CUDNN_POINTWISE_CMP_GT, {{CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_LEFT_BOUND_DESC, window}});
  Piece& body = a.net.body();
  Piece& op = a.operation();
  a.take_body(op, body, in, out);
  op.finalize();
  a.net.run();
  Wanted w;
  Values b = bias->values();
  w.score = [&](double s, size_t, size_t h, size_t i, size_t j) {
    return i + 1 >= j && j + 3 > i ? s + b[(h * kSq + i) * kSkv + j] : -INFINITY;
  };
  a.check(w);
}

TEST(AttentionGraph, CausalMasksAlone) {
  for (bool bottom_right : {false, true}) {
    Attention a;
    GraphTensor *in = a.scores(), *out = a.scores(), *stats = a.rows();
    Roles lengths;
    if (bottom_right)
      lengths = {{CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_QDESC, a.net.scalar(kSq, CUDNN_DATA_INT32)},
                 {CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_KVDESC, a.net.scalar(kSkv, CUDNN_DATA_INT32)}};
    a.band(in, out, CUDNN_POINTWISE_CMP_GE, lengths);
    Piece& body = a.net.body();
    Piece& softmax = a.softmax({{CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC, stats}}).finalize();
    Piece& op = a.operation();
    a.take_body(op, body, in, out);
    op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SOFTMAX_DESC, {softmax}).finalize();
    a.net.run();
    Wanted w;
    size_t off = bottom_right ? kSkv - kSq : 0;
    w.score = [&](double s, size_t, size_t, size_t i, size_t j) { return i + off >= j ? s : -INFINITY; };
    a.check(w);
    expect_near(w.stats, stats->values());
  }
}

TEST(AttentionGraph, LengthsOfBothKinds) {
  const size_t kQ[] = {5, 3}, kKv[] = {4, 7};
  for (bool cumulative : {false, true}) {
    Attention a;
    GraphTensor* kv = a.net.input({kB, 1, 1, 1}, {4, 7}, CUDNN_DATA_INT32);
    GraphTensor* q = cumulative ? a.net.input({kB + 1, 1, 1, 1}, {0, 5, 8}, CUDNN_DATA_INT32)
                                : a.net.input({kB, 1, 1, 1}, {5, 3}, CUDNN_DATA_INT32);
    a.operation(
         {{CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, kv},
          {cumulative ? CUDNN_ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_QDESC : CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC,
           q}})
        .finalize();
    a.net.run();
    Wanted w;
    w.score = [&](double s, size_t b, size_t, size_t, size_t j) { return j < kKv[b] ? s : -INFINITY; };
    w.row = [&](size_t b, size_t i) { return i < kQ[b]; };
    a.check(w);
  }
}

// Packed sequences: the stride between batches is nonsense, offsets count tokens.
TEST(AttentionGraph, RaggedSequences) {
  Attention a;
  GraphTensor* offsets = a.net.input({kB + 1, 1, 1, 1}, {0, 3, 8}, CUDNN_DATA_INT32);
  auto packed_rows = [&](GraphTensor* from, int64_t heads) {
    GraphTensor* t =
        a.net.add(CUDNN_DATA_FLOAT, from->dims, {kD * heads * kSkv, kD, kD * heads, 1}, false, false, false);
    GraphTensor* d = a.net.add(CUDNN_DATA_FLOAT, from->dims, {INT_MAX, kD, kD * heads, 1}, true, false, false);
    d->hidden = false;
    d->memory = t->memory;
    d->desc.flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false)
        .set(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, {offsets->desc})
        .ints(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_MULTIPLIER, {kD * heads})
        .finalize();
    t->hidden = true;  // only its memory was wanted
    return d;
  };
  // Lengths 3 and 5, the same for queries and keys.
  const size_t kLength[] = {3, 5}, kFirst[] = {0, 3};
  GraphTensor *q = packed_rows(a.q, kHq), *k = packed_rows(a.k, kHkv), *v = packed_rows(a.v, kHkv);
  auto copy = [&](GraphTensor* from, GraphTensor* to, size_t heads, size_t steps) {
    Values values = from->values();
    for (size_t b = 0; b < kB; ++b)
      for (size_t h = 0; h < heads; ++h)
        for (size_t s = 0; s < kLength[b]; ++s)
          for (size_t e = 0; e < kD; ++e)
            store<float>(to->data() + (((kFirst[b] + s) * heads + h) * kD + e) * 4,
                         values[((b * heads + h) * steps + s) * kD + e]);
  };
  copy(a.q, q, kHq, kSq), copy(a.k, k, kHkv, kSkv), copy(a.v, v, kHkv, kSkv);
  GraphTensor* lengths = a.net.input({kB, 1, 1, 1}, {3, 5}, CUDNN_DATA_INT32);
  a.net
      .operation(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, q},
                                                               {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, k},
                                                               {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, v},
                                                               {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, a.o},
                                                               {CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, a.scale},
                                                               {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, lengths},
                                                               {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, lengths}})
      .finalize();
  a.net.run();
  Wanted w;
  w.score = [&](double s, size_t b, size_t, size_t, size_t j) { return j < kLength[b] ? s : -INFINITY; };
  w.row = [&](size_t b, size_t i) { return i < kLength[b]; };
  a.check(w);
}

TEST(AttentionGraph, PagesAndBlockMask) {
  Attention a;
  // Pages of 4 steps: sequence b takes pages 2 b and 2 b + 1, in turn.
  auto paged = [&](GraphTensor* from) {
    Values values = from->values(), pages(4 * kHkv * 4 * kD, 0);
    for (size_t b = 0; b < kB; ++b)
      for (size_t h = 0; h < kHkv; ++h)
        for (size_t s = 0; s < kSkv; ++s)
          for (size_t e = 0; e < kD; ++e)
            pages[(((b * 2 + s / 4) * kHkv + h) * 4 + s % 4) * kD + e] = values[((b * kHkv + h) * kSkv + s) * kD + e];
    return a.net.input({4, kHkv, 4, kD}, pages);
  };
  GraphTensor *table = a.net.input({kB, 1, 2, 1}, {0, 1, 2, 3}, CUDNN_DATA_INT32),
              *q_length = a.net.input({kB, 1, 1, 1}, {5, 5}, CUDNN_DATA_INT32),
              *kv_length = a.net.input({kB, 1, 1, 1}, {7, 7}, CUDNN_DATA_INT32),
              *mask = a.net.input({kB, kHq, 1, 1}, {1, 254, 255, 3, 1, 1, 0, 1}, CUDNN_DATA_UINT8), *k = paged(a.k),
              *v = paged(a.v);
  a.net
      .operation(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
                 {{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, a.q},
                  {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, k},
                  {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, v},
                  {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, a.o},
                  {CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, a.scale},
                  {CUDNN_ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC, mask},
                  {CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC, table},
                  {CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC, table},
                  {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, q_length},
                  {CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, kv_length}})
      .finalize();
  a.net.run();
  Wanted w;
  Values bits = mask->values();  // the lowest one is that of the first tile, here the only one
  w.score = [&](double s, size_t b, size_t h, size_t, size_t) {
    return static_cast<int>(bits[b * kHq + h]) % 2 != 0 ? s : -INFINITY;
  };
  a.check(w);
}

TEST(AttentionGraph, DropoutIsWhatItsDumpShows) {
  Attention a;
  GraphTensor* dump = a.net.output({kB, kHq, kSq, kSkv});
  a.operation({{CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_SEED_DESC, a.net.scalar(77, CUDNN_DATA_INT64)},
               {CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_OFFSET_DESC, a.net.scalar(3, CUDNN_DATA_INT64)},
               {CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_RNG_DUMP_DESC, dump}})
      .set(CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_PROBABILITY, CUDNN_TYPE_FLOAT, std::vector{0.25f})
      .finalize();
  a.net.run();
  Wanted w;
  Values kept = dump->values();
  double share = 0;
  for (double x : kept) share += x / static_cast<double>(kept.size());
  EXPECT_NEAR(0.75, share, 0.12);
  w.drop = [&](double p, size_t b, size_t h, size_t i, size_t j) {
    return p * kept[((b * kHq + h) * kSq + i) * kSkv + j] / 0.75;
  };
  a.check(w);
}

// Gradients of sum(do * o) by differences.
TEST(AttentionGraph, Backward) {
  Attention a;
  GraphTensor *dout = a.net.random({kB, kHq, kSq, kD}), *stats = a.rows(), *dq = a.net.output({kB, kHq, kSq, kD}),
              *dk = a.net.output({kB, kHkv, kSkv, kD}), *dv = a.net.output({kB, kHkv, kSkv, kD});
  Values q = a.q->values(), k = a.k->values(), v = a.v->values(), g = dout->values();
  auto causal = [](double s, size_t, size_t, size_t i, size_t j) { return i >= j ? s : -INFINITY; };
  Wanted forward;
  forward.score = causal;
  forward.compute(q, k, v);
  a.o->fill(forward.o), stats->fill(forward.stats);
  GraphTensor *in = a.scores(), *out = a.scores();
  a.band(in, out, CUDNN_POINTWISE_CMP_GE);
  Piece& body = a.net.body();
  a.net
      .operation(CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, a.q},
                                                               {CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, a.k},
                                                               {CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, a.v},
                                                               {CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, a.o},
                                                               {CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, dout},
                                                               {CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, stats},
                                                               {CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC, a.scale},
                                                               {CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, dq},
                                                               {CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, dk},
                                                               {CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, dv}})
      .set(CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH, {body})
      .ints(CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH_INPUT_UID, {in->uid})
      .ints(CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH_OUTPUT_UID, {out->uid})
      .finalize();
  a.net.run();
  auto loss = [&] {
    Wanted w;
    w.score = causal;
    w.compute(q, k, v);
    double sum = 0;
    for (size_t i = 0; i < g.size(); ++i) sum += g[i] * w.o[i];
    return sum;
  };
  auto slope = [&](double& x) {
    double was = x;
    x = was + 1e-5;
    double more = loss();
    x = was - 1e-5;
    double less = loss();
    x = was;
    return (more - less) / 2e-5;
  };
  for (size_t i = 0; i < q.size(); i += 13) EXPECT_NEAR(slope(q[i]), dq->values()[i], 1e-4) << i;
  for (size_t i = 0; i < k.size(); i += 11) EXPECT_NEAR(slope(k[i]), dk->values()[i], 1e-4) << i;
  for (size_t i = 0; i < v.size(); i += 11) EXPECT_NEAR(slope(v[i]), dv->values()[i], 1e-4) << i;
}

TEST(AttentionGraph, RotaryEmbeddingsAndTheirGradient) {
  Net net;
  constexpr size_t kRotated = 4;
  GraphTensor *x = net.random({kB, kHq, kSq, kD}), *freqs = net.random({kSq, 1, 1, kRotated}),
              *y = net.output({kB, kHq, kSq, kD}), *dx = net.output({kB, kHq, kSq, kD});
  net.operation(CUDNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_ROPE_FWD_XDESC, x},
                                                              {CUDNN_ATTR_OPERATION_ROPE_FWD_FREQSDESC, freqs},
                                                              {CUDNN_ATTR_OPERATION_ROPE_FWD_YDESC, y}})
      .set(CUDNN_ATTR_OPERATION_ROPE_FWD_OUTPUT_SCALE, CUDNN_TYPE_FLOAT, std::vector{0.5f})
      .ints(CUDNN_ATTR_OPERATION_ROPE_FWD_ROPE_DIM, {kRotated})
      .finalize();
  net.operation(CUDNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_ROPE_BWD_DYDESC, y},
                                                              {CUDNN_ATTR_OPERATION_ROPE_BWD_FREQSDESC, freqs},
                                                              {CUDNN_ATTR_OPERATION_ROPE_BWD_DXDESC, dx}})
      .set(CUDNN_ATTR_OPERATION_ROPE_BWD_OUTPUT_SCALE, CUDNN_TYPE_FLOAT, std::vector{2.0f})
      .ints(CUDNN_ATTR_OPERATION_ROPE_BWD_ROPE_DIM, {kRotated})
      .finalize();
  net.run();
  Values wanted = x->values(), v = x->values(), f = freqs->values();
  for (size_t row = 0; row < v.size() / kD; ++row)
    for (size_t e = 0; e < kD; ++e) {
      size_t first = kD - kRotated, half = kRotated / 2, at = (e - first) % half;
      double angle = f[row % kSq * kRotated + at], lo = v[row * kD + first + at], hi = v[row * kD + first + half + at];
      double rotated =
          e - first < half ? lo * std::cos(angle) - hi * std::sin(angle) : hi * std::cos(angle) + lo * std::sin(angle);
      wanted[row * kD + e] = 0.5 * (e < first ? v[row * kD + e] : rotated);
    }
  expect_near(wanted, y->values());
  expect_near(v, dx->values());  // turned back, and scaled back
}

}  // namespace
