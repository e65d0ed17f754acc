// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/fused/program.hpp"

#include <algorithm>

namespace tsr::cuda {
namespace {

constexpr int kBlock = 256, kRowBlock = 128, kMaxPerRow = 1024;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int power_of_two(int64_t n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

// Bytes of registers that a thread needs for one vector of everything it loads.
int64_t vector_bytes(const Layout& l) {
  int64_t bytes = 0;
  for (const OperandPlan& o : l.operands)
    if (o.kind == Instr::load && !o.row && o.access != OperandPlan::same)
      bytes += std::max<int64_t>(1, info(o.type).bits / 8) * l.vector;
  return bytes;
}

dev::Number to_number(Lane lane, double v) {
  dev::Number n{};
  if (lane == Lane::f32)
    n.f = static_cast<float>(v);
  else if (lane == Lane::f64)
    n.d = v;
  else
    n.i = static_cast<int64_t>(v);
  return n;
}

}  // namespace

Shape choose_shape(const Expr& e, const Layout& l) {
  int64_t bytes = std::max<int64_t>(vector_bytes(l), 1), vectors = l.inner[0].size / l.vector;
  for (size_t i = 1; i < l.inner.size(); ++i) vectors *= l.inner[i].size;
  // Enough in flight for each thread to hide the memory's latency, not so much that registers run out.
  int several = bytes <= 16 ? 4 : bytes <= 48 ? 2 : 1;
  if (!e.has_reduction) {
    int unroll = bytes <= 16 ? 4 : bytes <= 64 ? 2 : 1;
    return {Shape::pointwise, kBlock, 1, unroll};
  }
  int64_t most = std::max<int64_t>(1, 128 / bytes);  // vectors that fit into a thread's registers
  int per_row = std::min(kMaxPerRow, power_of_two(ceil_div(std::max<int64_t>(vectors, 1), several)));
  int keep = power_of_two(ceil_div(std::max<int64_t>(vectors, 1), per_row));
  if (keep > most && keep > several) return {Shape::stream, 512, 512, 1};
  return {Shape::rows, std::max(per_row, kRowBlock), per_row, keep};
}

FusedProgram::FusedProgram(const Expr& e, const Graph& g, const Device& d) {
  Layout l;
  if (Reason why = make_layout(e, g, &l); !why)
    fail(Status::internal_error, "fused_cuda built a region that it declines: ", why.text());
  Shape s = choose_shape(e, l);
  Code code = print_code(e, g, l, s.kind == Shape::rows);
  require(code.numbers.size() <= dev::kMaxNumbers, "a fused region has ", code.numbers.size(), " numbers");
  numbers_ = code.numbers;
  for (const NumberPlan& n : numbers_) {
    number_types_.push_back(n.tensor == kNone ? DType::f64 : g.tensor(n.tensor).dtype);
    args_.numbers[&n - numbers_.data()] = to_number(n.lane, n.value);
  }
  for (size_t k = 0; k < l.operands.size(); ++k)
    if (l.operands[k].tensor != kNone) pointers_.emplace_back(static_cast<int>(k), l.operands[k].tensor);
  fill_arguments(l);
  grid_.threads = s.threads;
  Program p;
  p.generated = code.text;
  p.args = "tsr::dev::FusedArgs";
  p.threads = s.threads;
  const char* names[] = {"pointwise", "rows", "stream"};
  p.include = cat("engines/cuda/fused/", names[s.kind], ".cuh");
  std::string index = "tsr::dev::Index";
  if (s.kind == Shape::pointwise) {
    p.body = cat("tsr::dev::pointwise<tsr::dev::Code, ", l.vector, ", ", s.keep, ", ", index, ">");
    grid_.blocks = ceil_div(std::max<int64_t>(args_.length, 1), int64_t{s.threads} * s.keep);
    empty_ = args_.length == 0 && args_.tail == 0;
  } else if (s.kind == Shape::rows) {
    p.body = cat("tsr::dev::rows<tsr::dev::Code, ", l.vector, ", ", s.per_row, ", ", s.keep, ", ", index, ">");
    grid_.blocks = ceil_div(l.rows, s.threads / s.per_row);
    empty_ = l.rows == 0;
  } else {
    p.body = cat("tsr::dev::stream<tsr::dev::Code, ", l.vector, ", ", s.per_row, ", ", index, ">");
    grid_.blocks = std::min<int64_t>(l.rows, int64_t{d.units} * 16);
    empty_ = l.rows == 0;
  }
  if (s.kind != Shape::pointwise) grid_.shared_bytes = int64_t{8} * code.reductions * std::max(1, s.threads / 32);
  if (!empty_) kernel_ = get_kernel(p, d);
}

void FusedProgram::fill_arguments(const Layout& l) {
  args_.rows = l.rows;
  args_.length = l.inner[0].size / l.vector;
  args_.tail = l.inner.size() == 1 ? l.inner[0].size % l.vector : 0;
  for (size_t i = 1; i < l.inner.size(); ++i) args_.length *= l.inner[i].size;
  for (size_t i = 0; i < l.outer.size(); ++i)
    args_.outer_size[i] = dev::make_divisor(std::max<int64_t>(1, l.outer[i].size));
  for (size_t i = 0; i < l.inner.size(); ++i)
    args_.inner_size[i] = dev::make_divisor(std::max<int64_t>(1, l.inner[i].size / (i == 0 ? l.vector : 1)));
  for (size_t k = 0; k < l.operands.size(); ++k) {
    dev::Operand& o = args_.operands[k];
    for (size_t i = 0; i < l.outer.size(); ++i) o.outer[i] = l.outer[i].strides[k];
    for (size_t i = 0; i < l.inner.size(); ++i) o.inner[i] = l.inner[i].strides[k] * (i == 0 ? l.vector : 1);
    o.step = l.inner[0].strides[k];
  }
}

void FusedProgram::run(void* const* tensors, std::byte*, void* stream) const {
  if (empty_) return;
  dev::FusedArgs args = args_;
  for (auto [k, t] : pointers_) args.operands[k].data = tensors[t];
  for (size_t i = 0; i < numbers_.size(); ++i) {
    TensorId t = numbers_[i].tensor;
    if (t == kNone) continue;
    if (numbers_[i].lane == Lane::i64)
      args.numbers[i].i = load<int64_t>(number_types_[i], tensors[t], 0);
    else
      args.numbers[i] = to_number(numbers_[i].lane, load<double>(number_types_[i], tensors[t], 0));
  }
  kernel_->launch(grid_, stream, args);
}

}  // namespace tsr::cuda
