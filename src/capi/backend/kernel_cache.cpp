// SPDX-License-Identifier: Apache-2.0
// KERNEL_CACHE: which plans were made with it. The kernels themselves are kept by the run time, on disk and for all
// programs; sizes are no part of them.
#include <algorithm>

#include "capi/backend/json.hpp"
#include "capi/backend/planning.hpp"

namespace tsr::capi {
namespace {

struct KernelCache {
  mutable std::mutex lock;
  mutable std::vector<std::string> entries;
  mutable int64_t revision = 0;  // counts changes
};

constexpr const char* kMember = "tessera_kernel_cache";

void load(KernelCache& c, const std::string& text) {
  std::optional<JsonObject> j = parse_json(text);
  const auto* entries = j ? find<std::vector<std::string>>(*j, kMember) : nullptr;
  demand(entries, CUDNN_STATUS_BAD_PARAM, "KERNEL_CACHE_JSON_REPRESENTATION (", text.size(),
         " characters) is no kernel cache of this library");
  c.entries = *entries;
}

bool holds(const KernelCache& c, const std::string& entry) {
  std::lock_guard guard(c.lock);
  return std::find(c.entries.begin(), c.entries.end(), entry) != c.entries.end();
}

void hand_out_number(int64_t v, int64_t requested, int64_t* count, void* elements) {
  demand(requested <= 1, CUDNN_STATUS_BAD_PARAM, "the attribute has 1 element, asked for were ", requested);
  hand_out(std::vector<int64_t>{v}, requested, count, elements);
}

}  // namespace

void finalize_cache(Descriptor& d) {
  std::vector<char> text = d.list<char>(CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION);
  demand(!text.empty() || d.has(CUDNN_ATTR_KERNEL_CACHE_OPERATION_GRAPH), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
         "a kernel cache needs KERNEL_CACHE_OPERATION_GRAPH or KERNEL_CACHE_JSON_REPRESENTATION");
  auto c = std::make_shared<KernelCache>();
  if (!text.empty()) load(*c, {text.begin(), text.end()});
  make(d, c);
}

bool get_cache(const Descriptor& d, cudnnBackendAttributeName_t name, int64_t requested, int64_t* count,
               void* elements) {
  const auto& c = made<KernelCache>(d);
  if (name == CUDNN_ATTR_KERNEL_CACHE_IS_ENGINECFG_KERNEL_CACHED) {
    // The configuration comes in, the answer goes out by the count.
    const Descriptor& config = given_descriptor(given(static_cast<cudnnBackendDescriptor_t*>(elements), "the array"),
                                                "the configuration", CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    int64_t index = config.part(CUDNN_ATTR_ENGINECFG_ENGINE)->one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0);
    given(count, "elementCount") = holds(c, cache_entry(engine_of(config), index));
    return true;
  }
  std::lock_guard guard(c.lock);
  if (name == CUDNN_ATTR_KERNEL_CACHE_REVISION) {
    hand_out_number(c.revision, requested, count, elements);
  } else if (name == CUDNN_ATTR_KERNEL_CACHE_ENTRY_COUNT) {
    hand_out_number(static_cast<int64_t>(c.entries.size()), requested, count, elements);
  } else if (name == CUDNN_ATTR_KERNEL_CACHE_JSON_REPRESENTATION) {
    std::string text = print_json({{kMember, c.entries}});
    hand_out(std::vector<char>(text.begin(), text.end()), requested, count, elements);
  } else {
    return false;
  }
  return true;
}

std::string cache_entry(const MadeEngine& e, int64_t index) {
  return cat(index, " ", e.options.config, " ", e.device().key(), " ", e.graph()->fingerprint());
}

void remember(const Descriptor& cache, const std::string& entry) {
  const auto& c = made<KernelCache>(cache);
  std::lock_guard guard(c.lock);
  if (std::find(c.entries.begin(), c.entries.end(), entry) != c.entries.end()) return;
  c.entries.push_back(entry);
  ++c.revision;
}

}  // namespace tsr::capi
