// SPDX-License-Identifier: Apache-2.0
// Random convolutions and means over windows: the border cases of blocks of 16 channels, of vectors that reach over an
// edge, of filters that lie partly in the padding.
#include "harness/fuzz_kinds.hpp"

namespace tsr::fuzz {
namespace {

int64_t channels(Draw& s) { return s.chance(50) ? s.pick(1, 20) : s.chance(50) ? s.pick(1, 9) * 16 : s.pick(21, 72); }
int64_t extent(Draw& s) { return s.chance(60) ? s.pick(1, 14) : s.pick(15, 48); }

// "bf16[2,3,4,4]:nhwc": channels last or first, mostly the same for all tensors of a graph.
std::string image(Draw& k, bool channels_last, const std::string& type, const Sizes& sizes) {
  static constexpr const char* kLast[] = {":nwc", ":nhwc", ":ndhwc"};
  return cat(type, "[", list(sizes), "]", k.chance(90) == channels_last ? kLast[sizes.size() - 3] : "");
}

struct Convolution {
  Sizes x, w, y, pad, post_pad, stride, dilation;
  std::string options() const {
    return cat(" pad=", list(pad), " post_pad=", list(post_pad), " stride=", list(stride),
               " dilation=", list(dilation));
  }
  // The oracle takes some tenths of a second for ten million.
  bool is_small(int64_t most) const {
    int64_t products = w[1] * w[0];
    for (size_t i = 2; i < w.size(); ++i) products *= w[i] * y[i];
    return products * y[0] < most;
  }
};

Convolution sizes(Draws& d) {
  Draw &k = d.kind, &s = d.size;
  int64_t rank = k.of<int64_t>({1, 2, 2, 2, 3});
  enum { dense, groups, apart } way = k.chance(75) ? dense : k.chance(50) ? groups : apart;
  bool plain = k.chance(50);  // steps of 1
  for (int64_t most = s.chance(80) ? 4'000'000 : 12'000'000;;) {
    Convolution c;
    int64_t count = way == dense ? 1 : s.of<int64_t>({2, 3, 4, 16});
    int64_t in = channels(s), out = channels(s), batch = s.pick(1, 3);
    if (way == apart) count = in, in = out = 1;
    c.x = {batch, in * count}, c.w = {out * count, in}, c.y = {batch, out * count};
    bool possible = true;
    for (int64_t i = 0; i < rank; ++i) {
      int64_t window = s.of<int64_t>({1, 2, 3, 3, 3, 5, 7}), stride = plain || s.chance(60) ? 1 : s.pick(2, 3);
      int64_t dilation = plain || s.chance(60) ? 1 : s.pick(2, 4), reach = (window - 1) * dilation;
      int64_t before = s.chance(50) ? reach / 2 : s.pick(0, reach), after = s.chance(70) ? before : s.pick(0, reach);
      int64_t size = extent(s), left = size + before + after - reach - 1;
      possible &= left >= 0;
      c.x.push_back(size), c.w.push_back(window), c.y.push_back(left / stride + 1);
      c.pad.push_back(before), c.post_pad.push_back(after), c.stride.push_back(stride);
      c.dilation.push_back(dilation);
    }
    if (possible && c.is_small(most)) return c;
  }
}

}  // namespace

std::string convolution(Draws& d) {
  Draw& k = d.kind;
  Convolution c = sizes(d);
  bool last = k.chance(70);
  std::string t = k.of<const char*>({"f32", "f32", "bf16", "bf16", "bf16", "f16", "i8", "e4m3"});
  std::string result = t == "bf16" && k.chance(50) ? t : "f32";
  std::string options = c.options() + (t == "f32" && k.chance(50) ? " tf32=true" : "");
  auto of = [&](const std::string& type, const Sizes& sizes) { return image(k, last, type, sizes); };
  int64_t direction = k.pick(0, 2);
  if (direction < 2 && t == "i8") t = "f32";
  if (direction == 0)
    return cat("dy = input ", of(t, c.y), "; w = input ", of(t, c.w), "; dx ", of(result, c.x), " = conv_dgrad dy w",
               options, "; output dx");
  if (direction == 1)
    return cat("dy = input ", of(t, c.y), "; x = input ", of(t, c.x), "; dw ", of(result, c.w), " = conv_wgrad dy x",
               options, "; output dw");
  std::string text = cat("x = input ", of(t, c.x), "; w = input ", of(t, c.w), k.chance(20) ? " frozen=true" : "",
                         "; y = conv_fprop x w", options, "; ");
  if (t == "i8") return text + "output y i32";
  if (k.chance(10)) return cat(text, "s, q = gen_stats y; output y ", result, "; output s; output q #! all=integers");
  Sizes bias(c.y.size(), 1);
  bias[1] = c.y[1];
  return text + work_behind(d, of(result, c.y), bias) + result;
}

std::string mean(Draws& d) {
  Draw &k = d.kind, &s = d.size;
  int64_t rank = k.pick(1, 3);
  Sizes x = {s.pick(1, 3), channels(s)}, y = x, window, stride, pad;
  for (int64_t i = 0; i < rank; ++i) {
    window.push_back(s.pick(1, 4)), stride.push_back(s.pick(1, 3)), pad.push_back(s.pick(0, window.back() / 2));
    int64_t size = window.back() + (rank == 3 ? s.pick(0, 9) : extent(s));
    x.push_back(size), y.push_back((size + 2 * pad.back() - window.back()) / stride.back() + 1);
  }
  bool last = k.chance(70);
  std::string t = k.of<const char*>({"f32", "bf16", "bf16", "f16"});
  std::string options = cat(" mode=avg_pool_", k.of<const char*>({"include", "exclude"}), " window=", list(window),
                            " stride=", list(stride), " pad=", list(pad), " post_pad=", list(pad), "; output r ");
  if (k.chance(50)) return cat("x = input ", image(k, last, t, x), "; r = resample x", options, t);
  return cat("dy = input ", image(k, last, t, y), "; r ", image(k, last, t, x), " = resample_bwd dy", options, t);
}

}  // namespace tsr::fuzz
