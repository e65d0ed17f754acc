// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/philox.hpp"
#include "base/thread_pool.hpp"
#include "engines/cpu/product/tile.hpp"
#include "engines/cpu/rnn/passes.hpp"
#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {

using tessera::RnnLayout;

const void* RnnMemory::weight(int64_t offset) const {
  const RnnTensor& w = n.t_.weight;
  return static_cast<const std::byte*>(tensors[w.id]) + byte_size(w.type, offset * w.strides[0]);
}

void RnnMemory::read_lengths() {
  const RnnTensor& t = n.t_.lengths;
  int64_t* lengths = integers(n.lengths_);
  int64_t total = 0;
  for (int64_t b = 0; b < n.batch_; ++b) {
    lengths[b] = t.id == kNone ? n.steps_ : load<int64_t>(t.type, tensors[t.id], b * t.strides[0]);
    require(lengths[b] >= 0 && lengths[b] <= n.steps_, "seq_lengths[", b, "] = ", lengths[b], " is not in 0..",
            n.steps_);
    require(!n.o_.packed || b == 0 || lengths[b] <= lengths[b - 1], "seq_lengths of packed sequences must not grow, [",
            b, "] does");
    total += lengths[b];
  }
  require(!n.o_.packed || total == n.rows_, "seq_lengths add up to ", total, ", the packed sequences have ", n.rows_,
          " steps");
  steps_ = !n.o_.packed ? n.steps_ : n.batch_ > 0 ? lengths[0] : 0;
  int64_t* starts = integers(n.starts_);
  int64_t valid = n.batch_;
  starts[0] = 0;
  for (int64_t s = 0; s < steps_; ++s) {
    while (n.o_.packed && valid > 0 && lengths[valid - 1] <= s) --valid;
    starts[s + 1] = starts[s] + valid;
  }
}

int64_t RnnMemory::tensor_row(const RnnTensor& t, int64_t step, int64_t b) const {
  if (n.o_.packed) return (start(step) + b) * t.strides[0];
  bool batch_major = n.o_.layout == RnnLayout::batch_major;
  return step * t.strides[batch_major ? 1 : 0] + b * t.strides[batch_major ? 0 : 1];
}

void RnnMemory::read_sequence(const RnnTensor& t, size_t to) const {
  int64_t width = t.dims.back();
  parallel_for(steps_, 1, n.threads_, [&](int64_t first, int64_t last, int) {
    for (int64_t s = first; s < last; ++s)
      for (int64_t b = 0; b < count(s); ++b) {
        float* row = at(to) + (start(s) + b) * width;
        if (s < length(b))
          kernels().load(t.type, Lane::f32, tensors[t.id], tensor_row(t, s, b), t.strides.back(), row, width);
        else
          std::fill_n(row, width, 0.0f);
      }
  });
}

void RnnMemory::write_sequence(const RnnTensor& t, size_t from) const {
  if (t.id == kNone) return;
  int64_t width = t.dims.back();
  parallel_for(steps_, 1, n.threads_, [&](int64_t first, int64_t last, int) {
    for (int64_t s = first; s < last; ++s)
      for (int64_t b = 0; b < count(s); ++b)
        kernels().store(t.type, Lane::f32, at(from) + (start(s) + b) * width, tensors[t.id], tensor_row(t, s, b),
                        t.strides.back(), width);
  });
}

void RnnMemory::read_state(const RnnTensor& t, int64_t state, int64_t width, size_t to) const {
  for (int64_t b = 0; b < n.batch_; ++b) {
    float* row = at(to) + b * width;
    if (t.id == kNone)
      std::fill_n(row, width, 0.0f);
    else
      kernels().load(t.type, Lane::f32, tensors[t.id], state * t.strides[0] + b * t.strides[1], t.strides[2], row,
                     width);
  }
}

void RnnMemory::write_state(const RnnTensor& t, int64_t state, int64_t width, size_t from) const {
  if (t.id == kNone) return;
  for (int64_t b = 0; b < n.batch_; ++b)
    kernels().store(t.type, Lane::f32, at(from) + b * width, tensors[t.id], state * t.strides[0] + b * t.strides[1],
                    t.strides[2], width);
}

void RnnMemory::drop(int64_t layer, size_t rows) const {
  const auto& o = n.o_;
  if (o.phase == tessera::Phase::inference || o.dropout == 0) return;
  int64_t width = n.w_.inputs(layer + 1), all = steps_ * n.batch_ * width;
  auto scale = 1 / (1 - static_cast<float>(o.dropout));
  parallel_for(steps_, 1, n.threads_, [&](int64_t first, int64_t last, int) {
    for (int64_t s = first; s < last; ++s)
      for (int64_t b = 0; b < count(s); ++b) {
        float* row = at(rows) + (start(s) + b) * width;
        // Elements are counted over the padded form.
        int64_t index = layer * all + (s * n.batch_ + b) * width;
        for (int64_t j = 0; j < width; ++j) {
          auto word = random_word(static_cast<uint64_t>(o.seed), 0, static_cast<uint64_t>(index + j));
          row[j] *= bernoulli(word, 1 - o.dropout) ? scale : 0.0f;
        }
      }
  });
}

void RnnMemory::multiply(int64_t rows, int64_t columns, int64_t depth, size_t left, const float* right, float* c,
                         int64_t stride, bool add) const {
  constexpr int64_t kDepth = 512;  // a panel of the right side stays in the second cache
  const Tile& t = tile();
  for (int64_t k = 0; k < depth; k += kDepth)
    for (int64_t i = 0; i < rows; i += t.rows)
      t.multiply(std::min(t.rows, rows - i), columns, std::min(kDepth, depth - k), at(left) + i * depth + k * t.rows,
                 t.rows, right + k * t.columns, t.columns, c + i * stride, stride, add || k > 0);
}

void RnnMemory::pack_left(const float* rows, int64_t stride, int64_t count, int64_t first, int64_t columns,
                          int64_t depth, size_t to) const {
  int64_t width = tile().rows;
  pack<float>({DType::f32, rows, first, count, stride, columns, 1}, {at(to) + first * width, width, depth * width}, 0);
}

void RnnMemory::pack_right(int64_t offset, int64_t columns, int64_t stride, int64_t depth, int64_t inner,
                           size_t to) const {
  int64_t width = tile().columns, step = n.t_.weight.strides[0];
  const void* base = weight(offset);
  parallel_for((columns + width - 1) / width, 1, n.threads_, [&](int64_t first, int64_t last, int) {
    for (int64_t p = first; p < last; ++p)
      pack<float>({n.t_.weight.type, base, p * width * stride * step, std::min(width, columns - p * width),
                   stride * step, depth, inner * step},
                  {at(to) + p * depth * width, width, depth * width}, 0);
  });
}

}  // namespace tsr::cpu
