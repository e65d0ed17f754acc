// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/product/pack.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "engines/cpu/product/tile.hpp"
#include "engines/cpu/vector/kernels.hpp"

namespace tsr::cpu {
namespace {

constexpr int64_t kRun = 256;      // elements that are converted at once
constexpr int64_t kMaxWidth = 64;  // of a panel

template <class T>
constexpr DType kNative = sizeof(T) == 4 ? DType::f32 : DType::f64;
template <class T>
constexpr Lane kLane = sizeof(T) == 4 ? Lane::f32 : Lane::f64;

// n elements as T: where they are, or converted into `buffer`.
template <class T>
const T* as_lane(const StridedMatrix& m, int64_t offset, int64_t stride, int64_t n, T* buffer) {
  if (m.type == kNative<T> && (stride == 1 || n == 1)) return static_cast<const T*>(m.base) + offset;
  kernels().load(m.type, kLane<T>, m.base, offset, stride, buffer, n);
  return buffer;
}

// Pieces are short: a call of memcpy would take longer than the copy.
template <class T>
void copy_piece(T* to, const T* from, int64_t n) {
  constexpr int64_t kWide = 128 / sizeof(T);
  if (n == kWide)
    std::memcpy(to, from, 128);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

// Neighbours lie closer together than inner elements: read along them.
template <class T>
void pack_along(const StridedMatrix& m, const Panels<T>& to, int64_t first) {
  constexpr int64_t kAhead = 4;  // rows: short runs far apart are more than the processor foresees
  T buffer[kRun];
  int64_t bytes = byte_size(m.type, 1);
  for (int64_t p = 0; p < m.depth; ++p)
    for (int64_t i = 0; i < m.n; i += kRun) {
      int64_t count = std::min(kRun, m.n - i), offset = m.offset + i * m.stride + p * m.inner;
      if (m.stride == 1 && p + kAhead < m.depth) {
        const char* next = static_cast<const char*>(m.base) + (offset + kAhead * m.inner) * bytes;
        for (int64_t b = 0; b < count * bytes; b += 64) __builtin_prefetch(next + b);
      }
      const T* run = as_lane(m, offset, m.stride, count, buffer);
      for (int64_t j = 0, piece; j < count; j += piece) {
        int64_t at = first + i + j;
        piece = std::min(count - j, to.width - at % to.width);
        copy_piece(to.place(at, p), run + j, piece);
      }
    }
}

// Inner elements lie closer together: read along them and turn squares round.
template <class T>
void pack_across(const StridedMatrix& m, const Panels<T>& to, int64_t first) {
  T buffer[kMaxWidth * kRun];
  bool in_place = m.type == kNative<T> && m.inner == 1;
  for (int64_t i = 0, piece; i < m.n; i += piece) {
    piece = std::min(m.n - i, to.width - (first + i) % to.width);
    for (int64_t p = 0; p < m.depth; p += kRun) {
      int64_t count = std::min(kRun, m.depth - p), offset = m.offset + i * m.stride + p * m.inner;
      const T* from = static_cast<const T*>(m.base) + offset;
      int64_t stride = m.stride;
      if (!in_place) {
        for (int64_t j = 0; j < piece; ++j)
          kernels().load(m.type, kLane<T>, m.base, offset + j * m.stride, m.inner, buffer + j * kRun, count);
        from = buffer;
        stride = kRun;
      }
      tile_of<T>().transpose(piece, count, from, stride, to.place(first + i, p), to.width);
    }
  }
}

}  // namespace

template <class T>
void pack(const StridedMatrix& m, const Panels<T>& to, int64_t first) {
  if (m.n == 0 || m.depth == 0) return;
  bool along = m.depth == 1 || (m.n > 1 && std::abs(m.stride) <= std::abs(m.inner));
  along ? pack_along(m, to, first) : pack_across(m, to, first);
}

template <class T>
void pack_zeros(const Panels<T>& to, int64_t first, int64_t n, int64_t from, int64_t end) {
  for (int64_t i = 0, piece; i < n; i += piece) {
    piece = std::min(n - i, to.width - (first + i) % to.width);
    for (int64_t p = from; p < end; ++p) std::fill_n(to.place(first + i, p), piece, T(0));
  }
}

template void pack(const StridedMatrix&, const Panels<float>&, int64_t);
template void pack(const StridedMatrix&, const Panels<double>&, int64_t);
template void pack_zeros(const Panels<float>&, int64_t, int64_t, int64_t, int64_t);
template void pack_zeros(const Panels<double>&, int64_t, int64_t, int64_t, int64_t);

}  // namespace tsr::cpu
