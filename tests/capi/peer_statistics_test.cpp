// SPDX-License-Identifier: Apache-2.0
// Batch norms that count the elements of several devices. One device is enough to see it: peers are threads, or what a
// program has filled into their places of the buffers.
#include <algorithm>
#include <cmath>
#include <thread>

#include "graph_client.hpp"

using namespace client;

namespace {

constexpr double kEpsilon = 1e-3, kFactor = 0.25;

struct Problem {
  Dims x;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool channels_last = false;

  int64_t channels() const { return x[1]; }
  Dims per_channel() const {
    Dims d(x.size(), 1);
    d[1] = x[1];
    return d;
  }
  Dims strides() const {
    if (!channels_last) return packed(x);
    Dims s(x.size(), 1);
    int64_t step = x[1];
    for (size_t i = x.size(); i-- > 2; step *= x[i]) s[i] = step;
    s[0] = step;
    return s;
  }
  size_t channel(size_t element) const {
    int64_t inner = count_of(x) / x[0] / x[1];
    return static_cast<size_t>(static_cast<int64_t>(element) / inner % x[1]);
  }
  double tolerance() const { return type == CUDNN_DATA_FLOAT ? 2e-5 : type == CUDNN_DATA_HALF ? 4e-3 : 3e-2; }
};

std::vector<Problem> problems() {
  std::vector<Problem> all;
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16})
    for (bool channels_last : {false, true})
      for (const Dims& x : {Dims{2, 8, 3, 5}, Dims{1, 3, 4, 4}, Dims{4, 16, 1, 1}, Dims{2, 1, 6, 2}})
        all.push_back({x, type, channels_last});
  return all;
}

std::string text_of(const Problem& p, size_t peers) {
  std::string s = "type " + std::to_string(p.type) + (p.channels_last ? " channels last" : "");
  for (int64_t d : p.x) s += " " + std::to_string(d);
  return s + ", " + std::to_string(peers) + " peers";
}

// Two statistics of one peer: all channels of the first, then of the second.
struct Statistics {
  Values first, second;
};

// A peer's buffer: for each peer, by distance, 2 x channels pairs of a value and a flag.
class Buffer {
 public:
  Buffer(size_t peers, int64_t channels)
      : pairs_(2 * static_cast<size_t>(channels)), memory_(peers * pairs_ * sizeof(Pair)) {}
  void fill(size_t place, const Statistics& s) {
    auto* to = reinterpret_cast<Pair*>(memory_.edit()) + place * pairs_;
    for (const Values* v : {&s.first, &s.second})
      for (double x : *v) *to++ = {static_cast<float>(x), 1};
  }
  // As allocators leave memory, or programs that are not careful.
  void fill_with_noise() {
    auto* to = reinterpret_cast<float*>(memory_.edit());
    for (size_t i = 0; i < memory_.size() / sizeof(float); ++i) to[i] = 0.25F + 0.001F * static_cast<float>(i);
  }
  bool is_read(size_t place) const {
    const auto* from = reinterpret_cast<const Pair*>(memory_.host()) + place * pairs_;
    return std::all_of(from, from + pairs_, [](const Pair& p) { return p.flag == 0; });
  }
  void* data() { return memory_.data(); }

 private:
  struct Pair {
    float value;
    uint32_t flag;
  };
  size_t pairs_;
  Memory memory_;
};

// Buffers as one peer lists them: its own first, the others in the order around.
std::vector<void*> listed(std::vector<std::unique_ptr<Buffer>>& buffers, size_t own) {
  std::vector<void*> list;
  for (size_t i = 0; i < buffers.size(); ++i) list.push_back(buffers[(own + i) % buffers.size()]->data());
  return list;
}

std::vector<std::unique_ptr<Buffer>> zeroed_buffers(size_t peers, int64_t channels) {
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (size_t i = 0; i < peers; ++i) buffers.push_back(std::make_unique<Buffer>(peers, channels));
  return buffers;
}

// The tensors of peers' buffers. Some programs describe them with the sizes of x.
void set_peers(Net& net, Piece& op, int name, const Problem& p, const std::vector<void*>& buffers, bool sized_as_x) {
  std::vector<cudnnBackendDescriptor_t> list;
  Dims dims = {static_cast<int64_t>(buffers.size()), 4 * p.channels(), 1, 1};
  for (void* b : buffers) {
    GraphTensor* t = net.output(sized_as_x ? p.x : dims);
    t->elsewhere = b;
    list.push_back(t->desc);
  }
  op.set(name, list);
}

// y = relu(batch_norm(x) + a).
struct Forward {
  Forward(const Problem& p, const std::vector<void*>& buffers, double shift = 0,
          cudnnBackendNormMode_t mode = CUDNN_BATCH_NORM)
      : p(p) {
    x = net.random(p.x, p.type, p.strides());
    Values v = x->values();
    for (double& e : v) e = e * (1 + shift) + shift;
    x->fill(v);
    scale = net.random(p.per_channel()), bias = net.random(p.per_channel()), a = net.random(p.x, p.type, p.strides());
    old_mean = net.random(p.per_channel()), old_variance = net.random(p.per_channel());
    normalised = net.hidden(p.x), sum = net.hidden(p.x);
    y = net.output(p.x, p.type, p.strides());
    mean = net.output(p.per_channel()), inv_variance = net.output(p.per_channel());
    new_mean = net.output(p.per_channel()), new_variance = net.output(p.per_channel());
    Piece& op =
        net.operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
                      {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, bias},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, net.scalar(kEpsilon)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, net.scalar(kFactor, CUDNN_DATA_DOUBLE)},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, old_mean},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, old_variance},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, new_mean},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, new_variance},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, mean},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, inv_variance},
                       {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, normalised}});
    op.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, std::vector{mode});
    op.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, std::vector{CUDNN_NORM_FWD_TRAINING});
    set_peers(net, op, CUDNN_ATTR_OPERATION_NORM_FWD_PEER_STAT_DESCS, p, buffers, shift > 0);
    op.finalize();
    net.pointwise(CUDNN_POINTWISE_ADD, normalised, a, sum);
    net.pointwise(CUDNN_POINTWISE_RELU_FWD, sum, nullptr, y);
  }

  Statistics own() const {
    auto c = static_cast<size_t>(p.channels());
    Statistics s{Values(c), Values(c)};
    Values v = x->values();
    double n = static_cast<double>(v.size() / c);
    for (size_t i = 0; i < v.size(); ++i) s.first[p.channel(i)] += v[i] / n;
    for (size_t i = 0; i < v.size(); ++i) s.second[p.channel(i)] += std::pow(v[i] - s.first[p.channel(i)], 2) / n;
    return s;
  }

  void expect(const std::vector<Statistics>& peers) {
    auto c = static_cast<size_t>(p.channels());
    auto count = static_cast<double>(peers.size());
    Values m(c), v(c), inv, next_m, next_v, want;
    for (const Statistics& s : peers)
      for (size_t i = 0; i < c; ++i) m[i] += s.first[i] / count;
    for (const Statistics& s : peers)
      for (size_t i = 0; i < c; ++i) v[i] += (s.second[i] + std::pow(s.first[i] - m[i], 2)) / count;
    double n = count * static_cast<double>(count_of(p.x)) / static_cast<double>(c);
    Values om = old_mean->values(), ov = old_variance->values();
    for (size_t i = 0; i < c; ++i) {
      inv.push_back(1 / std::sqrt(v[i] + kEpsilon));
      next_m.push_back((1 - kFactor) * om[i] + kFactor * m[i]);
      next_v.push_back((1 - kFactor) * ov[i] + kFactor * v[i] * n / (n - 1));
    }
    Values xs = x->values(), as = a->values(), ss = scale->values(), bs = bias->values();
    for (size_t i = 0; i < xs.size(); ++i) {
      size_t k = p.channel(i);
      want.push_back(std::max(0.0, ss[k] * (xs[i] - m[k]) * inv[k] + bs[k] + as[i]));
    }
    expect_near(m, mean->values());
    expect_near(inv, inv_variance->values());
    expect_near(next_m, new_mean->values());
    expect_near(next_v, new_variance->values());
    expect_near(want, y->values(), p.tolerance());
  }

  Problem p;
  Net net;
  GraphTensor *x, *scale, *bias, *a, *old_mean, *old_variance, *normalised, *sum, *y, *mean, *inv_variance, *new_mean,
      *new_variance;
};

// dx of a batch norm, for the gradient dy * mask, which is a result too.
struct Backward {
  Backward(const Problem& p, const std::vector<void*>& buffers, double shift = 0) : p(p) {
    x = net.random(p.x, p.type, p.strides()), dy = net.random(p.x, p.type, p.strides());
    Values v = x->values();
    for (double& e : v) e = e * (1 + shift) + shift;
    x->fill(v);
    mask = net.random(p.x, p.type, p.strides());
    scale = net.random(p.per_channel()), mean = net.random(p.per_channel());
    inv_variance = net.input(p.per_channel(), {0.5, 1.5, 0.75});
    masked = net.output(p.x, p.type, p.strides());
    dx = net.output(p.x, p.type, p.strides());
    dscale = net.output(p.per_channel()), dbias = net.output(p.per_channel());
    net.pointwise(CUDNN_POINTWISE_MUL, dy, mask, masked);
    Piece& op = net.operation(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR,
                              {{CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, x},
                               {CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, masked},
                               {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, mean},
                               {CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC, inv_variance},
                               {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, scale},
                               {CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, dscale},
                               {CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, dbias},
                               {CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, dx}});
    op.set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, std::vector{CUDNN_BATCH_NORM});
    set_peers(net, op, CUDNN_ATTR_OPERATION_NORM_BWD_PEER_STAT_DESCS, p, buffers, shift > 0);
    op.finalize();
  }

  Values gradient() const {
    Values d = dy->values(), m = mask->values();
    for (size_t i = 0; i < d.size(); ++i) d[i] *= m[i];
    return d;
  }
  double normal(size_t i, double value) const { return (value - mean->values()[i]) * inv_variance->values()[i]; }
  Statistics own() const {
    auto c = static_cast<size_t>(p.channels());
    Statistics s{Values(c), Values(c)};
    Values d = gradient(), v = x->values();
    for (size_t i = 0; i < d.size(); ++i) {
      s.first[p.channel(i)] += d[i];
      s.second[p.channel(i)] += d[i] * normal(p.channel(i), v[i]);
    }
    return s;
  }

  void expect(const std::vector<Statistics>& peers, const Values& d) {
    auto c = static_cast<size_t>(p.channels());
    auto count = static_cast<double>(peers.size());
    Values sum(c), product(c), want, part_sum, part_product;
    for (const Statistics& s : peers)
      for (size_t i = 0; i < c; ++i) sum[i] += s.first[i], product[i] += s.second[i];
    for (size_t i = 0; i < c; ++i) part_sum.push_back(sum[i] / count), part_product.push_back(product[i] / count);
    double n = count * static_cast<double>(count_of(p.x)) / static_cast<double>(c);
    Values xs = x->values(), ss = scale->values(), is = inv_variance->values();
    for (size_t i = 0; i < d.size(); ++i) {
      size_t k = p.channel(i);
      want.push_back(ss[k] * is[k] * (d[i] - (sum[k] + normal(k, xs[i]) * product[k]) / n));
    }
    expect_near(part_sum, dbias->values(), p.tolerance());
    expect_near(part_product, dscale->values(), p.tolerance());
    expect_near(want, dx->values(), p.tolerance());
  }

  Problem p;
  Net net;
  GraphTensor *x, *dy, *mask, *scale, *mean, *inv_variance, *masked, *dx, *dscale, *dbias;
};

// What a program fills in for a peer; second ones may be variances.
Statistics invented(int64_t channels, size_t peer) {
  Statistics s;
  for (int64_t i = 0; i < channels; ++i) {
    s.first.push_back(0.125 * static_cast<double>((i + static_cast<int64_t>(peer)) % 7) - 0.25);
    s.second.push_back(0.25 + 0.125 * static_cast<double>((3 * i + static_cast<int64_t>(peer)) % 5));
  }
  return s;
}

// One device; the others' statistics lie in its buffer already, the others' buffers hold anything.
template <class Pass, class Check>
void run_with_invented_peers(const Problem& p, size_t peers, const Check& check) {
  SCOPED_TRACE(text_of(p, peers));
  auto buffers = zeroed_buffers(peers, p.channels());
  std::vector<Statistics> all;
  for (size_t i = 1; i < peers; ++i) buffers[i]->fill_with_noise();
  for (size_t i = 0; i < peers; ++i) {
    all.push_back(invented(p.channels(), i));
    buffers[0]->fill(i, all.back());
  }
  Pass pass(p, listed(buffers, 0));
  all[0] = pass.own();
  pass.net.run();
  check(pass, all);
  for (size_t i = 1; i < peers; ++i) EXPECT_TRUE(buffers[0]->is_read(i));
}

TEST(PeerStatistics, ForwardCountsWhatThePeersFilledIn) {
  for (const Problem& p : problems())
    for (size_t peers : {2, 3})
      run_with_invented_peers<Forward>(p, peers, [](Forward& f, const auto& all) { f.expect(all); });
}

TEST(PeerStatistics, BackwardCountsWhatThePeersFilledIn) {
  for (const Problem& p : problems())
    for (size_t peers : {2, 3})
      run_with_invented_peers<Backward>(p, peers, [](Backward& b, const auto& all) {
        b.expect(all, b.gradient());
        expect_near(b.gradient(), b.masked->values(), b.p.tolerance());
      });
}

// The same buffers again and again, as a training does; the peers are not equally fast.
template <class Pass, class Check>
void run_as_threads(const Problem& p, size_t peers, const Check& check) {
  SCOPED_TRACE(text_of(p, peers));
  auto buffers = zeroed_buffers(peers, p.channels());
  std::vector<std::unique_ptr<Pass>> passes;
  std::vector<Statistics> all;
  for (size_t i = 0; i < peers; ++i) {
    passes.push_back(std::make_unique<Pass>(p, listed(buffers, i), 0.5 * static_cast<double>(i)));
    all.push_back(passes.back()->own());
  }
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    std::vector<cudnnStatus_t> statuses(peers);
    for (size_t i = 0; i < peers; ++i)
      threads.emplace_back([&, i] {
        for (int step = 0; step < 5 && statuses[i] == CUDNN_STATUS_SUCCESS; ++step)
          statuses[i] = status_of([&] { passes[i]->net.run(); });
      });
    for (std::thread& t : threads) t.join();
    for (size_t i = 0; i < peers; ++i) {
      EXPECT_EQ(statuses[i], CUDNN_STATUS_SUCCESS);
      check(*passes[i], all);
    }
  }
}

TEST(PeerStatistics, ThreadsExchangeForwardStatistics) {
  for (size_t peers : {2, 3, 5})
    run_as_threads<Forward>({{2, 8, 3, 5}}, peers, [](Forward& f, const auto& all) { f.expect(all); });
}

TEST(PeerStatistics, ThreadsExchangeBackwardStatistics) {
  for (size_t peers : {2, 4})
    run_as_threads<Backward>({{2, 8, 3, 5}, CUDNN_DATA_HALF, true}, peers,
                             [](Backward& b, const auto& all) { b.expect(all, b.gradient()); });
}

// The masked gradient in the memory of the gradient: the statistics are computed of it before.
TEST(PeerStatistics, ResultsMayOverwriteInputs) {
  Problem p{{2, 8, 3, 5}};
  auto buffers = zeroed_buffers(2, p.channels());
  std::vector<Statistics> all(2, invented(p.channels(), 1));
  buffers[0]->fill(1, all[1]);
  Backward b(p, listed(buffers, 0));
  all[0] = b.own();
  Values d = b.gradient();
  b.masked->same_memory = b.dy;
  b.net.run();
  b.expect(all, d);
  expect_near(d, b.masked->values());
}

// The exchange is work of the host.
TEST(PeerStatistics, PlansHaveNoTextAndNoPlaceInCudaGraphs) {
  Problem p{{2, 8, 3, 5}};
  auto buffers = zeroed_buffers(2, p.channels());
  Forward f(p, listed(buffers, 0));
  Handle handle;
  std::unique_ptr<Piece> graph = f.net.graph(handle), plan = first_plan(*graph, handle);
  int64_t count = 0;
  EXPECT_EQ(plan->get(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &count, nullptr),
            CUDNN_STATUS_NOT_SUPPORTED);
  Piece engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, {*graph}).ints(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, {0}).finalize();
  std::vector<cudnnBackendBehaviorNote_t> notes(CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  must(engine.get(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, static_cast<int64_t>(notes.size()), &count,
                  notes.data()));
  notes.resize(static_cast<size_t>(count));
  EXPECT_EQ(std::count(notes.begin(), notes.end(), CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API), 0);
}

class ShortTimeout {
 public:
  ShortTimeout() { setenv("TESSERA_PEER_TIMEOUT", "0", 1); }
  ShortTimeout(const ShortTimeout&) = delete;
  ShortTimeout& operator=(const ShortTimeout&) = delete;
  ~ShortTimeout() { unsetenv("TESSERA_PEER_TIMEOUT"); }
};

TEST(PeerStatistics, APeerThatDoesNotComeIsAnError) {
  ShortTimeout timeout;
  Problem p{{2, 8, 3, 5}};
  for (bool half_filled : {false, true}) {  // only one of two peers came
    auto buffers = zeroed_buffers(3, p.channels());
    if (half_filled) buffers[0]->fill(1, invented(p.channels(), 1));
    Forward f(p, listed(buffers, 0));
    try {
      f.net.run();
      ADD_FAILURE() << "nobody was missed";
    } catch (const Failure& e) {
      EXPECT_EQ(e.status, CUDNN_STATUS_EXECUTION_FAILED);
      EXPECT_NE(e.text.find(half_filled ? "peer 2" : "peer 1"), std::string::npos) << e.text;
    }
  }
}

TEST(PeerStatistics, WhatCannotBeExchangedIsRefused) {
  auto buffers = zeroed_buffers(33, 8);
  std::vector<void*> many = listed(buffers, 0), two(many.begin(), many.begin() + 2);
  void* odd = static_cast<unsigned char*>(many[1]) + 4;
  auto status = [](const Problem& p, const std::vector<void*>& list, cudnnBackendNormMode_t mode = CUDNN_BATCH_NORM) {
    return status_of([&] { Forward(p, list, 0, mode).net.run(); });
  };
  EXPECT_EQ(CUDNN_STATUS_CATEGORY(status({{2, 8, 3, 5}}, many)), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(CUDNN_STATUS_CATEGORY(status({{2, 8, 3, 5}, CUDNN_DATA_DOUBLE}, two)), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(CUDNN_STATUS_CATEGORY(status({{2, 8, 3, 5}}, two, CUDNN_INSTANCE_NORM)), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(status({{2, 8, 3, 5}}, {many[0], odd}), CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
}

}  // namespace
