// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification with its gradient.
#include "engines/cuda/special/ctc_args.cuh"
#include "engines/cuda/special/special.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/op.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::cuda {
namespace {

using Args = dev::CtcArgs;
using namespace slots::ctc_loss;
constexpr int kThreads = 128;

int64_t room_of(const Tensor& labels) { return labels.rank() == 2 ? labels.dims[1] : labels.numel(); }
int64_t states_of(const Graph& g, const Node& n) {
  const Tensor& labels = g.tensor(n.in[kLabels]);
  int64_t batch = g.tensor(n.in[kLogits]).dims[1], room = room_of(labels);
  return labels.rank() == 1 ? 2 * room + batch : batch * (2 * room + 1);
}

}  // namespace

Reason check_ctc(const Region& r) {
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  const Node& n = r.graph->node(r.nodes[0]);
  const Tensor &labels = r.graph->tensor(n.in[kLabels]), &logits = r.graph->tensor(n.in[kLogits]);
  if (states_of(*r.graph, n) > kMost || logits.dims[2] > kMost)
    return Reason::no("tensors ", describe(labels), " and ", describe(logits), " have more states or classes than ",
                      kMost);
  return Reason::yes();
}

std::unique_ptr<Step> build_ctc(const Region& r, const Device& d) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  const auto& o = attrs<tessera::CtcOptions>(n);
  TensorId logits = n.in[kLogits], costs = wanted(r, n.out[0]), gradients = wanted(r, slot(n.out, 1));
  const Tensor &x = g.tensor(logits), &labels = g.tensor(n.in[kLabels]);
  auto step = std::make_unique<Launches<Args>>();
  step->bind(step->args.logits, g, logits), step->bind(step->args.labels, g, n.in[kLabels]);
  step->bind(step->args.label_lengths, g, n.in[kLabelLengths]),
      step->bind(step->args.input_lengths, g, n.in[kInputLengths]);
  step->bind(step->args.costs, g, costs), step->bind(step->args.gradients, g, gradients);
  Args& a = step->args;
  auto bytes = [&](In slot) { return info(g.tensor(n.in[slot]).dtype).bits / 8; };
  a.labels_bytes = bytes(kLabels);
  a.label_lengths_bytes = bytes(kLabelLengths), a.input_lengths_bytes = bytes(kInputLengths);
  a.steps = x.dims[0], a.batch = x.dims[1], a.classes = x.dims[2];
  a.flat = labels.rank() == 1, a.room = room_of(labels), a.states = states_of(g, n);
  a.blank = o.blank, a.log_probs = o.log_probs, a.zero_infinity = o.zero_infinity;
  a.with_gradients = gradients != kNone;

  std::string lane = lane_of(g, n, {logits, costs, gradients}), type = device_type_of(g, logits);
  int64_t numbers = a.steps * a.batch + a.batch + (a.steps + 2) * a.states, integers = 3 * a.states + 2 * a.batch;
  step->workspace = static_cast<size_t>(numbers * (lane == "double" ? 8 : 4) + integers * 4);
  auto add = [&](const std::string& body, int64_t blocks) {
    step->add("engines/cuda/special/ctc.cuh", "CtcArgs", body, {blocks, kThreads, 0}, d);
  };
  int64_t rows = ceil_div(a.steps * a.batch * 32, kThreads);
  if (!a.log_probs) add(instance("ctc_row_sums", lane, type), rows);
  add(instance("ctc_lattice", lane, type, device_type_of(g, costs)), a.batch);
  if (a.with_gradients) add(instance("ctc_gradients", lane, type, device_type_of(g, gradients)), rows);
  return step;
}

}  // namespace tsr::cuda
