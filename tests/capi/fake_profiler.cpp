// SPDX-License-Identifier: Apache-2.0
// A profiler as NVTX loads it, by NVTX_INJECTION64_PATH: counts the ranges of a program by their names.
#include <nvtx3/nvToolsExt.h>

#include <map>
#include <mutex>
#include <string>

namespace {

struct Counts {
  std::mutex lock;
  std::map<std::string, int> opened;
  int open = 0;
};

Counts& counts() {
  static Counts c;
  return c;
}

nvtxDomainHandle_t make_domain(const char*) { return reinterpret_cast<nvtxDomainHandle_t>(&counts()); }

int push(nvtxDomainHandle_t, const nvtxEventAttributes_t* range) {
  std::lock_guard guard(counts().lock);
  ++counts().opened[range->message.ascii];
  return counts().open++;
}

int pop(nvtxDomainHandle_t) {
  std::lock_guard guard(counts().lock);
  return --counts().open;
}

template <class F>
void put(NvtxFunctionTable table, NvtxCallbackIdCore2 slot, F* function) {
  *table[slot] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" {

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  put(table, NVTX_CBID_CORE2_DomainCreateA, make_domain);
  put(table, NVTX_CBID_CORE2_DomainRangePushEx, push);
  put(table, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}

int profiler_opened(const char* name) {
  std::lock_guard guard(counts().lock);
  return counts().opened[name];
}

int profiler_open() { return counts().open; }
}
