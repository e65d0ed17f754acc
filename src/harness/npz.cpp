// SPDX-License-Identifier: Apache-2.0
#include "harness/npz.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/error.hpp"

namespace tsr {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  require(in.good() && !std::filesystem::is_directory(path), "cannot read '", path, "'");
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
T little(std::string_view s, size_t at) {
  T v;
  std::memcpy(&v, s.data() + at, sizeof v);
  return v;
}

// The value of a key in NumPy's header dictionary, up to the next comma outside brackets.
std::string header_value(std::string_view header, std::string_view key, const std::string& name) {
  size_t at = header.find("'" + std::string(key) + "'");
  require(at != std::string_view::npos, name, ": the .npy header has no ", key);
  at = header.find(':', at) + 1;
  size_t end = at;
  for (int depth = 0; end < header.size(); ++end) {
    char c = header[end];
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (depth == 0 && (c == ',' || c == '}')) break;
  }
  return std::string(header.substr(at, end - at));
}

// The numbers of a shape, "(2, 3)".
Dims sizes_of(std::string_view shape, const std::string& name) {
  Ints sizes;
  for (size_t at = shape.find_first_of("-0123456789"); at != std::string_view::npos;
       at = shape.find_first_of("-0123456789", at)) {
    int64_t size = -1;
    auto [end, bad] = std::from_chars(shape.data() + at, shape.data() + shape.size(), size);
    require(bad == std::errc() && size >= 0, name, ": sizes", shape, " are not understood");
    sizes.push_back(size);
    at = static_cast<size_t>(end - shape.data());
  }
  require(sizes.size() <= kMaxRank, name, " has ", sizes.size(), " dimensions; a tensor has at most ", kMaxRank);
  return Dims(sizes);
}

// What golden values are made of.
std::optional<DType> type_of(const std::string& descr) {
  static const std::map<std::string, DType> kTypes = {
      {"<f8", DType::f64}, {"<f4", DType::f32},   {"<f2", DType::f16},  {"<i8", DType::i64},
      {"<i4", DType::i32}, {"|i1", DType::i8},    {"|u1", DType::u8},   {"|b1", DType::boolean},
      {"<c8", DType::c64}, {"<c16", DType::c128}, {"<u2", DType::bf16},
  };
  auto it = kTypes.find(descr);
  return it == kTypes.end() ? std::nullopt : std::optional(it->second);
}

// Bytes of an element by NumPy's type string: order, kind, bytes. Kind V is what ml_dtypes' types are saved as.
size_t element_bytes(const std::string& descr, const std::string& name) {
  bool known = descr.size() >= 3 && std::strchr("<>|=", descr[0]) && std::strchr("fiucbV", descr[1]) &&
               descr.find_first_not_of("0123456789", 2) == std::string::npos && descr.size() <= 4;
  size_t bytes = known ? std::stoul(descr.substr(2)) : 0;
  require(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16, name, ": NumPy type ", descr,
          " is not understood");
  return bytes;
}

// To this machine's order. Complex numbers are two parts.
void swap_bytes(std::vector<char>& data, size_t element, bool complex) {
  size_t part = complex ? element / 2 : element;
  for (size_t i = 0; i + part <= data.size(); i += part)
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(i), data.begin() + static_cast<std::ptrdiff_t>(i + part));
}

// From the first dimension fastest to the last.
std::vector<char> row_major(const std::vector<char>& columns, const Dims& dims, size_t element) {
  std::vector<char> rows(columns.size());
  Dims index = Dims::filled(dims.size(), 0);
  for (int64_t i = 0, n = volume(dims); i < n; ++i, next_index(index, dims)) {
    int64_t from = 0;
    for (int d = dims.size() - 1; d >= 0; --d) from = from * dims[d] + index[d];
    std::memcpy(rows.data() + static_cast<size_t>(i) * element, columns.data() + static_cast<size_t>(from) * element,
                element);
  }
  return rows;
}

}  // namespace

NpyArray parse_npy(std::string_view s, const std::string& name) {
  require(s.size() >= 12 && s.substr(0, 6) == "\x93NUMPY", name, " is not a .npy file");
  bool v1 = s[6] == 1;
  size_t length = v1 ? little<uint16_t>(s, 8) : little<uint32_t>(s, 8), start = (v1 ? 10 : 12) + length;
  require(start <= s.size(), name, ": the .npy header is truncated");
  std::string_view header = s.substr(v1 ? 10 : 12, length);
  NpyArray a;
  std::string descr = header_value(header, "descr", name);
  require(descr.find('[') == std::string::npos, name, ": NumPy's records,", descr, ", are not understood");
  a.descr = descr.substr(descr.find('\'') + 1, descr.rfind('\'') - descr.find('\'') - 1);
  bool columns = header_value(header, "fortran_order", name).find("True") != std::string::npos;
  a.dims = sizes_of(header_value(header, "shape", name), name);
  size_t element = element_bytes(a.descr, name);
  int64_t n = volume(a.dims);
  require((s.size() - start) / element >= static_cast<size_t>(n), name, ": ", s.size() - start,
          " bytes of data, sizes ", a.dims, " of ", a.descr, " need more");
  size_t bytes = static_cast<size_t>(n) * element;
  a.bytes.assign(s.begin() + static_cast<std::ptrdiff_t>(start),
                 s.begin() + static_cast<std::ptrdiff_t>(start + bytes));
  if (columns) a.bytes = row_major(a.bytes, a.dims, element);
  if (a.descr[0] == '>') swap_bytes(a.bytes, element, a.descr[1] == 'c');
  a.descr[0] = element == 1 ? '|' : '<';
  if (auto type = type_of(a.descr))
    for (int64_t i = 0; i < n; ++i) a.values.push_back(load<double>(*type, a.bytes.data(), i));
  return a;
}

NpyArray read_npy(const std::string& path) { return parse_npy(read_file(path), path); }

void write_npy(const std::string& path, const std::string& descr, const Dims& dims, const void* data, size_t bytes) {
  std::string shape = "(";
  for (int64_t d : dims) shape += std::to_string(d) + ",";
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::ofstream out(path, std::ios::binary);
  auto length = static_cast<uint16_t>(header.size());
  out.write("\x93NUMPY\x01\x00", 8);
  out.write(reinterpret_cast<const char*>(&length), 2);
  out << header;
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  out.close();
  require(out.good(), "cannot write '", path, "'");
}

Npz read_npz(const std::string& path) {
  std::string s = read_file(path);
  Npz arrays;
  for (size_t at = 0; at + 30 <= s.size() && little<uint32_t>(s, at) == 0x04034b50;) {
    require(little<uint16_t>(s, at + 8) == 0, path, " is compressed; store it with numpy.savez");
    size_t bytes = little<uint32_t>(s, at + 18), name = little<uint16_t>(s, at + 26),
           extra = little<uint16_t>(s, at + 28);
    std::string key = s.substr(at + 30, name);
    size_t start = at + 30 + name + extra;
    // numpy.savez writes zip64 sizes into the extra field (id 1: uncompressed, compressed).
    if (bytes == 0xffffffff) bytes = little<uint64_t>(s, at + 30 + name + 12);
    require(start + bytes <= s.size(), path, " is truncated");
    if (key.size() > 4 && key.substr(key.size() - 4) == ".npy") key.resize(key.size() - 4);
    arrays[key] = parse_npy(std::string_view(s).substr(start, bytes), path + ":" + key);
    at = start + bytes;
  }
  return arrays;
}

std::string npy_descr(DType t) {
  switch (t) {
    case DType::f64:
      return "<f8";
    case DType::f32:
      return "<f4";
    case DType::f16:
      return "<f2";
    case DType::bf16:
      return "<u2";
    case DType::i64:
      return "<i8";
    case DType::i32:
      return "<i4";
    case DType::i8:
    case DType::i8x4:
    case DType::i8x32:
      return "|i1";
    case DType::boolean:
      return "|b1";
    case DType::c64:
      return "<c8";
    case DType::c128:
      return "<c16";
    default:
      return "|u1";
  }
}

}  // namespace tsr
