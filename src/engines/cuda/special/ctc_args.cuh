// SPDX-License-Identifier: Apache-2.0
// Arguments of CTC. A sequence of n labels has 2 n + 1 states: a blank before, between and after them. Those of all
// sequences lie side by side.
#pragma once

#include "device/operand.cuh"

namespace tsr::dev {

struct CtcArgs {
  Operand logits, labels, label_lengths, input_lengths, costs, gradients;
  int labels_bytes, label_lengths_bytes, input_lengths_bytes;  // of an element
  i64 steps, batch, classes;
  i64 room;    // labels that a sequence may have; of flat labels, that all have together
  bool flat;   // labels of the sequences follow each other
  i64 states;  // of all sequences
  i64 blank;
  bool log_probs, zero_infinity, with_gradients;
  void* workspace;
};

}  // namespace tsr::dev
