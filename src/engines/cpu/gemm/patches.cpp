// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/patches.hpp"

#include <algorithm>

namespace tsr::cpu {
namespace {

constexpr int64_t kZeros = -1;

}  // namespace

template <class T>
PatchOperand<T>::PatchOperand(const Source& s, const std::vector<ConvAxis>& axes, bool back, bool inner_positions)
    : source_(s), axes_(axes), back_(back), inner_positions_(inner_positions) {
  for (const ConvAxis& a : axes) {
    positions_.push_back(back ? a.in : a.out);
    taps_.push_back(a.taps);
  }
  const ConvAxis& last = axes.back();
  step_ = s.strides.back() * (back ? 1 : last.stride);
  int64_t tap_step = s.strides.back() * (back ? -last.step : last.step);
  joined_ = tap_step == s.channels.sizes[0] * s.channels.strides[0] && (!back || last.stride == 1);
}

template <class T>
int64_t PatchOperand<T>::source_index(const ConvAxis& a, int64_t position, int64_t tap) const {
  if (!back_) {
    int64_t place = position * a.stride + a.origin + tap * a.step;
    return place >= 0 && place < a.in ? place : kZeros;
  }
  int64_t distance = position - a.origin - tap * a.step;
  if (distance < 0 || distance % a.stride != 0 || distance / a.stride >= a.out) return kZeros;
  return distance / a.stride;
}

template <class T>
template <class F>
void PatchOperand<T>::each_depth(int64_t from, int64_t depth, const F& f) const {
  int64_t channels = source_.channels.sizes[0], row = channels * (joined_ ? taps_.back() : 1);
  for (int64_t k = 0, count; k < depth; k += count) {
    count = std::min(depth - k, row - (from + k) % row);
    f(k, Depth{(from + k) / channels, (from + k) % channels, count});
  }
}

template <class T>
template <class F>
void PatchOperand<T>::each_line(int64_t first, int64_t n, const F& f) const {
  int64_t length = positions_.back(), image = volume(positions_);
  for (int64_t i = 0, count; i < n; i += count) {
    int64_t at = (first + i) % length;
    count = std::min(n - i, length - at);
    f(i, Line{(first + i) / image, at, count, index_of((first + i) % image, positions_)});
  }
}

template <class T>
template <class F>
void PatchOperand<T>::each_piece(const Line& l, int64_t tap, const F& f) const {
  Dims q = index_of(tap, taps_);
  int last = q.size() - 1;
  int64_t offset = source_.images.offset(l.image);
  for (int i = 0; i < last; ++i) {
    int64_t index = source_index(axes_[static_cast<size_t>(i)], l.lead[i], q[i]);
    if (index == kZeros) return f(0, l.count, kZeros);
    offset += index * source_.strides[i];
  }
  const ConvAxis& a = axes_.back();
  int64_t shift = a.origin + q[last] * a.step, stride = source_.strides[last];
  if (back_ && a.stride > 1) {
    // Only every stride-th position meets an element.
    f(0, l.count, kZeros);
    for (int64_t i = 0; i < l.count; ++i)
      if (int64_t index = source_index(a, l.first + i, q[last]); index != kZeros) f(i, 1, offset + index * stride);
    return;
  }
  // Positions that meet elements are neighbours: [low, high).
  int64_t low = back_ ? shift : -floor_div(shift, a.stride),
          high = back_ ? shift + a.out : floor_div(a.in - 1 - shift, a.stride) + 1;
  low = std::clamp(low, l.first, l.first + l.count) - l.first;
  high = std::clamp(high, l.first + low, l.first + l.count) - l.first;
  if (low > 0) f(0, low, kZeros);
  if (high > low) f(low, high - low, offset + source_index(a, l.first + low, q[last]) * stride);
  if (high < l.count) f(high, l.count - high, kZeros);
}

template <class T>
template <class F>
void PatchOperand<T>::each_block(const Line& l, const Depth& d, const F& f) const {
  int64_t channels = source_.channels.sizes[0], taps = (d.channel + d.count - 1) / channels + 1;
  // Positions at which all taps meet elements: [low, high).
  int64_t low = 0, high = taps > 1 ? l.count : 0, offset = kZeros;
  for (int64_t t = 0; t < taps && low < high; ++t) {
    int64_t start = high, end = low;
    each_piece(l, d.tap + t, [&](int64_t p, int64_t count, int64_t at) {
      if (at != kZeros) start = p, end = p + count;
      if (at != kZeros && t == 0) offset = at - p * step_;
    });
    low = std::max(low, start), high = std::min(high, end);
  }
  if (low < high)
    f(low, high - low, int64_t{0}, d.count, offset + low * step_ + d.channel * source_.channels.strides[0]);
  else
    low = high = l.count;
  // The others tap by tap.
  auto border = [&](int64_t first, int64_t count) {
    Line part{l.image, l.first + first, count, l.lead};
    for (int64_t k = 0, deep; count > 0 && k < d.count; k += deep) {
      int64_t channel = (d.channel + k) % channels;
      deep = std::min(d.count - k, channels - channel);
      each_piece(part, d.tap + (d.channel + k) / channels, [&](int64_t p, int64_t n, int64_t at) {
        f(first + p, n, k, deep, at == kZeros ? kZeros : at + channel * source_.channels.strides[0]);
      });
    }
  };
  border(0, low);
  border(high, l.count - high);
}

template <class T>
void PatchOperand<T>::pack(void* const* tensors, int64_t slot, int64_t first, int64_t n, int64_t from, int64_t depth,
                           const Panels<T>& to) const {
  const void* base = tensors[source_.tensor];
  int64_t matrix = source_.batch.offset(slot), stride = source_.channels.strides[0];
  if (inner_positions_) {
    each_depth(first, n, [&](int64_t i, const Depth& d) {
      each_line(from, depth, [&](int64_t k, const Line& l) {
        each_block(l, d, [&](int64_t p, int64_t count, int64_t c, int64_t channels, int64_t offset) {
          Panels<T> part = to.from(k + p);
          if (offset == kZeros) return pack_zeros(part, i + c, channels, 0, count);
          cpu::pack<T>({source_.type, base, matrix + offset, channels, stride, count, step_}, part, i + c);
        });
      });
    });
    return;
  }
  each_depth(from, depth, [&](int64_t k, const Depth& d) {
    each_line(first, n, [&](int64_t i, const Line& l) {
      each_block(l, d, [&](int64_t p, int64_t count, int64_t c, int64_t channels, int64_t offset) {
        Panels<T> part = to.from(k + c);
        if (offset == kZeros) return pack_zeros(part, i + p, count, 0, channels);
        cpu::pack<T>({source_.type, base, matrix + offset, count, step_, channels, stride}, part, i + p);
      });
    });
  });
}

template class PatchOperand<float>;
template class PatchOperand<double>;
template class PatchOperand<Bf16>;
template class PatchOperand<Byte>;

}  // namespace tsr::cpu
