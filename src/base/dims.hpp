// SPDX-License-Identifier: Apache-2.0
// A tensor's sizes or strides: up to 8 int64 values held in place, so that shapes cost no allocation.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/error.hpp"

namespace tsr {

constexpr int kMaxRank = 8;

class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> v) { assign(v.begin(), v.end()); }
  explicit Dims(const Ints& v) { assign(v.begin(), v.end()); }
  static Dims filled(int rank, int64_t value) {
    Dims d;
    for (int i = 0; i < rank; ++i) d.push_back(value);
    return d;
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  int64_t operator[](int i) const { return v_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return v_[static_cast<size_t>(i)]; }
  const int64_t* begin() const { return v_.data(); }
  const int64_t* end() const { return v_.data() + size_; }
  int64_t* begin() { return v_.data(); }
  int64_t* end() { return v_.data() + size_; }
  int64_t back() const { return v_[static_cast<size_t>(size_ - 1)]; }
  void push_back(int64_t value) {
    require(size_ < kMaxRank, "a tensor has at most ", kMaxRank, " dimensions");
    v_[static_cast<size_t>(size_++)] = value;
  }
  Ints to_vector() const { return Ints(begin(), end()); }
  bool operator==(const Dims& o) const {
    if (size_ != o.size_) return false;
    for (int i = 0; i < size_; ++i)
      if ((*this)[i] != o[i]) return false;
    return true;
  }

 private:
  template <class It>
  void assign(It first, It last) {
    for (; first != last; ++first) push_back(*first);
  }
  std::array<int64_t, kMaxRank> v_{};
  int size_ = 0;
};

std::string to_string(const Dims& d);  // "[2,3,4]"
std::ostream& operator<<(std::ostream& s, const Dims& d);
void append_part(std::string& s, const Dims& d);
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }  // b > 0
constexpr int64_t floor_div(int64_t a, int64_t b) { return -ceil_div(-a, b); }                    // b > 0
int64_t volume(const Dims& d);                              // product; raises when it leaves int64
Dims packed_strides(const Dims& dims);                      // row-major
Dims permuted_strides(const Dims& dims, const int* order);  // order lists dimensions from slowest to fastest

Dims index_of(int64_t place, const Dims& dims);  // of a place in row-major order

// Steps a multi-index through `dims` in row-major order; false after the last one.
inline bool next_index(Dims& index, const Dims& dims) {
  for (int i = dims.size() - 1; i >= 0; --i) {
    if (++index[i] < dims[i]) return true;
    index[i] = 0;
  }
  return false;
}

}  // namespace tsr
