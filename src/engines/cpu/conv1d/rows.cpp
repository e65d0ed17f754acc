// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/conv1d/rows.hpp"

#include "base/isa.hpp"

namespace tsr::cpu {

namespace generic {
extern const SequenceLoops kSequenceLoops;
}
#if defined(__x86_64__)
namespace avx2 {
extern const SequenceLoops kSequenceLoops;
}
namespace avx512 {
extern const SequenceLoops kSequenceLoops;
}
#endif

const SequenceLoops& sequence_loops() {
#if defined(__x86_64__)
  static const Isa isa = best_isa();
  if (isa == Isa::avx512) return avx512::kSequenceLoops;
  if (isa == Isa::avx2) return avx2::kSequenceLoops;
#endif
  return generic::kSequenceLoops;
}

}  // namespace tsr::cpu
