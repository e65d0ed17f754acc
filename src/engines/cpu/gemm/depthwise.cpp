// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/depthwise.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/thread_pool.hpp"
#include "engines/cpu/gemm/lines.hpp"
#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {
namespace {

constexpr int64_t kBlockElements = 8192;  // sums that are made before the epilogue reads them

// Positions first, first + every, ... of a line, which meet taps first_tap, first_tap + taps_apart, ...; among
// themselves they have an axis without divisor.
struct Phase {
  int64_t first, every, first_tap, taps_apart;
  DepthwiseAxis axis;
  Taps taps = {};
};

std::vector<Phase> phases_of(const DepthwiseAxis& a) {
  if (a.divisor == 1) return {{0, 1, 0, 1, a}};
  std::vector<Phase> list;
  int64_t apart = a.divisor / std::gcd(a.step, a.divisor);
  for (int64_t p = 0; p < std::min(a.divisor, a.out); ++p) {
    int64_t q = 0, met = p + a.origin;  // stride is 1
    while (q < std::min(apart, a.taps) && met % a.divisor != 0) ++q, met += a.step;
    if (q == std::min(apart, a.taps)) continue;
    list.push_back({p,
                    a.divisor,
                    q,
                    apart,
                    {a.in, ceil_div(a.out - p, a.divisor), ceil_div(a.taps - q, apart), 1, 1, met / a.divisor,
                     a.step * apart / a.divisor}});
  }
  return list;
}

class DepthwiseStep : public Step {
 public:
  DepthwiseStep(const Anchored& a, const Depthwise& d)
      : d_(d),
        x_(a.graph().tensor(d.source)),
        w_(a.graph().tensor(d.other)),
        epilogue_(a.region, a.anchor, a.epilogue, DType::f32, d.scaling, d.frame.order()),
        threads_(thread_count()),
        channels_(a.out().dims[1]),
        each_(d.channels_last ? channels_ : 1),
        width_(d.axes.back().out),
        piece_(std::clamp<int64_t>(kBlockElements / each_, 1, std::max<int64_t>(1, width_))),
        rows_(x_, d.axes, d.channels_last, each_, piece_),
        lines_(volume(rows_.lead())),
        block_(std::clamp<int64_t>(kBlockElements / std::max<int64_t>(1, width_ * each_), 1,
                                   std::max<int64_t>(1, lines_))),
        phases_(phases_of(d.axes.back())) {
    for (Phase& p : phases_) p.taps = rows_.taps_of(p.axis);
  }

  size_t workspace_bytes() const override {
    Pieces p(nullptr);
    p.take<float>(rows_.taps() * channels_);
    return p.used() + own_bytes() * static_cast<size_t>(threads_);
  }

  void run(const StepArgs& args) const override {
    if (width_ * lines_ == 0) return;
    Pieces all(args.workspace);
    const float* weights = read_weights(args, all.take<float>(rows_.taps() * channels_));
    int64_t blocks = ceil_div(lines_, block_), pieces = ceil_div(width_, piece_);
    int64_t planes = d_.images * (d_.channels_last ? 1 : channels_);
    parallel_for(planes * blocks * pieces, 1, threads_, [&](int64_t first, int64_t last, int worker) {
      std::byte* own = args.workspace + all.used() + static_cast<size_t>(worker) * own_bytes();
      for (int64_t i = first; i < last; ++i) {
        int64_t from = i % pieces * piece_;
        Block b{args,
                weights,
                i / (blocks * pieces),
                i / pieces % blocks * block_,
                {from, std::min(from + piece_, width_)}};
        run_block(b, own);
      }
    });
  }

 private:
  // Positions of some lines of a plane: an image, or a channel of it.
  struct Block {
    const StepArgs& args;
    const float* weights;
    int64_t plane, line;
    Span span;
  };
  // What a worker has.
  struct Own {
    float *sums, *apart;  // apart: those of a phase
    SourceRows::Own rows;
    LineRow* lines;
    std::byte* scratch;
  };
  Own take(Pieces& p) const {
    return {p.take<float>(block_ * piece_ * each_), p.take<float>(piece_), rows_.take(p), p.take<LineRow>(rows_.rows()),
            p.take<std::byte>(static_cast<int64_t>(epilogue_.scratch_bytes()))};
  }
  size_t own_bytes() const {
    Pieces p(nullptr);
    take(p);
    return p.used();
  }

  // Weights as [tap][channel] where channels are side by side, otherwise as [channel][tap].
  const float* read_weights(const StepArgs& args, float* to) const {
    const void* base = args.tensors[d_.other];
    Dims sizes, steps;
    for (const DepthwiseAxis& a : d_.axes) sizes.push_back(a.taps), steps.push_back(w_.strides[1 + sizes.size()]);
    bool packed = steps == packed_strides(sizes) && w_.strides[0] == rows_.taps();
    if (!d_.channels_last && packed && w_.dtype == DType::f32) return static_cast<const float*>(base);
    int64_t run = d_.channels_last ? 1 : sizes[sizes.size() - 1];  // taps at a time
    if (!d_.channels_last) sizes[sizes.size() - 1] = 1;
    Dims q = Dims::filled(sizes.size(), 0);
    for (int64_t tap = 0; tap < rows_.taps(); tap += run, next_index(q, sizes)) {
      int64_t offset = 0;
      for (int i = 0; i < q.size(); ++i) offset += q[i] * steps[i];
      if (d_.channels_last)
        cpu::kernels().load(w_.dtype, Lane::f32, base, offset, w_.strides[0], to + tap * channels_, channels_);
      for (int64_t c = 0; !d_.channels_last && c < channels_; ++c)
        cpu::kernels().load(w_.dtype, Lane::f32, base, offset + c * w_.strides[0], steps[q.size() - 1],
                            to + c * rows_.taps() + tap, run);
    }
    return to;
  }

  void run_block(const Block& b, std::byte* memory) const {
    Pieces pieces(memory);
    Own own = take(pieces);
    rows_.begin(own.rows);
    int64_t count = std::min(block_, lines_ - b.line), width = (b.span.to - b.span.from) * each_;
    int64_t channel = d_.channels_last ? 0 : b.plane % channels_;
    int64_t image = d_.channels_last ? b.plane : b.plane / channels_;
    int64_t offset = image * x_.strides[0] + channel / d_.multiplier * x_.strides[1];
    const float* weights = b.weights + channel * rows_.taps();
    std::fill_n(own.sums, count * width, 0.0f);
    Dims at = index_of(b.line, rows_.lead());
    for (int64_t l = 0; l < count; ++l, next_index(at, rows_.lead())) {
      auto rows = rows_.find(b.args.tensors[d_.source], offset, at, b.span, own.rows);
      for (const Phase& p : phases_) add_phase(p, rows, weights, b.span, own, own.sums + l * width);
    }
    epilogue_.run(b.args.tensors, ((b.plane * lines_ + b.line) * width_ + b.span.from) * each_, count * width, own.sums,
                  own.scratch);
  }

  // Adds what the rows of a line contribute to those of its positions that are of a phase.
  void add_phase(const Phase& p, std::span<const SourceRows::Row> rows, const float* weights, Span span, const Own& own,
                 float* sums) const {
    Span mine = {ceil_div(std::max<int64_t>(span.from - p.first, 0), p.every),
                 ceil_div(std::max<int64_t>(span.to - p.first, 0), p.every)};
    bool together = d_.channels_last || p.every == 1;
    float* first = sums + (p.first + mine.from * p.every - span.from) * each_;
    float* to = together ? first : own.apart;
    if (!together) std::fill_n(to, mine.to - mine.from, 0.0f);
    int64_t apart = d_.channels_last ? p.every * each_ : 1;
    for (size_t i = 0; i < rows.size(); ++i) own.lines[i] = {rows[i].x, weights + (rows[i].tap + p.first_tap) * each_};
    each_part(p.taps, mine, [&](size_t tap, size_t end, Span part) {
      int64_t weight = p.taps_apart * each_;
      LineTaps taps = {std::span(p.taps.at).subspan(tap, end - tap), static_cast<int64_t>(tap) * weight, weight};
      std::span<const LineRow> lines(own.lines, rows.size());
      float* at = to + (part.from - mine.from) * apart;
      int64_t n = part.to - part.from, shift = part.from * rows_.step();
      if (d_.channels_last)
        line_kernels().channels(n, channels_, rows_.step(), apart, shift, lines, taps, at);
      else
        line_kernels().positions(n, shift, lines, taps, at);
    });
    if (!together)
      for (int64_t i = 0; i < mine.to - mine.from; ++i) first[i * p.every] = to[i];
  }

  Depthwise d_;
  Tensor x_, w_;
  Epilogue epilogue_;
  int threads_;
  int64_t channels_, each_;  // of the result; side by side
  int64_t width_, piece_;    // of a line; of it at a time
  SourceRows rows_;
  int64_t lines_, block_;  // of a plane; at a time
  std::vector<Phase> phases_;
};

}  // namespace

std::unique_ptr<Step> build_depthwise(const Anchored& a, const Depthwise& d) {
  return std::make_unique<DepthwiseStep>(a, d);
}

}  // namespace tsr::cpu
