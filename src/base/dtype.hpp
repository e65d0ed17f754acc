// SPDX-License-Identifier: Apache-2.0
// Data types on the host: one row of facts per type, and exact conversion of single elements.
//
// Conversions to a narrower float round to nearest even. Values too large overflow as their hardware conversions do:
// f16 and bf16 to infinity; minifloats saturate to the largest finite value, infinity too, and become 0 below 0 where
// they have no sign; e8m0 rounds up to a power of two. NaN of a minifloat is its highest pattern. Conversions to
// integers round to nearest even and saturate; NaN becomes 0.
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

// The bits of a float, from the highest: a sign, the exponent with a bias of half its range, the fraction.
struct FloatFormat {
  enum Highest : uint8_t { number, nan, infinity };  // infinity: with the highest exponent, before NaN
  int exponent = 0, fraction = 0;
  Highest highest = infinity;
  bool sign = true;

  constexpr int bias() const { return (1 << (exponent - 1)) - 1; }
  // Of minifloats, without the sign: all ones, the largest finite number.
  constexpr unsigned all_bits() const { return (1u << (exponent + fraction)) - 1; }
  constexpr unsigned largest_bits() const {
    return highest == number ? all_bits() : all_bits() - (highest == nan ? 1u : 1u << fraction);
  }
};

struct DTypeInfo {
  DType type;
  std::string_view name;
  TypeKind kind;
  int bits;                 // of one scalar element
  FloatFormat format = {};  // of real types; of a part of complex ones
  int vector = 1;           // scalars per vector along dimension 1

  // A float of 8 bits or fewer that has a fraction: all but e8m0.
  constexpr bool is_minifloat() const { return kind == TypeKind::real && bits <= 8 && format.fraction > 0; }
};

std::span<const DTypeInfo> dtypes();
const DTypeInfo& info(DType t);
std::optional<DType> find_dtype(std::string_view name);
inline std::string_view name(DType t) { return info(t).name; }
inline bool is_real(DType t) { return info(t).kind == TypeKind::real; }
inline bool is_integer(DType t) { return info(t).kind == TypeKind::integer; }
inline bool is_boolean(DType t) { return info(t).kind == TypeKind::boolean; }
inline bool is_complex(DType t) { return info(t).kind == TypeKind::complex; }
inline bool is_minifloat(DType t) { return info(t).is_minifloat(); }
// Of 8 bits with a sign: what products of 8-bit floats multiply. Those without are scales.
inline bool is_fp8(DType t) { return is_minifloat(t) && info(t).bits == 8 && info(t).format.sign; }
// Of a real type: the largest finite number, the least above 0, the distance from 1 to the next one.
double largest(DType t);
double smallest(DType t);
double epsilon(DType t);
// Bytes that `count` consecutive elements take.
int64_t byte_size(DType t, int64_t count);

// Bit patterns of the narrow floats.
uint16_t to_f16_bits(double v);
double from_f16_bits(uint16_t b);
uint16_t to_bf16_bits(double v);
float from_bf16_bits(uint16_t b);
uint8_t to_minifloat_bits(DType t, double v);  // of 8 bits or fewer, e8m0 too
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
