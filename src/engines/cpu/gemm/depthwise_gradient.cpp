// SPDX-License-Identifier: Apache-2.0
// The gradient of the filter of a depthwise convolution. Slices of the lines of dy are summed apart, as many for any
// number of threads, and then added in order.
#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/gemm/depthwise.hpp"
#include "engines/cpu/gemm/lines.hpp"
#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {
namespace {

constexpr int64_t kLineElements = 8192;    // of dy, at a time
constexpr int64_t kTasks = 64;             // about so many
constexpr int64_t kResultElements = 4096;  // that the epilogue reads at a time

class DepthwiseGradientStep : public Step {
 public:
  DepthwiseGradientStep(const Anchored& a, const Depthwise& d)
      : d_(d),
        x_(a.graph().tensor(d.source)),
        dy_(a.graph().tensor(d.other)),
        epilogue_(a.region, a.anchor, a.epilogue, DType::f32, d.scaling, d.frame.order()),
        threads_(thread_count()),
        channels_(dy_.dims[1]),
        each_(d.channels_last ? channels_ : 1),
        planes_(channels_ / each_),
        floats_(d.channels_last ? channels_ : kMostLanes),
        axis_(d.axes.back()),
        piece_(std::clamp<int64_t>(kLineElements / each_, 1, std::max<int64_t>(1, axis_.out))),
        rows_(x_, d.axes, d.channels_last, each_, piece_),
        taps_(rows_.taps_of(axis_)),
        units_(d.images * volume(rows_.lead()) * ceil_div(axis_.out, piece_)),
        slices_(std::clamp<int64_t>(kTasks / planes_, 1, std::max<int64_t>(1, units_))),
        result_channels_(std::clamp<int64_t>(kResultElements / rows_.taps(), 1, channels_)) {}

  size_t workspace_bytes() const override {
    Pieces p(nullptr);
    p.take<float>(sums());
    return p.used() + own_bytes() * static_cast<size_t>(threads_);
  }

  void run(const StepArgs& args) const override {
    Pieces all(args.workspace);
    auto* sums = all.take<float>(this->sums());
    auto own = [&](int worker) { return args.workspace + all.used() + static_cast<size_t>(worker) * own_bytes(); };
    parallel_for(planes_ * slices_, 1, threads_, [&](int64_t first, int64_t last, int worker) {
      for (int64_t i = first; i < last; ++i) add_slice(args, i % planes_, i / planes_, sums, own(worker));
    });
    parallel_for(ceil_div(channels_, result_channels_), 1, threads_, [&](int64_t first, int64_t last, int worker) {
      for (int64_t i = first; i < last; ++i) finish(args, i * result_channels_, sums, own(worker));
    });
  }

 private:
  // What a worker has.
  struct Own {
    float* dy;
    SourceRows::Own rows;
    GradientRow* lines;
    float* results;
    std::byte* scratch;
  };
  Own take(Pieces& p) const {
    return {p.take<float>(piece_ * each_), rows_.take(p), p.take<GradientRow>(rows_.rows()),
            p.take<float>(result_channels_ * rows_.taps()),
            p.take<std::byte>(static_cast<int64_t>(epilogue_.scratch_bytes()))};
  }
  size_t own_bytes() const {
    Pieces p(nullptr);
    take(p);
    return p.used();
  }
  // [slice][plane][tap]: all channels, or a vector whose lanes are to be added.
  int64_t sums() const { return slices_ * planes_ * rows_.taps() * floats_; }

  void add_slice(const StepArgs& args, int64_t plane, int64_t slice, float* all, std::byte* memory) const {
    Pieces pieces(memory);
    Own own = take(pieces);
    float* sums = all + (slice * planes_ + plane) * rows_.taps() * floats_;
    std::fill_n(sums, rows_.taps() * floats_, 0.0f);
    int64_t parts = ceil_div(axis_.out, piece_), lines = volume(rows_.lead()), known = -1;
    for (int64_t unit = units_ * slice / slices_; unit < units_ * (slice + 1) / slices_; ++unit) {
      int64_t line = unit % lines, part = unit / lines % parts, image = unit / (lines * parts);
      if (unit / lines != known) known = unit / lines, rows_.begin(own.rows);
      Dims at = index_of(line, rows_.lead());
      Span span = {part * piece_, std::min((part + 1) * piece_, axis_.out)};
      const float* dy = read_gradient(args, plane, image, at, span, own.dy);
      int64_t offset = image * x_.strides[0] + plane / d_.multiplier * x_.strides[1];
      auto rows = rows_.find(args.tensors[d_.source], offset, at, span, own.rows);
      for (size_t i = 0; i < rows.size(); ++i) own.lines[i] = {rows[i].x, sums + rows[i].tap * floats_};
      std::span<const GradientRow> of(own.lines, rows.size());
      each_part(taps_, span, [&](size_t tap, size_t end, Span met) {
        LineTaps taps = {std::span(taps_.at).subspan(tap, end - tap), static_cast<int64_t>(tap) * floats_, floats_};
        const float* from = dy + (met.from - span.from) * each_;
        int64_t n = met.to - met.from, shift = met.from * rows_.step();
        if (d_.channels_last)
          line_kernels().channels_gradient(n, channels_, rows_.step(), shift, of, taps, from);
        else
          line_kernels().positions_gradient(n, shift, of, taps, from);
      });
    }
  }

  // A part of a line of dy as f32, in place or copied.
  const float* read_gradient(const StepArgs& args, int64_t plane, int64_t image, const Dims& at, Span span,
                             float* to) const {
    const void* base = args.tensors[d_.other];
    int64_t element = dy_.strides[dy_.rank() - 1];
    int64_t offset = image * dy_.strides[0] + plane * dy_.strides[1] + span.from * element, n = span.to - span.from;
    for (int i = 0; i < at.size(); ++i) offset += at[i] * dy_.strides[2 + i];
    bool beside = d_.channels_last ? dy_.strides[1] == 1 && element == channels_ : element == 1;
    if (dy_.dtype == DType::f32 && beside) return static_cast<const float*>(base) + offset;
    if (!d_.channels_last) cpu::kernels().load(dy_.dtype, Lane::f32, base, offset, element, to, n);
    for (int64_t p = 0; d_.channels_last && p < n; ++p)
      cpu::kernels().load(dy_.dtype, Lane::f32, base, offset + p * element, dy_.strides[1], to + p * channels_,
                          channels_);
    return to;
  }

  // Results of some channels, as [channel][tap].
  void finish(const StepArgs& args, int64_t first, const float* sums, std::byte* memory) const {
    Pieces pieces(memory);
    Own own = take(pieces);
    int64_t count = std::min(result_channels_, channels_ - first), taps = rows_.taps();
    for (int64_t c = 0; c < count; ++c)
      for (int64_t tap = 0; tap < taps; ++tap) {
        float sum = 0;
        for (int64_t s = 0; s < slices_; ++s) {
          int64_t plane = d_.channels_last ? 0 : first + c;
          const float* from = sums + ((s * planes_ + plane) * taps + tap) * floats_;
          if (d_.channels_last) sum += from[first + c];
          for (int i = 0; !d_.channels_last && i < kMostLanes; ++i) sum += from[i];
        }
        own.results[c * taps + tap] = sum;
      }
    epilogue_.run(args.tensors, first * taps, count * taps, own.results, own.scratch);
  }

  Depthwise d_;
  Tensor x_, dy_;
  Epilogue epilogue_;
  int threads_;
  int64_t channels_, each_, planes_;  // of dy; side by side
  int64_t floats_;                    // of a sum
  DepthwiseAxis axis_;
  int64_t piece_;
  SourceRows rows_;
  Taps taps_;
  int64_t units_, slices_;  // parts of lines of dy; what is summed apart
  int64_t result_channels_;
};

}  // namespace

std::unique_ptr<Step> build_depthwise_gradient(const Anchored& a, const Depthwise& d) {
  return std::make_unique<DepthwiseGradientStep>(a, d);
}

}  // namespace tsr::cpu
