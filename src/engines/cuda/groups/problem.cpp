// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/groups/problem.hpp"

#include <algorithm>

#include "engines/cuda/groups/args.cuh"
#include "graph/ops/list.hpp"
#include "planner/conv_shape.hpp"

namespace tsr::cuda {
namespace {

constexpr int64_t kPiece = 16;  // bytes of channels that move at once

NodeId find_conv(const Region& r) {
  for (NodeId n : r.nodes)
    for (const OpSpec* op : {&ops::conv_fprop, &ops::conv_dgrad, &ops::conv_wgrad})
      if (r.graph->node(n).op == op) return n;
  return kNone;
}

Reason check_node(const Region& r, const Node& n) {
  const Graph& g = *r.graph;
  const Tensor &a = g.tensor(n.in[0]), &b = g.tensor(n.in[1]);
  if (a.dtype != b.dtype || (a.dtype != DType::bf16 && a.dtype != DType::f16 && a.dtype != DType::f32))
    return Reason::no("inputs of types ", a.dtype, " and ", b.dtype, ", not both of bf16, f16 or f32");
  if (n.compute != DType::f32) return Reason::no(spelling(n), " computes in ", n.compute, ", not f32");
  for (TensorId id : {n.in[0], n.in[1]}) {
    const Tensor& t = g.tensor(id);
    if (t.reordering != Reordering::none || t.ragged != kNone || t.on_host())
      return Reason::no("input ", describe(t), " is no plain memory of the device");
    NodeId p = g.producer(id);
    if (p != kNone && std::find(r.nodes.begin(), r.nodes.end(), p) != r.nodes.end())
      return Reason::no("input ", describe(t), " of the convolution is computed in the region");
  }
  if (g.tensor(n.out[0]).numel() == 0 || a.numel() == 0) return Reason::no(spelling(n), " is empty");
  return Reason::yes();
}

Reason check_groups(const Node& n, const ConvShape& c, DType type, bool apart) {
  constexpr int64_t kWidest = 64;
  if (c.filters != c.channels)
    return Reason::no(spelling(n), " makes ", c.filters, " channels of ", c.channels, " in each group, not as many");
  if (apart && c.channels > 1) return Reason::no(spelling(n), " has groups of ", c.channels, " channels, not 1");
  if (!apart && (c.groups == 1 || c.channels % 8 != 0 || c.channels > kWidest))
    return Reason::no(spelling(n), " has ", c.groups, " groups of ", c.channels,
                      " channels, not several of a multiple of 8 up to ", kWidest);
  if (!apart && type == DType::f32) return Reason::no("operands of type f32, which tensor cores would round");
  return Reason::yes();
}

// The axis as the kernels count it; `data_gradient`: windows walk over the gradient of the result.
std::optional<GroupsAxis> read_axis(const ConvAxis& s, bool data_gradient) {
  constexpr int64_t kMostTaps = 11, kMostStride = 3, kLargest = int64_t{1} << 29;
  if (s.taps > kMostTaps || s.stride > (data_gradient ? 1 : kMostStride) || std::max(s.in, s.out) >= kLargest ||
      std::abs(s.origin) >= kLargest)
    return std::nullopt;
  if (s.taps > 1 && std::abs(s.step) != 1) return std::nullopt;
  int64_t last = s.taps - 1;
  bool back = s.taps > 1 && s.step < 0;
  if (data_gradient) return GroupsAxis{s.out, s.in, s.taps, 1, -s.origin - (back ? 0 : last), !back};
  return GroupsAxis{s.in, s.out, s.taps, s.stride, s.origin - (back ? last : 0), back};
}

// Channels side by side, all else at multiples of what moves at once.
Reason check_pictures(const Tensor& t) {
  int64_t bytes = info(t.dtype).bits / 8;
  if (t.strides[1] != 1 || t.dims[1] * bytes % kPiece != 0)
    return Reason::no("channels of ", describe(t), " do not lie side by side in whole pieces of ", kPiece, " bytes");
  for (int i = 0; i < t.rank(); ++i)
    if (i != 1 && t.dims[i] > 1 && (t.strides[i] < 0 || t.strides[i] * bytes % kPiece != 0))
      return Reason::no(describe(t), " has a stride of ", t.strides[i], " elements, not a multiple of ", kPiece,
                        " bytes");
  if (t.stored && t.alignment % kPiece != 0)
    return Reason::no(describe(t), " is aligned to ", t.alignment, " bytes, not ", kPiece);
  return Reason::yes();
}

std::array<int64_t, 4> spread(const Dims& strides) {
  int rank = strides.size();
  return {strides[0], strides[1], rank > 3 ? strides[2] : 0, strides[rank - 1]};
}

// --- what a choice costs
struct Sizes {
  int64_t in_positions, out_positions, pitch;
};
Sizes sizes_of(const GroupsProblem& p, const GroupsChoice& c) {
  int64_t down = (c.rows - 1) * p.rows.stride + p.rows.taps,
          across = (c.columns - 1) * p.columns.stride + p.columns.taps;
  return {down * across, int64_t{c.rows} * c.columns, int64_t{c.chunks} * kPiece + kPiece};
}
int64_t tile_channels(const GroupsProblem& p, const GroupsChoice& c) { return c.chunks * kPiece / p.element_bytes(); }
int64_t products(const GroupsProblem& p) { return ceil_div(p.taps() * p.size / 8, 2); }

double seconds_of(const GroupsProblem& p, const GroupsChoice& c, const Region& r, const Device& d) {
  constexpr double kAgain = 0.5, kSlack = 1.25;  // what reading again costs, from the cache; what is not overlapped
  Sizes s = sizes_of(p, c);
  auto tiles = static_cast<double>(c.tiles(p)), patches = static_cast<double>(c.patches(p)), blocks = tiles * patches;
  double clock = d.rates.f32 / (256.0 * d.units), parts = static_cast<double>(c.tap_parts(p));
  auto positions = static_cast<double>(s.in_positions + (p.filter_gradient ? s.out_positions : 0));
  double bytes = blocks * parts * positions * c.chunks * kPiece,
         cycles = positions * static_cast<double>(s.pitch) / 128;
  if (c.wide) {
    double warps = c.threads(p) / 32.0,
           reach = (c.wide - 1.0) * static_cast<double>(p.columns.stride) + static_cast<double>(p.columns.taps);
    auto rows = static_cast<double>(p.filter_gradient ? c.tap_rows : p.rows.taps);
    double row = reach * 5 + static_cast<double>(p.columns.taps) * (4.0 * c.wide + 1);
    cycles += warps * (rows * row + 16.0 * c.wide + 40) / 4;
  } else {
    auto loads = static_cast<double>(products(p)) * 4;
    double turned = static_cast<double>(ceil_div(s.out_positions, 16)) * c.chunks;
    cycles += turned * (loads + 16) + static_cast<double>(products(p)) * 8 * c.chunks;
  }
  double once = region_bytes(r), again = std::max(0.0, bytes - once / 2);
  double time = std::max((once + kAgain * again) / d.bytes_per_second, blocks * parts * cycles / (clock * d.units));
  time = time * kSlack + d.step_seconds;
  if (p.filter_gradient)
    time += d.step_seconds + static_cast<double>(c.shares * p.channels * p.taps() * p.size) * 8 / d.bytes_per_second;
  return time;
}

// As many 16 bytes of channels as waste least.
int chunks_for(const GroupsProblem& p) {
  int best = 0;
  int64_t least = 0;
  for (int chunks : {8, 4, 2}) {
    int64_t channels = chunks * kPiece / p.element_bytes(), padded = ceil_div(p.channels, channels) * channels;
    if (channels % p.size != 0 || (best != 0 && padded >= least)) continue;
    best = chunks, least = padded;
  }
  return best;
}

}  // namespace

int GroupsChoice::threads(const GroupsProblem& p) const {
  if (!wide) return 32 * chunks;
  return static_cast<int>(tile_channels(p, *this) / 4) * rows * columns / wide;
}

int64_t GroupsChoice::shared_bytes(const GroupsProblem& p) const {
  Sizes s = sizes_of(p, *this);
  int64_t pictures = s.in_positions * s.pitch, gradient = s.out_positions * s.pitch;
  int64_t channels = tile_channels(p, *this);
  if (wide && p.filter_gradient) return std::max(pictures + gradient, threads(p) * p.columns.taps * 16);
  if (wide) return pictures + p.taps() * channels * 4;
  if (p.filter_gradient) return 2 * (pictures + gradient) + kPiece;
  return std::max(pictures, ceil_div(s.out_positions, 16) * 16 * (channels + 8) * 4);
}

int64_t GroupsChoice::tiles(const GroupsProblem& p) const { return ceil_div(p.channels, tile_channels(p, *this)); }
int64_t GroupsChoice::down(const GroupsProblem& p) const { return ceil_div(p.rows.out, rows); }
int64_t GroupsChoice::across(const GroupsProblem& p) const { return ceil_div(p.columns.out, columns); }
int64_t GroupsChoice::patches(const GroupsProblem& p) const { return p.images * down(p) * across(p); }
int64_t GroupsChoice::tap_parts(const GroupsProblem& p) const {
  return wide && p.filter_gradient ? ceil_div(p.rows.taps, tap_rows) : 1;
}

std::optional<GroupsProblem> find_groups(const Region& r, bool apart, Reason* why) {
  auto no = [&](Reason reason) {
    *why = std::move(reason);
    return std::nullopt;
  };
  const Graph& g = *r.graph;
  NodeId anchor = find_conv(r);
  if (anchor == kNone) return no(Reason::no("the region has no convolution"));
  const Node& n = g.node(anchor);
  if (Reason w = check_node(r, n); !w) return no(w);
  ConvShape c = conv_shape(g, n);
  DType type = g.tensor(n.in[0]).dtype;
  if (Reason w = check_groups(n, c, type, apart); !w) return no(w);
  std::vector<GroupsAxis> axes;
  for (const ConvAxis& s : c.axes)
    if (auto a = read_axis(s, c.dgrad)) axes.push_back(*a);
  if (axes.size() != c.axes.size() || axes.size() > 2)
    return no(
        Reason::no(spelling(n), " has more than two dimensions, or a window, stride or dilation that is not taken"));
  const Tensor& pictures = c.dgrad ? *c.y : *c.x;
  if (Reason w = check_pictures(pictures); !w) return no(w);
  if (Reason w = c.wgrad ? check_pictures(*c.y) : Reason::yes(); !w) return no(w);
  Expr lowered;
  if (Reason w = lower_epilogue(r, anchor, &lowered); !w) return no(w);
  if (lowered.has_reduction) return no(Reason::no("what follows ", spelling(n), " reduces rows"));
  const auto& o = attrs<tessera::ConvOptions>(n);
  Scaling scaling{o.alpha, o.beta, n.in.size() > 2 ? n.in[2] : kNone};
  GroupsProblem p{.anchor = anchor, .epilogue = Epilogue(r, anchor, lowered, DType::f32, scaling)};
  if (Reason w = p.epilogue.check(dev::GroupsEpilogue::kOperands); !w) return no(w);
  p.pictures = n.in[c.wgrad ? 1 : 0], p.other = n.in[c.wgrad ? 0 : 1];
  p.data_gradient = c.dgrad, p.filter_gradient = c.wgrad, p.type = type;
  p.size = c.channels, p.channels = c.channels * c.groups, p.images = c.images;
  p.columns = axes.back();
  if (axes.size() == 2) p.rows = axes.front();
  for (const OperandPlan& operand : p.epilogue.operands()) {
    p.strides.push_back(spread(operand.strides));
    if (operand.kind == Instr::store && !c.wgrad && p.strides.back()[1] != 1)
      return no(Reason::no("channels of ", describe(p.epilogue.tensor(operand)), " do not lie side by side"));
  }
  return p;
}

std::vector<GroupsChoice> groups_choices(const GroupsProblem& p, const Region& r, const Device& d) {
  constexpr int kPatches[][2] = {{8, 8},  {8, 16}, {4, 8},   {4, 16}, {7, 7}, {7, 14},
                                 {14, 7}, {14, 8}, {14, 14}, {4, 28}, {1, 64}};
  constexpr int kMostThreads = 512, kMostTiles = 8, kMostSums = 84, kResident = 4;
  constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;
  std::vector<GroupsChoice> list;
  int chunks = chunks_for(p);
  if (chunks == 0) return list;
  for (auto [rows, columns] : kPatches)
    for (int wide : {0, 4, 7, 8}) {
      if ((wide == 0) != (p.size > 1) || (wide && columns % wide != 0)) continue;
      GroupsChoice c{rows, columns, wide, chunks, 1, 1};
      int threads = c.threads(p);
      if (threads % 32 != 0 || threads > kMostThreads || (!wide && rows * columns > 16 * kMostTiles)) continue;
      c.tap_rows = std::max<int>(1, std::min<int64_t>(p.rows.taps, kMostSums / (p.columns.taps * 4)));
      if (c.shared_bytes(p) > d.shared_bytes || c.patches(p) * c.tiles(p) * c.tap_parts(p) > kMostBlocks) continue;
      if (p.filter_gradient)
        c.shares = std::clamp<int64_t>(int64_t{kResident} * d.units / (c.tiles(p) * c.tap_parts(p)), 1, c.patches(p));
      c.seconds = seconds_of(p, c, r, d);
      list.push_back(c);
    }
  std::stable_sort(list.begin(), list.end(),
                   [](const GroupsChoice& a, const GroupsChoice& b) { return a.seconds < b.seconds; });
  return list;
}

}  // namespace tsr::cuda
