// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/rnn/network.hpp"

#include <algorithm>

#include "engines/cuda/rnn/execution.hpp"
#include "graph/ops/list.hpp"

namespace tsr::cuda {

using tessera::RnnMode;

namespace {

constexpr int kProductBlocks = 2;  // of products on tensor cores, that a multiprocessor has

// Whether tensor cores can do it.
bool suits_tensor_cores(const Region& r, const Device& d, const RnnTensors& t, const RnnExtent& e) {
  constexpr int kArch = 80;
  const Graph& g = *r.graph;
  bool narrow = t.x.type == DType::bf16 || t.x.type == DType::f16;
  bool in_rows = t.weight.strides[0] == 1 && !g.tensor(t.weight.id).on_host();
  // States are rounded to the type of x, and so is what becomes of them.
  bool types = t.weight.type == t.x.type && (t.y.id == kNone || t.y.type == t.x.type);
  return d.arch >= kArch && g.node(r.nodes[0]).compute != DType::f64 && narrow && types && in_rows && e.rows > 0 &&
         e.batch > 0;
}

}  // namespace

std::vector<std::pair<RnnWay, double>> rnn_ways(const Region& r, const Device& d) {
  const auto& o = attrs<tessera::RnnOptions>(r.graph->node(r.nodes[0]));
  RnnTensors t = rnn_tensors(r);
  RnnExtent e = rnn_extent(o, t);
  RnnWeights w(o, t.x.dims.back());
  bool backward = r.graph->node(r.nodes[0]).op != &ops::rnn_fwd;
  double turns = static_cast<double>(e.steps * o.layers * w.directions()) * (o.proj > 0 ? 2 : 1);
  // Part of the machine's multiply-adds that the products reach.
  constexpr double kEfficiency = 0.15, kTensorEfficiency = 0.4;
  double memory = region_bytes(r) / d.bytes_per_second, flops = region_flops(r);
  std::vector<std::pair<RnnWay, double>> list;
  list.emplace_back(RnnWay{},
                    memory + flops / (kEfficiency * d.rates.f32) + turns * (backward ? 2 : 1) * kRnnLaunchSeconds);
  if (!suits_tensor_cores(r, d, t, e)) return list;
  RnnSteps forward = {w.hidden(), w.gates(), w.outputs(), e.batch},
           back = {w.outputs(), 1, w.gates() * w.hidden(), e.batch};
  double products = memory + flops / (kTensorEfficiency * d.rates.bits16);
  for (bool resident : {true, false}) {
    if (resident && o.proj > 0) continue;  // two kernels take turns
    double first = backward ? choose_rnn_shape(forward, d, resident).seconds : 0;
    for (const RnnShape& s : rnn_shapes(backward ? back : forward, d, resident, false))
      list.emplace_back(RnnWay{true, resident, {16 * s.tiles, 8 * s.columns}}, products + turns * (first + s.seconds));
  }
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return list;
}

RnnNetwork::RnnNetwork(const Region& r, const Device& d, const RnnWay& way)
    : o_(attrs<tessera::RnnOptions>(r.graph->node(r.nodes[0]))),
      t_(rnn_tensors(r)),
      w_(o_, t_.x.dims.back()),
      e_(rnn_extent(o_, t_)),
      keeps_(r.graph->node(r.nodes[0]).op != &ops::rnn_fwd),
      way_(way) {
  const Graph& g = *r.graph;
  bool wide = g.node(r.nodes[0]).compute == DType::f64;
  lane_ = wide ? "double" : "float";
  lane_bytes_ = wide ? 8 : 4;
  kept_ = way.tensor ? device_type_of(g, t_.weight.id) : lane_;
  kept_bytes_ = way.tensor ? 2 : lane_bytes_;
  sums_ = w_.gates() * w_.hidden();
  weights_in_place_ = way.tensor || (t_.weight.type == (wide ? DType::f64 : DType::f32) && t_.weight.strides[0] == 1 &&
                                     !g.tensor(t_.weight.id).on_host());
  // Gradients of weights multiply all rows: those past the length must be 0.
  x_in_place_ = lies_in_rows(g, t_.x) && (!keeps_ || o_.packed || t_.lengths.id == kNone);
  y_in_place_ = !keeps_ && lies_in_rows(g, t_.y);
  if (way.tensor) choose_shapes(d), product_blocks_ = int64_t{kProductBlocks} * d.units;
  lay_out();
  memory_.workspace(memory_.args.workspace, 0);
  memory_.pointer(memory_.args.x, t_.x.id);
  memory_.pointer(memory_.args.y, t_.y.id);
  memory_.pointer(memory_.args.weight, t_.weight.id);
  memory_.operand(memory_.args.lengths, g, t_.lengths.id);
  compile(g, d);
}

bool RnnNetwork::lies_in_rows(const Graph& g, const RnnTensor& t) const {
  bool by_step = o_.packed || o_.layout == tessera::RnnLayout::seq_major || e_.batch == 1 || e_.steps == 1;
  return t.id != kNone && device_type_of(g, t.id) == kept_ && !g.tensor(t.id).on_host() && by_step &&
         t.strides == packed_strides(t.dims);
}

void RnnNetwork::choose_shapes(const Device& d) {
  int64_t hidden = w_.hidden(), outputs = w_.outputs();
  bool resident = way_.resident && o_.proj == 0;  // with a projection two kernels take turns
  auto choose = [&](const Device& on, bool paired) {
    auto shape = [&](int64_t units, int64_t sums, int64_t depth, const RnnTile& tile = {}) {
      return choose_rnn_shape({units, sums, depth, e_.batch}, on, resident, paired, tile);
    };
    shapes_[kStep] = shape(hidden, w_.gates(), outputs, keeps_ ? RnnTile{} : way_.tile);
    shapes_[kProject] = shape(outputs, 1, hidden);
    shapes_[kStepBwd] = shape(outputs, 1, sums_, way_.tile);
    shapes_[kProjectBwd] = shape(hidden, 1, outputs);
  };
  // Each direction on half of the GPU, so that one computes while the other hands on states.
  Device half = d;
  half.units = std::max(1, d.units / 2);
  if (o_.bidirectional && resident) choose(half, true);
  paired_ = shapes_[kStep].resident && (!keeps_ || shapes_[kStepBwd].resident);
  if (!paired_) choose(d, false);
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
  auto kept = [&](int64_t count) { return take(count, kept_bytes_); };
  // Tensor cores take the matrices as they are; cells read biases.
  weights_ = numbers(way_.tensor ? w_.total() - first_bias() : weights_in_place_ ? 0 : w_.total());
  for (int64_t l = 0; l < (keeps_ ? o_.layers + 1 : 2); ++l) sequences_.push_back(kept(rows * widest));
  for (int64_t k = 0; k < (keeps_ ? o_.layers * w_.directions() : paired_ ? 2 : 1); ++k) {
    RnnTape tape;
    tape.gates = numbers(rows * sums_);
    tape.recurrent = numbers(keeps_ && gru ? rows * hidden : 0);
    tape.old_h = kept(keeps_ ? rows * outputs : 0);
    tape.old_c = numbers(keeps_ && lstm ? rows * hidden : 0);
    tape.full_h = kept(projects ? (keeps_ ? rows : batch) * hidden : 0);
    tape.projected_dh = kept(keeps_ && projects ? rows * outputs : 0);
    tape.d_gates = way_.tensor ? kept(keeps_ ? rows * sums_ : 0) : tape.gates;
    tape.d_recurrent = way_.tensor ? kept(keeps_ && gru ? rows * hidden : 0) : tape.recurrent;
    tapes_.push_back(tape);
  }
  for (int i = 0; i < (paired_ ? 2 : 1); ++i) {
    Direction& to = directions_[i];
    for (size_t& h : to.h) h = numbers(batch * outputs);
    to.c = numbers(batch * hidden);
    to.dh = numbers(keeps_ ? batch * outputs : 0);
    to.dc = numbers(keeps_ ? batch * hidden : 0);
    if (way_.tensor) lay_out_fragments(to);
  }
  if (!paired_) directions_[1] = directions_[0];
  int64_t parts = 0;
  auto product = [&](int64_t m, int64_t n, int64_t k) {
    if (int64_t splits = product_splits(m, n, k); splits > 1) parts = std::max(parts, splits * m * n);
  };
  for (int64_t layer = 0; way_.tensor && layer < o_.layers; ++layer) {
    int64_t inputs = w_.inputs(layer);
    product(rows, sums_, inputs);
    if (!keeps_) continue;
    product(rows, inputs, sums_), product(sums_, inputs, rows);
    product(sums_, outputs, rows), product(outputs, hidden, rows);
    if (gru) product(2 * hidden, outputs, rows), product(hidden, outputs, rows);
  }
  parts_ = take(parts, 4);
  if (!keeps_) return;
  for (size_t& g : gradients_) g = numbers(rows * widest);
  dweight_ = numbers(t_.dweight.id == kNone ? 0 : w_.total());
}

// Blocks that share the inner dimension, so that all of them fill the GPU.
int64_t RnnNetwork::product_splits(int64_t m, int64_t n, int64_t k) const {
  constexpr int64_t kSide = dev::kRnnTensorTile, kLeast = 512;  // of the inner dimension, that a block should have
  int64_t tiles = ceil_div(m, kSide) * ceil_div(n, kSide);
  return std::clamp<int64_t>(product_blocks_ / std::max<int64_t>(tiles, 1), 1, std::max<int64_t>(k / kLeast, 1));
}

// Steps forward and backward use the same memory, one after the other.
void RnnNetwork::lay_out_fragments(Direction& to) {
  constexpr int64_t kBytes = 16;
  const RnnShape &step = shapes_[kStep], &back = shapes_[kStepBwd], &project = shapes_[kProject],
                 &project_back = shapes_[kProjectBwd];
  to.fragments = take(std::max(step.weight_fragments(), back.weight_fragments()), kBytes);
  for (size_t& s : to.states) s = take(std::max(step.state_fragments(), back.state_fragments()), kBytes);
  to.arrived = take((e_.steps + 1) * std::max(step.groups, back.groups), 4);
  if (o_.proj == 0) return;
  to.projected_fragments = take(std::max(project.weight_fragments(), project_back.weight_fragments()), kBytes);
  for (size_t& s : to.projected_states)
    s = take(std::max(project.state_fragments(), project_back.state_fragments()), kBytes);
}

// Of the weights, where the biases begin.
int64_t RnnNetwork::first_bias() const {
  for (const RnnPart& p : {w_.input_bias(0, 0, 0), w_.recurrent_bias(0, 0, 0)})
    if (p.rows > 0) return p.offset;
  return w_.total();
}

RnnNetwork::KernelPointer RnnNetwork::kernel(const Device& d, const char* file, const char* args,
                                             const std::string& body, int blocks_per_unit) const {
  Program p;
  p.include = cat("engines/cuda/rnn/", file, ".cuh");
  p.generated = "using namespace tsr::dev;";
  p.args = args;
  p.body = body;
  p.threads = dev::kRnnThreads;
  p.blocks_per_unit = blocks_per_unit;  // with 0 the compiler spills a few registers to fit more blocks
  return get_kernel(p, d);
}

void RnnNetwork::compile(const Graph& g, const Device& d) {
  auto kernel = [&](const char* file, const char* args, const std::string& body) {
    return this->kernel(d, file, args, body);
  };
  size_t tables = 0;
  // A table without a tensor is read as zeros and not written. `kept`: its rows are multiplied.
  auto table = [&](Table& to, const RnnTensor& t, bool reads, bool kept = false) {
    to.tensor = t;
    if (t.id == kNone && !reads) return;
    to.number = tables++;
    memory_.operand(memory_.args.tables[to.number], g, t.id);
    to.kernel =
        kernel("sequences", "RnnTableArgs",
               instance(reads ? "rnn_read" : "rnn_write", lane_, kept ? kept_ : lane_, device_type_of(g, t.id)));
  };
  bool lstm = o_.mode == RnnMode::lstm, gradients = keeps_;
  if (!x_in_place_) table(x_, t_.x, true, true);
  table(h0_, t_.h0, true);
  if (!weights_in_place_ || (way_.tensor && first_bias() < w_.total())) table(weight_, t_.weight, true);
  weight_.tensor = t_.weight;
  if (lstm) table(c0_, t_.c0, true);
  if (gradients) table(dy_, t_.dy, true), table(dhn_, t_.dhn, true);
  if (gradients && lstm) table(dcn_, t_.dcn, true);
  if (!y_in_place_) table(y_, t_.y, false, true);
  table(hn_, t_.hn, false), table(cn_, t_.cn, false);
  table(dx_, t_.dx, false), table(dh0_, t_.dh0, false), table(dc0_, t_.dc0, false);
  table(dweight_out_, t_.dweight, false);

  kernels_[kLengths] = kernel("sequences", "RnnLengthsArgs", "rnn_lengths");
  if (o_.dropout > 0) kernels_[kDrop] = kernel("sequences", "RnnDropArgs", instance("rnn_drop", lane_, kept_));
  bool skips = o_.input == tessera::RnnInput::skip;
  if (skips) kernels_[kSkip] = kernel("sequences", "RnnSkipArgs", instance("rnn_skip", lane_, kept_));
  compile_steps(d);
  if (!gradients) return;
  if (o_.dropout > 0) kernels_[kDropBwd] = kernel("sequences", "RnnDropArgs", instance("rnn_drop", lane_, lane_));
  kernels_[kSum] = kernel("product", "RnnSumArgs", instance("rnn_sum", lane_, kept_));
  if (skips) kernels_[kSkipBwd] = kernel("sequences", "RnnSkipArgs", instance("rnn_skip_bwd", lane_, kept_));
}

// Products over all steps, and the steps.
void RnnNetwork::compile_steps(const Device& d) {
  bool projects = o_.proj > 0;
  if (!way_.tensor) {
    std::string gates = instance("", lane_, w_.gates());
    auto step = [&](const char* file, const std::string& body) { return kernel(d, file, "RnnStepArgs", body); };
    kernels_[kProduct] = kernel(d, "product", "RnnProductArgs", instance("rnn_product", lane_));
    kernels_[kProductInput] = kernels_[kProductWeights] = kernels_[kProduct];
    kernels_[kStep] = step("forward", "rnn_step" + gates);
    if (projects) kernels_[kProject] = step("forward", instance("rnn_project", lane_));
    if (!keeps_) return;
    kernels_[kStepBwd] = step("backward", "rnn_step_bwd" + gates);
    if (projects) kernels_[kProjectBwd] = step("backward", instance("rnn_project_bwd", lane_));
    return;
  }
  auto product = [&](bool left_along, bool right_along) {
    return kernel(d, "tensor_product", "RnnProductArgs",
                  instance("rnn_tensor_product", kept_, left_along ? "true" : "false", right_along ? "true" : "false"),
                  kProductBlocks);
  };
  auto step = [&](Kernels which, const std::string& unit) {
    const RnnShape& s = shapes_[which];
    kernels_[which] = kernel(d, "recurrence", paired_ ? "RnnPairArgs" : "RnnRecurrenceArgs",
                             instance(paired_ ? "rnn_recurrence_pair" : "rnn_recurrence", kept_, unit, s.tiles,
                                      s.columns, s.resident ? "true" : "false"));
  };
  kernels_[kPackWeights] = kernel(d, "recurrence", "RnnPackArgs", instance("rnn_pack_weights", kept_));
  kernels_[kPackStates] = kernel(d, "recurrence", "RnnPackArgs", instance("rnn_pack_states", kept_));
  kernels_[kProduct] = product(true, true);
  kernels_[kAddParts] = kernel(d, "tensor_product", "RnnProductArgs", "rnn_add_parts");
  step(kStep, instance("RnnUnitForward", kept_, w_.gates()));
  if (projects) step(kProject, instance("RnnUnitProject", kept_));
  if (!keeps_) return;
  if (o_.layers > 1 || t_.dx.id != kNone) kernels_[kProductInput] = product(true, false);
  if (t_.dweight.id != kNone) kernels_[kProductWeights] = product(false, false);
  step(kStepBwd, instance("RnnUnitBackward", kept_, w_.gates()));
  if (projects) step(kProjectBwd, instance("RnnUnitProjectBackward", kept_));
}

int RnnNetwork::count_launches() const {
  RnnExecution e(*this, {}, nullptr, true);
  e.run();
  return e.launches();
}

void RnnNetwork::run(const StepArgs& a) const { RnnExecution(*this, memory_.filled(a), a.stream, false).run(); }

}  // namespace tsr::cuda
