// SPDX-License-Identifier: Apache-2.0
// One row of results over their windows, for many planes side by side (the lanes). windows_isa.cpp is compiled once
// for each instruction set.
#pragma once

#include <cstdint>

namespace tsr::cpu {

// Lanes come in at least this many; where they are no multiple, the last ones are computed twice.
constexpr int64_t kLaneBlock = 16;

// A tap along the row, or of the axes before it.
template <class T>
struct WindowTap {
  int64_t source = 0;  // negative: padding
  T weight = 1, place = 0;
};

template <class T>
struct SourceRow {
  const T* values = nullptr;  // lanes of position p at values + p * step
  int64_t step = 0;
  const T* index = nullptr;  // `select` only: which place of its window each value belongs to
  int64_t index_step = 0;
  T weight = 1, place = 0;  // of the axes before the row
};

template <class T>
struct WindowRow {
  const SourceRow<T>* rows = nullptr;
  int64_t row_count = 0;
  const WindowTap<T>* taps = nullptr;
  const int64_t* first = nullptr;  // result i takes taps[first[i]] to taps[first[i + 1]] of every row
  int64_t origin = 0;              // position that the rows start at
  int64_t ahead = 0;               // how much further on in memory the next results read: that is fetched early
  int64_t count = 0, lanes = 0;
  const T* padding = nullptr;  // lanes of padding
  T alpha = 1;
  T* y = nullptr;
  int64_t y_step = 0;
  T* index = nullptr;  // of `largest`; may be null
  int64_t index_step = 0;
};

template <class T>
struct Windows {
  // The first largest value and its place; NaN is larger than everything. Nothing at all gives -infinity.
  void (*largest)(const WindowRow<T>& w);
  void (*sum)(const WindowRow<T>& w);     // of values times weights
  void (*select)(const WindowRow<T>& w);  // sum of the values whose index is the tap's place
};

template <class T>
const Windows<T>& windows();

}  // namespace tsr::cpu
