// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/rnn/network.hpp"

#include <algorithm>

#include "engines/cuda/rnn/execution.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cuda {

using tessera::RnnMode;

RnnNetwork::RnnNetwork(const Region& r, const Device& d)
    : o_(attrs<tessera::RnnOptions>(r.graph->node(r.nodes[0]))),
      t_(rnn_tensors(r)),
      w_(o_, t_.x.dims.back()),
      e_(rnn_extent(o_, t_)),
      keeps_(r.graph->node(r.nodes[0]).op != &ops::rnn_fwd) {
  const Graph& g = *r.graph;
  bool wide = g.node(r.nodes[0]).compute == DType::f64;
  lane_ = wide ? "double" : "float";
  lane_bytes_ = wide ? 8 : 4;
  sums_ = w_.gates() * w_.hidden();
  weights_in_place_ = t_.weight.type == (wide ? DType::f64 : DType::f32) && t_.weight.strides[0] == 1 &&
                      host_bytes(g.tensor(t_.weight.id)) == 0;
  lay_out();
  if (t_.lengths.id != kNone) lengths_host_bytes_ = host_bytes(g.tensor(t_.lengths.id));
  compile(g, d);
}

size_t RnnNetwork::take(int64_t elements, int64_t element_bytes) {
  size_t at = bytes_;
  bytes_ += (static_cast<size_t>(elements * element_bytes) + 255) / 256 * 256;
  return at;
}

void RnnNetwork::lay_out() {
  int64_t hidden = w_.hidden(), outputs = w_.outputs(), rows = e_.rows, batch = e_.batch;
  bool projects = o_.proj > 0, lstm = o_.mode == RnnMode::lstm, gru = o_.mode == RnnMode::gru;
  int64_t widest = std::max(w_.inputs(0), w_.directions() * outputs);
  auto numbers = [&](int64_t count) { return take(count, lane_bytes_); };
  lengths_ = take(batch, 8);
  starts_ = take(o_.packed ? e_.steps + 1 : 0, 8);
  weights_ = numbers(weights_in_place_ ? 0 : w_.total());
  for (int64_t l = 0; l < (keeps_ ? o_.layers + 1 : 2); ++l) sequences_.push_back(numbers(rows * widest));
  for (int64_t k = 0; k < (keeps_ ? o_.layers * w_.directions() : 1); ++k) {
    RnnTape tape;
    tape.gates = numbers(rows * sums_);
    tape.recurrent = numbers(keeps_ && gru ? rows * hidden : 0);
    tape.old_h = numbers(keeps_ ? rows * outputs : 0);
    tape.old_c = numbers(keeps_ && lstm ? rows * hidden : 0);
    tape.full_h = numbers(projects ? (keeps_ ? rows : batch) * hidden : 0);
    tape.projected_dh = numbers(keeps_ && projects ? rows * outputs : 0);
    tapes_.push_back(tape);
  }
  for (size_t& h : h_) h = numbers(batch * outputs);
  c_ = numbers(batch * hidden);
  if (!keeps_) return;
  dh_ = numbers(batch * outputs);
  dc_ = numbers(batch * hidden);
  for (size_t& g : gradients_) g = numbers(rows * widest);
  dweight_ = numbers(t_.dweight.id == kNone ? 0 : w_.total());
}

void RnnNetwork::compile(const Graph& g, const Device& d) {
  auto kernel = [&](const char* file, const char* args, const std::string& body) {
    Program p;
    p.include = cat("engines/cuda/rnn/", file, ".cuh");
    p.generated = "using namespace tsr::dev;";
    p.args = args;
    p.body = body;
    p.threads = dev::kRnnThreads;
    p.blocks_per_unit = 1;  // otherwise the compiler spills a few registers to fit more blocks
    return get_kernel(p, d);
  };
  // A table without a tensor is read as zeros and not written.
  auto table = [&](Table& to, const RnnTensor& t, bool reads) {
    to.tensor = t;
    if (t.id == kNone && !reads) return;
    if (t.id != kNone) to.host_bytes = host_bytes(g.tensor(t.id));
    to.kernel =
        kernel("sequences", "RnnTableArgs", instance(reads ? "rnn_read" : "rnn_write", lane_, device_type_of(g, t.id)));
  };
  bool lstm = o_.mode == RnnMode::lstm, gradients = keeps_;
  table(x_, t_.x, true), table(h0_, t_.h0, true);
  if (!weights_in_place_) table(weight_, t_.weight, true);
  weight_.tensor = t_.weight;
  if (lstm) table(c0_, t_.c0, true);
  if (gradients) table(dy_, t_.dy, true), table(dhn_, t_.dhn, true);
  if (gradients && lstm) table(dcn_, t_.dcn, true);
  table(y_, t_.y, false), table(hn_, t_.hn, false), table(cn_, t_.cn, false);
  table(dx_, t_.dx, false), table(dh0_, t_.dh0, false), table(dc0_, t_.dc0, false);
  table(dweight_out_, t_.dweight, false);

  std::string gates = instance("", lane_, w_.gates());
  kernels_[kLengths] = kernel("sequences", "RnnLengthsArgs", "rnn_lengths");
  kernels_[kProduct] = kernel("product", "RnnProductArgs", instance("rnn_product", lane_));
  kernels_[kStep] = kernel("forward", "RnnStepArgs", "rnn_step" + gates);
  if (o_.proj > 0) kernels_[kProject] = kernel("forward", "RnnStepArgs", instance("rnn_project", lane_));
  if (o_.dropout > 0) kernels_[kDrop] = kernel("sequences", "RnnDropArgs", instance("rnn_drop", lane_));
  bool skips = o_.input == tessera::RnnInput::skip;
  if (skips) kernels_[kSkip] = kernel("sequences", "RnnSkipArgs", instance("rnn_skip", lane_));
  if (!gradients) return;
  kernels_[kSum] = kernel("product", "RnnSumArgs", instance("rnn_sum", lane_));
  kernels_[kStepBwd] = kernel("backward", "RnnStepArgs", "rnn_step_bwd" + gates);
  if (o_.proj > 0) kernels_[kProjectBwd] = kernel("backward", "RnnStepArgs", instance("rnn_project_bwd", lane_));
  if (skips) kernels_[kSkipBwd] = kernel("sequences", "RnnSkipArgs", instance("rnn_skip_bwd", lane_));
}

int RnnNetwork::run(const StepArgs& a, bool dry) const {
  RnnExecution e(*this, a, dry);
  e.run();
  return e.launches();
}

}  // namespace tsr::cuda
