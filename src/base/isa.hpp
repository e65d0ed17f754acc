// SPDX-License-Identifier: Apache-2.0
// Which vector instructions this processor has. Files named *_isa.cpp are compiled once for each of these, into a
// namespace of that name; callers pick at run time.
#pragma once

#include <cstdint>

namespace tsr {

enum class Isa : uint8_t { generic, avx2, avx512 };

inline Isa best_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::generic;
}

}  // namespace tsr
