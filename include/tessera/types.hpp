// SPDX-License-Identifier: Apache-2.0
// The small types that every other public header shares: data types, status codes, the one exception.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera {

// Names in the text form are the enumerators, except `bool` for boolean (one byte) and `bit` for packed booleans.
enum class DType : uint8_t {
  f64,
  f32,
  f16,
  bf16,
  e4m3,  // 8-bit float, 4 exponent bits, no infinity
  e5m2,  // 8-bit float, 5 exponent bits
  e8m0,  // power-of-two scale
  e2m1,  // 4-bit float, two to a byte
  i64,
  i32,
  i8,
  u8,
  i4,  // two to a byte, low half first
  u4,
  boolean,  // one byte, 0 or 1
  bit,      // eight booleans to a byte, low bit first
  c64,      // complex of two f32
  c128,     // complex of two f64
  i8x4,     // i8 in groups of 4 along dimension 1
  i8x32,    // i8 in groups of 32 along dimension 1
  e5m3,     // 8-bit float without sign or infinity, 5 exponent bits: a scale
};

enum class Status {
  ok,
  bad_parameter,  // the caller's graph, tensor or argument is wrong
  not_supported,  // legal, but forbidden by the caller's own limits (engine filter, workspace, device)
  corrupt_data,   // serialised text was truncated, altered or made by another version
  out_of_memory,
  execution_failed,  // the device or its driver reported an error
  internal_error,    // a bug in Tessera
};

// Every failure is this exception. The text names the tensor, what was given and what is allowed.
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

// Types of a whole graph, where a tensor or an operation is given none of its own. What is not real (indices, truth
// values) keeps the type that its operation gives it.
struct Types {
  std::optional<DType> io = {};            // of inputs and outputs
  std::optional<DType> intermediate = {};  // of results that are not outputs
  std::optional<DType> compute = {};       // what operations compute in
};

using Ints = std::vector<int64_t>;

}  // namespace tessera
