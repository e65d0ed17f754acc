// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/tensors.hpp"

#include "base/error.hpp"

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

bool lies_on_host(const Tensor& t) { return t.by_value || (t.is_constant() && t.numel() == 1); }

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
