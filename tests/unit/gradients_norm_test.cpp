// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "gradient_check.hpp"

namespace tsr {
namespace {

struct NormCase {
  std::string norm, x, scale, options;
};

// With the statistics of the forward pass when `given`, computed again otherwise.
void check(const NormCase& c, bool given) {
  bool has_scale = !c.scale.empty(), rms = c.norm == "rms";
  std::string inputs = "x = input f64" + c.x + "; ", scale, forward, backward;
  if (has_scale) inputs += "scale = input f64" + c.scale + "; ", scale = " scale=scale";
  forward = inputs;
  if (has_scale) forward += "bias = input f64" + c.scale + "; ", scale += " bias=bias";
  forward +=
      (rms ? "y, inv_variance:v = " : "y, m, v = ") + c.norm + "_norm x" + scale + c.options + "; output y; output v";
  if (!rms) forward += "; output m";
  backward = inputs + "dy = input f64" + c.x + "; ";
  if (given) {
    // The statistics have the sizes that the forward operation infers; they are taken from a forward node here.
    backward += (rms ? "fy, inv_variance:v = " : "fy, m, v = ") + c.norm + "_norm x" + (has_scale ? " scale" : "") +
                c.options + "; ";
  }
  backward += (has_scale ? "dx, dscale, dbias = " : "dx = ") + c.norm + "_norm_bwd x dy" + (has_scale ? " scale" : "");
  if (given) backward += (rms ? " inv_variance=v" : " mean=m inv_variance=v");
  backward += c.options + "; output dx";
  if (has_scale) backward += "; output dscale; output dbias";
  EXPECT_EQ(check_gradient(forward, backward), "") << c.norm << c.x << c.scale << c.options;
}

TEST(GradientsNorm, EveryMode) {
  std::vector<NormCase> cases = {
      {"layer", "[3,5]", "[1,5]", ""},
      {"layer", "[3,2,5]", "[2,5]", " eps=0.1"},
      {"layer", "[3,2,5]", "[1,1,5]", " axes=1,2 zero_centered=true"},
      {"layer", "[3,2,5]", "[1,2,1]", ""},
      {"layer", "[3,2,5]", "", " axes=0,2"},
      {"rms", "[3,5]", "[1,5]", ""},
      {"rms", "[3,2,5]", "[5]", " zero_centered=true eps=0.1"},
      {"rms", "[3,2,5]", "", " axes=1"},
      {"ada_layer", "[3,2,5]", "[3,1,5]", ""},
      {"ada_layer", "[2,2,5]", "[2,1,5]", " zero_centered=true"},
      {"instance", "[2,3,4]", "[1,3,1]", ""},
      {"group", "[2,4,3]", "[1,4,1]", " groups=2"},
      {"group", "[2,4,3]", "[1,4,1]", " groups=1 zero_centered=true"},
      {"batch", "[2,3,2,2]", "[1,3,1,1]", ""},
      {"batch", "[4,3,2]", "[1,3,2]", " zero_centered=true"},
      {"batch", "[4,3]", "", ""},
  };
  for (const NormCase& c : cases)
    for (bool given : {false, true}) check(c, given);
}

TEST(GradientsNorm, BatchNormInference) {
  std::string inputs = "x = input f64[2,3,4]; scale = input f64[1,3,1]; m = input f64[1,3,1]; v = input f64[1,3,1]; ";
  EXPECT_EQ(check_gradient(inputs + "bias = input f64[1,3,1]; y = batch_norm x scale bias mean=m inv_variance=v "
                                    "phase=inference; output y",
                           inputs + "dy = input f64[2,3,4]; dx, dscale, dbias = batch_norm_bwd x dy scale m v "
                                    "phase=inference; output dx; output dscale; output dbias",
                           {.by_name = {{"v", "positive"}}}),
            "");
}

TEST(GradientsNorm, FactorsOfBatchNormGiveTheGradient) {
  EXPECT_EQ(check_gradient("x = input f64[2,3,4]; scale = input f64[1,3,1]; bias = input f64[1,3,1]; "
                           "sum, sq_sum = gen_stats x; a, b = bn_finalize sum sq_sum scale bias count=8; "
                           "y = add (mul x a) b; output y",
                           "x = input f64[2,3,4]; scale = input f64[1,3,1]; dy = input f64[2,3,4]; "
                           "sum, sq_sum = gen_stats x; zero = sub scale scale; "
                           "e, f, mean, inv_std = bn_finalize sum sq_sum scale zero count=8; "
                           "dscale, dbias, a, b, d = bn_bwd_weights dy x mean inv_std scale; "
                           "dx = add (add (mul dy a) (mul x b)) d; output dx; output dscale; output dbias"),
            "");
}

}  // namespace
}  // namespace tsr
