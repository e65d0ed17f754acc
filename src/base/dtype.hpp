// SPDX-License-Identifier: Apache-2.0
// Data types on the host: one row of facts per type, and exact conversion of single elements.
//
// Conversions to a narrower float round to nearest even. Values too large overflow as their hardware conversions do:
// f16 and bf16 to infinity; e4m3, e5m2, e5m3 and e2m1 saturate to the largest finite value, infinity too; e8m0 rounds
// up to a power of two. e5m3 has no sign: what is below 0 becomes 0; its NaN is 0xff. Conversions to integers round to
// nearest even and saturate; NaN becomes 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <span>
#include <string_view>
#include <type_traits>

#include "tessera/types.hpp"

namespace tsr {

using tessera::DType;

enum class TypeKind : uint8_t { real, integer, boolean, complex };

struct DTypeInfo {
  DType type;
  std::string_view name;
  TypeKind kind;
  int bits;            // of one scalar element
  int vector = 1;      // scalars per vector along dimension 1
  double epsilon = 0;  // distance from 1 to the next value, real and complex types
};

std::span<const DTypeInfo> dtypes();
const DTypeInfo& info(DType t);
std::optional<DType> find_dtype(std::string_view name);
inline std::string_view name(DType t) { return info(t).name; }
inline bool is_real(DType t) { return info(t).kind == TypeKind::real; }
inline bool is_integer(DType t) { return info(t).kind == TypeKind::integer; }
inline bool is_boolean(DType t) { return info(t).kind == TypeKind::boolean; }
inline bool is_complex(DType t) { return info(t).kind == TypeKind::complex; }
// Bytes that `count` consecutive elements take.
int64_t byte_size(DType t, int64_t count);

// Bit patterns of the narrow floats.
uint16_t to_f16_bits(double v);
double from_f16_bits(uint16_t b);
uint16_t to_bf16_bits(double v);
float from_bf16_bits(uint16_t b);
uint8_t to_minifloat_bits(DType t, double v);  // e4m3, e5m2, e5m3, e8m0, e2m1
double from_minifloat_bits(DType t, uint8_t b);

// Element `offset` (counted in elements) of an array. Complex values read as their real part in load<double>.
template <class T>
T load(DType t, const void* base, int64_t offset);
template <class T>
void store(DType t, void* base, int64_t offset, T value);

// What a value becomes when it is stored as `t` and read again.
double round_to(DType t, double v);

}  // namespace tsr

namespace tessera {
inline std::ostream& operator<<(std::ostream& s, DType t) { return s << tsr::name(t); }
inline void append_part(std::string& s, DType t) { s += tsr::name(t); }
}  // namespace tessera
