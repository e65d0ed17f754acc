// SPDX-License-Identifier: Apache-2.0
// NumPy files: .npy for the command line, uncompressed .npz for golden values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/dims.hpp"
#include "base/dtype.hpp"

namespace tsr {

struct NpyArray {
  Dims dims;
  std::string descr;           // NumPy's type string, "<f4"; of this machine's order, whatever the file's
  std::vector<char> bytes;     // packed, row-major
  std::vector<double> values;  // the same as numbers, for the types that golden values have
};

NpyArray parse_npy(std::string_view content, const std::string& name);
NpyArray read_npy(const std::string& path);
void write_npy(const std::string& path, const std::string& descr, const Dims& dims, const void* data, size_t bytes);

using Npz = std::map<std::string, NpyArray>;
Npz read_npz(const std::string& path);

// NumPy's type string for a data type; bf16, f8 and 4-bit types travel as their bit patterns.
std::string npy_descr(DType t);

}  // namespace tsr
