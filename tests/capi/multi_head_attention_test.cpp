// SPDX-License-Identifier: Apache-2.0
// Multi-head attention: results against plain loops, gradients against differences of these.
#include "flat.hpp"

namespace {

using namespace client;

struct Case {
  unsigned mode = CUDNN_ATTN_QUERYMAP_ALL_TO_ONE;
  int heads = 2;
  double scale = 0.7;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  int q = 5, k = 4, v = 3, qk_proj = 6, v_proj = 2, o_proj = 5;
  int time_q = 3, time_kv = 4, batch = 2, beam = 1;
  std::vector<int> lengths_q = {3, 2}, lengths_kv = {4, 3}, low = {0, 0, 0}, high = {4, 4, 4};
  std::vector<cudnnSeqDataAxis_t> axes = {CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BATCH_DIM, CUDNN_SEQDATA_BEAM_DIM,
                                          CUDNN_SEQDATA_VECT_DIM};
  bool residual = false;

  int kv_beam() const { return mode & CUDNN_ATTN_QUERYMAP_ONE_TO_ONE ? beam : 1; }
  int v_out() const { return v_proj ? v_proj : v; }
  int out() const { return o_proj ? o_proj : heads * v_out(); }
  // Where a vector begins.
  int place(int t, int n, int b, int time, int beams, int vector) const {
    int index[] = {t, n, b}, size[] = {time, batch, beams}, p = 0;
    for (size_t i = 0; i < 3; ++i) p = p * size[axes[i]] + index[axes[i]];
    return p * vector;
  }
};

// One of the eight kinds of weights, as the library describes it.
struct Weights {
  int offset = -1, dims[3] = {}, strides[3] = {};
};

class Attention {
 public:
  explicit Attention(const Case& c, cudnnDropoutDescriptor_t dropout = nullptr, cudnnDropoutDescriptor_t post = nullptr)
      : c(c), lengths_q(c.lengths_q), lengths_kv(c.lengths_kv) {
    EXPECT_OK(cudnnSetAttnDescriptor(desc, c.mode, c.heads, c.scale, c.type,
                                     c.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
                                     CUDNN_DEFAULT_MATH, dropout, post, c.q, c.k, c.v, c.qk_proj, c.qk_proj, c.v_proj,
                                     c.o_proj, c.time_q, c.time_kv, c.batch, c.beam));
    set(q_desc, c.time_q, c.beam, c.q, c.lengths_q), set(o_desc, c.time_q, c.beam, c.out(), c.lengths_q);
    set(k_desc, c.time_kv, c.kv_beam(), c.k, c.lengths_kv), set(v_desc, c.time_kv, c.kv_beam(), c.v, c.lengths_kv);
    size_t work_bytes = 0, reserve_bytes = 0;
    EXPECT_OK(cudnnGetMultiHeadAttnBuffers(handle, desc, &weight_bytes, &work_bytes, &reserve_bytes));
    work.resize(work_bytes, 0), reserve.resize(reserve_bytes, 0);
    find_weights();
  }
  void set(cudnnSeqDataDescriptor_t d, int time, int beam, int vector, const std::vector<int>& lengths) {
    int dims[4];
    dims[CUDNN_SEQDATA_TIME_DIM] = time, dims[CUDNN_SEQDATA_BATCH_DIM] = c.batch;
    dims[CUDNN_SEQDATA_BEAM_DIM] = beam, dims[CUDNN_SEQDATA_VECT_DIM] = vector;
    EXPECT_OK(cudnnSetSeqDataDescriptor(d, c.type, 4, dims, c.axes.data(), lengths.size(), lengths.data(), nullptr));
  }
  void find_weights() {
    auto* base = reinterpret_cast<char*>(0x100000);
    Flat part(c.type, 1);
    for (int kind = 0; kind < CUDNN_ATTN_WKIND_COUNT; ++kind) {
      void* p = nullptr;
      int count = 0;
      cudnnDataType_t type;
      Weights w;
      EXPECT_OK(cudnnGetMultiHeadAttnWeights(handle, desc, static_cast<cudnnMultiHeadAttnWeightKind_t>(kind),
                                             weight_bytes, base, part, &p));
      EXPECT_OK(cudnnGetTensorNdDescriptor(part, 3, &type, &count, w.dims, w.strides));
      if (p) w.offset = static_cast<int>((static_cast<char*>(p) - base) / static_cast<int>(size_of(c.type)));
      weights.push_back(w);
    }
  }
  cudnnStatus_t forward(Tensor& q, Tensor& k, Tensor& v, Tensor& w, Tensor* residual, Tensor& out, bool training,
                        int step = -1) {
    return cudnnMultiHeadAttnForward(handle, desc, step, c.low.data(), c.high.data(), lengths_q.get(), lengths_kv.get(),
                                     q_desc, q.data(), residual ? residual->data() : nullptr, k_desc, k.data(), v_desc,
                                     v.data(), o_desc, out.data(), weight_bytes, w.data(), work.size(), work.data(),
                                     training ? reserve.size() : 0, training ? reserve.data() : nullptr);
  }

  // The same in loops: head by head, query by query.
  Values reference(const Values& q, const Values& k, const Values& v, const Values& w, const Values* residual) const {
    Values out(static_cast<size_t>(c.batch * c.beam * c.time_q * c.out()));
    for (int n = 0; n < c.batch; ++n)
      for (int b = 0; b < c.beam; ++b)
        for (int t = 0; t < std::min(c.time_q, c.lengths_q[static_cast<size_t>(n * c.beam + b)]); ++t) {
          Values o(static_cast<size_t>(c.out()), 0);
          for (int h = 0; h < c.heads; ++h) add_head(o, q, k, v, w, n, b, t, h);
          add_bias(o, w, CUDNN_MH_ATTN_O_BIASES, 0);
          int at = c.place(t, n, b, c.time_q, c.beam, c.out());
          for (int i = 0; i < c.out(); ++i)
            out[static_cast<size_t>(at + i)] =
                o[static_cast<size_t>(i)] + (residual ? (*residual)[static_cast<size_t>(at + i)] : 0);
        }
    return out;
  }

  const Case& c;
  Handle handle;
  Descriptor<cudnnAttnDescriptor_t> desc{cudnnCreateAttnDescriptor, cudnnDestroyAttnDescriptor};
  Descriptor<cudnnSeqDataDescriptor_t> q_desc{cudnnCreateSeqDataDescriptor, cudnnDestroySeqDataDescriptor};
  Descriptor<cudnnSeqDataDescriptor_t> k_desc{cudnnCreateSeqDataDescriptor, cudnnDestroySeqDataDescriptor};
  Descriptor<cudnnSeqDataDescriptor_t> v_desc{cudnnCreateSeqDataDescriptor, cudnnDestroySeqDataDescriptor};
  Descriptor<cudnnSeqDataDescriptor_t> o_desc{cudnnCreateSeqDataDescriptor, cudnnDestroySeqDataDescriptor};
  Integers lengths_q, lengths_kv;
  size_t weight_bytes = 0;
  Memory work, reserve;
  std::vector<Weights> weights;

 private:
  static Values vector_at(const Values& v, int place, int n) { return {v.begin() + place, v.begin() + place + n}; }
  void add_bias(Values& y, const Values& w, int kind, int h) const {
    const Weights& b = weights[static_cast<size_t>(kind)];
    if (b.offset < 0) return;
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += w[static_cast<size_t>(b.offset + h * b.strides[0] + static_cast<int>(i) * b.strides[1])];
  }
  Values project(const Values& x, const Values& w, int kind, int h) const {
    const Weights& m = weights[static_cast<size_t>(kind)];
    if (m.offset < 0) return x;
    Values y(static_cast<size_t>(m.dims[1]), 0);
    for (int i = 0; i < m.dims[1]; ++i)
      for (int j = 0; j < m.dims[2]; ++j)
        y[static_cast<size_t>(i)] +=
            w[static_cast<size_t>(m.offset + h * m.strides[0] + i * m.strides[1] + j * m.strides[2])] *
            x[static_cast<size_t>(j)];
    return y;
  }
  void add_head(Values& o, const Values& q, const Values& k, const Values& v, const Values& w, int n, int b, int t,
                int h) const {
    Values x = project(vector_at(q, c.place(t, n, b, c.time_q, c.beam, c.q), c.q), w, CUDNN_MH_ATTN_Q_WEIGHTS, h);
    add_bias(x, w, CUDNN_MH_ATTN_Q_BIASES, h);
    int kb = c.kv_beam() == 1 ? 0 : b, length = c.lengths_kv[static_cast<size_t>(n * c.kv_beam() + kb)];
    Values sum(static_cast<size_t>(c.v_out()), 0);
    double total = 0;
    for (int s = c.low[static_cast<size_t>(t)]; s < std::min(c.high[static_cast<size_t>(t)], length); ++s) {
      Values key =
          project(vector_at(k, c.place(s, n, kb, c.time_kv, c.kv_beam(), c.k), c.k), w, CUDNN_MH_ATTN_K_WEIGHTS, h);
      add_bias(key, w, CUDNN_MH_ATTN_K_BIASES, h);
      Values value =
          project(vector_at(v, c.place(s, n, kb, c.time_kv, c.kv_beam(), c.v), c.v), w, CUDNN_MH_ATTN_V_WEIGHTS, h);
      add_bias(value, w, CUDNN_MH_ATTN_V_BIASES, h);
      double e = std::exp(c.scale * dot(x, key));
      total += e;
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += e * value[i];
    }
    if (total > 0)
      for (double& s : sum) s /= total;
    if (c.o_proj == 0) {
      std::copy(sum.begin(), sum.end(), o.begin() + static_cast<std::ptrdiff_t>(h) * c.v_out());
      return;
    }
    Values part = project(sum, w, CUDNN_MH_ATTN_O_WEIGHTS, h);
    for (size_t i = 0; i < o.size(); ++i) o[i] += part[i];
  }
};

// Results of several products, each rounded to the type.
void expect_near(const Tensor& got, const Values& want) {
  ASSERT_EQ(static_cast<size_t>(got.count()), want.size());
  double largest = 1, eps = epsilon_of(got.type());
  for (double w : want) largest = std::max(largest, std::fabs(w));
  double tolerance = std::max(got.type() == CUDNN_DATA_DOUBLE ? 1e-7 : 2e-5, 4 * eps) * largest;
  for (int64_t i = 0; i < got.count(); ++i)
    ASSERT_NEAR(got.get(i), want[static_cast<size_t>(i)], tolerance) << "element " << i;
  EXPECT_TRUE(got.gaps_untouched());
}

void check(const Case& c) {
  SCOPED_TRACE(testing::Message() << "mode " << c.mode << " heads " << c.heads << " proj " << c.qk_proj << ","
                                  << c.v_proj << "," << c.o_proj << " beam " << c.beam << " type " << c.type
                                  << " first axis " << c.axes[0]);
  Attention a(c);
  int queries = c.time_q * c.batch * c.beam, keys = c.time_kv * c.batch * c.kv_beam();
  Flat q(c.type, queries * c.q), k(c.type, keys * c.k), v(c.type, keys * c.v), out(c.type, queries * c.out());
  Flat dout(c.type, out.count()), dq(c.type, q.count()), dk(c.type, k.count()), dv(c.type, v.count());
  auto count = static_cast<int64_t>(a.weight_bytes / size_of(c.type));
  Flat w(c.type, std::max<int64_t>(1, count)), dw(c.type, w.count()), residual(c.type, out.count());
  unsigned seed = 1;
  for (Flat* t : {&q, &k, &v, &w, &dout, &residual}) {
    t->random(seed++);
    for (int64_t i = 0; i < t->count(); ++i) t->set(i, t->get(i) / 2);
  }
  Values qs = q.values(), ks = k.values(), vs = v.values(), ws = w.values(), rs = residual.values();
  Tensor* added = c.residual ? &residual : nullptr;
  Values want = a.reference(qs, ks, vs, ws, c.residual ? &rs : nullptr);
  ASSERT_OK(a.forward(q, k, v, w, added, out, false));
  expect_near(out, want);
  out.fill(-1);
  for (int t = 0; t < c.time_q; ++t) ASSERT_OK(a.forward(q, k, v, w, added, out, false, t));
  expect_near(out, want);
  out.fill(-1);
  ASSERT_OK(a.forward(q, k, v, w, added, out, true));
  expect_near(out, want);

  ASSERT_OK(cudnnMultiHeadAttnBackwardData(a.handle, a.desc, c.low.data(), c.high.data(), a.lengths_q.get(),
                                           a.lengths_kv.get(), a.o_desc, dout.data(), a.q_desc, dq.data(), q.data(),
                                           a.k_desc, dk.data(), k.data(), a.v_desc, dv.data(), v.data(), a.weight_bytes,
                                           w.data(), a.work.size(), a.work.data(), a.reserve.size(), a.reserve.data()));
  Values douts = dout.values();
  auto loss = [&] { return dot(a.reference(qs, ks, vs, ws, nullptr), douts); };
  expect_near(dq, differences(qs, loss)), expect_near(dk, differences(ks, loss));
  expect_near(dv, differences(vs, loss));
  Values dws = differences(ws, loss);
  for (auto mode : {CUDNN_WGRAD_MODE_SET, CUDNN_WGRAD_MODE_ADD}) {
    dw.fill(0.5);
    ASSERT_OK(cudnnMultiHeadAttnBackwardWeights(
        a.handle, a.desc, mode, a.q_desc, q.data(), a.k_desc, k.data(), a.v_desc, v.data(), a.o_desc, dout.data(),
        a.weight_bytes, w.data(), dw.data(), a.work.size(), a.work.data(), a.reserve.size(), a.reserve.data()));
    if (mode == CUDNN_WGRAD_MODE_ADD)
      for (double& d : dws) d += 0.5;
    if (count > 0) expect_near(dw, dws);
  }
}

TEST(MultiHeadAttention, types) {
  for (auto type : kFloats) check({.type = type});
}

TEST(MultiHeadAttention, projections_and_biases) {
  constexpr unsigned kBiases = CUDNN_ATTN_ENABLE_PROJ_BIASES;
  check({.mode = kBiases});
  check({.mode = kBiases, .heads = 1, .q = 4, .qk_proj = 0, .v_proj = 0, .o_proj = 0});
  check({.heads = 3, .q = 4, .qk_proj = 0, .v_proj = 2, .o_proj = 0});
  check({.mode = kBiases, .heads = 3, .qk_proj = 2, .v_proj = 0, .o_proj = 4});
}

TEST(MultiHeadAttention, windows) {
  check({.low = {0, 0, 0}, .high = {1, 2, 3}});  // causal
  check({.low = {0, 1, 2}, .high = {2, 3, 4}});
  check({.low = {1, 3, 2}, .high = {1, 4, 4}});  // nothing to see for the first query
}

TEST(MultiHeadAttention, beams_and_layouts) {
  constexpr auto kT = CUDNN_SEQDATA_TIME_DIM, kN = CUDNN_SEQDATA_BATCH_DIM, kB = CUDNN_SEQDATA_BEAM_DIM,
                 kV = CUDNN_SEQDATA_VECT_DIM;
  for (const auto& axes : std::vector<std::vector<cudnnSeqDataAxis_t>>{
           {kT, kN, kB, kV}, {kT, kB, kN, kV}, {kN, kT, kB, kV}, {kN, kB, kT, kV}, {kB, kT, kN, kV}, {kB, kN, kT, kV}})
    for (unsigned mode : {CUDNN_ATTN_QUERYMAP_ALL_TO_ONE | 0U, CUDNN_ATTN_QUERYMAP_ONE_TO_ONE}) {
      Case c{.mode = mode, .beam = 2, .lengths_q = {3, 2, 1, 3}, .axes = axes};
      if (mode) c.lengths_kv = {4, 3, 2, 1};
      check(c);
    }
}

TEST(MultiHeadAttention, residuals) {
  check({.residual = true});
  check({.type = CUDNN_DATA_HALF, .low = {0, 0, 1}, .high = {4, 2, 4}, .residual = true});
}

// Gradients know the masks of the forward pass.
void check_dropout(bool with_states) {
  Case c{.type = CUDNN_DATA_DOUBLE, .beam = 1};
  Handle handle;
  Descriptor<cudnnDropoutDescriptor_t> dropout(cudnnCreateDropoutDescriptor, cudnnDestroyDropoutDescriptor);
  size_t state_bytes = 0;
  ASSERT_OK(cudnnDropoutGetStatesSize(handle, &state_bytes));
  Memory states(state_bytes);
  void* state = with_states ? states.data() : nullptr;
  auto restart = [&] { ASSERT_OK(cudnnSetDropoutDescriptor(dropout, handle, 0.3F, state, state_bytes, 5)); };
  restart();
  Attention a(c, dropout, dropout);
  Flat q(c.type, c.time_q * c.batch * c.q), k(c.type, c.time_kv * c.batch * c.k), v(c.type, c.time_kv * c.batch * c.v);
  Flat w(c.type, static_cast<int64_t>(a.weight_bytes / 8)), out(c.type, c.time_q * c.batch * c.out());
  Flat dout(c.type, out.count()), dq(c.type, q.count()), dk(c.type, k.count()), dv(c.type, v.count());
  Flat dw(c.type, w.count());
  unsigned seed = 1;
  for (Flat* t : {&q, &k, &v, &w, &dout}) t->random(seed++);
  auto forward = [&](bool training) {
    EXPECT_OK(a.forward(q, k, v, w, nullptr, out, training));
    return out.values();
  };
  Values plain = forward(false), first = forward(true);
  EXPECT_NE(plain, first);
  EXPECT_NE(first, forward(true));
  restart();
  EXPECT_EQ(first, forward(true));
  ASSERT_OK(cudnnMultiHeadAttnBackwardData(a.handle, a.desc, c.low.data(), c.high.data(), a.lengths_q.get(),
                                           a.lengths_kv.get(), a.o_desc, dout.data(), a.q_desc, dq.data(), q.data(),
                                           a.k_desc, dk.data(), k.data(), a.v_desc, dv.data(), v.data(), a.weight_bytes,
                                           w.data(), a.work.size(), a.work.data(), a.reserve.size(), a.reserve.data()));
  ASSERT_OK(cudnnMultiHeadAttnBackwardWeights(a.handle, a.desc, CUDNN_WGRAD_MODE_SET, a.q_desc, q.data(), a.k_desc,
                                              k.data(), a.v_desc, v.data(), a.o_desc, dout.data(), a.weight_bytes,
                                              w.data(), dw.data(), a.work.size(), a.work.data(), a.reserve.size(),
                                              a.reserve.data()));
  auto loss = [&] {
    restart();
    return dot(forward(true), dout.values());
  };
  auto expect_gradient = [&](Flat& of, Flat& got) {
    for (int64_t i = 0; i < of.count(); i += 11) {
      double before = of.get(i), step = 1e-5;
      of.set(i, before + step);
      double above = loss();
      of.set(i, before - step);
      EXPECT_NEAR(got.get(i), (above - loss()) / (2 * step), 1e-6) << "element " << i;
      of.set(i, before);
    }
  };
  expect_gradient(q, dq), expect_gradient(k, dk), expect_gradient(v, dv), expect_gradient(w, dw);
}

TEST(MultiHeadAttention, dropout) { check_dropout(true); }
TEST(MultiHeadAttention, dropout_without_states) { check_dropout(false); }

TEST(MultiHeadAttention, descriptors) {
  Case c;
  Attention a(c);
  unsigned mode;
  int heads, q, k, v, q_proj, k_proj, v_proj, o_proj, time_q, time_kv, batch, beam;
  double scale;
  cudnnDataType_t type, precision;
  cudnnMathType_t math;
  cudnnDropoutDescriptor_t dropout, post;
  ASSERT_OK(cudnnGetAttnDescriptor(a.desc, &mode, &heads, &scale, &type, &precision, &math, &dropout, &post, &q, &k, &v,
                                   &q_proj, &k_proj, &v_proj, &o_proj, &time_q, &time_kv, &batch, &beam));
  EXPECT_EQ((Sizes{heads, q, k, v, q_proj, k_proj, v_proj, o_proj, time_q, time_kv, batch, beam}),
            (Sizes{2, 5, 4, 3, 6, 6, 2, 5, 3, 4, 2, 1}));
  EXPECT_EQ(scale, 0.7);
  int dims[4], count, lengths[2];
  cudnnSeqDataAxis_t axes[4];
  size_t size;
  ASSERT_OK(cudnnGetSeqDataDescriptor(a.k_desc, &type, &count, 4, dims, axes, &size, 2, lengths, nullptr));
  EXPECT_EQ(count, 4);
  EXPECT_EQ(dims[CUDNN_SEQDATA_TIME_DIM], 4);
  EXPECT_EQ(dims[CUDNN_SEQDATA_VECT_DIM], 4);
  EXPECT_EQ(axes[3], CUDNN_SEQDATA_VECT_DIM);
  EXPECT_EQ(size, 2U);
  EXPECT_EQ(lengths[1], 3);
}

TEST(MultiHeadAttention, mistakes) {
  Case c;
  Attention a(c);
  auto set = [&](unsigned mode, int heads, double scale, int q_proj, int k_proj) {
    return cudnnSetAttnDescriptor(a.desc, mode, heads, scale, c.type, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, nullptr,
                                  nullptr, 5, 4, 3, q_proj, k_proj, 2, 5, 3, 4, 2, 1);
  };
  EXPECT_TRUE(is_bad_param(set(8, 2, 1, 6, 6)));
  EXPECT_TRUE(is_bad_param(set(0, 0, 1, 6, 6)));
  EXPECT_TRUE(is_bad_param(set(0, 2, -1, 6, 6)));
  EXPECT_TRUE(is_bad_param(set(0, 2, 1, 6, 5)));
  EXPECT_TRUE(is_bad_param(set(0, 2, 1, -1, 6)));
  EXPECT_TRUE(is_bad_param(set(0, 0x7fffffff, 1, 0x7fffffff, 0x7fffffff)));
  int dims[] = {3, 2, 1, 5}, lengths[] = {3, 9};
  auto data = [&](const cudnnSeqDataAxis_t* axes, const int* n, size_t count) {
    return cudnnSetSeqDataDescriptor(a.q_desc, c.type, 4, dims, axes, count, n, nullptr);
  };
  EXPECT_TRUE(is_bad_param(data(c.axes.data(), lengths, 2)));
  EXPECT_TRUE(is_bad_param(data(c.axes.data(), c.lengths_q.data(), 1)));
  EXPECT_TRUE(is_bad_param(data(nullptr, c.lengths_q.data(), 2)));
  cudnnSeqDataAxis_t twice[] = {CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BEAM_DIM,
                                CUDNN_SEQDATA_VECT_DIM};
  EXPECT_TRUE(is_bad_param(data(twice, c.lengths_q.data(), 2)));
  cudnnSeqDataAxis_t inside[] = {CUDNN_SEQDATA_VECT_DIM, CUDNN_SEQDATA_TIME_DIM, CUDNN_SEQDATA_BEAM_DIM,
                                 CUDNN_SEQDATA_BATCH_DIM};
  EXPECT_TRUE(is_not_supported(data(inside, c.lengths_q.data(), 2)));

  Flat q(c.type, 30), k(c.type, 32), v(c.type, 24), w(c.type, static_cast<int64_t>(a.weight_bytes / 4)),
      out(c.type, 30);
  EXPECT_OK(a.forward(q, k, v, w, nullptr, out, false));
  EXPECT_TRUE(is_bad_param(a.forward(q, k, v, w, nullptr, out, false, 3)));
  EXPECT_TRUE(is_bad_param(a.forward(q, k, v, w, nullptr, out, true, 1)));
  a.weight_bytes -= 4;
  EXPECT_TRUE(is_bad_param(a.forward(q, k, v, w, nullptr, out, false)));
  a.weight_bytes += 4;
  a.reserve.resize(a.reserve.size() - 1, 0);
  EXPECT_TRUE(is_bad_param(a.forward(q, k, v, w, nullptr, out, true)));
  a.set(a.k_desc, 4, 1, 5, c.lengths_kv);
  EXPECT_TRUE(is_bad_param(a.forward(q, k, v, w, nullptr, out, false)));
  EXPECT_TRUE(is_bad_param(cudnnGetMultiHeadAttnBuffers(nullptr, a.desc, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnGetMultiHeadAttnBuffers(a.handle, nullptr, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(is_bad_param(cudnnGetMultiHeadAttnWeights(
      a.handle, a.desc, static_cast<cudnnMultiHeadAttnWeightKind_t>(8), a.weight_bytes, nullptr, nullptr, nullptr)));
}

}  // namespace
