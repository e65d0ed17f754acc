// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/resample/windows.hpp"

#include "base/isa.hpp"

namespace tsr::cpu {

namespace generic {
extern const Windows<float> kWindows;
extern const Windows<double> kWideWindows;
}  // namespace generic
#if defined(__x86_64__)
namespace avx2 {
extern const Windows<float> kWindows;
extern const Windows<double> kWideWindows;
}  // namespace avx2
namespace avx512 {
extern const Windows<float> kWindows;
extern const Windows<double> kWideWindows;
}  // namespace avx512
#endif

template <>
const Windows<float>& windows() {
#if defined(__x86_64__)
  static const Isa isa = best_isa();
  if (isa == Isa::avx512) return avx512::kWindows;
  if (isa == Isa::avx2) return avx2::kWindows;
#endif
  return generic::kWindows;
}

template <>
const Windows<double>& windows() {
#if defined(__x86_64__)
  static const Isa isa = best_isa();
  if (isa == Isa::avx512) return avx512::kWideWindows;
  if (isa == Isa::avx2) return avx2::kWideWindows;
#endif
  return generic::kWideWindows;
}

}  // namespace tsr::cpu
