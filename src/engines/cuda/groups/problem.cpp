// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/groups/problem.hpp"

#include <algorithm>

#include "graph/ops/list.hpp"
#include "graph/ops/resample.hpp"
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
  bool taken = c.channels == 2 || c.channels == 4 || (c.channels % 8 == 0 && c.channels <= kWidest);
  if (!apart && (c.groups == 1 || !taken))
    return Reason::no(spelling(n), " has ", c.groups, " groups of ", c.channels,
                      " channels, not several of 2, 4 or a multiple of 8 up to ", kWidest);
  if (!apart && type == DType::f32) return Reason::no("operands of type f32, which tensor cores would round");
  return Reason::yes();
}

// The axis as the kernels count it; `data_gradient`: windows walk over the gradient of the result.
std::optional<GroupsAxis> read_axis(const ConvAxis& s, bool data_gradient) {
  constexpr int64_t kMostTaps = 11, kMostStride = 3, kLargest = int64_t{1} << 29;
  if (s.taps > kMostTaps || s.stride > kMostStride || std::max(s.in, s.out) >= kLargest ||
      std::abs(s.origin) >= kLargest)
    return std::nullopt;
  if (s.taps > 1 && std::abs(s.step) != 1) return std::nullopt;
  int64_t last = s.taps - 1;
  bool back = s.taps > 1 && s.step < 0;
  auto taps = static_cast<int32_t>(s.taps), stride = static_cast<int32_t>(s.stride);
  if (!data_gradient) return GroupsAxis{{taps, stride}, s.in, s.out, s.origin - (back ? last : 0), back};
  int64_t meets = -s.origin - (back ? 0 : last), first = floor_div(meets, s.stride);
  return GroupsAxis{{taps, 1, stride, static_cast<int32_t>(meets - first * s.stride)}, s.out, s.in, first, !back};
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

std::array<int64_t, 5> spread(const Dims& strides) {
  int rank = strides.size();
  return {strides[0], strides[1], rank > 3 ? strides[rank - 2] : 0, strides[rank - 1], rank > 4 ? strides[2] : 0};
}

// --- what a choice costs
struct Sizes {
  int64_t in_positions, out_positions, pitch;
};
Sizes sizes_of(const GroupsProblem& p, const GroupsChoice& c) {
  return {int64_t{p.rows.met(c.rows)} * p.columns.met(c.columns), int64_t{c.rows} * c.columns,
          int64_t{c.chunks} * kPiece + kPiece};
}
int64_t tile_channels(const GroupsProblem& p, const GroupsChoice& c) { return c.chunks * kPiece / p.element_bytes(); }
// Of 16 positions and 8 channels, on average over residues. On groups of 2 and 4 channels: reads for them, as long.
double products(const GroupsProblem& p) {
  double count = 0;
  for (int z = 0; z < p.residues(); ++z) {
    int64_t taps = int64_t{p.rows.taps_of(z / p.columns.spread)} * p.columns.taps_of(z % p.columns.spread);
    bool narrow = p.size < 8 && !p.filter_gradient;
    int64_t reads =
        narrow ? ceil_div(taps * p.size, 16) * (8 / p.size) : ceil_div(taps * std::max<int64_t>(1, p.size / 8), 2);
    count += static_cast<double>(reads);
  }
  return count / p.residues();
}

double seconds_of(const GroupsProblem& p, const GroupsChoice& c, const Region& r, const Device& d) {
  constexpr double kAgain = 0.5, kSlack = 1.25;  // what reading again costs, from the cache; what is not overlapped
  Sizes s = sizes_of(p, c);
  auto tiles = static_cast<double>(c.tiles(p)), patches = static_cast<double>(c.patches(p)), blocks = tiles * patches;
  double clock = d.rates.f32 / (256.0 * d.units), parts = static_cast<double>(c.parts(p));
  auto positions = static_cast<double>(s.in_positions + (p.filter_gradient ? s.out_positions : 0));
  double bytes = blocks * parts * positions * c.chunks * kPiece,
         cycles = positions * static_cast<double>(s.pitch) / 128;
  if (c.wide) {
    double warps = c.threads(p) / 32.0,
           rows = p.filter_gradient ? c.tap_rows : static_cast<double>(p.rows.taps) / p.rows.spread,
           row = p.columns.met(c.wide) * 5.0 + p.columns.taps * (4.0 * c.wide + 1);
    cycles += warps * (rows * row + 16.0 * c.wide * p.columns.spread + 40) / 4;
  } else {
    double terms = products(p), turned = static_cast<double>(ceil_div(s.out_positions, 16)) * c.chunks;
    cycles += turned * (terms * 4 + 16) + terms * 8 * c.chunks;
    // Measured on an H200.
    constexpr double kWideGroups = 1.5;
    if (p.size >= 32 && !p.filter_gradient) cycles *= kWideGroups;
  }
  // Planes that a block reads for one of the result.
  double planes = p.filter_gradient ? 1 : static_cast<double>(p.planes.taps) / p.planes.spread;
  bytes *= planes, cycles *= planes;
  double once = region_bytes(r), again = std::max(0.0, bytes - once / 2);
  double time = std::max((once + kAgain * again) / d.bytes_per_second, blocks * parts * cycles / (clock * d.units));
  time = time * kSlack + d.step_seconds;
  if (p.filter_gradient) time += d.step_seconds + static_cast<double>(c.shares * p.sums()) * 8 / d.bytes_per_second;
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
  return static_cast<int>(tile_channels(p, *this) / 4) * rows * columns / wide * p.rows.spread;
}

int64_t GroupsChoice::shared_bytes(const GroupsProblem& p) const {
  Sizes s = sizes_of(p, *this);
  int64_t pictures = s.in_positions * s.pitch, gradient = s.out_positions * s.pitch;
  int64_t channels = tile_channels(p, *this);
  if (wide && p.filter_gradient) return std::max(pictures + gradient, int64_t{threads(p)} * p.columns.taps * 16);
  if (wide) return pictures + p.taps() * channels * 4;
  if (p.filter_gradient) return 2 * (pictures + gradient) + kPiece;
  return std::max(pictures, ceil_div(s.out_positions, 16) * 16 * (channels + 8) * 4);
}

int64_t GroupsChoice::tiles(const GroupsProblem& p) const { return ceil_div(p.channels, tile_channels(p, *this)); }
int64_t GroupsChoice::down(const GroupsProblem& p) const { return ceil_div(p.rows.out, int64_t{rows} * p.rows.spread); }
int64_t GroupsChoice::across(const GroupsProblem& p) const {
  return ceil_div(p.columns.out, int64_t{columns} * p.columns.spread);
}
int64_t GroupsChoice::patches(const GroupsProblem& p) const { return p.images * p.planes.out * down(p) * across(p); }
int64_t GroupsChoice::parts(const GroupsProblem& p) const {
  int64_t planes = p.filter_gradient ? p.planes.taps : 1;
  if (!wide) return planes * p.residues();
  return p.filter_gradient ? planes * ceil_div(p.rows.taps, tap_rows) : 1;
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
  if (axes.size() != c.axes.size())
    return no(Reason::no(spelling(n), " has a window, stride or dilation that is not taken"));
  if (axes.size() == 3 && axes.front().taps == 1)
    return no(Reason::no(spelling(n), " has three dimensions and a window of one plane"));
  const Tensor& pictures = c.dgrad ? *c.y : *c.x;
  if (Reason w = check_pictures(pictures); !w) return no(w);
  if (Reason w = c.wgrad ? check_pictures(*c.y) : Reason::yes(); !w) return no(w);
  Expr lowered;
  if (Reason w = lower_epilogue(r, anchor, &lowered); !w) return no(w);
  const auto& o = attrs<tessera::ConvOptions>(n);
  Scaling scaling{o.alpha, o.beta, n.in.size() > 2 ? n.in[2] : kNone};
  GroupsProblem p{.anchor = anchor, .epilogue = Epilogue(r, anchor, lowered, DType::f32, scaling)};
  if (Reason w = p.epilogue.check(dev::GroupsEpilogue::kOperands); !w) return no(w);
  Epilogue::ResultAxes result{.rows = {0}, .columns = {1}, .batches = {}};
  for (int i = 2; i < g.tensor(n.out[0]).rank(); ++i) result.rows.push_back(i);
  if (Reason w = p.epilogue.find_reduction(result, &p.reduction); !w) return no(w);
  using dev::Reduced;
  if (p.reduction.over != Reduced::nothing && (p.reduction.over != Reduced::rows || c.wgrad))
    return no(Reason::no("what follows ", spelling(n), " reduces more or less than all positions"));
  p.pictures = n.in[c.wgrad ? 1 : 0], p.other = n.in[c.wgrad ? 0 : 1];
  p.data_gradient = c.dgrad, p.filter_gradient = c.wgrad, p.type = type;
  p.size = c.channels, p.channels = c.channels * c.groups, p.images = c.images;
  p.columns = axes.back();
  if (axes.size() > 1) p.rows = axes[axes.size() - 2];
  if (axes.size() > 2) p.planes = axes.front();
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
  constexpr int kMostThreads = 512, kMostPositions = 128, kMostSums = 84, kMostResults = 12, kResident = 4;
  constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;
  int most = p.size < 8 && !p.filter_gradient ? kMostPositions / 2 : kMostPositions;  // as registers hold sums
  std::vector<GroupsChoice> list;
  int chunks = chunks_for(p);
  if (chunks == 0) return list;
  for (auto [rows, columns] : kPatches)
    for (int wide : {0, 4, 7, 8}) {
      if ((wide == 0) != (p.size > 1) || (wide && columns % wide != 0) || wide * p.columns.spread > kMostResults)
        continue;
      GroupsChoice c{rows, columns, wide, chunks, 1, 1};
      int threads = c.threads(p);
      if (threads % 32 != 0 || threads > kMostThreads || (!wide && rows * columns > most)) continue;
      c.tap_rows = std::max(1, std::min(p.rows.taps, kMostSums / (p.columns.taps * 4)));
      if (c.shared_bytes(p) > d.shared_bytes || c.patches(p) * c.tiles(p) * c.parts(p) > kMostBlocks) continue;
      if (p.filter_gradient)
        c.shares = std::clamp<int64_t>(int64_t{kResident} * d.units / (c.tiles(p) * c.parts(p)), 1,
                                       std::min(c.patches(p), most_parts(r, 4.0 * static_cast<double>(p.sums()))));
      c.seconds = seconds_of(p, c, r, d) + (p.reduction.over == dev::Reduced::nothing ? 0 : d.step_seconds);
      list.push_back(c);
    }
  std::stable_sort(list.begin(), list.end(),
                   [](const GroupsChoice& a, const GroupsChoice& b) { return a.seconds < b.seconds; });
  return list;
}

}  // namespace tsr::cuda
