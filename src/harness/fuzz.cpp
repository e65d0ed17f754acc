// SPDX-License-Identifier: Apache-2.0
#include "harness/fuzz.hpp"

#include "base/error.hpp"

namespace tsr {

void run_fuzz(int64_t, uint64_t, const RunnerOptions&, Tally&) {
  fail(Status::not_supported, "this build has no generator of random graphs");
}

}  // namespace tsr
