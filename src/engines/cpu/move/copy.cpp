// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/move/copy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/thread_pool.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tsr::cpu {
namespace {

constexpr int64_t kTile = 64;     // elements along each side of a tile
constexpr int64_t kSquare = 512;  // and of a square of tiles: the pages of its rows stay known to the processor
constexpr int64_t kGrainBytes = 128 * 1024;  // worth waking another thread for
constexpr int64_t kPiece = 64 * 1024;        // elements of a longer line that make a piece of work

template <class T>
void copy_line(const char* from, char* to, const CopyAxis& a) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < a.size; ++i) y[i * a.to] = x[i * a.from];
}

struct Pair {
  uint64_t low, high;
};

template <class F>
void with_type(int64_t bytes, const F& f) {
  if (bytes == 1) return f(uint8_t{});
  if (bytes == 2) return f(uint16_t{});
  if (bytes == 4) return f(uint32_t{});
  if (bytes == 8) return f(uint64_t{});
  f(Pair{});
}

// Rows of N = 16 / sizeof(T) values each.
template <class T>
struct Square {
  static constexpr int N = 16 / sizeof(T);
  typedef T V __attribute__((vector_size(16)));
  V row[N];

  // Interleaving rows i and i + N / 2, log2(N) times over, transposes.
  void transpose() {
#pragma GCC unroll 4
    for (int width = 1; width < N; width *= 2) {
      V next[N];
#pragma GCC unroll 8
      for (int i = 0; i < N / 2; ++i) {
        next[2 * i] = zip<0>(row[i], row[i + N / 2], std::make_integer_sequence<int, N>());
        next[2 * i + 1] = zip<N / 2>(row[i], row[i + N / 2], std::make_integer_sequence<int, N>());
      }
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) row[i] = next[i];
    }
  }
  template <int Start, int... K>
  static V zip(V a, V b, std::integer_sequence<int, K...>) {
    return __builtin_shufflevector(a, b, (Start + K / 2 + K % 2 * N)...);
  }
};

// A row of a tile to memory; past the caches, whole lines at a time, if that is asked for and possible.
void put(const char* from, char* to, size_t bytes, [[maybe_unused]] bool stream) {
  size_t i = 0;
#if defined(__SSE2__)
  if (stream)
    for (; i + 16 <= bytes; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_load_si128(reinterpret_cast<const __m128i*>(from + i)));
#endif
  std::memcpy(to + i, from + i, bytes - i);
}

void fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns; the source goes on for `left` rows. The tile
// is gathered first: its rows may lie a power of two apart, where a cache keeps but few of them.
template <class T>
void transpose_tile(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows, int64_t columns,
                    bool stream, int64_t left) {
  constexpr int N = Square<T>::N;
  alignas(64) T buffer[kTile][kTile];
  auto bytes = static_cast<size_t>(columns) * sizeof(T);
  for (int64_t i = 0; i < rows; ++i) std::memcpy(buffer[i], from + i * from_step, bytes);
  alignas(64) T turned[kTile][kTile];
  int64_t whole_rows = rows / N * N, whole_columns = columns / N * N;
  for (int64_t j = 0; j < whole_columns; j += N)
    for (int64_t i = 0; i < whole_rows; i += N) {
      Square<T> s;
#pragma GCC unroll 16
      for (int k = 0; k < N; ++k) std::memcpy(&s.row[k], &buffer[i + k][j], 16);
      s.transpose();
#pragma GCC unroll 16
      for (int k = 0; k < N; ++k) std::memcpy(&turned[j + k][i], &s.row[k], 16);
    }
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) turned[j][i] = buffer[i][j];
    // The tile below comes in meanwhile.
    if (j < left - kTile) {
      const char* next = reinterpret_cast<const char*>(from + (j + kTile) * from_step);
      for (size_t b = 0; b < bytes; b += 64) __builtin_prefetch(next + b, 0, 2);
    }
    put(reinterpret_cast<const char*>(turned[j]), reinterpret_cast<char*>(to + j * to_step),
        static_cast<size_t>(rows) * sizeof(T), stream);
  }
}

// Steps through the outer axes.
struct Walk {
  Walk(const std::vector<CopyAxis>& over, int64_t start) : axes(over) {
    for (size_t k = axes.size(); k-- > 0; start /= axes[k].size) {
      index[k] = start % axes[k].size;
      from += index[k] * axes[k].from, to += index[k] * axes[k].to;
    }
  }
  void next() {
    for (size_t k = axes.size(); k-- > 0;) {
      from += axes[k].from, to += axes[k].to;
      if (++index[k] < axes[k].size) return;
      index[k] = 0;
      from -= axes[k].size * axes[k].from, to -= axes[k].size * axes[k].to;
    }
  }
  const std::vector<CopyAxis>& axes;
  int64_t from = 0, to = 0;
  int64_t index[2 * kMaxRank + 1] = {};
};

}  // namespace

StridedCopy::StridedCopy(std::vector<CopyAxis> axes, int64_t element_bytes) : bytes_(element_bytes) {
  outer_ = merged(std::move(axes));
  empty_ = std::any_of(outer_.begin(), outer_.end(), [](const CopyAxis& a) { return a.size == 0; });
  if (empty_ || outer_.empty()) return;
  line_ = outer_.back();
  outer_.pop_back();
  auto inner = std::find_if(outer_.begin(), outer_.end(), [](const CopyAxis& a) { return a.from == 1; });
  tiled_ =
      line_.to == 1 && line_.from != 1 && inner != outer_.end() && bytes_ <= 8 && inner->size >= 4 && line_.size >= 4;
  if (tiled_) {
    across_ = *inner;
    outer_.erase(inner);
    units_ = ceil_div(across_.size, kSquare) * ceil_div(line_.size, kSquare);
    unit_elements_ = std::min(across_.size, kSquare) * std::min(line_.size, kSquare);
  } else {
    // A long line is cut into pieces that threads can share.
    if (line_.size > kPiece && line_.size % kPiece == 0) {
      outer_.push_back({line_.size / kPiece, line_.from * kPiece, line_.to * kPiece});
      line_.size = kPiece;
    }
    unit_elements_ = line_.size;
  }
  for (const CopyAxis& a : outer_) units_ *= a.size;
  constexpr int64_t kLarge = 4 << 20;  // bytes that do not stay in the caches
  large_ = units_ * unit_elements_ * bytes_ >= kLarge;
}

void StridedCopy::run(const void* from, void* to, int threads) const {
  if (empty_) return;
  int64_t grain = std::max<int64_t>(1, kGrainBytes / (unit_elements_ * bytes_));
  parallel_for(units_, grain, threads, [&](int64_t first, int64_t last, int) {
    if (tiled_)
      run_tiles(static_cast<const char*>(from), static_cast<char*>(to), first, last);
    else
      run_lines(static_cast<const char*>(from), static_cast<char*>(to), first, last);
  });
}

void StridedCopy::run_lines(const char* from, char* to, int64_t first, int64_t last) const {
  bool contiguous = line_.from == 1 && line_.to == 1;
  Walk at(outer_, first);
  for (int64_t unit = first; unit < last; ++unit, at.next()) {
    const char* a = from + at.from * bytes_;
    char* b = to + at.to * bytes_;
    if (contiguous)
      std::memcpy(b, a, static_cast<size_t>(line_.size * bytes_));
    else
      with_type(bytes_, [&](auto zero) { copy_line<decltype(zero)>(a, b, line_); });
  }
}

void StridedCopy::run_tiles(const char* from, char* to, int64_t first, int64_t last) const {
  int64_t down = ceil_div(line_.size, kSquare), wide = ceil_div(across_.size, kSquare);
  for (int64_t unit = first; unit < last; ++unit) {
    Walk at(outer_, unit / (down * wide));
    int64_t row = unit / wide % down * kSquare, column = unit % wide * kSquare;
    int64_t rows = std::min(kSquare, line_.size - row), columns = std::min(kSquare, across_.size - column);
    with_type(bytes_, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (sizeof(T) <= 8) {
        const T* a = reinterpret_cast<const T*>(from) + at.from + row * line_.from + column;
        T* b = reinterpret_cast<T*>(to) + at.to + column * across_.to + row;
        bool aligned = (reinterpret_cast<uintptr_t>(b) | static_cast<uintptr_t>(across_.to) * sizeof(T)) % 16 == 0;
        for (int64_t j = 0; j < columns; j += kTile)
          for (int64_t i = 0; i < rows; i += kTile)
            transpose_tile(a + i * line_.from + j, line_.from, b + j * across_.to + i, across_.to,
                           std::min(kTile, rows - i), std::min(kTile, columns - j), aligned && large_, rows - i);
      }
    });
  }
  fence();
}

}  // namespace tsr::cpu
