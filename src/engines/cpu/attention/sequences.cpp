// SPDX-License-Identifier: Apache-2.0
// Rows of q, k, v and results in memory: strides, ragged and paged sequences, types and block scales.
#include <algorithm>
#include <array>
#include <cstring>

#include "engines/cpu/attention/problem.hpp"
#include "engines/cpu/attention/vectors.hpp"
#include "engines/cpu/product/tile.hpp"
#include "engines/cpu/vector/kernels.hpp"
#include "graph/ops/block_scale.hpp"

namespace tsr::cpu::attention {
namespace {

using Table = std::array<float, 256>;

Table make_table(DType type) {
  Table y;
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(from_minifloat_bits(type, static_cast<uint8_t>(i)));
  return y;
}

const Table& fp8_table(DType type) {
  static const std::vector<Table> tables = [] {
    std::vector<Table> all(dtypes().size());
    for (const DTypeInfo& d : dtypes())
      if (is_fp8(d.type)) all[static_cast<size_t>(d.type)] = make_table(d.type);
    return all;
  }();
  return tables[static_cast<size_t>(type)];
}

// Rows at equal distances.
void convert(const Sequences& s, const void* base, int64_t offset, int64_t rows, float* to, int64_t ld) {
  int64_t d = s.dims[3], stride = s.strides[3], step = s.strides[2];
  if (s.type == DType::bf16 && stride == 1)
    return vectors().widen_bf16(rows, d, static_cast<const uint16_t*>(base) + offset, step, to, ld);
  for (int64_t r = 0; r < rows; ++r, offset += step, to += ld) {
    if (!is_fp8(s.type)) {
      kernels().load(s.type, Lane::f32, base, offset, stride, to, d);
      continue;
    }
    const Table& table = fp8_table(s.type);
    const auto* from = static_cast<const uint8_t*>(base) + offset;
    for (int64_t i = 0; i < d; ++i) to[i] = table[from[i * stride]];
  }
}

// The factors lie where their own tensor says; neighbours along d share one, or every element has its own.
void apply_scales(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t step, float* to) {
  int64_t along = s.scale_block[3];
  int cut = block_axis(s.scale_block);
  for (int64_t i = 0; i < s.dims[3]; i += along) {
    int64_t at = scale_offset(s.scale_tensor, {b, h, step / s.scale_block[2], i / along}, cut);
    auto factor = load<float>(DType::e8m0, t[s.scales], at);
    for (int64_t j = i; j < std::min(i + along, s.dims[3]); ++j) to[j] *= factor;
  }
}

}  // namespace

Soon soon(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t first, int64_t count) {
  if (s.strides[3] != 1 || count <= 0) return {};
  int64_t element = byte_size(s.type, 1);
  const auto* data = static_cast<const std::byte*>(t[s.id]) + s.row(t, b, h, first) * element;
  return {data, std::min(count, s.run(first)), s.strides[2] * element, s.dims[3] * element};
}

Rows read_rows(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t first, int64_t count, bool padded,
               float* scratch, int64_t ld) {
  int64_t exist = std::clamp<int64_t>(s.steps(t, b, first + count) - first, 0, count);
  bool direct = s.type == DType::f32 && s.strides[3] == 1 && (!padded || s.dims[3] % tile().columns == 0);
  if (direct && exist == count && count > 0 && s.run(first) >= count)
    return {static_cast<const float*>(t[s.id]) + s.row(t, b, h, first), s.strides[2]};
  for (int64_t i = 0, n = 0; i < exist; i += n) {
    n = std::min(exist - i, s.run(first + i));
    convert(s, t[s.id], s.row(t, b, h, first + i), n, scratch + i * ld, ld);
  }
  for (int64_t i = 0; s.scales != kNone && i < exist; ++i) apply_scales(s, t, b, h, first + i, scratch + i * ld);
  for (int64_t i = exist; i < count; ++i) std::fill_n(scratch + i * ld, s.dims[3], 0.0f);
  return {scratch, ld};
}

int64_t take_out(Rows& x, int64_t count, int64_t columns, float* scratch, int64_t ld, int64_t* which) {
  const Vectors& loops = vectors();
  if (loops.finite(count, columns, x.data, x.ld)) return 0;
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    float* to = scratch + i * ld;
    if (x.data != scratch) std::copy_n(x.data + i * x.ld, columns, to);
    if (loops.finite(1, columns, to, ld)) continue;
    std::fill_n(to, columns, 0.0f);
    which[found++] = i;
  }
  x = {scratch, ld};
  return found;
}

void put_back(int64_t n, const float* p, const float* c, int64_t stride, const float* row, int64_t columns, float* y,
              int64_t ld) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; p[i * stride] != 0 && j < columns; ++j) y[i * ld + j] += c[i * stride] * row[j];
}

void read_row(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t step, float* to) {
  if (step >= s.steps(t, b, step + 1)) return std::fill_n(to, s.dims[3], 0.0f), void();
  convert(s, t[s.id], s.row(t, b, h, step), 1, to, 0);
  if (s.scales != kNone) apply_scales(s, t, b, h, step, to);
}

void write_row(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t step, const float* from) {
  write_part(s, t, b, h, step, 0, s.dims[3], from);
}

void write_part(const Sequences& s, Tensors t, int64_t b, int64_t h, int64_t step, int64_t first, int64_t count,
                const float* from) {
  if (step >= s.steps(t, b, step + 1)) return;
  int64_t at = s.row(t, b, h, step) + first * s.strides[3];
  kernels().store(s.type, Lane::f32, from, t[s.id], at, s.strides[3], count);
}

}  // namespace tsr::cpu::attention
