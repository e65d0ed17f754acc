// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "gradient_check.hpp"

namespace tsr {
namespace {

TEST(GradientsBasic, ActivationsBackward) {
  for (std::string mode : {"relu", "tanh", "sigmoid", "elu", "gelu", "softplus", "swish", "gelu_tanh"}) {
    std::string extra = mode == "relu" ? " slope=0.1 upper=2" : mode == "elu" ? " alpha=1.3" : " beta=1.5";
    EXPECT_EQ(
        check_gradient("x = input f64[3,5]; y = " + mode + " x" + extra + "; output y",
                       "x = input f64[3,5]; dy = input f64[3,5]; dx = " + mode + "_bwd x dy" + extra + "; output dx"),
        "")
        << mode;
  }
}

}  // namespace
}  // namespace tsr
