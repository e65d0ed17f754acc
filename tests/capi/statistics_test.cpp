// SPDX-License-Identifier: Apache-2.0
// Sums for batch norm's statistics behind a convolution, as clients describe them.
#include <algorithm>

#include "graph_client.hpp"

using namespace client;

namespace {

Dims channels_last(const Dims& d) {
  Dims s(d.size(), 1);
  int64_t step = d[1];
  for (size_t i = d.size(); i-- > 2; step *= d[i]) s[i] = step;
  s[0] = step;
  return s;
}

// Warnings of the library while it lives.
class Warnings {
 public:
  Warnings() { EXPECT_OK(cudnnSetCallback(CUDNN_SEV_WARNING_EN, &texts, hear)); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  ~Warnings() { cudnnSetCallback(0, nullptr, nullptr); }
  int64_t about(const std::string& words) const {
    return std::count_if(texts.begin(), texts.end(), [&](auto& t) { return t.find(words) != std::string::npos; });
  }
  std::vector<std::string> texts;

 private:
  static void hear(cudnnSeverity_t, void* data, const cudnnDebug_t*, const char* text) {
    static_cast<std::vector<std::string>*>(data)->emplace_back(text);
  }
};

struct Sizes {
  int64_t n, c, k, described;
};

// y = conv(relu(x scale + bias), w) with filters [k,c,1,1], and the sums over y, described with `described` channels.
void run(const Sizes& s, cudnnDataType_t type) {
  Net net;
  Dims xd = {s.n, s.c, 3, 2}, yd = {s.n, s.k, 3, 2}, per_channel = {1, s.c, 1, 1}, sums = {1, s.described, 1, 1};
  GraphTensor *x = net.random(xd, type, channels_last(xd)), *scale = net.random(per_channel, type),
              *bias = net.random(per_channel, type), *w = net.random({s.k, s.c, 1, 1}, type), *scaled = net.hidden(xd),
              *moved = net.hidden(xd), *positive = net.hidden(xd, type), *y = net.output(yd, type, channels_last(yd));
  GraphTensor *sum = net.output(sums, CUDNN_DATA_FLOAT, channels_last(sums)),
              *squares = net.output(sums, CUDNN_DATA_FLOAT, channels_last(sums));
  // The memory has all channels.
  for (GraphTensor* t : {sum, squares}) t->memory.assign(static_cast<size_t>(s.k) * sizeof(float) + 64, 0x5a);
  net.pointwise(CUDNN_POINTWISE_MUL, x, scale, scaled);
  net.pointwise(CUDNN_POINTWISE_ADD, scaled, bias, moved);
  net.pointwise(CUDNN_POINTWISE_RELU_FWD, moved, nullptr, positive);
  Piece& conv = net.part(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  conv.type(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT).ints(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {2});
  conv.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, std::vector{CUDNN_CROSS_CORRELATION});
  for (int name : {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS}) conv.ints(name, {0, 0});
  for (int name : {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES}) conv.ints(name, {1, 1});
  conv.finalize();
  net.operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, positive},
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w},
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y}})
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, {conv})
      .finalize();
  net.operation(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y},
                                                               {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum},
                                                               {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares}})
      .set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, std::vector{CUDNN_GENSTATS_SUM_SQSUM})
      .type(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT)
      .finalize();
  Warnings warnings;
  net.run();
  EXPECT_EQ(warnings.about("channels") > 0, s.described < s.k);
  Values got = y->values(), want(static_cast<size_t>(s.k)), want_squares(static_cast<size_t>(s.k)), first, second;
  for (size_t i = 0; i < got.size(); ++i) {
    size_t channel = i / 6 % static_cast<size_t>(s.k);
    want[channel] += got[i], want_squares[channel] += got[i] * got[i];
  }
  for (int64_t i = 0; i < s.k; ++i) {
    first.push_back(load(CUDNN_DATA_FLOAT, sum->data() + i * 4));
    second.push_back(load(CUDNN_DATA_FLOAT, squares->data() + i * 4));
  }
  expect_near(want, first, type == CUDNN_DATA_FLOAT ? 1e-5 : 2e-2);
  expect_near(want_squares, second, type == CUDNN_DATA_FLOAT ? 1e-5 : 2e-2);
  for (GraphTensor* t : {sum, squares}) EXPECT_EQ(t->data()[s.k * 4], 0x5a);
}

TEST(Statistics, HaveTheChannelsOfTheConvolution) {
  for (cudnnDataType_t type : {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16})
    for (Sizes s : {Sizes{3, 8, 64, 8}, Sizes{2, 32, 48, 32}, Sizes{1, 4, 16, 1}, Sizes{2, 8, 16, 16}}) {
      SCOPED_TRACE(testing::Message() << type << " " << s.c << " " << s.k << " " << s.described);
      run(s, type);
    }
}

// More channels than there are is a mistake.
TEST(Statistics, MoreChannelsAreRefused) {
  EXPECT_NE(status_of([] { run({2, 8, 16, 32}, CUDNN_DATA_FLOAT); }), CUDNN_STATUS_SUCCESS);
}

}  // namespace
