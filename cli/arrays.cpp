// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"

#include <complex>
#include <cstring>

#include "graph/op.hpp"
#include "harness/npz.hpp"

namespace tsr::cli {
namespace {

bool is_one_of(const std::string& s, std::initializer_list<const char*> list) {
  return std::any_of(list.begin(), list.end(), [&](const char* item) { return s == item; });
}

bool narrow(DType t) { return info(t).bits < 8; }

// Of NumPy's floats and complex numbers.
DType plain_type(const std::string& descr) {
  for (DType t : {DType::f64, DType::f32, DType::f16, DType::c64})
    if (npy_descr(t) == descr) return t;
  return DType::c128;
}

// Element i of integers of any width.
int64_t integer_at(const NpyArray& a, int64_t i) {
  auto bytes = static_cast<size_t>(a.descr[2] - '0');
  uint64_t v = 0;
  std::memcpy(&v, a.bytes.data() + static_cast<size_t>(i) * bytes, bytes);
  bool negative = a.descr[1] == 'i' && bytes < 8 && (v >> (8 * bytes - 1)) != 0;
  return static_cast<int64_t>(negative ? v | (~uint64_t{0} << (8 * bytes)) : v);
}

std::string allowed_types(DType t) {
  if (is_complex(t)) return "complex64 or complex128";
  if (is_boolean(t)) return "bool or uint8";
  std::string bits = t == DType::bf16                  ? ", ml_dtypes' bfloat16 or uint16 bit patterns"
                     : info(t).bits <= 8 && is_real(t) ? ", ml_dtypes' type of that name or uint8 bit patterns"
                                                       : "";
  if (is_real(t)) return "float64, float32, float16" + bits;
  return narrow(t) ? "integers, bool or ml_dtypes' type of that name" : "integers or bool";
}

enum class How { none, bits, real, integer, nibble, complex };

How conversion(DType t, const std::string& descr) {
  bool floating = is_one_of(descr, {"<f8", "<f4", "<f2"}),
       whole = is_one_of(descr, {"<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1"});
  bool unnamed = info(t).bits == 16 ? descr == "<V2" : is_one_of(descr, {"|V1", "|f1"});  // as ml_dtypes saves
  if (is_complex(t)) return is_one_of(descr, {"<c8", "<c16"}) ? How::complex : How::none;
  if (is_real(t) && floating) return How::real;
  if (is_real(t) && info(t).bits <= 16 && t != DType::f16 && (npy_descr(t) == descr || unnamed)) return How::bits;
  if (is_boolean(t)) return is_one_of(descr, {"|u1", "|b1"}) ? How::integer : How::none;
  if (is_integer(t) && narrow(t) && descr == "|V1") return How::nibble;
  return is_integer(t) && whole ? How::integer : How::none;
}

// Bit patterns of one element, for the types that NumPy lacks.
void store_bits(const Tensor& t, void* data, int64_t offset, const char* from) {
  auto bytes = static_cast<size_t>(info(t.dtype).bits / 8);
  if (!narrow(t.dtype)) {
    std::memcpy(static_cast<char*>(data) + static_cast<size_t>(offset) * bytes, from, bytes);
    return;
  }
  store(t.dtype, data, offset, from_minifloat_bits(t.dtype, static_cast<uint8_t>(*from) & 15));
}

template <class F>
void each(const Tensor& t, const F& f) {
  Dims index = Dims::filled(t.rank(), 0);
  for (int64_t i = 0, n = t.numel(); i < n; ++i, next_index(index, t.dims)) f(i, t.offset(index));
}

}  // namespace

void read_array(const std::string& path, const Tensor& t, void* data) {
  NpyArray a = read_npy(path);
  auto holds = [&] { return cat("input ", describe(t), ": the file '", path, "' holds ", a.descr, " ", a.dims); };
  require(t.ragged == kNone, "input ", describe(t), " is ragged and cannot be read from a file");
  bool same = a.dims == t.dims || (t.numel() == 1 && volume(a.dims) == 1);
  require(same, holds(), "; its sizes must be ", t.dims);
  How how = conversion(t.dtype, a.descr);
  require(how != How::none, holds(), "; allowed types: ", allowed_types(t.dtype));
  DType from = plain_type(a.descr);
  auto bytes = static_cast<size_t>(std::max(info(t.dtype).bits / 8, 1));  // of bit patterns
  each(t, [&](int64_t i, int64_t offset) {
    if (how == How::bits) return store_bits(t, data, offset, a.bytes.data() + static_cast<size_t>(i) * bytes);
    if (how == How::real) return store(t.dtype, data, offset, load<double>(from, a.bytes.data(), i));
    if (how == How::complex) return store(t.dtype, data, offset, load<std::complex<double>>(from, a.bytes.data(), i));
    if (how == How::nibble) {
      int64_t low = a.bytes[static_cast<size_t>(i)] & 15;
      return store(t.dtype, data, offset, t.dtype == DType::i4 && low > 7 ? low - 16 : low);
    }
    int64_t v = integer_at(a, i);
    require(v >= 0 || a.descr != "<u8", holds(), "; a value is beyond 2^63");
    store(t.dtype, data, offset, v);
    require(load<int64_t>(t.dtype, data, offset) == v, holds(), "; its value ", v, " does not fit in ", t.dtype);
  });
}

void write_array(const std::string& path, const Tensor& t, const void* data) {
  require(t.ragged == kNone, "output ", describe(t), " is ragged and cannot be written to a file");
  auto bytes = static_cast<size_t>(narrow(t.dtype) ? 1 : info(t.dtype).bits / 8);
  std::vector<char> packed(static_cast<size_t>(t.numel()) * bytes);
  each(t, [&](int64_t i, int64_t offset) {
    char* to = packed.data() + static_cast<size_t>(i) * bytes;
    if (!narrow(t.dtype)) {
      std::memcpy(to, static_cast<const char*>(data) + static_cast<size_t>(offset) * bytes, bytes);
    } else if (is_real(t.dtype)) {
      *to = static_cast<char>(to_minifloat_bits(t.dtype, load<double>(t.dtype, data, offset)));
    } else {
      *to = static_cast<char>(load<int64_t>(t.dtype, data, offset));
    }
  });
  write_npy(path, t.dtype == DType::i4 ? "|i1" : npy_descr(t.dtype), t.dims, packed.data(), packed.size());
}

}  // namespace tsr::cli
