// SPDX-License-Identifier: Apache-2.0
// What all CUDA engines say about tensors.
#pragma once

#include <string>

#include "base/dtype.hpp"
#include "device/ragged.cuh"
#include "device/tensor.cuh"
#include "graph/graph.hpp"

namespace tsr::cuda {

// The type's name in device code (device/types.cuh).
std::string device_type(DType t);
// The same where a kernel chooses at run time (device/any.cuh); types of less than a byte and complex ones have none.
dev::ElementType element_type(DType t);
// How a tensor is ragged, if it is; the pointer is set at each launch.
dev::Ragged ragged_arg(const Graph& g, const Tensor& t);
// Sizes and strides; the pointer is set at each launch.
dev::TensorArg tensor_arg(const Tensor& t);

}  // namespace tsr::cuda
