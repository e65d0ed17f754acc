// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/scores/boxes.hpp"

namespace tsr::cuda {

TensorBox sequence_box(const attention::Sequences& x, int steps) {
  int64_t bytes = info(x.type).bits / 8;
  TensorBox b;
  b.rank = 4, b.element_bytes = static_cast<int>(bytes), b.swizzle = dev::Swizzle::bytes_128;
  b.dims = {x.dims[3], x.dims[2], x.dims[1], x.dims[0]};
  b.strides = {x.dims[3] == 1 ? bytes : x.strides[3] * bytes, x.strides[2] * bytes, x.strides[1] * bytes,
               x.strides[0] * bytes};
  for (size_t i = 1; i < 4; ++i)
    if (b.dims[i] == 1) b.strides[i] = 16;  // never walked along
  b.box = {static_cast<int>(128 / bytes), steps, 1, 1};
  return b;
}

Reason check_sequence_box(const Graph& g, const attention::Sequences& x, const TensorBox& box, const char* name) {
  const Tensor& t = g.tensor(x.id);
  Reason why = check_box(box, t.stored ? t.alignment : kMemoryAlign);
  return why ? why : Reason::no(name, " ", describe(t), ": ", why.text());
}

}  // namespace tsr::cuda
