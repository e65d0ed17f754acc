// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/source_rows.hpp"

#include <algorithm>
#include <cstdlib>

#include "base/dims.hpp"
#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {
namespace {

// Elements between the first and the last that `count` positions meet, those included.
int64_t reach(const DepthwiseAxis& a, int64_t count) {
  return ((count - 1) * a.stride + (a.taps - 1) * std::abs(a.step)) / a.divisor + 2;
}

}  // namespace

SourceRows::SourceRows(const Tensor& x, std::vector<DepthwiseAxis> axes, bool channels_last, int64_t each,
                       int64_t piece)
    : x_(x),
      axes_(std::move(axes)),
      last_(axes_.back()),
      channels_last_(channels_last),
      each_(each),
      element_(x.strides[x.rank() - 1]) {
  for (size_t i = 0; i + 1 < axes_.size(); ++i) {
    const DepthwiseAxis& a = axes_[i];
    lead_.push_back(a.out), lead_taps_.push_back(a.taps);
    slots_.push_back(std::clamp<int64_t>(reach(a, 1), 1, std::max<int64_t>(a.in, 1)));
  }
  rows_ = volume(lead_taps_);
  direct_ = x.dtype == DType::f32 && (channels_last ? x.strides[1] == 1 : last_.stride == 1 && element_ == 1);
  pitch_ = direct_ ? element_ : each;
  phases_ = channels_last ? 1 : last_.stride;
  step_ = channels_last ? last_.stride * pitch_ : 1;
  capacity_ = direct_ ? 0 : ceil_div(std::min(reach(last_, piece), last_.in + phases_), phases_) + 1;
}

SourceRows::Own SourceRows::take(Pieces& p) const {
  int64_t slots = volume(slots_);
  return {p.take<float>(slots * capacity_ * phases_ * each_), p.take<int64_t>(slots), p.take<Row>(rows_)};
}

void SourceRows::begin(const Own& own) const { std::fill_n(own.copied, volume(slots_), -1); }

std::span<const SourceRows::Row> SourceRows::find(const void* x, int64_t offset, const Dims& at, Span span,
                                                  const Own& own) const {
  size_t count = 0;
  Dims q = Dims::filled(lead_taps_.size(), 0);
  for (int64_t row = 0; row < rows_; ++row, next_index(q, lead_taps_)) {
    int64_t from = offset, slot = 0;
    bool inside = true;
    for (int i = 0; i < q.size() && inside; ++i) {
      const DepthwiseAxis& a = axes_[static_cast<size_t>(i)];
      int64_t numerator = at[i] * a.stride + a.origin + q[i] * a.step, place = floor_div(numerator, a.divisor);
      inside = place * a.divisor == numerator && place >= 0 && place < a.in;
      from += place * x_.strides[2 + i];
      slot = slot * slots_[i] + place % slots_[i];  // elements that a line meets are less than so many apart
    }
    if (!inside) continue;
    const float* found = static_cast<const float*>(x) + from;
    if (!direct_) found = copy(x, from, span, own.copies + slot * capacity_ * phases_ * each_, own.copied[slot]);
    own.rows[count++] = {found, row * last_.taps};
  }
  return {own.rows, count};
}

// The part that the positions meet, as f32. Of one channel, elements that neighbouring positions meet follow one
// another.
const float* SourceRows::copy(const void* x, int64_t offset, Span span, float* to, int64_t& known) const {
  int64_t far = (last_.taps - 1) * last_.step,
          low = span.from * last_.stride + last_.origin + std::min<int64_t>(far, 0),
          high = (span.to - 1) * last_.stride + last_.origin + std::max<int64_t>(far, 0);
  low = std::max<int64_t>(floor_div(low, last_.divisor), 0);
  high = std::min(floor_div(high, last_.divisor) + 1, last_.in);
  int64_t first = floor_div(low, phases_);
  if (known != offset) {
    known = offset;
    for (int64_t e = low; channels_last_ && e < high; ++e)
      kernels().load(x_.dtype, Lane::f32, x, offset + e * element_, x_.strides[1], to + (e - first) * each_, each_);
    for (int64_t phase = 0; !channels_last_ && phase < phases_; ++phase) {
      int64_t i = first + (first * phases_ + phase < low ? 1 : 0), n = ceil_div(high - phase, phases_) - i;
      if (n > 0)
        kernels().load(x_.dtype, Lane::f32, x, offset + (i * phases_ + phase) * element_, phases_ * element_,
                       to + phase * capacity_ + i - first, n);
    }
  }
  return to - first * each_;
}

Taps SourceRows::taps_of(const DepthwiseAxis& a) const {
  Taps taps;
  for (int64_t q = 0; q < a.taps; ++q) {
    int64_t shift = a.origin + q * a.step, from = std::clamp<int64_t>(ceil_div(-shift, a.stride), 0, a.out);
    int64_t index = floor_div(shift, phases_);
    taps.met.push_back({from, std::clamp<int64_t>(floor_div(a.in - 1 - shift, a.stride) + 1, from, a.out)});
    taps.at.push_back(channels_last_ ? shift * pitch_ : (shift - index * phases_) * capacity_ + index);
  }
  return taps;
}

}  // namespace tsr::cpu
