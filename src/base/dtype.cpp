// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>

#include "base/dtype_table.hpp"
#include "base/error.hpp"

namespace tsr {
namespace {

constexpr bool in_order() {
  for (size_t i = 0; i < std::size(kDTypes); ++i)
    if (kDTypes[i].type != static_cast<DType>(i)) return false;
  return true;
}
static_assert(in_order(), "info() finds types by their places");

// Rounds a finite positive value to `mantissa` bits, with `min_exponent` the exponent of the smallest normal.
double round_significand(double v, int mantissa, int min_exponent) {
  int e;
  std::frexp(v, &e);  // v = f * 2^e, f in [0.5, 1)
  int exponent = std::max(e - 1, min_exponent);
  double unit = std::ldexp(1.0, exponent - mantissa);
  return std::nearbyint(v / unit) * unit;
}

// An IEEE-like layout with `ebits` exponent and `mbits` mantissa bits; v must be a rounded, representable magnitude.
uint32_t pack(double v, int ebits, int mbits) {
  int bias = (1 << (ebits - 1)) - 1, e;
  if (v == 0) return 0;
  std::frexp(v, &e);
  int exponent = e - 1;
  if (exponent < 1 - bias) return static_cast<uint32_t>(std::ldexp(v, bias - 1 + mbits));  // subnormal
  auto fraction = static_cast<uint32_t>(std::ldexp(v, mbits - exponent)) - (1u << mbits);
  return (static_cast<uint32_t>(exponent + bias) << mbits) | fraction;
}

double unpack(uint32_t b, int ebits, int mbits) {
  int bias = (1 << (ebits - 1)) - 1;
  uint32_t fraction = b & ((1u << mbits) - 1), exponent = b >> mbits;
  if (exponent == 0) return std::ldexp(fraction, 1 - bias - mbits);
  return std::ldexp(fraction + (1u << mbits), static_cast<int>(exponent) - bias - mbits);
}

// e8m0: the power of two from v on.
uint8_t to_power(double v) {
  if (std::isnan(v)) return 0xff;
  if (!(v > 0x1p-127)) return 0;
  if (v > 0x1p127) return 0xfe;
  int e;
  double f = std::frexp(v, &e);
  return static_cast<uint8_t>((f == 0.5 ? e - 1 : e) + 127);
}

template <class U>
U read(const void* base, int64_t offset) {
  U v;
  std::memcpy(&v, static_cast<const char*>(base) + offset * static_cast<int64_t>(sizeof(U)), sizeof(U));
  return v;
}

template <class U>
void write(void* base, int64_t offset, U v) {
  std::memcpy(static_cast<char*>(base) + offset * static_cast<int64_t>(sizeof(U)), &v, sizeof(U));
}

uint8_t read_bits(const void* base, int64_t offset, int bits) {
  int64_t first = offset * bits;
  return static_cast<uint8_t>((static_cast<const uint8_t*>(base)[first >> 3] >> (first & 7)) & ((1 << bits) - 1));
}

void write_bits(void* base, int64_t offset, int bits, unsigned value) {
  int64_t first = offset * bits;
  uint8_t& byte = static_cast<uint8_t*>(base)[first >> 3];
  unsigned mask = ((1u << bits) - 1) << (first & 7);
  byte = static_cast<uint8_t>((byte & ~mask) | ((value << (first & 7)) & mask));
}

template <class T>
int64_t to_integer(T v, int64_t lo, int64_t hi) {
  if constexpr (std::is_integral_v<T>) {
    return v < lo ? lo : v > hi ? hi : v;
  } else {
    double r = std::nearbyint(static_cast<double>(v));
    if (std::isnan(r)) return 0;
    if (r <= static_cast<double>(lo)) return lo;
    if (r >= static_cast<double>(hi)) return hi;
    return static_cast<int64_t>(r);
  }
}

template <class T>
double real_part(T v) {
  if constexpr (std::is_same_v<T, std::complex<double>>)
    return v.real();
  else
    return static_cast<double>(v);
}

}  // namespace

std::span<const DTypeInfo> dtypes() { return kDTypes; }
const DTypeInfo& info(DType t) { return kDTypes[static_cast<size_t>(t)]; }

std::optional<DType> find_dtype(std::string_view name) {
  for (const DTypeInfo& d : kDTypes)
    if (d.name == name) return d.type;
  return std::nullopt;
}

double largest(DType t) {
  const DTypeInfo& i = info(t);
  if (i.bits <= 8) return from_minifloat_bits(t, static_cast<uint8_t>(i.format.largest_bits()));
  return (2 - epsilon(t)) * std::ldexp(1.0, i.format.bias());
}

double smallest(DType t) {
  const DTypeInfo& i = info(t);
  if (i.bits <= 8) return from_minifloat_bits(t, i.is_minifloat() ? 1 : 0);
  return std::ldexp(1.0, 1 - i.format.bias() - i.format.fraction);
}

double epsilon(DType t) { return is_real(t) || is_complex(t) ? std::ldexp(1.0, -info(t).format.fraction) : 0; }

int64_t byte_size(DType t, int64_t count) {
  int64_t bits = info(t).bits;
  if (bits >= 8) {
    int64_t bytes;
    require(!__builtin_mul_overflow(count, bits / 8, &bytes), "a tensor of ", count, " elements of ", t,
            " exceeds 2^63 bytes");
    return bytes;
  }
  int64_t per_byte = 8 / bits;
  return count / per_byte + (count % per_byte != 0);
}

uint16_t to_f16_bits(double v) {
  uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isnan(v)) return sign | 0x7e00;
  double r = std::isinf(v) ? v : round_significand(std::fabs(v), 10, -14);
  if (std::fabs(r) > 65504) return sign | 0x7c00;
  return static_cast<uint16_t>(sign | pack(std::fabs(r), 5, 10));
}

double from_f16_bits(uint16_t b) {
  double m = (b & 0x7c00) == 0x7c00 ? ((b & 0x3ff) ? NAN : INFINITY) : unpack(b & 0x7fff, 5, 10);
  return (b & 0x8000) ? -m : m;
}

uint16_t to_bf16_bits(double v) {
  uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isnan(v)) return sign | 0x7fc0;
  if (std::isinf(v)) return sign | 0x7f80;
  double r = round_significand(std::fabs(v), 7, -126);
  if (r >= 0x1p128) return sign | 0x7f80;
  return static_cast<uint16_t>(sign | pack(r, 8, 7));
}

float from_bf16_bits(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

uint8_t to_minifloat_bits(DType t, double v) {
  const FloatFormat& f = info(t).format;
  if (f.fraction == 0) return to_power(v);
  unsigned sign = f.sign && std::signbit(v) ? f.all_bits() + 1 : 0;
  if (std::isnan(v))
    return static_cast<uint8_t>(f.highest == FloatFormat::number ? f.largest_bits() : sign | f.all_bits());
  if (!f.sign && !(v > 0)) return 0;
  constexpr double kHuge = 0x1p200;  // beyond all of them
  double rounded = round_significand(std::min(std::fabs(v), kHuge), f.fraction, 1 - f.bias());
  return static_cast<uint8_t>(sign | std::min(pack(rounded, f.exponent, f.fraction), f.largest_bits()));
}

double from_minifloat_bits(DType t, uint8_t b) {
  const FloatFormat& f = info(t).format;
  if (f.fraction == 0) return b == 0xff ? NAN : std::ldexp(1.0, b - 127);
  unsigned magnitude = b & f.all_bits();
  bool special = magnitude > f.largest_bits();
  double m = !special ? unpack(magnitude, f.exponent, f.fraction)
             : f.highest == FloatFormat::infinity && magnitude == f.largest_bits() + 1 ? INFINITY
                                                                                       : NAN;
  return f.sign && b > f.all_bits() ? -m : m;
}

template <class T>
T load(DType t, const void* base, int64_t offset) {
  auto real = [](double v) {
    if constexpr (std::is_same_v<T, int64_t>)
      return to_integer(v, INT64_MIN, INT64_MAX);
    else
      return static_cast<T>(v);
  };
  auto integer = [](int64_t v) {
    if constexpr (std::is_same_v<T, std::complex<double>>)
      return T(static_cast<double>(v));
    else
      return static_cast<T>(v);
  };
  switch (t) {
    case DType::f64:
      return real(read<double>(base, offset));
    case DType::f32:
      return real(read<float>(base, offset));
    case DType::f16:
      return real(from_f16_bits(read<uint16_t>(base, offset)));
    case DType::bf16:
      return real(from_bf16_bits(read<uint16_t>(base, offset)));
    case DType::i64:
      return integer(read<int64_t>(base, offset));
    case DType::i32:
      return integer(read<int32_t>(base, offset));
    case DType::i8:
    case DType::i8x4:
    case DType::i8x32:
      return integer(read<int8_t>(base, offset));
    case DType::u8:
      return integer(read<uint8_t>(base, offset));
    case DType::i4:
      return integer(static_cast<int8_t>(read_bits(base, offset, 4) << 4) >> 4);
    case DType::u4:
      return integer(read_bits(base, offset, 4));
    case DType::boolean:
      return integer(read<uint8_t>(base, offset) != 0);
    case DType::bit:
      return integer(read_bits(base, offset, 1));
    case DType::c64: {
      double re = read<float>(base, 2 * offset), im = read<float>(base, 2 * offset + 1);
      if constexpr (std::is_same_v<T, std::complex<double>>)
        return {re, im};
      else
        return (void)im, real(re);
    }
    case DType::c128: {
      double re = read<double>(base, 2 * offset), im = read<double>(base, 2 * offset + 1);
      if constexpr (std::is_same_v<T, std::complex<double>>)
        return {re, im};
      else
        return (void)im, real(re);
    }
    default:
      return real(from_minifloat_bits(t, read_bits(base, offset, info(t).bits)));
  }
}

template <class T>
void store(DType t, void* base, int64_t offset, T value) {
  auto integer = [&](int64_t lo, int64_t hi) {
    if constexpr (std::is_same_v<T, std::complex<double>>)
      return to_integer(value.real(), lo, hi);
    else
      return to_integer(value, lo, hi);
  };
  double re = real_part(value), im = 0;
  if constexpr (std::is_same_v<T, std::complex<double>>) im = value.imag();
  bool truth = value != T{};
  switch (t) {
    case DType::f64:
      return write(base, offset, re);
    case DType::f32:
      return write(base, offset, static_cast<float>(re));
    case DType::f16:
      return write(base, offset, to_f16_bits(re));
    case DType::bf16:
      return write(base, offset, to_bf16_bits(re));
    case DType::i64:
      return write(base, offset, integer(INT64_MIN, INT64_MAX));
    case DType::i32:
      return write(base, offset, static_cast<int32_t>(integer(INT32_MIN, INT32_MAX)));
    case DType::i8:
    case DType::i8x4:
    case DType::i8x32:
      return write(base, offset, static_cast<int8_t>(integer(-128, 127)));
    case DType::u8:
      return write(base, offset, static_cast<uint8_t>(integer(0, 255)));
    case DType::i4:
      return write_bits(base, offset, 4, static_cast<unsigned>(integer(-8, 7)) & 15);
    case DType::u4:
      return write_bits(base, offset, 4, static_cast<unsigned>(integer(0, 15)));
    case DType::boolean:
      return write(base, offset, static_cast<uint8_t>(truth));
    case DType::bit:
      return write_bits(base, offset, 1, truth);
    case DType::c64:
      write(base, 2 * offset, static_cast<float>(re));
      return write(base, 2 * offset + 1, static_cast<float>(im));
    case DType::c128:
      write(base, 2 * offset, re);
      return write(base, 2 * offset + 1, im);
    default:
      return write_bits(base, offset, info(t).bits, to_minifloat_bits(t, re));
  }
}

template double load<double>(DType, const void*, int64_t);
template float load<float>(DType, const void*, int64_t);
template int64_t load<int64_t>(DType, const void*, int64_t);
template std::complex<double> load<std::complex<double>>(DType, const void*, int64_t);
template void store<double>(DType, void*, int64_t, double);
template void store<float>(DType, void*, int64_t, float);
template void store<int64_t>(DType, void*, int64_t, int64_t);
template void store<std::complex<double>>(DType, void*, int64_t, std::complex<double>);

double round_to(DType t, double v) {
  alignas(16) unsigned char cell[16] = {};
  store(t, cell, 0, v);
  return load<double>(t, cell, 0);
}

}  // namespace tsr
