// SPDX-License-Identifier: Apache-2.0
// The pointwise parts of recurrent cells, for a run of hidden units of one sequence. cells_isa.cpp is compiled once for
// each instruction set; cells() picks the best that the processor has.
#pragma once

#include <cstdint>

namespace tsr::cpu {

// A run of n units. Gates hold the sums of both products before `forward` and the activations after it; `backward`
// replaces them by the gradients of the sums. Gates: relu, tanh one; lstm i, f, g, o; gru r, z, n.
struct CellRun {
  int64_t n;
  float* gate[4];
  const float* bias[4];         // of the sums; of gru's n of the input alone
  float* recurrent;             // gru: R_n h without bias; backward: its gradient
  const float* recurrent_bias;  // gru
  const float *old_c, *old_h;   // backward: states before the step
  float *c, *h;                 // states before the step, become those after it
  float clip_low, clip_high;    // of c; -inf and inf do nothing
  bool clip_nan;                // NaN becomes clip_low
  float* dh;                    // backward: gradient of h after the step; gru leaves what passes by the products
  float* dc;                    // lstm: gradient of c after the step, becomes that before it
};

struct Cells {
  void (*relu)(const CellRun& r);
  void (*tanh)(const CellRun& r);
  void (*lstm)(const CellRun& r);
  void (*gru)(const CellRun& r);
  void (*relu_bwd)(const CellRun& r);
  void (*tanh_bwd)(const CellRun& r);
  void (*lstm_bwd)(const CellRun& r);
  void (*gru_bwd)(const CellRun& r);
};

const Cells& cells();

}  // namespace tsr::cpu
