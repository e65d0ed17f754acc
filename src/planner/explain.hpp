// SPDX-License-Identifier: Apache-2.0
// Says what a plan does and why: every step with each engine's answer, what it costs, and why neighbours were not
// joined. The result is plain data; printing as text is here, other formats are made by the command line.
#pragma once

#include <string>
#include <vector>

#include "planner/plan.hpp"

namespace tsr {

struct ExplainedTensor {
  enum Kind { input, scalar, constant, output, temporary, internal } kind = input;
  std::string name, type;  // type as the text form writes it
  double bytes = 0;
  int producer = -1;  // node, or -1
};

struct ExplainedNode {
  std::string op, text;            // spelling, and the statement
  int step = -1;                   // -1: nothing needs its results, or stages stand for it
  int stages = -1;                 // which ones do
  std::vector<int> reads, writes;  // tensors
  double flops = 0;
};

// What an engine said to a region, or whether it can run as the stages of a decomposition.
struct EngineAnswer {
  std::string engine;
  bool accepted = false, chosen = false;
  std::string reason;  // when it declined
  std::string config;  // best candidate, when it accepted
  double seconds = 0;  // its modelled cost
};

struct ExplainedStep {
  std::string engine, config;
  std::vector<int> nodes, inputs, outputs, internals;
  std::vector<EngineAnswer> answers;
  double seconds = 0, bytes = 0, flops = 0;
  double measured = 0;  // seconds, by tuning or by the caller; 0: not measured
  Limits limits;        // of the machine
  int kernels = 0;
  size_t workspace = 0;  // scratch of the step alone
};

// Operations that run as the stages of their decomposition, which are steps of the plan.
struct ExplainedStages {
  std::string name;
  int first_step = 0, last_step = 0;
  std::vector<int> nodes;             // that they stand for
  std::vector<EngineAnswer> answers;  // to these nodes
};

// An edge between two steps: why they are not one.
struct Boundary {
  int from = 0, to = 0;
  std::vector<EngineAnswer> answers;  // to the two steps joined
};

struct Explanation {
  std::string device;
  size_t operations = 0;                 // of the graph; those of stages come behind them
  std::vector<ExplainedTensor> tensors;  // of the graph, then of stages
  std::vector<ExplainedNode> nodes;
  std::vector<ExplainedStep> steps;
  std::vector<ExplainedStages> stages;
  std::vector<Boundary> boundaries;  // none when the options forbid joining
  double seconds = 0, bytes = 0, flops = 0;
  double measured = 0;       // seconds of all steps, 0 when one is not measured
  double unfused_bytes = 0;  // when every operation reads and writes memory
  int kernels = 0;
  size_t workspace = 0;
  bool deterministic = true, recognised = false;  // recognised: composites, views or packed sequences were rewritten
};

// `measured`: seconds of each step, where the caller has them.
Explanation explain(const Plan& plan, const std::vector<double>& measured = {});
std::string to_text(const Explanation& e);

// "1.5 MB", "3.2 ms", "4.1 G": numbers for people.
std::string human_bytes(double bytes);
std::string human_seconds(double seconds);
std::string human_count(double n);

}  // namespace tsr
