// SPDX-License-Identifier: Apache-2.0
// Random graphs of one heavy operation each, as case text. What a kernel is compiled for (types, layouts, options) is
// drawn apart from sizes and data, so that graphs in a row can share kernels.
#pragma once

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "base/cat.hpp"

namespace tsr::fuzz {

using Sizes = std::vector<int64_t>;

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  int64_t pick(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint64_t>(hi - lo + 1));
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  template <class T>
  T of(std::initializer_list<T> v) {
    return *(v.begin() + pick(0, static_cast<int64_t>(v.size()) - 1));
  }
  std::mt19937_64& engine() { return random_; }

 private:
  std::mt19937_64 random_;
};

struct Draws {
  Draw kind, size;
};

std::string list(const Sizes& v);  // "2,3,4"

// Up to three operations behind y, and the output without its type. `whole` is an operand of the sizes of y, `one` are
// the sizes of one value a channel or column.
std::string work_behind(Draws& d, const std::string& whole, const Sizes& one);

std::string attention(Draws& d);
std::string convolution(Draws& d);
std::string mean(Draws& d);
std::string product(Draws& d);
std::string recurrent(Draws& d);
std::string transpose(Draws& d);

}  // namespace tsr::fuzz
