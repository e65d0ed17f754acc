// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/scores/boxes.hpp"

namespace tsr::cuda {

TensorBox sequence_box(const attention::Sequences& x, int64_t heads, int64_t width, int steps) {
  int64_t bytes = info(x.type).bits / 8;
  TensorBox b;
  b.rank = 4, b.element_bytes = static_cast<int>(bytes), b.swizzle = dev::Swizzle::bytes_128;
  b.dims = {width, x.dims[2], heads, x.dims[0]};
  b.strides = {x.dims[3] == 1 ? bytes : x.strides[3] * bytes, x.strides[2] * bytes, x.strides[1] * bytes,
               x.strides[0] * bytes};
  for (size_t i = 1; i < 4; ++i)
    if (b.dims[i] == 1) b.strides[i] = 16;  // never walked along
  b.box = {static_cast<int>(kChunk), steps, 1, 1};
  return b;
}

Reason check_sequence(const Graph& g, TensorId id, const char* name, int64_t width, int64_t widest) {
  const Tensor& t = g.tensor(id);
  if (t.dtype != DType::bf16 && t.dtype != DType::f16)
    return Reason::no(name, " ", describe(t), " is of ", t.dtype, ", tensor cores take bf16 and f16");
  if (t.ragged != kNone) return Reason::no(name, " ", describe(t), " is ragged");
  if (t.on_host() || t.reordering != Reordering::none)
    return Reason::no(name, " ", describe(t), " is no plain memory of the device");
  if (width % 8 != 0 || width > widest)
    return Reason::no(name, " ", describe(t), " has rows of ", width, " elements, not a multiple of 8 up to ", widest);
  if (t.numel() == 0) return Reason::no(name, " ", describe(t), " is empty");
  attention::Sequences s = attention::make_sequences(g, id);
  if (Reason why = check_box(sequence_box(s, s.dims[1], width, 1), t.stored ? t.alignment : 16); !why)
    return Reason::no(name, " ", describe(t), ": ", why.text());
  return Reason::yes();
}

}  // namespace tsr::cuda
