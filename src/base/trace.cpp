// SPDX-License-Identifier: Apache-2.0
#include "base/trace.hpp"

#ifdef TESSERA_HAS_NVTX

#include <nvtx3/nvToolsExt.h>

namespace tsr {
namespace {

// Null without a profiler, which NVTX looks for at the first call: its library is named by NVTX_INJECTION64_PATH.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t d = nvtxDomainCreateA("tessera");
  return d;
}

}  // namespace

bool TraceRange::push(const char* name) {
  if (!domain()) {
    wanted = false;
    return false;
  }
  nvtxEventAttributes_t range{};
  range.version = NVTX_VERSION;
  range.size = sizeof range;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &range);
  return true;
}

void TraceRange::pop() { nvtxDomainRangePop(domain()); }

}  // namespace tsr

#else

namespace tsr {

bool TraceRange::push(const char*) {
  wanted = false;
  return false;
}
void TraceRange::pop() {}

}  // namespace tsr

#endif
