// SPDX-License-Identifier: Apache-2.0
// Prints what an attention node asks for as a struct `Options`: what the kernels would otherwise ask for each score,
// and the code of score_mod and its gradient. The text depends on types and operations only; numbers travel with the
// launch.
#pragma once

#include "engines/attention/score_mod.hpp"

namespace tsr::cuda {

struct OptionsText {
  struct Number {
    double value = 0;
    TensorId tensor = kNone;  // read at each run; kNone: known now
  };
  std::string text;
  std::vector<Number> numbers;                 // ScoreArgs::numbers
  std::vector<attention::Broadcast> captures;  // ScoreArgs::captures
};

// Why the sub-graphs of an attention node cannot be printed, if they cannot.
Reason check_options(const Graph& g, const Node& n);
OptionsText options_text(const Graph& g, const Node& n, const attention::Problem& p);

}  // namespace tsr::cuda
