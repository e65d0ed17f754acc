// SPDX-License-Identifier: Apache-2.0
// Tensors of the graph interface that are not what their memory is: kept together in vectors, reordered for tensor
// cores, integers without a sign.
#include "graph_client.hpp"

namespace {

using namespace client;

// Sizes and strides of the descriptor count vectors; `t->memory` holds packed bytes.
GraphTensor* vectors(Net& net, cudnnDataType_t type, const Dims& elements, int64_t lanes, int64_t along = 1,
                     bool reordered = false) {
  Dims d = elements;
  d[static_cast<size_t>(along)] /= lanes;
  GraphTensor* t = net.add(type, d, packed(d), false, false, false);
  t->desc.ints(CUDNN_ATTR_TENSOR_VECTOR_COUNT, {lanes}).ints(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, {along});
  if (reordered)
    t->desc.set(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE,
                std::vector{CUDNN_TENSOR_REORDERING_INT8x32});
  t->desc.finalize();
  t->memory.assign(static_cast<size_t>(count_of(elements)) * size_of(type) + 64, 0xff);
  return t;
}

// Where element i of `elements`, in row-major order, lies.
int64_t place(const Dims& elements, int64_t i, int64_t lanes, int64_t along = 1) {
  Dims index(elements.size());
  for (size_t d = elements.size(); d-- > 0; i /= elements[d]) index[d] = i % elements[d];
  int64_t lane = index[static_cast<size_t>(along)] % lanes, at = 0;
  for (size_t d = 0; d < elements.size(); ++d) {
    bool split = static_cast<int64_t>(d) == along;
    at = at * (split ? elements[d] / lanes : elements[d]) + (split ? index[d] / lanes : index[d]);
  }
  return at * lanes + lane;
}

double get(GraphTensor* t, int64_t at) { return load(t->type, t->data() + static_cast<size_t>(at) * size_of(t->type)); }
void set(GraphTensor* t, int64_t at, double v) {
  store(t->type, t->data() + static_cast<size_t>(at) * size_of(t->type), v);
}

Values fill(GraphTensor* t, const Dims& elements, int64_t lanes, int64_t along, double least) {
  Values v;
  for (int64_t i = 0; i < count_of(elements); ++i) {
    v.push_back(static_cast<double>(i * 37 % 15) + least);
    set(t, place(elements, i, lanes, along), v.back());
  }
  return v;
}

Piece& convolution(Net& net) {
  Piece& p = net.part(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  p.type(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_INT32).ints(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2});
  p.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, std::vector{CUDNN_CROSS_CORRELATION});
  for (int name : {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS}) p.ints(name, {0, 0});
  for (int name : {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES}) p.ints(name, {1, 1});
  return p.finalize();
}

// x [2,c,3,4] with k filters [c,2,1].
struct Geometry {
  int64_t c, k;
  Dims x() const { return {2, c, 3, 4}; }
  Dims w() const { return {k, c, 2, 1}; }
  Dims y() const { return {2, k, 2, 4}; }
  Values convolve(const Values& x, const Values& w) const {
    Values y;
    for (int64_t i = 0; i < 2 * k * 8; ++i) {
      int64_t n = i / 8 / k, o = i / 8 % k, row = i / 4 % 2, column = i % 4;
      double sum = 0;
      for (int64_t ch = 0; ch < c; ++ch)
        for (int64_t tap = 0; tap < 2; ++tap)
          sum += x[static_cast<size_t>(((n * c + ch) * 3 + row + tap) * 4 + column)] *
                 w[static_cast<size_t>((o * c + ch) * 2 + tap)];
      y.push_back(sum);
    }
    return y;
  }
};

void forward(Net& net, GraphTensor* x, GraphTensor* w, GraphTensor* y, double beta = 0) {
  net.operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x},
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w},
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y}})
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, {convolution(net)})
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_DOUBLE, std::vector<double>{beta})
      .finalize();
}

double saturated(double v) { return std::max(-128.0, std::min(127.0, v)); }

// Operands and results in vectors, without a sign and with one; what the result held is read in its vectors too.
TEST(MemoryOrder, vectors_of_channels) {
  for (cudnnDataType_t type : {CUDNN_DATA_INT8, CUDNN_DATA_UINT8})
    for (int64_t lanes : {4, 32})
      for (double beta : {0.0, 2.0}) {
        Net net;
        Geometry g{32, 64};
        GraphTensor *x = vectors(net, type, g.x(), lanes), *w = vectors(net, CUDNN_DATA_INT8, g.w(), lanes),
                    *y = vectors(net, CUDNN_DATA_INT8, g.y(), lanes);
        Values xv = fill(x, g.x(), lanes, 1, type == CUDNN_DATA_INT8 ? -7 : 130), wv(count_of(g.w()), 0);
        for (int64_t i = 0; i < count_of(g.w()); ++i) {
          wv[static_cast<size_t>(i)] = i % 29 == 0 ? 1 : i % 31 == 0 ? -1 : 0;
          set(w, place(g.w(), i, lanes), wv[static_cast<size_t>(i)]);
        }
        Values before = fill(y, g.y(), lanes, 1, -7), want = g.convolve(xv, wv);
        forward(net, x, w, y, beta);
        net.run();
        for (int64_t i = 0; i < count_of(g.y()); ++i) {
          auto at = static_cast<size_t>(i);
          ASSERT_EQ(get(y, place(g.y(), i, lanes)), saturated(want[at] + beta * before[at])) << i;
        }
      }
}

// Front ends that infer the result's sizes count filters where vectors of channels belong, in one of the usual layouts;
// the result lies without gaps, in front of the rest of the memory. A scaling behind the convolution changes nothing.
TEST(MemoryOrder, as_many_vectors_as_filters) {
  for (int64_t lanes : {4, 32})
    for (bool last : {false, true})
      for (bool scaled : {false, true}) {
        Net net;
        Geometry g{32, 64};
        GraphTensor *x = vectors(net, CUDNN_DATA_INT8, g.x(), lanes), *w = vectors(net, CUDNN_DATA_INT8, g.w(), lanes);
        Dims d = g.y(), strides = last ? Dims{d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]} : packed(d);
        GraphTensor* y = net.add(CUDNN_DATA_INT8, d, strides, false, false, false);
        y->desc.ints(CUDNN_ATTR_TENSOR_VECTOR_COUNT, {lanes}).ints(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, {1});
        y->desc.finalize();
        y->memory.assign(static_cast<size_t>(count_of(d)) + 64, 0x5a);  // not more than the result takes
        Values xv = fill(x, g.x(), lanes, 1, -7), wv(static_cast<size_t>(count_of(g.w())), 0);
        for (int64_t i = 0; i < count_of(g.w()); ++i) {
          wv[static_cast<size_t>(i)] = i % 29 == 0 ? 1 : i % 31 == 0 ? -1 : 0;
          set(w, place(g.w(), i, lanes), wv[static_cast<size_t>(i)]);
        }
        Values want = g.convolve(xv, wv);
        GraphTensor* sums = scaled ? net.hidden(d, CUDNN_DATA_INT32) : y;
        forward(net, x, w, sums);
        if (scaled) net.pointwise(CUDNN_POINTWISE_MUL, sums, net.scalar(1), y);
        net.run();
        for (int64_t i = 0; i < count_of(d); ++i) {
          int64_t lane = i / d[3] / d[2] % d[1] % lanes, vector = i / d[3] / d[2] % d[1] / lanes,
                  n = i / (count_of(d) / d[0]);
          int64_t spot = i % (d[2] * d[3]), fewer = d[1] / lanes;
          int64_t at = last ? (n * d[2] * d[3] + spot) * fewer + vector : (n * fewer + vector) * d[2] * d[3] + spot;
          ASSERT_EQ(get(y, at * lanes + lane), saturated(want[static_cast<size_t>(i)])) << i << " " << last << scaled;
        }
        EXPECT_EQ(y->data()[count_of(d)], 0x5a);
      }
}

// Filters as cudnnReorderFilterAndBias leaves them, and so the bias behind the convolution.
TEST(MemoryOrder, reordered_for_tensor_cores) {
  Net net;
  Geometry g{64, 32};
  GraphTensor *x = vectors(net, CUDNN_DATA_INT8, g.x(), 32), *w = vectors(net, CUDNN_DATA_INT8, g.w(), 32, 1, true),
              *sum = net.hidden(g.y()), *y = net.output(g.y());
  GraphTensor* bias = net.add(CUDNN_DATA_FLOAT, {1, 32, 1, 1}, {32, 1, 1, 1}, false, false, false);
  bias->desc
      .set(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE,
           std::vector{CUDNN_TENSOR_REORDERING_INT8x32})
      .finalize();
  Values xv = fill(x, g.x(), 32, 1, -7), wv;
  for (int64_t i = 0; i < count_of(g.w()); ++i) {
    int64_t o = i / 2 / 64, c = i / 2 % 64, tap = i % 2;
    wv.push_back(static_cast<double>(i * 23 % 15) - 7);
    set(w, (((((c / 32) * 2 + tap) * 4 + o / 8) * 2 + o % 2) * 8 + c % 32 / 4) * 16 + o % 8 / 2 * 4 + c % 4, wv.back());
  }
  for (int64_t o = 0; o < 32; ++o) set(bias, (o / 4 % 2) * 16 + o / 8 * 4 + o % 4, static_cast<double>(o) / 2);
  forward(net, x, w, sum);
  net.pointwise(CUDNN_POINTWISE_ADD, sum, bias, y);
  net.run();
  Values want = g.convolve(xv, wv);
  for (size_t i = 0; i < want.size(); ++i) want[i] += static_cast<double>(i / 8 % 32) / 2;
  expect_near(want, y->values(), 0);
}

// Any type, any dimension, any number.
TEST(MemoryOrder, vectors_of_other_elements) {
  struct {
    cudnnDataType_t type;
    int64_t lanes, along;
  } const cases[] = {{CUDNN_DATA_HALF, 8, 3}, {CUDNN_DATA_FLOAT, 2, 0}, {CUDNN_DATA_INT32, 3, 2}};
  for (auto [type, lanes, along] : cases) {
    Net net;
    Dims d = {4, 2, 6, 8};
    GraphTensor *x = vectors(net, type, d, lanes, along), *y = vectors(net, type, d, lanes, along),
                *plain = net.input(d, {1, 2, 3, 5, 8}, type);
    Values v = fill(x, d, lanes, along, -7), other = plain->values();
    net.pointwise(CUDNN_POINTWISE_ADD, x, plain, y);
    net.run();
    for (int64_t i = 0; i < count_of(d); ++i)
      ASSERT_EQ(get(y, place(d, i, lanes, along)), v[static_cast<size_t>(i)] + other[static_cast<size_t>(i)]) << i;
  }
}

// Numbers above 2^31, as operands by memory and by value, in vectors, and as results that saturate.
TEST(MemoryOrder, unsigned_integers) {
  Net net;
  Dims d = {1, 4, 2};
  const std::vector<uint32_t> numbers = {0, 1, 7, 2147483647u, 2147483648u, 4000000000u, 4294967294u, 4294967295u};
  auto tensor = [&](bool by_value) {
    GraphTensor* t = by_value ? net.add(CUDNN_DATA_UINT32, {1, 1, 1}, {1, 1, 1}, false, true)
                              : net.add(CUDNN_DATA_UINT32, d, packed(d), false, false);
    std::memcpy(t->data(), by_value ? &numbers[4] : numbers.data(), by_value ? 4 : 32);
    return t;
  };
  GraphTensor *fixed = net.add(CUDNN_DATA_UINT32, {1, 1, 1}, {1, 1, 1}, false, true, false), *less = net.output(d);
  fixed->desc.set(CUDNN_ATTR_TENSOR_CONSTANT_VALUE, CUDNN_TYPE_VOID_PTR, std::vector<const void*>{&numbers[5]});
  fixed->desc.finalize();
  GraphTensor *x = tensor(false), *one = tensor(true), *sum = tensor(false), *real = net.output(d, CUDNN_DATA_DOUBLE),
              *in_vectors = vectors(net, CUDNN_DATA_UINT32, d, 2);
  net.pointwise(CUDNN_POINTWISE_ADD, x, one, sum, nullptr, CUDNN_DATA_INT64);
  net.pointwise(CUDNN_POINTWISE_IDENTITY, x, nullptr, real, nullptr, CUDNN_DATA_DOUBLE);
  net.pointwise(CUDNN_POINTWISE_IDENTITY, x, nullptr, in_vectors, nullptr, CUDNN_DATA_INT64);
  net.pointwise(CUDNN_POINTWISE_SUB, fixed, x, less, nullptr, CUDNN_DATA_DOUBLE);
  net.run();
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(less->values()[i], static_cast<float>(double{4e9} - numbers[i]));
    uint32_t s = 0, v = 0;
    std::memcpy(&s, sum->data() + 4 * i, 4);
    std::memcpy(&v, in_vectors->data() + 4 * place(d, static_cast<int64_t>(i), 2), 4);
    EXPECT_EQ(s, std::min<uint64_t>(uint64_t{numbers[i]} + numbers[4], 4294967295u));
    EXPECT_EQ(v, numbers[i]);
    EXPECT_EQ(real->values()[i], numbers[i]);
  }
}

TEST(MemoryOrder, refusals) {
  Net net;
  Piece& wrong = net.add(CUDNN_DATA_INT8, {1, 8, 2, 2}, {32, 4, 2, 1}, false, false, false)->desc;
  wrong.ints(CUDNN_ATTR_TENSOR_VECTOR_COUNT, {4}).ints(CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, {4});
  EXPECT_TRUE(is_bad_param(status_of([&] { wrong.finalize(); })));
}

// What one plan leaves in the order F16x16 another one reads, also as the virtual tensor of a plan.
TEST(MemoryOrder, unpublished_order_is_handed_over) {
  auto reordered = [](GraphTensor* t, cudnnBackendTensorReordering_t order) {
    t->desc.set(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE, std::vector{order}).finalize();
    return t;
  };
  for (cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT})
    for (Dims dims : {Dims{1, 2, 16, 16}, Dims{2, 3, 5, 7}}) {
      Net first, second;
      GraphTensor *x = first.random(dims, type), *y = second.output(dims, type);
      auto kept = [&](Net& net, bool hidden) {
        return reordered(net.add(type, dims, packed(dims), hidden, false, false), CUDNN_TENSOR_REORDERING_F16x16);
      };
      GraphTensor *written = kept(first, false), *read = kept(second, false), *on_the_way = kept(second, true);
      first.pointwise(CUDNN_POINTWISE_NEG, x, nullptr, written);
      first.run();
      read->memory = written->memory;
      read->fill(written->values());
      second.pointwise(CUDNN_POINTWISE_NEG, read, nullptr, on_the_way);
      second.pointwise(CUDNN_POINTWISE_IDENTITY, on_the_way, nullptr, y);
      second.run();
      EXPECT_EQ(x->values(), y->values());
    }
}

// No order of a virtual tensor matters: there is no memory.
TEST(MemoryOrder, virtual_tensors_have_none) {
  for (cudnnBackendTensorReordering_t order :
       {CUDNN_TENSOR_REORDERING_INT8x32, CUDNN_TENSOR_REORDERING_F16x16, CUDNN_TENSOR_REORDERING_F8_128x4}) {
    Net net;
    GraphTensor *x = net.random({1, 3, 5, 7}), *y = net.output({1, 3, 5, 7}),
                *v = net.add(CUDNN_DATA_FLOAT, {1, 3, 5, 7}, {105, 35, 7, 1}, true, false, false);
    v->desc.set(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE, std::vector{order}).finalize();
    net.pointwise(CUDNN_POINTWISE_NEG, x, nullptr, v);
    net.pointwise(CUDNN_POINTWISE_NEG, v, nullptr, y);
    net.run();
    EXPECT_EQ(x->values(), y->values());
  }
}

}  // namespace
