// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/fused/program.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace tsr::cuda {
namespace {

constexpr int kBlock = 256, kRowBlock = 128, kMaxPerRow = 1024;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int power_of_two(int64_t n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

// Bytes of registers that a thread needs for one vector of what it loads. What is the same for every row stays in the
// cache and is loaded late.
int64_t vector_bytes(const Layout& l, bool rows) {
  int64_t bytes = 0;
  for (size_t k = 0; k < l.operands.size(); ++k) {
    const OperandPlan& o = l.operands[k];
    if (o.kind != Instr::load || o.row || o.access == OperandPlan::same) continue;
    bool same = std::all_of(l.outer.begin(), l.outer.end(), [&](const Loop& x) { return x.strides[k] == 0; });
    if (!(rows && same && l.rows > 1)) bytes += std::max<int64_t>(1, info(o.type).bits / 8) * l.vector;
  }
  return std::max<int64_t>(bytes, 1);
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

// Appends values to bytes.
class Packer {
 public:
  explicit Packer(std::vector<std::byte>& to) : to_(to) {}
  template <class T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0);
    size_t at = to_.size();
    to_.resize(at + sizeof(T));
    std::memcpy(to_.data() + at, &value, sizeof(T));
  }

 private:
  std::vector<std::byte>& to_;
};

constexpr size_t kMaxArgs = 4096;

}  // namespace

Shape choose_shape(const Expr& e, const Layout& l) {
  int64_t bytes = vector_bytes(l, e.has_reduction), vectors = l.inner[0].size / l.vector;
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
    numbers_ = code.numbers;
  pack_arguments(l);
  for (const NumberPlan& n : numbers_)
    if (n.tensor != kNone) scalars_.push_back({numbers_at_ + static_cast<size_t>(&n - numbers_.data()) * sizeof(dev::Number), n.tensor, n.lane, g.tensor(n.tensor).dtype});
  grid_.threads = s.threads;
  Program p;
  p.generated = code.text;
  p.args = code.args;
  p.threads = s.threads;
  const char* names[] = {"pointwise", "rows", "stream"};
  p.include = cat("engines/cuda/fused/", names[s.kind], ".cuh");
  std::string index = "tsr::dev::Index";
  if (s.kind == Shape::pointwise) {
    p.body = cat("tsr::dev::pointwise<tsr::dev::Code, ", l.vector, ", ", s.keep, ", ", index, ">");
    grid_.blocks = ceil_div(std::max<int64_t>(head_.length, 1), int64_t{s.threads} * s.keep);
    empty_ = head_.length == 0 && head_.tail == 0;
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

// As the device's FusedArgs lies in memory: every part is a multiple of eight bytes.
void FusedProgram::pack_arguments(const Layout& l) {
  head_.rows = l.rows;
  head_.length = l.inner[0].size / l.vector;
  head_.tail = l.inner.size() == 1 ? l.inner[0].size % l.vector : 0;
  for (size_t i = 1; i < l.inner.size(); ++i) head_.length *= l.inner[i].size;
  Packer p(args_);
  p.add(head_);
  for (const Loop& loop : l.outer) p.add(dev::make_divisor(std::max<int64_t>(1, loop.size)));
  for (size_t i = 0; i < l.inner.size(); ++i)
    p.add(dev::make_divisor(std::max<int64_t>(1, l.inner[i].size / (i == 0 ? l.vector : 1))));
  for (size_t k = 0; k < l.operands.size(); ++k) {
    if (l.operands[k].tensor != kNone) pointers_.push_back({args_.size(), l.operands[k].tensor});
    p.add<void*>(nullptr);
    p.add(l.inner[0].strides[k]);
    for (const Loop& loop : l.outer) p.add(loop.strides[k]);
    for (size_t i = 0; i < l.inner.size(); ++i) p.add(l.inner[i].strides[k] * (i == 0 ? l.vector : 1));
  }
  if (l.operands.empty()) args_.resize(args_.size() + 8 * (2 + l.outer.size() + l.inner.size()));
  numbers_at_ = args_.size();
  for (const NumberPlan& n : numbers_) p.add(to_number(n.lane, n.value));
  if (numbers_.empty()) p.add(dev::Number{});
}

void FusedProgram::run(void* const* tensors, std::byte*, void* stream) const {
  if (empty_) return;
  alignas(16) std::byte args[kMaxArgs];
  std::memcpy(args, args_.data(), args_.size());
  for (const Pointer& p : pointers_) std::memcpy(args + p.at, &tensors[p.tensor], sizeof(void*));
  for (const Scalar& s : scalars_) {
    dev::Number n;
    if (s.lane == Lane::i64)
      n.i = load<int64_t>(s.type, tensors[s.tensor], 0);
    else
      n = to_number(s.lane, load<double>(s.type, tensors[s.tensor], 0));
    std::memcpy(args + s.at, &n, sizeof n);
  }
  kernel_->launch_packed(grid_, stream, args);
}

}  // namespace tsr::cuda
