// SPDX-License-Identifier: Apache-2.0
// The rows of a source that the taps of a depthwise convolution meet: where they lie as f32, or copies of them.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "graph/graph.hpp"

namespace tsr::cpu {

// Position p and tap q meet element (p * stride + origin + q * step) / divisor of the source, where that is a whole
// number and inside.
struct DepthwiseAxis {
  int64_t in, out, taps, stride, divisor, origin, step;
};

// Hands out parts of a piece of memory, or counts the bytes of them.
class Pieces {
 public:
  explicit Pieces(std::byte* at) : at_(at) {}
  template <class T>
  T* take(int64_t count) {
    auto* p = reinterpret_cast<T*>(at_ + used_);
    used_ += (static_cast<size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return p;
  }
  size_t used() const { return used_; }

 private:
  std::byte* at_;
  size_t used_ = 0;
};

// Positions along the last axis.
struct Span {
  int64_t from, to;
};

// Taps along the last axis: the positions that meet elements with each, and which element of a row the first position
// would meet.
struct Taps {
  std::vector<Span> met;
  std::vector<int64_t> at;
};

class SourceRows {
 public:
  // Channels that lie side by side are `each` elements of a row, otherwise it has one channel. No more than `piece`
  // positions of a line are asked for at a time.
  SourceRows(const Tensor& x, std::vector<DepthwiseAxis> axes, bool channels_last, int64_t each, int64_t piece);

  struct Row {
    const float* x;  // where the elements would begin
    int64_t tap;     // its first
  };
  // What a worker has: copies, what each of them is of, and the rows of a line.
  struct Own {
    float* copies;
    int64_t* copied;
    Row* rows;
  };
  Own take(Pieces& p) const;
  // Before positions of other lines are asked for: neighbouring lines share copies.
  void begin(const Own& own) const;
  // Rows that taps of the line `at` (indices along all axes but the last) meet, of the channel that begins at `offset`.
  std::span<const Row> find(const void* x, int64_t offset, const Dims& at, Span span, const Own& own) const;
  // Those of the last axis, or of one of its phases, which has no divisor.
  Taps taps_of(const DepthwiseAxis& a) const;
  // From what one position meets to what the next does.
  int64_t step() const { return step_; }

  const Dims& lead() const { return lead_; }  // positions along all axes but the last
  int64_t rows() const { return rows_; }      // that a line can meet
  int64_t taps() const { return rows_ * last_.taps; }

 private:
  const float* copy(const void* x, int64_t offset, Span span, float* to, int64_t& known) const;

  Tensor x_;
  std::vector<DepthwiseAxis> axes_;
  DepthwiseAxis last_;
  bool channels_last_, direct_;  // direct: rows are read where they are
  int64_t each_, element_;       // in memory, from one element of a row to the next
  int64_t pitch_, phases_, capacity_, step_;
  Dims lead_, lead_taps_, slots_;
  int64_t rows_;
};

// Calls f(first tap, end, positions) for parts of a span so that each tap is there once for every position where it
// meets an element. Where all do, and along borders where most do, taps come together.
template <class F>
void each_part(const Taps& taps, Span span, const F& f) {
  constexpr int64_t kBorder = 16;
  const std::vector<Span>& met = taps.met;
  if (met.empty()) return;
  Span first = met.front(), last = met.back();
  int64_t low = std::clamp(std::max(first.from, last.from), span.from, span.to),
          high = std::clamp(std::min(first.to, last.to), span.from, span.to);
  if (low >= high) low = high = span.to;
  auto border = [&](Span s) {
    size_t all = 0, begin = 0;  // taps that meet elements everywhere follow one another
    for (size_t tap = 0; tap < met.size(); ++tap) {
      Span m = met[tap];
      if (m.from <= s.from && m.to >= s.to) {
        if (all++ == 0) begin = tap;
        continue;
      }
      Span part = {std::max(m.from, s.from), std::min(m.to, s.to)};
      if (part.from < part.to) f(tap, tap + 1, part);
    }
    if (all > 0) f(begin, begin + all, s);
  };
  for (int64_t at = span.from; at < low; at += kBorder) border({at, std::min(at + kBorder, low)});
  if (low < high) f(size_t{0}, met.size(), Span{low, high});
  for (int64_t at = high; at < span.to; at += kBorder) border({at, std::min(at + kBorder, span.to)});
}

}  // namespace tsr::cpu
