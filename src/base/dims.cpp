// SPDX-License-Identifier: Apache-2.0
#include "base/dims.hpp"

#include <ostream>

namespace tsr {

void append_part(std::string& s, const Dims& d) {
  for (int i = 0; i < d.size(); ++i) {
    s += i ? ',' : '[';
    Part(d[i]).append_to(s);
  }
  s += d.empty() ? "[]" : "]";
}

std::string to_string(const Dims& d) { return cat(d); }

std::ostream& operator<<(std::ostream& s, const Dims& d) { return s << to_string(d); }

int64_t volume(const Dims& d) {
  int64_t n = 1;
  for (int64_t v : d) require(!__builtin_mul_overflow(n, v, &n), "sizes ", d, " multiply to more than 2^63 elements");
  return n;
}

Dims index_of(int64_t place, const Dims& dims) {
  Dims index = dims;
  for (int i = dims.size() - 1; i >= 0; --i) index[i] = place % dims[i], place /= dims[i];
  return index;
}

Dims packed_strides(const Dims& dims) {
  int order[kMaxRank];
  for (int i = 0; i < dims.size(); ++i) order[i] = i;
  return permuted_strides(dims, order);
}

Dims permuted_strides(const Dims& dims, const int* order) {
  Dims strides = Dims::filled(dims.size(), 1);
  int64_t step = 1;
  for (int k = dims.size() - 1; k >= 0; --k) {
    int d = order[k];
    strides[d] = step;
    int64_t extent = dims[d] > 0 ? dims[d] : 1;
    require(!__builtin_mul_overflow(step, extent, &step), "sizes ", dims, " multiply to more than 2^63 elements");
  }
  return strides;
}

}  // namespace tsr
