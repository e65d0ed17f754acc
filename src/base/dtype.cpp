// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>

#include "base/error.hpp"

namespace tsr {
namespace {

constexpr TypeKind R = TypeKind::real, I = TypeKind::integer, B = TypeKind::boolean, C = TypeKind::complex;
constexpr std::array<DTypeInfo, 21> kTable = {{
    {DType::f64, "f64", R, 64, 1, 0x1p-52},
    {DType::f32, "f32", R, 32, 1, 0x1p-23},
    {DType::f16, "f16", R, 16, 1, 0x1p-10},
    {DType::bf16, "bf16", R, 16, 1, 0x1p-7},
    {DType::e4m3, "e4m3", R, 8, 1, 0x1p-3},
    {DType::e5m2, "e5m2", R, 8, 1, 0x1p-2},
    {DType::e8m0, "e8m0", R, 8, 1, 1.0},
    {DType::e2m1, "e2m1", R, 4, 1, 0x1p-1},
    {DType::i64, "i64", I, 64},
    {DType::i32, "i32", I, 32},
    {DType::i8, "i8", I, 8},
    {DType::u8, "u8", I, 8},
    {DType::i4, "i4", I, 4},
    {DType::u4, "u4", I, 4},
    {DType::boolean, "bool", B, 8},
    {DType::bit, "bit", B, 1},
    {DType::c64, "c64", C, 64, 1, 0x1p-23},
    {DType::c128, "c128", C, 128, 1, 0x1p-52},
    {DType::i8x4, "i8x4", I, 8, 4},
    {DType::i8x32, "i8x32", I, 8, 32},
    {DType::e5m3, "e5m3", R, 8, 1, 0x1p-3},
}};

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

std::span<const DTypeInfo> dtypes() { return kTable; }
const DTypeInfo& info(DType t) { return kTable[static_cast<size_t>(t)]; }

std::optional<DType> find_dtype(std::string_view name) {
  for (const DTypeInfo& d : kTable)
    if (d.name == name) return d.type;
  return std::nullopt;
}

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
  double a = std::fabs(v);
  auto sign = [&](int bit) { return static_cast<uint8_t>(std::signbit(v) ? 1 << bit : 0); };
  switch (t) {
    case DType::e4m3:
      if (std::isnan(v)) return sign(7) | 0x7f;
      return sign(7) |
             (a >= 448 ? 0x7e : static_cast<uint8_t>(pack(std::min(round_significand(a, 3, -6), 448.0), 4, 3)));
    case DType::e5m2:
      if (std::isnan(v)) return sign(7) | 0x7f;
      return sign(7) |
             (a >= 57344 ? 0x7b : static_cast<uint8_t>(pack(std::min(round_significand(a, 2, -14), 57344.0), 5, 2)));
    case DType::e5m3:
      if (std::isnan(v)) return 0xff;
      if (!(v > 0)) return 0;
      return a >= 114688 ? 0xfe : static_cast<uint8_t>(pack(round_significand(a, 3, -14), 5, 3));
    case DType::e2m1:
      if (std::isnan(v)) return 0x7;
      return sign(3) | (a >= 6 ? 0x7 : static_cast<uint8_t>(pack(std::min(round_significand(a, 1, 0), 6.0), 2, 1)));
    case DType::e8m0: {
      if (std::isnan(v)) return 0xff;
      if (!(v > 0x1p-127)) return 0;
      if (v > 0x1p127) return 0xfe;
      int e;
      double f = std::frexp(v, &e);
      return static_cast<uint8_t>((f == 0.5 ? e - 1 : e) + 127);
    }
    default:
      fail(Status::internal_error, "to_minifloat_bits: ", t);
  }
}

double from_minifloat_bits(DType t, uint8_t b) {
  double m;
  switch (t) {
    case DType::e4m3:
      m = (b & 0x7f) == 0x7f ? NAN : unpack(b & 0x7f, 4, 3);
      return (b & 0x80) ? -m : m;
    case DType::e5m2:
      m = (b & 0x7c) == 0x7c ? ((b & 3) ? NAN : INFINITY) : unpack(b & 0x7f, 5, 2);
      return (b & 0x80) ? -m : m;
    case DType::e5m3:
      return b == 0xff ? NAN : unpack(b, 5, 3);
    case DType::e2m1:
      m = unpack(b & 7, 2, 1);
      return (b & 8) ? -m : m;
    case DType::e8m0:
      return b == 0xff ? NAN : std::ldexp(1.0, b - 127);
    default:
      fail(Status::internal_error, "from_minifloat_bits: ", t);
  }
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
    case DType::e4m3:
    case DType::e5m2:
    case DType::e5m3:
    case DType::e8m0:
      return real(from_minifloat_bits(t, read<uint8_t>(base, offset)));
    case DType::e2m1:
      return real(from_minifloat_bits(t, read_bits(base, offset, 4)));
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
  }
  return T{};
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
    case DType::e4m3:
    case DType::e5m2:
    case DType::e5m3:
    case DType::e8m0:
      return write(base, offset, to_minifloat_bits(t, re));
    case DType::e2m1:
      return write_bits(base, offset, 4, to_minifloat_bits(t, re));
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
