// SPDX-License-Identifier: Apache-2.0
// Attention as programs spell it out, operation by operation, and what it must give, by plain loops in f64.
#pragma once

#include <algorithm>

#include "graph_client.hpp"

namespace client {

// Sizes, masks and factors. q [b,h,sq,d], k and v [b,h,skv,d].
struct AttentionCase {
  size_t b, h, sq, skv, d;
  double scale = 0.3;
  bool causal = false;
  std::vector<size_t> len_q = {}, len_kv = {};  // empty: all steps
  Dims bias_dims = {};
  Values bias = {};  // empty: none
  Values keep = {};  // what dropout multiplies each probability by; empty: 1

  Dims q_dims() const { return sizes({b, h, sq, d}); }
  Dims kv_dims() const { return sizes({b, h, skv, d}); }
  Dims scores() const { return sizes({b, h, sq, skv}); }
  Dims rows() const { return sizes({b, h, sq, 1}); }
  size_t queries(size_t batch) const { return len_q.empty() ? sq : len_q[batch]; }
  size_t keys(size_t batch) const { return len_kv.empty() ? skv : len_kv[batch]; }
  bool visible(size_t batch, size_t i, size_t j) const {
    return i < queries(batch) && j < keys(batch) && (!causal || i >= j);
  }
  static Dims sizes(std::initializer_list<size_t> v) { return Dims(v.begin(), v.end()); }
};

// Position of element (b, h, i, j) of a tensor that may repeat.
inline size_t spread(const Dims& dims, size_t b, size_t h, size_t i, size_t j) {
  size_t at = 0, index[] = {b, h, i, j};
  for (size_t n = 0; n < 4; ++n) at = at * static_cast<size_t>(dims[n]) + (dims[n] == 1 ? 0 : index[n]);
  return at;
}

// Beyond the lengths everything is 0; statistics are minus infinity there.
struct AttentionResults {
  Values p, dropped, o, max, sum, stats;  // p before dropout
  Values delta, ds, dq, dk, dv, dbias;    // ds: gradient of the scores, times the scale in dq and dk
};

inline AttentionResults attend(const AttentionCase& c, const Values& q, const Values& k, const Values& v,
                               const Values& dout = {}) {
  AttentionResults y;
  size_t rows = c.b * c.h * c.sq, keys = c.b * c.h * c.skv;
  y.p = y.dropped = y.ds = Values(rows * c.skv, 0);
  y.o = y.dq = Values(rows * c.d, 0);
  y.dk = y.dv = Values(keys * c.d, 0);
  y.max = y.stats = Values(rows, -INFINITY);
  y.sum = y.delta = Values(rows, 0);
  if (!c.bias.empty()) y.dbias = Values(c.bias.size(), 0);
  for (size_t b = 0; b < c.b; ++b)
    for (size_t h = 0; h < c.h; ++h)
      for (size_t i = 0; i < c.queries(b); ++i) {
        size_t row = (b * c.h + h) * c.sq + i, first = (b * c.h + h) * c.skv;
        Values s(c.skv, -INFINITY);
        for (size_t j = 0; j < c.skv; ++j) {
          if (!c.visible(b, i, j)) continue;
          s[j] = 0;
          for (size_t e = 0; e < c.d; ++e) s[j] += q[row * c.d + e] * k[(first + j) * c.d + e];
          s[j] *= c.scale;
          if (!c.bias.empty()) s[j] += c.bias[spread(c.bias_dims, b, h, i, j)];
        }
        double most = *std::max_element(s.begin(), s.end()), total = 0;
        if (most == -INFINITY) continue;
        for (double x : s) total += std::exp(x - most);
        y.max[row] = most, y.sum[row] = total, y.stats[row] = most + std::log(total);
        for (size_t j = 0; j < c.skv; ++j) {
          double p = y.p[row * c.skv + j] = std::exp(s[j] - most) / total;
          double kept = y.dropped[row * c.skv + j] = p * (c.keep.empty() ? 1 : c.keep[row * c.skv + j]);
          if (!c.visible(b, i, j)) continue;
          for (size_t e = 0; e < c.d; ++e) y.o[row * c.d + e] += kept * v[(first + j) * c.d + e];
        }
        if (dout.empty()) continue;
        for (size_t e = 0; e < c.d; ++e) y.delta[row] += dout[row * c.d + e] * y.o[row * c.d + e];
        for (size_t j = 0; j < c.skv; ++j) {
          if (!c.visible(b, i, j)) continue;
          double dp = 0, keep = c.keep.empty() ? 1 : c.keep[row * c.skv + j];
          for (size_t e = 0; e < c.d; ++e) {
            dp += dout[row * c.d + e] * v[(first + j) * c.d + e];
            y.dv[(first + j) * c.d + e] += y.dropped[row * c.skv + j] * dout[row * c.d + e];
          }
          double ds = y.ds[row * c.skv + j] = y.p[row * c.skv + j] * (dp * keep - y.delta[row]);
          if (!c.bias.empty()) y.dbias[spread(c.bias_dims, b, h, i, j)] += ds;
          for (size_t e = 0; e < c.d; ++e) {
            y.dq[row * c.d + e] += c.scale * ds * k[(first + j) * c.d + e];
            y.dk[(first + j) * c.d + e] += c.scale * ds * q[row * c.d + e];
          }
        }
      }
  return y;
}

// A graph of attention under construction.
class SpelledAttention {
 public:
  explicit SpelledAttention(const AttentionCase& c, cudnnDataType_t type) : c(c), type(type) {
    auto lengths = [&](const std::vector<size_t>& v) {
      return net.input({static_cast<int64_t>(c.b), 1, 1, 1}, Values(v.begin(), v.end()), CUDNN_DATA_INT32);
    };
    if (!c.len_q.empty()) seq_q = lengths(c.len_q), seq_kv = lengths(c.len_kv);
  }

  GraphTensor* scores(cudnnDataType_t t = CUDNN_DATA_FLOAT) { return net.hidden(c.scores(), t); }
  GraphTensor* apply(cudnnPointwiseMode_t mode, GraphTensor* x, GraphTensor* b = nullptr,
                     cudnnDataType_t t = CUDNN_DATA_FLOAT) {
    GraphTensor* y = net.hidden(x->dims, t);
    net.pointwise(mode, x, b, y);
    return y;
  }
  // Last two dimensions exchanged, by strides.
  static Dims turned(const Dims& d) { return {d[0], d[1], d[3], d[2]}; }
  static Dims turned_strides(const Dims& d) {
    Dims s = packed(d);
    return {s[0], s[1], s[3], s[2]};
  }
  GraphTensor* turn(GraphTensor* x, cudnnDataType_t t) {
    GraphTensor* y =
        net.add(t, turned(x->dims), {x->strides[0], x->strides[1], x->strides[3], x->strides[2]}, true, false);
    net.reshape(x, y);
    return y;
  }
  // An input [b,h,s,d] whose last two dimensions the graph sees the other way round.
  GraphTensor* turned_input(const Dims& dims, const Values& v) {
    GraphTensor* t = net.add(type, turned(dims), turned_strides(dims), false, false);
    Values w(v.size());
    for (size_t m = 0; m < static_cast<size_t>(dims[0] * dims[1]); ++m)
      for (size_t s = 0; s < static_cast<size_t>(dims[2]); ++s)
        for (size_t e = 0; e < static_cast<size_t>(dims[3]); ++e)
          w[(m * static_cast<size_t>(dims[3]) + e) * static_cast<size_t>(dims[2]) + s] =
              v[(m * static_cast<size_t>(dims[2]) + s) * static_cast<size_t>(dims[3]) + e];
    t->fill(w);
    return t;
  }
  GraphTensor* index(GraphTensor* like, int64_t axis, cudnnDataType_t t) {
    GraphTensor* y = scores(t);
    Piece& p = net.part(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    p.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, std::vector{CUDNN_POINTWISE_GEN_INDEX});
    p.type(CUDNN_ATTR_POINTWISE_MATH_PREC, t).ints(CUDNN_ATTR_POINTWISE_AXIS, {axis}).finalize();
    net.operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                  {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, like}, {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}})
        .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, {p})
        .finalize();
    return y;
  }
  GraphTensor* compare(cudnnPointwiseMode_t mode, GraphTensor* x, GraphTensor* b,
                       cudnnDataType_t compute = CUDNN_DATA_FLOAT) {
    GraphTensor* y = scores(CUDNN_DATA_BOOLEAN);
    net.pointwise(mode, x, b, y, nullptr, compute);
    return y;
  }
  // What the lengths, and the causal mask where asked for, leave; the rest becomes `fill`.
  GraphTensor* masked(GraphTensor* x, bool padding, bool causal, GraphTensor* fill, GraphTensor* y = nullptr,
                      cudnnDataType_t numbers = CUDNN_DATA_INT32) {
    GraphTensor *row = index(x, 2, numbers), *column = index(x, 3, numbers), *mask = nullptr;
    if (padding)
      mask = compare(CUDNN_POINTWISE_LOGICAL_AND, compare(CUDNN_POINTWISE_CMP_LT, row, seq_q),
                     compare(CUDNN_POINTWISE_CMP_LT, column, seq_kv), CUDNN_DATA_BOOLEAN);
    if (causal) {
      GraphTensor* below = compare(CUDNN_POINTWISE_CMP_GE, row, column, CUDNN_DATA_BOOLEAN);
      mask = mask ? compare(CUDNN_POINTWISE_LOGICAL_AND, mask, below, CUDNN_DATA_BOOLEAN) : below;
    }
    if (!y) y = scores();
    net.pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, fill, y, mask);
    return y;
  }
  // Random ones and zeros. Parameters of other distributions stay at what version 0 of the front end writes.
  GraphTensor* random(double p_keep, GraphTensor* seed, GraphTensor* offset, int64_t number = 0) {
    GraphTensor* y = scores();
    Piece& p = net.part(CUDNN_BACKEND_RNG_DESCRIPTOR);
    p.set(CUDNN_ATTR_RNG_DISTRIBUTION, CUDNN_TYPE_RNG_DISTRIBUTION, std::vector{CUDNN_RNG_DISTRIBUTION_BERNOULLI});
    for (int other : {CUDNN_ATTR_RNG_NORMAL_DIST_MEAN, CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION,
                      CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM, CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM})
      p.set(other, CUDNN_TYPE_DOUBLE, std::vector{other == CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM ? 0.0 : -1.0});
    p.set(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, CUDNN_TYPE_DOUBLE, std::vector{p_keep}).finalize();
    Piece& op = net.operation(CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
                              {{CUDNN_ATTR_OPERATION_RNG_YDESC, y}, {CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, offset}});
    if (seed)
      op.set(CUDNN_ATTR_OPERATION_RNG_SEED, {seed->desc});
    else
      op.ints(CUDNN_ATTR_OPERATION_RNG_SEED, {number});
    op.set(CUDNN_ATTR_OPERATION_RNG_DESC, {p}).finalize();
    return y;
  }
  // A tensor of the scores' sizes in the order F16x16, which only plans of one library share.
  GraphTensor* reordered(cudnnDataType_t t, bool hidden, const Dims& dims) {
    GraphTensor* y = net.add(t, dims, packed(dims), hidden, false, false);
    y->desc
        .set(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE,
             std::vector{CUDNN_TENSOR_REORDERING_F16x16})
        .finalize();
    return y;
  }

  AttentionCase c;
  cudnnDataType_t type;
  Net net;
  GraphTensor *seq_q = nullptr, *seq_kv = nullptr;
};

// Tensors of sequences whose steps are packed, heads side by side. They are described with `declared` steps; how long
// the sequences are is in memory.
struct PackedSequences {
  PackedSequences(SpelledAttention& a, cudnnDataType_t type, bool of_queries, size_t width, size_t declared)
      : c(a.c), net(a.net), type(type), of_queries(of_queries), width(width), declared(declared) {
    Values starts;
    for (size_t b = 0; b <= c.b; ++b) {
      starts.push_back(static_cast<double>(tokens * c.h * width));
      if (b < c.b) first.push_back(tokens), tokens += length(b);
    }
    offsets = net.input({static_cast<int64_t>(c.b) + 1, 1, 1, 1}, starts, CUDNN_DATA_INT32);
  }
  size_t length(size_t b) const { return of_queries ? c.queries(b) : c.keys(b); }
  GraphTensor* add(bool transposed = false) {
    Dims dims = AttentionCase::sizes({c.b, c.h, declared, width});
    Dims strides = AttentionCase::sizes({declared * c.h * width, width, c.h * width, 1});
    if (transposed) std::swap(dims[2], dims[3]), std::swap(strides[2], strides[3]);
    GraphTensor* t = net.add(type, dims, strides, false, false, false);
    t->desc.set(CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, {offsets->desc}).finalize();
    t->memory.assign((tokens * c.h * width + kGuard) * size_of(type) + 16, 0xff);
    return t;
  }
  GraphTensor* input(const Values& v) {
    GraphTensor* t = add();
    each([&](size_t i, size_t place) { store(type, t->data() + place * size_of(type), v[i]); });
    return t;
  }
  // 0 beyond the lengths; what lies behind the last sequence must still be poison.
  Values read(GraphTensor* t) const {
    Values v(c.b * c.h * (of_queries ? c.sq : c.skv) * width, 0);
    each([&](size_t i, size_t place) { v[i] = load(type, t->data() + place * size_of(type)); });
    for (size_t i = tokens * c.h * width * size_of(type); i < (tokens * c.h * width + kGuard) * size_of(type); ++i)
      EXPECT_EQ(t->data()[i], 0xff) << "byte " << i << " behind the last sequence was written";
    return v;
  }
  template <class F>
  void each(const F& f) const {
    size_t steps = of_queries ? c.sq : c.skv;
    for (size_t b = 0; b < c.b; ++b)
      for (size_t h = 0; h < c.h; ++h)
        for (size_t s = 0; s < length(b); ++s)
          for (size_t e = 0; e < width; ++e)
            f(((b * c.h + h) * steps + s) * width + e, ((first[b] + s) * c.h + h) * width + e);
  }

  static constexpr size_t kGuard = 64;  // elements
  const AttentionCase& c;
  Net& net;
  cudnnDataType_t type;
  bool of_queries;
  size_t width, declared, tokens = 0;
  std::vector<size_t> first;
  GraphTensor* offsets;
};

// Random numbers as `type` holds them. Rows beyond the lengths hold no numbers: nobody may read them.
inline Values sequence_values(const AttentionCase& c, cudnnDataType_t type, bool of_queries, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> between(-1, 1);
  size_t steps = of_queries ? c.sq : c.skv;
  Values v;
  for (size_t b = 0; b < c.b; ++b)
    for (size_t h = 0; h < c.h; ++h)
      for (size_t s = 0; s < steps; ++s)
        for (size_t e = 0; e < c.d; ++e) {
          unsigned char bytes[8];
          store(type, bytes, between(engine));
          bool exists = s < (of_queries ? c.queries(b) : c.keys(b));
          v.push_back(exists ? load(type, bytes) : NAN);
        }
  return v;
}

}  // namespace client
