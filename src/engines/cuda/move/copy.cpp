// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/move/copy.hpp"

#include <algorithm>

#include "engines/cuda/toolkit/launches.hpp"
#include "graph/op.hpp"

namespace tsr::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLargestSquare = 8;
constexpr int64_t kSmall = 16;               // axes that are shorter leave most of a tile empty
constexpr int64_t kWideIndex = 2000000000;   // elements from which 32 bits do not count them
constexpr int64_t kWorthTwoLaunches = 4096;  // elements; below it a rest that is no whole word narrows all words

int bits_of(const Tensor& t) { return info(t.dtype).bits; }
int64_t bytes_of(const Tensor& t) { return bits_of(t) / 8; }

bool same_type(const Tensor& a, const Tensor& b) { return plain_type(a) == plain_type(b); }

bool is_empty(const std::vector<CopyAxis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [](const CopyAxis& a) { return a.size == 0; });
}

dev::CopyArgs copy_args(const std::vector<CopyAxis>& axes) {
  require(axes.size() <= dev::kCopyAxes, "a copy has ", axes.size(), " axes");
  dev::CopyArgs a{};
  a.count = 1;
  a.axes = static_cast<int>(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const CopyAxis& axis = axes[axes.size() - 1 - i];  // slowest first here, innermost first there
    a.count *= axis.size;
    a.size[i] = dev::make_divisor(axis.size);
    a.from_step[i] = axis.from;
    a.to_step[i] = axis.to;
  }
  return a;
}

const char* index_type(int64_t count) { return count > kWideIndex ? "i64" : "i32"; }

// Does every axis of the target, slowest first, hold all that lies behind it?
bool is_nested(const std::vector<CopyAxis>& axes) {
  int64_t behind = 1;
  for (size_t i = axes.size(); i-- > 0; behind = axes[i].size * axes[i].to)
    if (axes[i].to < behind) return false;
  return true;
}

// Elements of less than a byte as whole bytes, if all steps allow it.
bool in_bytes(std::vector<CopyAxis>& axes, int64_t per_byte, int64_t from, int64_t to) {
  if (axes.empty() || axes.back().from != 1 || axes.back().to != 1) return false;
  if (axes.back().size % per_byte || from % per_byte || to % per_byte) return false;
  for (size_t i = 0; i + 1 < axes.size(); ++i)
    if (axes[i].from % per_byte || axes[i].to % per_byte) return false;
  for (size_t i = 0; i + 1 < axes.size(); ++i) axes[i].from /= per_byte, axes[i].to /= per_byte;
  axes.back().size /= per_byte;
  return true;
}

// The axis of the source's runs, where it is another than that of the target's.
size_t find_across(const std::vector<CopyAxis>& axes) {
  size_t none = axes.size();
  if (axes.empty() || axes.back().to != 1 || axes.back().from == 1) return none;
  for (size_t i = 0; i + 1 < axes.size(); ++i)
    if (axes[i].from == 1) return i;
  return none;
}

// All copies of a node, in as few launches as their kernels allow.
class CopyBuilder {
 public:
  CopyBuilder(const Graph& g, TensorId target, const Device& d)
      : graph_(g), target_(target), y_(g.tensor(target)), device_(d) {}

  std::unique_ptr<Step> build(const std::vector<Copy>& copies) {
    for (const Copy& c : copies) add_copy(c);
    launch_all_runs();
    return std::move(step_);
  }

 private:
  // Where a copy starts.
  struct Place {
    TensorId source = kNone;
    int64_t from = 0, to = 0;  // bytes
  };
  // A copy that may share a launch with others of its kind.
  struct Run {
    std::string body;  // but for the number of copies
    dev::CopyArgs args;
    int64_t blocks;
    Place place;
  };

  void add_copy(const Copy& c) {
    std::vector<CopyAxis> axes = merged(c.axes);
    if (is_empty(axes)) return;
    int64_t per_byte = 8 / std::min(8, bits_of(y_));
    if (per_byte > 1 && !in_bytes(axes, per_byte, c.from, c.to)) return add_packed(c, axes);
    size_t across = per_byte > 1 ? axes.size() : find_across(axes);
    if (across < axes.size() && axes[across].size >= kSmall && axes.back().size >= kSmall)
      return add_tiles(c, axes, across);
    // A short run of the source is read whole before the next: its lines of memory are then read once.
    if (across < axes.size() && axes[across].size < axes.back().size)
      std::rotate(axes.begin() + static_cast<std::ptrdiff_t>(across),
                  axes.begin() + static_cast<std::ptrdiff_t>(across) + 1, axes.end());
    add_runs(c.source, axes, c.from / per_byte, c.to / per_byte, std::max<int64_t>(1, bytes_of(y_)));
  }

  void launch_all_runs() {
    auto by_body = [](const Run& a, const Run& b) { return a.body < b.body; };
    std::stable_sort(runs_.begin(), runs_.end(), by_body);
    for (size_t first = 0, last; first < runs_.size(); first = last) {
      last = first + 1;
      while (last < runs_.size() && last - first < dev::kManyCopies && runs_[last].body == runs_[first].body) ++last;
      std::vector<Run> same(runs_.begin() + static_cast<std::ptrdiff_t>(first),
                            runs_.begin() + static_cast<std::ptrdiff_t>(last));
      same.size() == 1 ? launch_runs<1>(same) : launch_runs<dev::kManyCopies>(same);
    }
  }

  // `field`: of the arguments of `to`.
  template <class Args, class Field>
  void bind(KernelArgs<Args>& to, Field& field, const Place& p) const {
    to.pointer(field.from, p.source, p.from);
    to.pointer(field.to, target_, p.to);
  }

  template <class Args>
  void launch(const std::string& source, const std::string& body, const std::string& type, KernelArgs<Args> args,
              Grid grid) {
    Program p;
    p.include = cat("engines/cuda/move/", source);
    p.generated = "using namespace tsr::dev;";
    p.args = type;
    p.body = body;
    p.threads = grid.threads = kThreads;
    step_->add(get_kernel(p, device_), grid, std::move(args));
  }

  template <int N>
  void launch_runs(const std::vector<Run>& runs) {
    KernelArgs<dev::Copies<N>> bound;
    dev::Copies<N>& a = bound.args;
    a.count = static_cast<int>(runs.size());
    int64_t blocks = 0;
    for (size_t i = 0; i < runs.size(); ++i) {
      a.copy[i] = runs[i].args;
      a.first_block[i] = static_cast<int>(blocks);
      blocks += runs[i].blocks;
      bind(bound, a.copy[i], runs[i].place);
    }
    launch("copy.cuh", cat(runs[0].body, ", ", N, ">"), cat("Copies<", N, ">"), std::move(bound), {.blocks = blocks});
  }

  std::string types(const Tensor& x, int64_t word_bytes) const {
    if (same_type(x, y_)) return cat(word_type(word_bytes), ", ", word_type(word_bytes));
    return cat(device_type(plain_type(x)), ", ", device_type(plain_type(y_)));
  }

  // Elements of `bytes` bytes in words that are as long as all steps allow.
  void add_runs(TensorId source, std::vector<CopyAxis> axes, int64_t from, int64_t to, int64_t bytes) {
    const Tensor& x = graph_.tensor(source);
    int64_t word = 1;  // elements
    if (axes.empty()) axes.push_back({1, 1, 1});
    if (same_type(x, y_) && axes.back().from == 1 && axes.back().to == 1) {
      word = std::max<int64_t>(1, std::min(aligned_bytes(x, from * bytes), aligned_bytes(y_, to * bytes)) / bytes);
      for (size_t i = 0; i + 1 < axes.size(); ++i) word = common_power(word, {axes[i].from, axes[i].to});
      int64_t rest = axes.back().size % word;
      if (rest && axes.size() == 1 && axes.back().size >= kWorthTwoLaunches) {
        axes.back().size -= rest;
        add_runs(source, {{rest, 1, 1}}, from + axes.back().size, to + axes.back().size, bytes);
      }
      word = common_power(word, {axes.back().size});
      for (size_t i = 0; i + 1 < axes.size(); ++i) axes[i].from /= word, axes[i].to /= word;
      axes.back().size /= word;
    }
    dev::CopyArgs a = copy_args(axes);
    int unroll = word * bytes < 8 ? 8 : 4;
    runs_.push_back({cat("copy<", types(x, word * bytes), ", ", unroll, ", ", index_type(a.count)),
                     a,
                     ceil_div(a.count, int64_t{kThreads} * unroll),
                     {source, from * (same_type(x, y_) ? bytes : bytes_of(x)), to * bytes}});
  }

  void add_tiles(const Copy& c, const std::vector<CopyAxis>& axes, size_t across) {
    const Tensor& x = graph_.tensor(c.source);
    const CopyAxis &rows = axes.back(), &columns = axes[across];
    std::vector<CopyAxis> outer;
    for (size_t i = 0; i + 1 < axes.size(); ++i)
      if (i != across) outer.push_back(axes[i]);
    // Elements that can be moved at once on one side.
    auto at_once = [&](const Tensor& t, int64_t first, int64_t run, int64_t step, int64_t CopyAxis::*side_of) {
      int64_t aligned = std::max<int64_t>(1, aligned_bytes(t, first * bytes_of(t)) / bytes_of(t));
      int64_t most = common_power(aligned, {run, step});
      for (const CopyAxis& a : outer) most = common_power(most, {a.*side_of});
      return most;
    };
    TileChoice tile({bytes_of(x), columns.size, at_once(x, c.from, columns.size, rows.from, &CopyAxis::from)},
                    {bytes_of(y_), rows.size, at_once(y_, c.to, rows.size, columns.to, &CopyAxis::to)});
    KernelArgs<dev::TileArgs> bound;
    dev::TileArgs& a = bound.args;
    a.matrices = copy_args(outer);
    bind(bound, a.matrices, {c.source, c.from * bytes_of(x), c.to * bytes_of(y_)});
    a.rows = rows.size, a.columns = columns.size;
    a.from_step = rows.from, a.to_step = columns.to;
    a.from_words = tile.from_words, a.to_words = tile.to_words;
    a.down = dev::make_divisor(ceil_div(rows.size, tile.rows));
    a.across = dev::make_divisor(ceil_div(columns.size, tile.columns));
    Grid grid{.blocks = a.matrices.count * a.down.value * a.across.value, .shared_bytes = tile.shared_bytes};
    launch("tiles.cuh", cat("tiles<", types(x, bytes_of(x)), ", ", tile.square, ", ", tile.down, ">"), "TileArgs",
           std::move(bound), grid);
  }

  void add_packed(const Copy& c, const std::vector<CopyAxis>& axes) {
    int64_t per_byte = 8 / bits_of(y_);
    KernelArgs<dev::PackedArgs> bound;
    dev::PackedArgs& a = bound.args;
    bind(bound, a, {c.source, 0, 0});
    a.from_first = c.from, a.to_first = c.to;
    a.span = 1;
    a.axes = static_cast<int>(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      a.size[i] = axes[i].size, a.from_step[i] = axes[i].from, a.to_step[i] = axes[i].to;
      a.span += (axes[i].size - 1) * axes[i].to;
    }
    int64_t bytes = ceil_div(c.to + a.span, per_byte) - c.to / per_byte;
    launch("copy.cuh", cat("copy_packed<", bits_of(y_), ">"), "PackedArgs", std::move(bound),
           {.blocks = ceil_div(bytes, kThreads)});
  }

  const Graph& graph_;
  TensorId target_;
  const Tensor& y_;
  const Device& device_;
  std::vector<Run> runs_;
  std::unique_ptr<LaunchList> step_ = std::make_unique<LaunchList>();
};

}  // namespace

DType plain_type(const Tensor& t) { return info(t.dtype).vector > 1 ? DType::i8 : t.dtype; }

int64_t common_power(int64_t most, std::initializer_list<int64_t> values) {
  for (int64_t v : values)
    while (v % most != 0) most /= 2;
  return most;
}

TileChoice::TileChoice(const TileSide& from, const TileSide& to) {
  // As much as both sides can move; what cannot move in words of 4 bytes moves element by element.
  int64_t wide = std::max(from.bytes, to.bytes), least = std::max<int64_t>(1, 4 / wide),
          most = std::clamp<int64_t>(16 / wide, 1, kLargestSquare);
  square = static_cast<int>(std::clamp(std::min(from.at_once, to.at_once), least, most));
  from_words = from.at_once >= square, to_words = to.at_once >= square;
  int squares = dev::tile_squares(static_cast<int>(wide), square), across = 16;
  if (squares == 4 * dev::kTileThreads) across = 32;
  down = squares / across;
  // Where one side is short, the other takes its place.
  if (from.run > across * square && 2 * to.run <= down * square)
    down /= 2, across *= 2;
  else if (to.run > down * square && 2 * from.run <= across * square)
    down *= 2, across /= 2;
  rows = down * square, columns = across * square;
  shared_bytes = rows * columns * to.bytes;
}

int64_t aligned_bytes(const Tensor& t, int64_t distance) {
  int64_t promised = std::max<int64_t>(t.alignment, std::min<int64_t>(8, bytes_of(t)));
  return common_power(16, {promised, distance});
}

std::string word_type(int64_t bytes) { return bytes == 16 ? "Vec<u64, 2>" : cat("u", 8 * bytes); }

Reason check_alignment(const Tensor& t) {
  if (bits_of(t) / 8 <= aligned_bytes(t, 0)) return Reason::yes();
  return Reason::no("tensor ", describe(t), " promises an alignment of ", t.alignment, " bytes; its elements need ",
                    bits_of(t) / 8);
}

Reason check_copy(const Graph& g, const Copy& c, TensorId target) {
  const Tensor &from = g.tensor(c.source), &to = g.tensor(target);
  for (const Tensor* t : {&from, &to}) {
    if (t->on_host()) return Reason::no("tensor ", describe(*t), " is a number that travels with the launch");
    if (t->ragged != kNone) return Reason::no("tensor ", describe(*t), " is ragged");
    if (t->reordering != Reordering::none) return Reason::no("tensor ", describe(*t), " is reordered");
    if (Reason why = check_alignment(*t); !why) return why;
    if (!same_type(from, to) && (is_complex(t->dtype) || bits_of(*t) < 8))
      return Reason::no("tensor ", describe(*t), " has another type than its copy, and elements of ", t->dtype,
                        " are not converted on the way");
  }
  std::vector<CopyAxis> axes = merged(c.axes);
  if (axes.size() > dev::kCopyAxes)
    return Reason::no("copying ", describe(from), " takes ", axes.size(), " axes; at most ", dev::kCopyAxes);
  if (bits_of(to) >= 8) return Reason::yes();
  if (is_empty(axes) || is_nested(axes)) return Reason::yes();
  return Reason::no("tensor ", describe(to), " packs elements into bytes, and its axes are interleaved");
}

std::unique_ptr<Step> make_copy_step(const Graph& g, const std::vector<Copy>& copies, TensorId target,
                                     const Device& d) {
  return CopyBuilder(g, target, d).build(copies);
}

}  // namespace tsr::cuda
