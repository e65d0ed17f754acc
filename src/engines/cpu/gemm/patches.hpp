// SPDX-License-Identifier: Apache-2.0
// What a convolution multiplies with its filter: for every position and every tap the channels of the element that the
// tap meets there, or zeros beside the tensor. The matrix is never stored, only packed piece by piece.
#pragma once

#include "engines/cpu/product/product.hpp"
#include "engines/cpu/product/strided.hpp"
#include "planner/conv_shape.hpp"

namespace tsr::cpu {

template <class T>
class PatchOperand : public Operand<T> {
 public:
  struct Source {
    TensorId tensor;
    DType type;
    Axes batch;     // matrices: images and groups, or groups alone
    Axes images;    // that count as positions
    Axes channels;  // of one group
    Dims strides;   // of the spatial axes
  };
  // `back`: positions are those of x and taps meet elements of y, as in the gradient of x. `inner_positions`: positions
  // are the inner dimension and (tap, channel) the neighbours, as in the gradient of the filter.
  PatchOperand(const Source& s, const std::vector<ConvAxis>& axes, bool back, bool inner_positions);

  DType type() const override { return source_.type; }
  int64_t slots() const override { return source_.batch.count(); }
  int64_t slot(int64_t batch) const override { return batch; }
  void pack(void* const* tensors, int64_t slot, int64_t first, int64_t n, int64_t from, int64_t depth,
            const Panels<T>& to) const override;

 private:
  // Channels [channel, channel + count) of a tap, and on through the next taps of its line where `joined_`.
  struct Depth {
    int64_t tap, channel, count;
  };
  // Positions [first, first + count) along the last axis, from flat position `at`.
  struct Line {
    int64_t image, first, count;
    Dims lead;  // index along the other axes
  };
  template <class F>
  void each_depth(int64_t from, int64_t depth, const F& f) const;
  template <class F>
  void each_line(int64_t first, int64_t n, const F& f) const;
  // Calls f(position, count, offset) for pieces of a line: elements at even strides from `offset`, or zeros (kZeros).
  template <class F>
  void each_piece(const Line& l, int64_t tap, const F& f) const;
  // Calls f(position, positions, depth, depths, offset) for pieces of a line and of the taps of d.
  template <class F>
  void each_block(const Line& l, const Depth& d, const F& f) const;
  int64_t source_index(const ConvAxis& a, int64_t position, int64_t tap) const;  // -1: beside the tensor

  Source source_;
  std::vector<ConvAxis> axes_;
  Dims positions_, taps_;  // sizes
  bool back_, inner_positions_;
  bool joined_;   // taps of a line follow each other in memory as its channels do: few channels, packed
  int64_t step_;  // in memory, from one position to the next that is not zero
};

}  // namespace tsr::cpu
