// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "gradient_check.hpp"

namespace tsr {
namespace {

TEST(GradientsMove, SoftmaxBackward) {
  for (std::string mode : {"softmax", "log_softmax"})
    for (std::string axes : {" axes=-1", " axes=0", " axes=1,2"})
      for (std::string sink : {"", " sink=k"})
        EXPECT_EQ(check_gradient(
                      "x = input f64[2,3,4]; k = input f64[1,1,1]; y = " + mode + " x" + axes + sink + "; output y",
                      "y = input f64[2,3,4]; dy = input f64[2,3,4]; dx = " + mode + "_bwd y dy" + axes + "; output dx"),
                  "")
            << mode << axes << sink;
}

TEST(GradientsMove, DropoutBackward) {
  EXPECT_EQ(check_gradient("x = input f64[4,9]; y, mask:m = dropout x p=0.3 seed=5; output y; output m",
                           "dy = input f64[4,9]; m = input bool[4,9]; dx = dropout_bwd dy m p=0.3; output dx"),
            "");
}

TEST(GradientsMove, RopeBackward) {
  for (std::string options : {"", " scale=0.5", " rope_dim=4", " rope_dim=2 scale=3"})
    for (std::string freqs : {"[1,1,3,6]", "[3,1,1,6]"})
      EXPECT_EQ(
          check_gradient(
              "x = input f64[2,2,3,6]; f = input f64" + freqs + "; y = rope x f" + options + "; output y",
              "dy = input f64[2,2,3,6]; f = input f64" + freqs + "; dx = rope_bwd dy f" + options + "; output dx"),
          "")
          << options << freqs;
}

}  // namespace
}  // namespace tsr
