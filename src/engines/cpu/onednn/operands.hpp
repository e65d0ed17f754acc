// SPDX-License-Identifier: Apache-2.0
// Tensors as arguments of oneDNN: which it takes as they are, and copies in another type or without gaps for the rest.
#pragma once

#include "engines/cpu/onednn/sequence.hpp"

namespace tsr::onednn {

std::optional<Type> native_type(DType t);  // f32, bf16, i32, i8, u8
bool is_convertible(DType t);              // floats that have an exact f32, and 8-bit integers

// Sizes, types and layouts that no operation of this engine takes.
Reason check_tensor(const Tensor& t);

// A tensor and where it lies, perhaps a copy.
struct Operand {
  Tensor tensor;
  Place place;
  Desc desc() const;  // with the tensor's own sizes and strides
};

// No gaps and no repeated elements between the first and the last.
bool is_dense(const Tensor& t);
// The same sizes and order of dimensions in memory, without gaps, in another type.
Tensor packed(const Tensor& t, DType type);
// An activation [n, channels, ..] gets the strides of oneDNN's own layouts where it has that order in memory; sizes of
// 1 leave the choice open, which falls on channels last.
void settle_channels(Tensor& t);
// The tensor itself when it has this type (and is dense, where that is asked for), otherwise a copy.
Operand load(Sequence& s, const Graph& g, TensorId t, DType type, bool dense = false);
// Memory for a result of this type: the tensor's own when it has the type, otherwise the workspace; store() copies it.
Operand target(Sequence& s, const Graph& g, TensorId t, DType type, bool dense = false);
// The same, with the type and the order of dimensions of another tensor, without gaps.
Operand target_like(Sequence& s, const Graph& g, TensorId t, const Tensor& like);
void store(Sequence& s, const Graph& g, TensorId t, const Operand& from);

dnnl::primitive_attr attributes(const dnnl::post_ops& ops = {});

}  // namespace tsr::onednn
