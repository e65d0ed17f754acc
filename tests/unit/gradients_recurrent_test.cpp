// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "gradient_check.hpp"

namespace tsr {
namespace {

struct RnnCase {
  std::string options, x, y, hidden, cell;  // sizes of x, y, h0 and c0
  int weights;
  std::string lengths;
};

void check(const RnnCase& c) {
  std::string inputs = "x = input f64" + c.x + "; weight = input f64[" + std::to_string(c.weights) +
                       "]; h0 = input f64" + c.hidden + "; ";
  std::string states = " h0=h0", gradients = " dhn=dhn",
              given = "dy = input f64" + c.y + "; dhn = input f64" + c.hidden + "; ";
  bool lstm = !c.cell.empty();
  if (lstm) {
    inputs += "c0 = input f64" + c.cell + "; ";
    given += "dcn = input f64" + c.cell + "; ";
    states += " c0=c0";
    gradients += " dcn=dcn";
  }
  if (!c.lengths.empty()) {
    inputs += "n = const i32[3] " + c.lengths + "; ";
    states += " seq_lengths=n";
  }
  std::string forward = inputs + "y, hn" + (lstm ? ", cn" : "") + " = rnn_fwd x weight" + states + " " + c.options +
                        "; output y; output hn" + (lstm ? "; output cn" : "");
  std::string backward = inputs + given + "dx, dh0" + (lstm ? ", dc0" : "") + " = rnn_bwd_data x weight dy" + states +
                         gradients + " " + c.options + "; dweight = rnn_bwd_weights x weight dy" + states + gradients +
                         " " + c.options + "; output dx; output dh0; output dweight" + (lstm ? "; output dc0" : "");
  EXPECT_EQ(check_gradient(forward, backward), "") << c.options << " " << c.lengths;
}

TEST(GradientsRecurrent, Cells) {
  for (std::string mode : {"relu", "tanh"})
    check({"hidden=4 mode=" + mode, "[3,2,3]", "[3,2,4]", "[1,2,4]", "", 36, ""});
  check({"hidden=4 mode=gru", "[3,2,3]", "[3,2,4]", "[1,2,4]", "", 108, ""});
  check({"hidden=4 mode=lstm", "[3,2,3]", "[3,2,4]", "[1,2,4]", "[1,2,4]", 144, ""});
  check({"hidden=4 mode=lstm proj=2", "[3,2,3]", "[3,2,2]", "[1,2,2]", "[1,2,4]", 120, ""});
  check({"hidden=4 mode=lstm clip_min=-0.3 clip_max=0.4", "[3,2,3]", "[3,2,4]", "[1,2,4]", "[1,2,4]", 144, ""});
}

TEST(GradientsRecurrent, BiasAndInput) {
  for (std::string bias : {"input", "recurrent"}) {
    check({"hidden=4 mode=gru bias=" + bias, "[3,2,3]", "[3,2,4]", "[1,2,4]", "", 96, ""});
    check({"hidden=4 mode=lstm bias=" + bias, "[3,2,3]", "[3,2,4]", "[1,2,4]", "[1,2,4]", 128, ""});
  }
  check({"hidden=4 mode=gru bias=none", "[3,2,3]", "[3,2,4]", "[1,2,4]", "", 84, ""});
  check({"hidden=4 mode=gru input=skip", "[3,2,4]", "[3,2,4]", "[1,2,4]", "", 72, ""});
  check({"hidden=4 mode=lstm input=skip layers=2", "[3,2,4]", "[3,2,4]", "[2,2,4]", "[2,2,4]", 256, ""});
  check({"hidden=4 mode=tanh input=skip bidirectional=true", "[3,2,4]", "[3,2,8]", "[2,2,4]", "", 48, ""});
}

TEST(GradientsRecurrent, LayersDirectionsAndLengths) {
  for (std::string lengths : {"", "3,2,1", "1,3,0"}) {
    check({"hidden=4 mode=tanh layers=2 bidirectional=true", "[3,3,3]", "[3,3,8]", "[4,3,4]", "", 184, lengths});
    check({"hidden=4 mode=gru layers=2 bidirectional=true", "[3,3,3]", "[3,3,8]", "[4,3,4]", "", 552, lengths});
    check({"hidden=4 mode=lstm layers=2 bidirectional=true", "[3,3,3]", "[3,3,8]", "[4,3,4]", "[4,3,4]", 736, lengths});
    check({"hidden=4 mode=lstm layers=2 bidirectional=true proj=2", "[3,3,3]", "[3,3,4]", "[4,3,2]", "[4,3,4]", 512,
           lengths});
  }
  check({"hidden=4 mode=gru layout=batch_major", "[3,2,3]", "[3,2,4]", "[1,3,4]", "", 108, "2,1,2"});
  check({"hidden=4 mode=lstm layers=2 bidirectional=true packed=true", "[6,3]", "[6,8]", "[4,3,4]", "[4,3,4]", 736,
         "3,2,1"});
}

TEST(GradientsRecurrent, DropoutBetweenLayers) {
  check({"hidden=4 mode=gru layers=2 dropout=0.4 seed=11", "[3,2,3]", "[3,2,4]", "[2,2,4]", "", 228, ""});
  check(
      {"hidden=4 mode=gru layers=2 dropout=0.4 seed=11 phase=inference", "[3,2,3]", "[3,2,4]", "[2,2,4]", "", 228, ""});
}

// Costs have weight 1, 2, 3 in the objective: gradients are scaled alike before they are compared.
void check_ctc(const std::string& labels, const std::string& lengths, const std::string& options,
               const std::string& data) {
  std::string inputs = "logits = input f64[5,3,4]; l = const i32" + labels + "; m = const i32[3] " + lengths +
                       "; t = const i32[3] 5,4,3; ";
  EXPECT_EQ(check_gradient(inputs + "costs = ctc_loss logits l m t" + options + "; output costs",
                           inputs + "dcosts = input f64[3]; costs_, g = ctc_loss logits l m t" + options +
                               "; w = const f64[1,3,1] 1,2,3; dlogits = mul g w; output dlogits",
                           {.by_name = {{"dcosts", "values:1,2,3"}, {"logits", data}}}),
            "");
}

TEST(GradientsRecurrent, Ctc) {
  check_ctc("[3,2] 1,2,3,3,1,0", "2,2,0", "", "normal");
  check_ctc("[4] 1,2,3,3", "2,2,0", "", "range:-20,20");
  check_ctc("[3,2] 1,2,3,3,1,0", "2,2,1", " log_probs=true", "range:-3,0");
  check_ctc("[3,2] 1,2,0,0,1,0", "2,2,1", " blank=3", "normal");
  // The second sequence cannot be aligned: three equal labels need five steps, it has four.
  check_ctc("[3,3] 1,2,3,3,3,3,1,2,3", "3,3,3", " zero_infinity=true", "normal");
}

}  // namespace
}  // namespace tsr
