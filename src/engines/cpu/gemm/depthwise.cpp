// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/depthwise.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "engines/cpu/gemm/lines.hpp"
#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {
namespace {

constexpr int64_t kBlockElements = 8192;  // sums that are made before the epilogue reads them

size_t aligned(int64_t floats) { return (static_cast<size_t>(floats) * sizeof(float) + 255) / 256 * 256; }

class DepthwiseStep : public Step {
 public:
  DepthwiseStep(const Anchored& a, const Depthwise& d)
      : d_(d),
        x_(a.graph().tensor(d.source)),
        w_(a.graph().tensor(d.weight)),
        epilogue_(a.region, a.anchor, a.epilogue, DType::f32, d.scaling, d.frame.order()),
        threads_(thread_count()),
        channels_(a.out().dims[1]),
        width_(d.axes.back().out) {
    for (size_t i = 0; i + 1 < d.axes.size(); ++i) lead_.push_back(d.axes[i].out);
    for (const ConvAxis& axis : d.axes) taps_.push_back(axis.taps);
    lines_ = volume(lead_);
    line_ = width_ * (d.channels_last ? channels_ : 1);
    block_ = std::clamp<int64_t>(kBlockElements / std::max<int64_t>(1, line_), 1, std::max<int64_t>(1, lines_));
    row_ = d.axes.back().in * (d.channels_last ? channels_ : 1);
  }

  size_t workspace_bytes() const override {
    return aligned(volume(taps_) * channels_) + worker_bytes() * static_cast<size_t>(threads_);
  }

  void run(const StepArgs& args) const override {
    if (line_ * lines_ == 0) return;
    auto* weights = reinterpret_cast<float*>(args.workspace);
    read_weights(args, weights);
    int64_t blocks = (lines_ + block_ - 1) / block_, planes = d_.images * (d_.channels_last ? 1 : channels_);
    parallel_for(planes * blocks, 1, threads_, [&](int64_t first, int64_t last, int worker) {
      std::byte* own =
          args.workspace + aligned(volume(taps_) * channels_) + static_cast<size_t>(worker) * worker_bytes();
      for (int64_t i = first; i < last; ++i) run_block(args, weights, i / blocks, i % blocks * block_, own);
    });
  }

 private:
  size_t worker_bytes() const { return aligned(block_ * line_) + aligned(row_) + epilogue_.scratch_bytes(); }

  // [tap][channel]
  void read_weights(const StepArgs& args, float* to) const {
    Dims q = Dims::filled(taps_.size(), 0);
    for (int64_t tap = 0; tap < volume(taps_); ++tap, next_index(q, taps_)) {
      int64_t offset = 0;
      for (int i = 0; i < q.size(); ++i) offset += q[i] * w_.strides[2 + i];
      cpu::kernels().load(w_.dtype, Lane::f32, args.tensors[d_.weight], offset, w_.strides[0], to + tap * channels_,
                          channels_);
    }
  }

  // Lines [first, first + block) of a plane: an image, or a channel of it.
  void run_block(const StepArgs& args, const float* weights, int64_t plane, int64_t first, std::byte* own) const {
    auto* sums = reinterpret_cast<float*>(own);
    auto* row = reinterpret_cast<float*>(own + aligned(block_ * line_));
    int64_t count = std::min(block_, lines_ - first);
    std::fill_n(sums, count * line_, 0.0f);
    for (int64_t l = 0; l < count; ++l) {
      Dims at = lead_;
      for (int64_t i = lead_.size() - 1, flat = first + l; i >= 0; --i) {
        at[static_cast<int>(i)] = flat % lead_[static_cast<int>(i)];
        flat /= lead_[static_cast<int>(i)];
      }
      run_line(args, weights, plane, at, row, sums + l * line_);
    }
    epilogue_.run(args.tensors, (plane * lines_ + first) * line_, count * line_, sums,
                  own + aligned(block_ * line_) + aligned(row_));
  }

  void run_line(const StepArgs& args, const float* weights, int64_t plane, const Dims& at, float* row,
                float* sums) const {
    int last = taps_.size() - 1;
    Dims q = Dims::filled(taps_.size(), 0);
    int64_t channel = d_.channels_last ? 0 : plane % channels_, image = d_.channels_last ? plane : plane / channels_;
    for (int64_t tap = 0; tap < volume(taps_); tap += taps_[last]) {
      // Taps along the last axis meet the same row of the source.
      int64_t offset = image * x_.strides[0] + channel / d_.multiplier * x_.strides[1];
      bool inside = true;
      for (int i = 0; i < last; ++i) {
        const ConvAxis& a = d_.axes[static_cast<size_t>(i)];
        int64_t place = at[i] * a.stride + a.origin + q[i] * a.step;
        inside = inside && place >= 0 && place < a.in;
        offset += place * x_.strides[2 + i];
      }
      if (inside) run_row(args, weights + tap * channels_ + channel, offset, row, sums);
      for (int i = last - 1; i >= 0 && ++q[i] == taps_[i]; --i) q[i] = 0;
    }
  }

  // Adds what one row of the source contributes, `offset` being its first element.
  void run_row(const StepArgs& args, const float* weights, int64_t offset, float* row, float* sums) const {
    const ConvAxis& a = d_.axes.back();
    int64_t step = x_.strides[1 + taps_.size()], each = d_.channels_last ? channels_ : 1;
    const void* base = args.tensors[d_.source];
    const float* x = row;
    if (x_.dtype == DType::f32 && (d_.channels_last ? x_.strides[1] == 1 : true)) {
      x = static_cast<const float*>(base) + offset;
    } else if (d_.channels_last) {
      for (int64_t i = 0; i < a.in; ++i)
        cpu::kernels().load(x_.dtype, Lane::f32, base, offset + i * step, x_.strides[1], row + i * channels_,
                            channels_);
      step = each;
    } else {
      cpu::kernels().load(x_.dtype, Lane::f32, base, offset, step, row, a.in);
      step = 1;
    }
    for (int64_t tap = 0; tap < a.taps; ++tap) {
      // Positions [low, high) meet elements of the row.
      int64_t shift = a.origin + tap * a.step, low = 0, high = a.out;
      while (low < high && low * a.stride + shift < 0) ++low;
      while (low < high && (high - 1) * a.stride + shift >= a.in) --high;
      if (low == high) continue;
      const float *from = x + (low * a.stride + shift) * step, *w = weights + tap * channels_;
      if (!d_.channels_last) {
        line_kernels().positions(high - low, from, a.stride * step, *w, sums + low);
        continue;
      }
      for (int64_t p = low; p < high; ++p, from += a.stride * step)
        line_kernels().channels(channels_, from, w, sums + p * channels_);
    }
  }

  Depthwise d_;
  Tensor x_, w_;
  Epilogue epilogue_;
  int threads_;
  int64_t channels_, width_, lines_, line_, block_, row_;
  Dims lead_, taps_;
};

}  // namespace

std::unique_ptr<Step> build_depthwise(const Anchored& a, const Depthwise& d) {
  return std::make_unique<DepthwiseStep>(a, d);
}

}  // namespace tsr::cpu
