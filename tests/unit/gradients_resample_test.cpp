// SPDX-License-Identifier: Apache-2.0
// Backward operations of pooling, interpolation and the spatial transformer against finite differences.
#include <gtest/gtest.h>

#include "gradient_check.hpp"

namespace tsr {
namespace {

TEST(GradientsResample, EveryModeAndPadding) {
  struct Setting {
    std::string x, y, options;
  };
  const Setting settings[] = {
      {"[2,2,5,6]", "[2,2,3,3]", " window=3,2 stride=2,2 pad=1,0"},
      {"[1,2,5,6]", "[1,2,6,5]", " window=2,3 stride=1,1 pad=1,1 post_pad=1,0"},
      {"[1,2,7]", "[1,2,5]", " window=3/2 stride=4/3 pad=1/2 alpha=-1.5"},
      {"[1,1,3,4,3]", "[1,1,2,2,2]", " window=2,2,2 pad=1,0,1"},
  };
  for (const Setting& s : settings)
    for (std::string mode : {"nearest", "bilinear", "avg_pool_include", "avg_pool_exclude", "max_pool"})
      for (std::string padding : {"automatic", "zero", "edge"}) {
        std::string options = s.options + " mode=" + mode + " padding=" + padding;
        std::string x = "x = input f64" + s.x + "; ", dy = "dy = input f64" + s.y + "; ";
        std::string forward = x + "y f64" + s.y + " = resample x" + options + "; output y";
        EXPECT_EQ(check_gradient(forward, x + dy + "dx = resample_bwd dy x=x" + options + "; output dx"), "")
            << options;
        if (mode == "max_pool") {
          // The index of the forward operation leads to the same gradient.
          forward = x + "y f64" + s.y + ", index:i = resample x" + options + "; output y; output i i32";
          std::string backward =
              dy + "i = input i32" + s.y + "; dx f64" + s.x + " = resample_bwd dy index=i" + options + "; output dx";
          EXPECT_EQ(check_gradient(forward, backward), "") << options;
        } else {
          EXPECT_EQ(check_gradient(forward, dy + "dx f64" + s.x + " = resample_bwd dy" + options + "; output dx"), "")
              << options;
        }
      }
}

TEST(GradientsResample, SpatialTransformer) {
  for (std::string size : {"2,1,3,4", "2,1,1,4", "1,2,5,2"}) {
    std::string n = size.substr(0, 1), h = size.substr(4, 1), w = size.substr(6, 1);
    EXPECT_EQ(check_gradient(
                  "theta = input f64[" + n + ",2,3]; grid = affine_grid theta size=" + size + "; output grid",
                  "dgrid = input f64[" + n + "," + h + "," + w + ",2]; dtheta = affine_grid_bwd dgrid; output dtheta"),
              "");
  }
  EXPECT_EQ(check_gradient("theta = input f64[2,3,4]; grid = affine_grid theta size=2,1,2,3,4; output grid",
                           "dgrid = input f64[2,2,3,4,3]; dtheta = affine_grid_bwd dgrid; output dtheta"),
            "");
  DataSpec data;
  data.by_name["grid"] = "range:-1.3,1.3";
  for (std::string shapes :
       {"[2,3,4,5] [2,3,3,2] [2,3,3,3]", "[1,2,3,4,3] [1,2,3,2,3] [1,2,2,3,2]", "[1,1,1,5] [1,2,2,2] [1,1,2,2]"}) {
    size_t a = shapes.find(' '), b = shapes.rfind(' ');
    std::string inputs =
        "x = input f64" + shapes.substr(0, a) + "; grid = input f64" + shapes.substr(a + 1, b - a - 1) + "; ";
    EXPECT_EQ(check_gradient(inputs + "y = grid_sample x grid; output y",
                             inputs + "dy = input f64" + shapes.substr(b + 1) +
                                 "; dx, dgrid = grid_sample_bwd x grid dy; output dx; output dgrid",
                             data),
              "")
        << shapes;
  }
}

}  // namespace
}  // namespace tsr
