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
  constexpr int64_t kWide = 128 / sizeof(T), kSome = 16 / sizeof(T);
  if (n == kWide) return void(std::memcpy(to, from, 128));
  int64_t i = 0;
  for (; i + kSome <= n; i += kSome) std::memcpy(to + i, from + i, 16);
  for (; i < n; ++i) to[i] = from[i];
}

// Reading along neighbours meets short runs far apart, which are more than the processor foresees: asks for those
// from inner position p on, `ahead` of what is read.
void prefetch(const StridedMatrix& m, int64_t first, int64_t n, int64_t p, int64_t ahead) {
  constexpr int64_t kLine = 64;
  if (m.stride != 1 || p + ahead >= m.depth) return;
  int64_t bytes = byte_size(m.type, 1);
  const char* next = static_cast<const char*>(m.base) + (m.offset + first + (p + ahead) * m.inner) * bytes;
  for (int64_t b = 0; b < n * bytes; b += kLine) __builtin_prefetch(next + b);
}

// Neighbours lie closer together than inner elements: read along them.
template <class T>
void pack_along(const StridedMatrix& m, const Panels<T>& to, int64_t first) {
  constexpr int64_t kAhead = 4;
  T buffer[kRun];
  for (int64_t p = 0; p < m.depth; ++p)
    for (int64_t i = 0; i < m.n; i += kRun) {
      int64_t count = std::min(kRun, m.n - i), offset = m.offset + i * m.stride + p * m.inner;
      prefetch(m, i, count, p, kAhead);
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

// --- narrow elements, some to a word

// n narrow elements: where they are, or gathered or converted into `buffer`. Each byte is combined with `flip`.
const Bf16* as_narrow(const StridedMatrix& m, int64_t offset, int64_t stride, int64_t n, uint8_t, Bf16* buffer) {
  if (m.type == DType::bf16) {
    const Bf16* from = static_cast<const Bf16*>(m.base) + offset;
    if (stride == 1 || n == 1) return from;
    for (int64_t i = 0; i < n; ++i) buffer[i] = from[i * stride];
    return buffer;
  }
  float wide[kRun];
  kernels().load(m.type, Lane::f32, m.base, offset, stride, wide, n);
  kernels().store(DType::bf16, Lane::f32, wide, buffer, 0, 1, n);
  return buffer;
}
const Byte* as_narrow(const StridedMatrix& m, int64_t offset, int64_t stride, int64_t n, uint8_t flip, Byte* buffer) {
  const Byte* from = static_cast<const Byte*>(m.base) + offset;
  if (flip == 0 && (stride == 1 || n == 1)) return from;
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) buffer[i].bits = from[i].bits ^ flip;
  else
    for (int64_t i = 0; i < n; ++i) buffer[i].bits = from[i * stride].bits ^ flip;
  return buffer;
}

void join(int64_t n, const Bf16* const* rows, Bf16* to) { joins().pairs(n, rows, to); }
void join(int64_t n, const Byte* const* rows, Byte* to) { joins().bytes(n, rows, to); }

// Calls f(j, piece) for pieces of the neighbours [first, first + n) that lie in one panel.
template <class T, class F>
void each_panel_piece(const Panels<T>& to, int64_t first, int64_t n, const F& f) {
  for (int64_t j = 0, piece; j < n; j += piece) {
    piece = std::min(n - j, to.width - (first + j) % to.width);
    f(j, piece);
  }
}

// Inner positions [p, p + depth) that fill no word.
template <class T>
void pack_single(const StridedMatrix& m, const Panels<T>& to, int64_t first, int64_t p, int64_t depth) {
  T buffer[kRun];
  for (int64_t end = p + depth; p < end; ++p)
    for (int64_t i = 0; i < m.n; i += kRun) {
      int64_t count = std::min(kRun, m.n - i);
      const T* run = as_narrow(m, m.offset + i * m.stride + p * m.inner, m.stride, count, to.flip, buffer);
      each_panel_piece(to, first + i, count, [&](int64_t j, int64_t piece) {
        T* at = to.place(first + i + j, p);
        for (int64_t x = 0; x < piece; ++x) at[x * to.run()] = run[j + x];
      });
    }
}

// Whole words from inner position p on, read along neighbours and joined, into panels made of rows: turned round.
template <class T>
void join_rows(const StridedMatrix& m, const Panels<T>& to, int64_t first, int64_t p, int64_t words) {
  constexpr int64_t kSome = 64;  // neighbours
  alignas(64) T joined[kRowWords][kSome * kGroup<T>];
  T buffer[kGroup<T>][kSome];
  for (int64_t w = 0, count; w < words; w += count) {
    int64_t at = p + w * kGroup<T>;
    count = std::min(words - w, kRowWords - (at + to.skip) / kGroup<T> % kRowWords);
    for (int64_t i = 0; i < m.n; i += kSome) {
      int64_t n = std::min(kSome, m.n - i);
      for (int64_t x = 0; x < count; ++x) {
        const T* rows[kGroup<T>];
        for (int64_t k = 0; k < kGroup<T>; ++k)
          rows[k] = as_narrow(m, m.offset + i * m.stride + (at + x * kGroup<T> + k) * m.inner, m.stride, n, to.flip,
                              buffer[k]);
        join(n, rows, joined[x]);
      }
      each_panel_piece(to, first + i, n, [&](int64_t j, int64_t piece) {
        tile().transpose(count, piece, reinterpret_cast<const float*>(joined[0] + j * kGroup<T>), kSome,
                         reinterpret_cast<float*>(to.place(first + i + j, at)), kRowWords);
      });
    }
  }
}

// Whole words from inner position p on, read along neighbours and joined.
template <class T>
void join_along(const StridedMatrix& m, const Panels<T>& to, int64_t first, int64_t p, int64_t words) {
  constexpr int64_t kAhead = 8;
  T buffer[kGroup<T>][kRun];
  for (int64_t end = p + words * kGroup<T>; p < end; p += kGroup<T>)
    for (int64_t i = 0; i < m.n; i += kRun) {
      int64_t count = std::min(kRun, m.n - i);
      for (int64_t k = 0; k < kGroup<T>; ++k) prefetch(m, i, count, p + k, kAhead);
      const T* rows[kGroup<T>];
      for (int64_t k = 0; k < kGroup<T>; ++k)
        rows[k] = as_narrow(m, m.offset + i * m.stride + (p + k) * m.inner, m.stride, count, to.flip, buffer[k]);
      each_panel_piece(to, first + i, count, [&](int64_t j, int64_t piece) {
        const T* part[kGroup<T>];
        for (int64_t k = 0; k < kGroup<T>; ++k) part[k] = rows[k] + j;
        join(piece, part, to.place(first + i + j, p));
      });
    }
}

// As words: bytes that are written might be the loop's own bounds, for all the compiler knows.
template <class T>
void flip_bytes(T* at, int64_t words, uint8_t flip) {
  uint32_t flips = flip * 0x01010101u;
  for (int64_t i = 0; i < words; ++i) {
    uint32_t word;
    std::memcpy(&word, at + i * kGroup<T>, sizeof word);
    word ^= flips;
    std::memcpy(at + i * kGroup<T>, &word, sizeof word);
  }
}

// Whole words from inner position p on, read along them, into panels made of rows.
template <class T>
void copy_rows(const StridedMatrix& m, const Panels<T>& to, int64_t first, int64_t p, int64_t words) {
  T buffer[kRun];
  for (int64_t i = 0; i < m.n; ++i)
    for (int64_t q = 0, count; q < words * kGroup<T>; q += count) {
      count = std::min(kRun, words * kGroup<T> - q);
      const T* run = as_narrow(m, m.offset + i * m.stride + (p + q) * m.inner, m.inner, count, to.flip, buffer);
      for (int64_t k = 0, piece; k < count; k += piece) {
        int64_t at = p + q + k;
        piece = std::min(count - k, to.run() - (at + to.skip) % to.run());
        std::memcpy(to.place(first + i, at), run + k, static_cast<size_t>(piece) * sizeof(T));
      }
    }
}

// The same into panels without: squares of words are turned round.
template <class T>
void turn_across(const StridedMatrix& m, const Panels<T>& to, int64_t first, int64_t p, int64_t words) {
  constexpr int64_t kWord = kGroup<T>, kWords = kRun / kWord;
  alignas(64) T buffer[kMaxWidth * kRun];
  const T* base = static_cast<const T*>(m.base) + m.offset + p;
  bool in_place = (sizeof(T) == 1 || m.type == DType::bf16) && m.inner == 1 && m.stride % kWord == 0 &&
                  reinterpret_cast<uintptr_t>(base) % 4 == 0;
  each_panel_piece(to, first, m.n, [&](int64_t i, int64_t piece) {
    for (int64_t q = 0; q < words; q += kWords) {
      int64_t count = std::min(kWords, words - q), at = p + q * kWord;
      for (int64_t j = 0; !in_place && j < piece; ++j) {
        T* row = buffer + j * kRun;
        const T* run = as_narrow(m, m.offset + (i + j) * m.stride + at * m.inner, m.inner, count * kWord, 0, row);
        if (run != row) std::memcpy(row, run, static_cast<size_t>(count) * 4);
      }
      const T* from = in_place ? base + i * m.stride + q * kWord : buffer;
      tile().transpose(piece, count, reinterpret_cast<const float*>(from), in_place ? m.stride / kWord : kWords,
                       reinterpret_cast<float*>(to.place(first + i, at)), to.width);
      for (int64_t k = 0; to.flip && k < count; ++k) flip_bytes(to.place(first + i, at + k * kWord), piece, to.flip);
    }
  });
}

template <class T>
void pack_narrow(const StridedMatrix& m, const Panels<T>& to, int64_t first, bool along) {
  int64_t head = std::min(m.depth, (kGroup<T> - to.skip % kGroup<T>) % kGroup<T>), words = (m.depth - head) / kGroup<T>;
  int64_t tail = head + words * kGroup<T>;
  if (head > 0) pack_single(m, to, first, 0, head);
  if (words > 0 && to.rows)
    along ? join_rows(m, to, first, head, words) : copy_rows(m, to, first, head, words);
  else if (words > 0)
    along ? join_along(m, to, first, head, words) : turn_across(m, to, first, head, words);
  if (tail < m.depth) pack_single(m, to, first, tail, m.depth - tail);
}

}  // namespace

template <class T>
void pack(const StridedMatrix& m, const Panels<T>& to, int64_t first) {
  if (m.n == 0 || m.depth == 0) return;
  bool along = m.depth == 1 || (m.n > 1 && std::abs(m.stride) <= std::abs(m.inner));
  if constexpr (kGroup < T >> 1)
    pack_narrow(m, to, first, along);
  else
    along ? pack_along(m, to, first) : pack_across(m, to, first);
}

template <class T>
void pack_zeros(const Panels<T>& to, int64_t first, int64_t n, int64_t from, int64_t end) {
  T zero{};
  if constexpr (sizeof(T) == 1) zero.bits = to.flip;
  for (int64_t i = 0, piece; i < n; i += piece) {
    piece = std::min(n - i, to.width - (first + i) % to.width);
    for (int64_t p = from; p < end; ++p) {
      T* at = to.place(first + i, p);
      for (int64_t j = 0; j < piece; ++j) at[j * to.run()] = zero;
    }
  }
}

template void pack(const StridedMatrix&, const Panels<float>&, int64_t);
template void pack(const StridedMatrix&, const Panels<double>&, int64_t);
template void pack(const StridedMatrix&, const Panels<Bf16>&, int64_t);
template void pack(const StridedMatrix&, const Panels<Byte>&, int64_t);
template void pack_zeros(const Panels<float>&, int64_t, int64_t, int64_t, int64_t);
template void pack_zeros(const Panels<double>&, int64_t, int64_t, int64_t, int64_t);
template void pack_zeros(const Panels<Bf16>&, int64_t, int64_t, int64_t, int64_t);
template void pack_zeros(const Panels<Byte>&, int64_t, int64_t, int64_t, int64_t);

}  // namespace tsr::cpu
