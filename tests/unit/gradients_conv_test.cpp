// SPDX-License-Identifier: Apache-2.0
// Backward operations around convolution against finite differences.
#include <gtest/gtest.h>

#include "gradient_check.hpp"

namespace tsr {
namespace {

TEST(GradientsConv, ConvolutionForEveryOption) {
  struct Setting {
    std::string x, w, y, options;
  };
  const Setting settings[] = {
      {"[2,3,5,4]", "[2,3,3,2]", "[2,2,3,3]", ""},
      {"[1,2,6,5]", "[3,2,3,2]", "[1,3,3,2]", " stride=2,3 pad=1,0"},
      {"[1,2,5,5]", "[2,2,2,3]", "[1,2,4,2]", " dilation=3,2 post_pad=2,1"},
      {"[1,4,4,3]", "[6,2,2,2]", "[1,6,3,2]", " groups=2"},
      {"[1,3,4,3]", "[3,1,2,2]", "[1,3,5,4]", " groups=3 pad=1,1"},
      {"[1,2,4,5]", "[2,2,3,2]", "[1,2,4,5]", " mode=convolution pad=1,0 post_pad=1,1"},
      {"[1,2,4,5]", "[2,2,3,2]", "[1,2,2,4]", " alpha=-0.7"},
      {"[2,2,7]", "[3,2,3]", "[2,3,3]", " stride=2"},
      {"[1,2,3,2,4]", "[2,2,2,2,3]", "[1,2,2,3,2]", " pad=0,1,0"},
  };
  for (const Setting& s : settings) {
    std::string x = "x = input f64" + s.x + "; ", w = "w = input f64" + s.w + "; ", dy = "dy = input f64" + s.y + "; ";
    std::string forward = x + w + "y = conv_fprop x w" + s.options + "; output y";
    EXPECT_EQ(check_gradient(forward, dy + w + "dx f64" + s.x + " = conv_dgrad dy w" + s.options + "; output dx"), "")
        << s.options;
    EXPECT_EQ(check_gradient(forward, dy + x + "dw f64" + s.w + " = conv_wgrad dy x" + s.options + "; output dw"), "")
        << s.options;
  }
}

TEST(GradientsConv, MixtureOfExperts) {
  DataSpec data;
  data.by_name["offset"] = "values:1,3,3,6";
  for (std::string experts : {"4", "2"})
    EXPECT_EQ(
        check_gradient("token = input f64[1,8,3]; weight = input f64[" + experts +
                           ",3,2]; offset = input i32[4,1,1]; y = moe_matmul token weight offset; output y",
                       "dy = input f64[1,8,2]; token = input f64[1,8,3]; offset = input i32[4,1,1]; dweight f64[" +
                           experts + ",3,2] = moe_matmul_bwd dy token offset; output dweight",
                       data),
        "");
}

TEST(GradientsConv, CausalConvolution) {
  for (std::string taps : {"1", "3", "7"})
    for (std::string options : {"", " reversed=true", " activation=silu", " activation=silu reversed=true"})
      for (std::string bias : {"", " bias=bias"}) {
        std::string inputs = "x = input f64[2,3,5]; weight = input f64[3," + taps + "]; bias = input f64[3]; ";
        std::string results = bias.empty() ? "dx, dweight" : "dx, dweight, dbias:dbias";
        EXPECT_EQ(
            check_gradient(inputs + "y = causal_conv1d x weight" + bias + options + "; output y",
                           inputs + "dy = input f64[2,3,5]; " + results + " = causal_conv1d_bwd x weight dy" + bias +
                               options + "; output dx; output dweight" + (bias.empty() ? "" : "; output dbias")),
            "")
            << taps << options << bias;
      }
}

TEST(GradientsConv, BackToBackCausalConvolution) {
  std::string inputs =
      "x = input f64[2,2,3,5]; w_proj = input f64[2,3,2]; w_mixer = input f64[2,7]; skip_bias = input f64[2]; ";
  EXPECT_EQ(
      check_gradient(inputs + "saved, y = b2b_causal_conv1d x w_proj w_mixer skip_bias; output saved; output y",
                     inputs + "saved = input f64[2,2,5]; dy = input f64[2,2,5]; dx, dw_proj, dw_mixer, dskip_bias = "
                              "b2b_causal_conv1d_bwd x w_proj w_mixer skip_bias saved dy; output dx; output dw_proj; "
                              "output dw_mixer; output dskip_bias"),
      "");
}

}  // namespace
}  // namespace tsr
