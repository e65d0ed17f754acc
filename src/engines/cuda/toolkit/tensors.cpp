// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/tensors.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "graph/ragged.hpp"

namespace tsr::cuda {

std::string device_type(DType t) {
  switch (t) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::boolean:
      return "boolean";
    default:
      return std::string(name(t));
  }
}

dev::ElementType element_type(DType t) {
  using E = dev::ElementType;
  switch (t) {
    case DType::f16:
      return E::f16;
    case DType::bf16:
      return E::bf16;
    case DType::f32:
      return E::f32;
    case DType::f64:
      return E::f64;
    case DType::e8m0:
      return E::e8m0;
    case DType::i8:
      return E::i8;
    case DType::u8:
      return E::u8;
    case DType::i32:
      return E::i32;
    case DType::i64:
      return E::i64;
    case DType::boolean:
      return E::boolean;
    default:
      if (const FloatFormat& f = info(t).format; is_minifloat(t) && info(t).bits == 8)
        return dev::element_type({f.exponent, f.fraction, static_cast<dev::Highest>(f.highest), f.sign});
      fail(Status::internal_error, "elements of type ", name(t), " reached a kernel that cannot read them");
  }
}

dev::Ragged ragged_arg(const Graph& g, const Tensor& t) {
  dev::Ragged r{};
  if (t.ragged == kNone) return r;
  int axis = ragged_axis(t);
  r.multiplier = t.ragged_multiplier;
  r.step = std::max<int64_t>(1, t.strides[axis]);
  r.steps = t.dims[axis];
  r.wide = g.tensor(t.ragged).dtype == DType::i64;
  return r;
}

dev::TensorArg tensor_arg(const Tensor& t) {
  dev::TensorArg a{};
  require(t.rank() <= dev::kMaxAxes, "a tensor of ", t.rank(), " dimensions reached a kernel that takes ",
          dev::kMaxAxes);
  for (int i = 0; i < dev::kMaxAxes; ++i) {
    a.sizes[i] = i < t.rank() ? t.dims[i] : 1;
    a.strides[i] = i < t.rank() ? t.strides[i] : 0;
  }
  return a;
}

}  // namespace tsr::cuda
