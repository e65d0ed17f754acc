// SPDX-License-Identifier: Apache-2.0
// Tensors in and out of NumPy files. bf16 travels as uint16 and the 8-bit floats as uint8 bit patterns; 4-bit types and
// packed booleans take one uint8 for each element. Files that ml_dtypes' types were saved to are read, too: NumPy marks
// them as V2 and V1, bytes of an unknown kind.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace tsr::cli {

// Copies a .npy file into a tensor's memory. Floats become any real type; integers become any integer type that holds
// them. Raises an error that names the tensor, what the file holds and what is allowed.
void read_array(const std::string& path, const Tensor& t, void* data);
// Writes a tensor row-major, whatever its strides.
void write_array(const std::string& path, const Tensor& t, const void* data);

}  // namespace tsr::cli
