// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/conv1d/sequences.hpp"

#include <algorithm>

#include "engines/cuda/toolkit/tensors.hpp"

namespace tsr::cuda {
namespace {

constexpr int64_t kBlocksOfUnit = 16;  // enough to keep a multiprocessor busy to the end
constexpr int64_t kWarp = 32;
constexpr int64_t kMostRounds = 4;  // of a block without sums; more gain nothing

int64_t power_of_two(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

bool missing(const std::vector<TensorId>& slots, size_t slot) { return slot >= slots.size() || slots[slot] == kNone; }

// May `n` elements along the axis of stride 1 be moved at once?
bool allows(const SignalPlan& s, int axis, int n) {
  int64_t bytes = info(s.type).bits / 8;
  if (s.steps[axis] != 1 || s.alignment % std::min<int64_t>(16, n * bytes) != 0) return false;
  if (s.id != kNone && s.offset % n != 0) return false;
  for (int i = 0; i < 3; ++i)
    if (i != axis && s.steps[i] % n != 0) return false;
  return true;
}

}  // namespace

bool computes_wide(const Graph& g, const Node& n) {
  bool wide = n.compute == DType::f64;
  for (const auto* list : {&n.in, &n.out})
    for (TensorId t : *list) wide = wide || (t != kNone && g.tensor(t).dtype == DType::f64);
  return wide;
}

SignalPlan signal_of(const Graph& g, const std::vector<TensorId>& slots, size_t slot, int part) {
  SignalPlan p;
  if (missing(slots, slot)) return p;
  const Tensor& t = g.tensor(slots[slot]);
  p.exists = true;
  p.id = slots[slot], p.type = t.dtype, p.alignment = t.alignment;
  p.steps[0] = t.strides[0], p.steps[1] = t.strides[1], p.steps[2] = t.strides.back();
  if (part >= 0) p.offset = part * t.strides[2];
  return p;
}

FilterPlan filter_of(const Graph& g, const std::vector<TensorId>& slots, size_t slot, bool reversed, int part) {
  FilterPlan p;
  if (missing(slots, slot)) return p;
  const Tensor& t = g.tensor(slots[slot]);
  int64_t step = t.strides.back();
  p.id = slots[slot], p.type = t.dtype;
  p.taps = static_cast<int>(t.dims.back());
  p.first = (part >= 0 ? part * t.strides[1] : 0) + (reversed ? 0 : (p.taps - 1) * step);
  p.steps[0] = t.strides[0], p.steps[1] = reversed ? step : -step;
  return p;
}

PerChannelPlan per_channel_of(const Graph& g, const std::vector<TensorId>& slots, size_t slot) {
  if (missing(slots, slot)) return {};
  const Tensor& t = g.tensor(slots[slot]);
  return {slots[slot], t.dtype, t.strides[0]};
}

void SequenceStep::choose_access(const std::vector<SignalPlan>& signals, int most) {
  const SignalPlan& x = signals[0];
  access_.channels_fast = channels_ > 1 && x.steps[1] < x.steps[2];
  int64_t narrowest = 8;
  for (const SignalPlan& s : signals)
    if (s.exists) narrowest = std::min<int64_t>(narrowest, info(s.type).bits / 8);
  int n = access_.channels_fast ? (wide_ ? std::max(1, most / 2) : most)
                                : static_cast<int>(std::min<int64_t>(kStep, 16 / narrowest));
  auto fits = [&](const SignalPlan& s) { return !s.exists || allows(s, access_.channels_fast ? 1 : 2, n); };
  while (n > 1 &&
         !(std::all_of(signals.begin(), signals.end(), fits) && (!access_.channels_fast || channels_ % n == 0)))
    n /= 2;
  (access_.channels_fast ? access_.channels : access_.times) = n;
}

int64_t SequenceStep::reserve(int64_t bytes) {
  auto at = static_cast<int64_t>(workspace_);
  workspace_ += static_cast<size_t>(ceil_div(bytes, 256) * 256);
  return at;
}

SignalPlan SequenceStep::temporary() {
  constexpr int64_t kPad = 8;
  SignalPlan p;
  p.exists = true;
  p.type = lane_type();
  int64_t fast = ceil_div(access_.channels_fast ? channels_ : length_, kPad) * kPad;
  p.steps[access_.channels_fast ? 1 : 2] = 1;
  p.steps[access_.channels_fast ? 2 : 1] = fast;
  p.steps[0] = fast * (access_.channels_fast ? length_ : channels_);
  p.offset = reserve(batch_ * p.steps[0] * lane_bytes());
  return p;
}

dev::Share SequenceStep::share(int64_t splits) const {
  dev::Share s{};
  s.channels = channels_, s.length = static_cast<int>(length_);
  int64_t spans_of_row = ceil_div(length_, kStep), pieces = ceil_div(channels_, access_.channels);
  s.spans = static_cast<int>(batch_ * spans_of_row);
  s.channels_fast = access_.channels_fast;
  int64_t across = s.channels_fast ? std::min<int64_t>(32, power_of_two(pieces))
                                   : kThreads / std::min<int64_t>(kThreads, power_of_two(s.spans));
  s.channel_threads = static_cast<int>(across);
  s.channel_blocks = dev::make_divisor(std::max<int64_t>(1, ceil_div(pieces, across)));
  s.spans_of_row = dev::make_divisor(std::max<int64_t>(1, spans_of_row));
  // Spans of a block: those of one round of its threads, a few rounds where there is work enough for all units.
  int64_t round = kThreads / across, most = ceil_div(s.spans, round);
  int64_t wanted = std::max<int64_t>(1, kBlocksOfUnit * device_.units / s.channel_blocks.value);
  int64_t rounds = splits == 0 ? std::clamp<int64_t>(most / wanted, 1, kMostRounds) : ceil_div(most, splits);
  s.spans_of_block = static_cast<int>(rounds * round);
  return s;
}

int64_t SequenceStep::splits_for_gradients() const {
  return std::max<int64_t>(1, kBlocksOfUnit * device_.units / share(0).channel_blocks.value);
}

std::string SequenceStep::shape(int taps) const {
  return cat(", ", access_.channels, ", ", access_.times, ", ", taps, ", ", kStep, ">");
}

std::shared_ptr<const Kernel> SequenceStep::get(const std::string& source, const std::string& args,
                                                const std::string& body) const {
  Program p;
  p.include = cat("engines/cuda/conv1d/", source);
  p.generated = "using namespace tsr::dev;";
  p.args = args;
  p.body = body;
  p.threads = kThreads;
  return get_kernel(p, device_);
}

int64_t SequenceStep::sum_bytes(int taps_at_once) const {
  return int64_t{kThreads} * (taps_at_once + 1) * access_.channels * lane_bytes();
}

void SequenceStep::add_filter_gradient(const SignalPlan& x, const SignalPlan& dz, const FilterPlan& dw,
                                       const PerChannelPlan& extra, int extra_index) {
  int taps = taps_at_once(dw.taps), groups = static_cast<int>(ceil_div(dw.taps, taps));
  KernelArgs<dev::FilterGradientArgs> bound;
  dev::FilterGradientArgs& a = bound.args;
  a.share = share(ceil_div(splits_for_gradients(), groups));
  a.taps = dw.taps;
  a.groups = dev::make_divisor(groups);
  int64_t n = splits(a.share), partials = reserve(n * channels_ * (dw.taps + 1) * lane_bytes());
  x.bind(bound, a.x);
  dz.bind(bound, a.dz);
  bound.workspace(a.partials, static_cast<size_t>(partials));
  add("causal.cuh", "FilterGradientArgs",
      cat("filter_gradient<", device_type(x.type), ", ", device_type(dz.type), ", ", lane(), shape(taps)),
      blocks(a.share) * groups, sum_bytes(taps), std::move(bound));
  add_sums(partials, n, dw, extra, extra_index);
}

void SequenceStep::add_sums(int64_t partials, int64_t splits, const FilterPlan& dw, const PerChannelPlan& extra,
                            int extra_index) {
  KernelArgs<dev::SumArgs> bound;
  dev::SumArgs& a = bound.args;
  a.splits = splits, a.channels = channels_, a.taps = dw.taps, a.extra_index = extra_index;
  bound.workspace(a.partials, static_cast<size_t>(partials));
  dw.bind(bound, a.dw);
  extra.bind(bound, a.extra);
  add("sums.cuh", "SumArgs",
      cat("sum_partials<", device_type(dw.type), ", ", device_type(extra.type), ", ", lane(), ">"),
      ceil_div(channels_ * (dw.taps + 1) * kWarp, kThreads), 0, std::move(bound));
}

}  // namespace tsr::cuda
