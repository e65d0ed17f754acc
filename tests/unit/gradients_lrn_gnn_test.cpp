// SPDX-License-Identifier: Apache-2.0
// Backward operations of local normalisation and of aggregation over graphs against finite differences.
#include <gtest/gtest.h>

#include "gradient_check.hpp"

namespace tsr {
namespace {

TEST(GradientsLrn, AcrossChannels) {
  for (std::string n : {"1", "2", "3", "5", "9"})
    for (std::string options : {"", " alpha=0.7 beta=0.5 k=1.3", " alpha=2 beta=1.5 k=1"}) {
      std::string x = "x = input f64[2,6,2,3]; ";
      EXPECT_EQ(check_gradient(x + "y = lrn x n=" + n + options + "; output y",
                               x + "dy = input f64[2,6,2,3]; dx = lrn_bwd x dy n=" + n + options + "; output dx"),
                "")
          << n << options;
    }
}

TEST(GradientsLrn, DivisiveNorm) {
  for (std::string shape : {"[2,2,7]", "[1,2,4,3]", "[1,1,3,2,3]"})
    for (std::string n : {"1", "2", "3", "5"})
      for (std::string mean : {"", " mean=mean"}) {
        std::string inputs = "x = input f64" + shape + "; mean = input f64" + shape + "; ",
                    options = " alpha=0.7 beta=0.6 k=1.2 n=" + n;
        std::string results = mean.empty() ? "dx" : "dx, dmean:dmean";
        EXPECT_EQ(check_gradient(inputs + "y = divisive_norm x" + mean + options + "; output y",
                                 inputs + "dy = input f64" + shape + "; " + results + " = divisive_norm_bwd x dy" +
                                     mean + options + "; output dx" + (mean.empty() ? "" : "; output dmean")),
                  "")
            << shape << n << mean;
      }
}

TEST(GradientsGnn, EveryModeAndPart) {
  DataSpec data;
  data.by_name = {
      {"offsets", "values:0,2,2,5,7"}, {"indices", "values:2,0,0,1,2,4,4"}, {"map", "values:3,1,0,2,5,4,6"}};
  std::string graph = "offsets = input i32[5]; indices = input i32[7]; map = input i32[7]; ";
  std::string features = "node = input f64[5,2]; edge = input f64[7,3]; concat = input f64[4,1]; ";
  for (std::string map : {"", " edge_map=map"})
    for (std::string mode : {"sum", "mean", "max", "min"}) {
      bool selects = mode == "max" || mode == "min";
      std::string options = map + " mode=" + mode;
      std::string forward = graph + features + (selects ? "y, positions:p" : "y") +
                            " = gnn_agg offsets indices node edge concat" + options + "; output y" +
                            (selects ? "; output p" : "");
      std::string backward =
          graph + "dy = input f64[4,6]; " + (selects ? "p = input i32[4,5]; " : "") +
          "dnode:dnode f64[5,2], dedge:dedge f64[7,3], dconcat:dconcat = gnn_agg_bwd dy offsets indices" + options +
          (selects ? " positions=p" : "") + "; output dnode; output dedge; output dconcat";
      EXPECT_EQ(check_gradient(forward, backward, data), "") << options;
    }
}

}  // namespace
}  // namespace tsr
