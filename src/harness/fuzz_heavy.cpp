// SPDX-License-Identifier: Apache-2.0
// Graphs of one heavy operation, at sizes around those where implementations change: the border cases of blocks of 16
// channels, of vectors that reach over an edge, of filters that lie partly in the padding.
#include <algorithm>
#include <random>

#include "base/cat.hpp"
#include "graph/text.hpp"
#include "harness/fuzz.hpp"

namespace tsr {
namespace {

using Sizes = std::vector<int64_t>;

std::string list(const Sizes& v) {
  std::string s;
  for (int64_t x : v) s += (s.empty() ? "" : ",") + std::to_string(x);
  return s;
}

class HeavyGenerator {
 public:
  explicit HeavyGenerator(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15ull + 1), channels_last_(chance(70)) {}

  std::string run() {
    switch (pick(0, 9)) {
      case 0:
      case 1:
        return matmul();
      case 2:
        return recurrent();
      case 3:
        return mean();
      case 4:
        return transpose();
      default:
        return convolution();
    }
  }

 private:
  int64_t pick(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint64_t>(hi - lo + 1));
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  template <class T>
  T pick_of(std::initializer_list<T> v) {
    return *(v.begin() + pick(0, static_cast<int64_t>(v.size()) - 1));
  }
  std::string type() { return pick_of<const char*>({"f32", "bf16", "bf16", "f16", "i8"}); }
  std::string float_type() { return pick_of<const char*>({"f32", "bf16", "bf16", "f16"}); }
  int64_t channels() { return chance(50) ? pick(1, 20) : chance(50) ? pick(1, 5) * 16 : pick(21, 72); }
  int64_t extent() { return chance(60) ? pick(1, 14) : pick(15, 48); }

  // "bf16[2,3,4,4]:nhwc": channels last or first, mostly the same for all tensors of a graph.
  std::string image(const std::string& type, const Sizes& sizes) {
    static constexpr const char* kLast[] = {":nwc", ":nhwc", ":ndhwc"};
    return cat(type, "[", list(sizes), "]", chance(90) == channels_last_ ? kLast[sizes.size() - 3] : "");
  }

  struct Conv {
    Sizes x, w, y, pad, post_pad, stride, dilation;
    std::string options() const {
      return cat(" pad=", list(pad), " post_pad=", list(post_pad), " stride=", list(stride),
                 " dilation=", list(dilation));
    }
    // The oracle takes a second for ten million.
    bool is_small() const {
      int64_t products = w[1] * w[0];
      for (size_t i = 2; i < w.size(); ++i) products *= w[i] * y[i];
      return products * y[0] < 6'000'000;
    }
  };

  Conv sizes() {
    for (;;) {
      Conv c;
      int64_t rank = pick_of<int64_t>({1, 2, 2, 2, 3}), groups = chance(75) ? 1 : pick_of<int64_t>({2, 3, 4, 16});
      int64_t in = channels(), out = channels();
      if (groups > 1 && chance(50)) groups = in, in = out = 1;  // depthwise
      int64_t batch = pick(1, 3);
      c.x = {batch, in * groups}, c.w = {out * groups, in}, c.y = {batch, out * groups};
      bool possible = true;
      for (int64_t i = 0; i < rank; ++i) {
        int64_t window = pick_of<int64_t>({1, 2, 3, 3, 3, 5, 7}), stride = chance(60) ? 1 : pick(2, 3);
        int64_t dilation = chance(60) ? 1 : pick(2, 4), reach = (window - 1) * dilation;
        int64_t before = chance(50) ? reach / 2 : pick(0, reach), after = chance(70) ? before : pick(0, reach);
        int64_t size = extent(), left = size + before + after - reach - 1;
        possible &= left >= 0;
        c.x.push_back(size), c.w.push_back(window), c.y.push_back(left / stride + 1);
        c.pad.push_back(before), c.post_pad.push_back(after), c.stride.push_back(stride);
        c.dilation.push_back(dilation);
      }
      if (possible && c.is_small()) return c;
    }
  }

  std::string convolution() {
    Conv c = sizes();
    std::string t = type(), result = t == "bf16" && chance(50) ? t : "f32";
    switch (pick(0, 2)) {
      case 0:
        if (t == "i8") t = "f32";
        return cat("dy = input ", image(t, c.y), "; w = input ", image(t, c.w), "; dx ", image(result, c.x),
                   " = conv_dgrad dy w", c.options(), "; output dx");
      case 1:
        if (t == "i8") t = "f32";
        return cat("dy = input ", image(t, c.y), "; x = input ", image(t, c.x), "; dw ", image(result, c.w),
                   " = conv_wgrad dy x", c.options(), "; output dw");
      default:
        Sizes bias(c.y.size(), 1);
        bias[1] = c.y[1];
        std::string text = cat("x = input ", image(t, c.x), "; w = input ", image(t, c.w), frozen(),
                               "; y = conv_fprop x w", c.options(), "; ");
        return t == "i8" ? text + "output y i32" : text + tail(image(result, c.y), bias) + result;
    }
  }

  std::string frozen() { return chance(20) ? " frozen=true" : ""; }

  // Up to three operations behind y, and the output without its type. `bias` are the sizes of one value a channel.
  std::string tail(const std::string& whole, const Sizes& bias) {
    std::string text, y = "y";
    for (int64_t i = 0, n = chance(50) ? 0 : pick(1, 3); i < n; ++i) {
      std::string next = cat("t", i), other = cat("o", i);
      std::string operand = chance(50) ? whole : cat(pick_of<const char*>({"f32", "bf16"}), "[", list(bias), "]");
      switch (pick(0, 2)) {
        case 0:
          text += cat(next, " = ", pick_of<const char*>({"relu", "tanh", "gelu", "sigmoid", "swish", "abs"}), " ", y);
          break;
        case 1:
          text += cat(next, " = mul ", y, " ", pick_of<const char*>({"0.5", "-2"}));
          break;
        default:
          text += cat(other, " = input ", operand, "; ", next, " = ", pick_of<const char*>({"add", "sub", "mul"}), " ",
                      y, " ", other);
      }
      text += "; ";
      y = next;
    }
    return cat(text, "output ", y, " ");
  }

  std::string matmul() {
    int64_t m = pick(1, 70), n = channels(), k = pick(1, 150);
    Sizes a = {m, k}, b = {k, n}, c = {m, n};
    if (chance(40)) {
      int64_t batch = pick(2, 5);
      a.insert(a.begin(), batch), c.insert(c.begin(), batch), b.insert(b.begin(), chance(50) ? 1 : batch);
    }
    std::string t = type(), result = t == "bf16" && chance(50) ? t : "f32";
    Sizes bias(c.size(), 1);
    bias.back() = n;
    std::string text = cat("a = input ", matrix(t, a), "; b = input ", matrix(t, b), frozen(), "; y = matmul a b; ");
    return t == "i8" ? text + "output y i32" : text + tail(matrix(result, c), bias) + result;
  }

  // Row by row, column by column, or with gaps behind the rows.
  std::string matrix(const std::string& type, const Sizes& sizes) {
    size_t r = sizes.size();
    int64_t rows = sizes[r - 2], columns = sizes[r - 1], gap = chance(20) ? pick(1, 9) : 0;
    Sizes strides = {columns + gap, 1};
    if (chance(40)) strides = {1, rows + gap};
    if (r == 3) strides.insert(strides.begin(), (std::max(rows, columns) + gap) * std::max(rows, columns));
    return cat(type, "[", list(sizes), "]:[", list(strides), "]");
  }

  std::string recurrent() {
    std::string mode = pick_of<const char*>({"lstm", "gru", "tanh", "relu"}), t = pick_of<const char*>({"f32", "bf16"});
    int64_t gates = mode == "lstm" ? 4 : mode == "gru" ? 3 : 1, hidden = pick(1, 70), inputs = pick(1, 70);
    int64_t layers = pick(1, 2), directions = pick(1, 2), weights = 0;
    for (int64_t l = 0; l < layers; ++l)
      weights += directions * gates * hidden * ((l == 0 ? inputs : hidden * directions) + hidden + 2);
    return cat("x = input ", t, "[", pick(1, 12), ",", pick(1, 20), ",", inputs, "]; weight = input f32[", weights,
               "]; y = rnn_fwd x weight mode=", mode, " hidden=", hidden, " layers=", layers,
               directions > 1 ? " bidirectional=true" : "", "; output y ", t);
  }

  std::string mean() {
    int64_t rank = pick(1, 3);
    Sizes x = {pick(1, 3), channels()}, y = x, window, stride, pad;
    for (int64_t i = 0; i < rank; ++i) {
      window.push_back(pick(1, 4)), stride.push_back(pick(1, 3)), pad.push_back(pick(0, window.back() / 2));
      int64_t size = window.back() + (rank == 3 ? pick(0, 9) : extent());
      x.push_back(size), y.push_back((size + 2 * pad.back() - window.back()) / stride.back() + 1);
    }
    std::string t = float_type();
    std::string options = cat(" mode=avg_pool_", pick_of<const char*>({"include", "exclude"}), " window=", list(window),
                              " stride=", list(stride), " pad=", list(pad), " post_pad=", list(pad), "; output r ");
    if (chance(50)) return cat("x = input ", image(t, x), "; r = resample x", options, t);
    return cat("dy = input ", image(t, y), "; r ", image(t, x), " = resample_bwd dy", options, t);
  }

  std::string transpose() {
    std::vector<int64_t> sizes, order;
    for (int64_t i = 0, n = pick(2, 5); i < n; ++i)
      sizes.push_back(n > 3 ? pick(1, 18) : pick(1, 70)), order.push_back(i);
    std::shuffle(order.begin(), order.end(), random_);
    return cat("x = input ", type(), "[", list(sizes), "]; y = transpose x perm=", list(order), "; output y");
  }

  std::mt19937_64 random_;
  bool channels_last_;
};

}  // namespace

Graph random_heavy_graph(uint64_t seed) { return parse_graph(HeavyGenerator(seed).run()); }

}  // namespace tsr
